"""Whatever stands in a profile list, the import answers with findings and never with a crash."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hub_ext.catalog.load import examine
from hub_ext.errors import Severity
from hub_ext.importer.compare import differences
from hub_ext.importer.draft import import_values
from hub_ext.importer.traits import TRAITS
from hub_ext.render.documents import to_yaml

scalars = st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats(allow_nan=True) | st.text(max_size=8)
words = st.sampled_from(
    [
        "1",
        "500m",
        "16G",
        "16Gi",
        "registry.example.org/a:1",
        "{username}",
        "{value}",
        "/dev/shm",
        "NoSchedule",
    ]
)
values = st.recursive(
    scalars | words,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["nvidia.com/gpu", "name", "key", "mountPath", "emptyDir", "a", ""]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=4,
)
overrides = (
    st.dictionaries(st.sampled_from(sorted(TRAITS)) | st.text(max_size=5), values, max_size=5) | values
)
choices = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("display_name", "description", "default", "allowed_groups"), values)
).flatmap(lambda c: overrides.map(lambda o: c | {"kubespawner_override": o}))
questions = st.fixed_dictionaries(
    {},
    optional={
        "display_name": values,
        "choices": st.dictionaries(st.text(max_size=4), choices | values, max_size=3) | values,
        "unlisted_choice": st.fixed_dictionaries({"enabled": values, "kubespawner_override": overrides})
        | values,
    },
)
profiles = st.fixed_dictionaries(
    {},
    optional={
        "display_name": values,
        "slug": values,
        "default": values,
        "access": values,
        "groups": values,
        "allowed_groups": values,
        "kubespawner_override": overrides,
        "profile_options": st.dictionaries(st.text(max_size=4), questions | values, max_size=2) | values,
    },
)


@settings(max_examples=300, deadline=None)
@given(st.lists(profiles | values, max_size=3) | st.dictionaries(st.text(max_size=3), profiles, max_size=2))
def test_any_list(raw: Any) -> None:
    draft = import_values([("values.yaml", to_yaml({"profile_list": raw}))])
    told = {finding.severity for finding in draft.findings}
    if not draft.catalog:
        assert Severity.ERROR in told
        return
    examination = examine(draft.catalog)
    if examination.catalog is None:
        assert Severity.ERROR in told or Severity.WARNING in told
    else:
        differences(examination.catalog, draft.combinations)
