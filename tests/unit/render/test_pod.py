"""What a workspace of the catalog makes true of a pod."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub_ext.catalog.compose import compose
from hub_ext.catalog.model import GpuRequest
from hub_ext.names import (
    ANNOTATION_CHOICES,
    ANNOTATION_USER,
    LABEL_COST_CENTER,
    LABEL_GPU_SHARING,
    LABEL_IMAGE_DIGEST,
    LABEL_PROFILE,
    LABEL_PROFILE_VERSION,
    LABEL_TEAM,
    LABEL_USER,
    is_label_value,
)
from hub_ext.render.pod import UserFacts, apply, build_claim, build_fragment

ALICE = UserFacts(name="alice", team="nlp")


def fragment_of(catalog, name, version, user=ALICE, **picks):
    return build_fragment(catalog, compose(catalog, catalog.by_key[name, version], picks), user)


@pytest.mark.parametrize(
    ("profile", "resource"),
    [
        (("gpu-full", 3), "nvidia.com/gpu"),
        (("gpu-slice", 1), "nvidia.com/mig-1g.18gb"),
        (("gpu-share", 1), "nvidia.com/gpu.shared"),
    ],
)
def test_a_gpu_is_one_resource_with_equal_request_and_limit(catalog, profile, resource):
    fragment = fragment_of(catalog, *profile)
    for amounts in (fragment.requests, fragment.limits):
        assert {k: v for k, v in amounts.items() if "nvidia" in k} == {resource: "1"}
    assert "NVIDIA_VISIBLE_DEVICES" not in fragment.env


def test_a_cpu_profile_hides_the_cards_of_its_node(catalog):
    fragment = fragment_of(catalog, "notebook-cpu", 1)
    assert fragment.env["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert not any("nvidia" in name for name in [*fragment.requests, *fragment.limits])
    assert LABEL_GPU_SHARING not in fragment.labels


def test_shares_by_mps_keep_the_shared_memory_of_mps(catalog):
    key = ("gpu-full", 3)
    profile = catalog.by_key[key]
    assert profile.storage.shared_memory is not None
    on_mps = profile.resources.model_copy(update={"gpu": GpuRequest(pool="gpu-mps")})
    plain, shared = (
        build_fragment(catalog, compose(catalog, one, {}), ALICE).mounts
        for one in (profile, profile.model_copy(update={"resources": on_mps}))
    )
    paths = [{mount["mountPath"] for mount in mounts} for mounts in (plain, shared)]
    assert paths[0] - paths[1] == {"/dev/shm"}


def test_the_server_learns_its_own_limits(catalog):
    env = fragment_of(catalog, "notebook-cpu", 1, size="small").env
    assert (env["CPU_GUARANTEE"], env["CPU_LIMIT"]) == ("0.5", "2.0")
    assert (env["MEM_GUARANTEE"], env["MEM_LIMIT"]) == ("2147483648", "4294967296")


def test_choices_change_what_they_name_only(catalog):
    one, two = (fragment_of(catalog, "gpu-full", 3, cards=cards) for cards in ("one", "two"))
    assert (one.limits["nvidia.com/gpu"], two.limits["nvidia.com/gpu"]) == ("1", "2")
    assert one.image == two.image
    assert json.loads(two.annotations[ANNOTATION_CHOICES]) == {"cards": "two", "image": "pytorch-cu130"}


def test_labels_say_what_and_whose(catalog):
    labels = fragment_of(catalog, "gpu-full", 3).labels
    assert labels[LABEL_PROFILE] == "gpu-full"
    assert labels[LABEL_PROFILE_VERSION] == "3"
    assert labels[LABEL_TEAM] == "nlp"
    assert labels[LABEL_COST_CENTER] == "CC-123"
    assert labels[LABEL_IMAGE_DIGEST] == "2" * 12
    assert labels["tier"] == "gpu"


@given(name=st.text(min_size=1, max_size=80), server=st.text(max_size=40))
def test_any_user_name_gives_valid_labels_and_an_exact_annotation(catalog, name, server):
    fragment = fragment_of(catalog, "gpu-full", 3, UserFacts(name=name, team="nlp", server_name=server))
    assert all(is_label_value(value) for value in fragment.labels.values())
    assert fragment.annotations[ANNOTATION_USER] == name
    uri = fragment.env["CHECKPOINT_URI"]
    assert uri == f"s3://checkpoints/nlp/{fragment.labels[LABEL_USER]}/"


@pytest.mark.parametrize(
    "name", ["../../etc", "..", "a/b", "{team}", "{user.__class__}", "%2e%2e", "$(TOKEN)"]
)
def test_a_user_name_is_one_part_of_the_checkpoint_address(catalog, name):
    uri = fragment_of(catalog, "gpu-full", 3, UserFacts(name=name, team="nlp")).env["CHECKPOINT_URI"]
    part = uri.removeprefix("s3://checkpoints/nlp/").removesuffix("/")
    assert part not in {"", ".", ".."}
    assert not set(part) & set("/{}%$()")


def test_two_users_never_share_checkpoints(catalog):
    uris = {
        fragment_of(catalog, "gpu-full", 3, UserFacts(name=name, team="nlp")).env["CHECKPOINT_URI"]
        for name in ("a@b", "a-b", "a b", "A-B")
    }
    assert len(uris) == 4


def test_without_a_team_the_address_is_still_whole(catalog):
    uri = fragment_of(catalog, "gpu-full", 3, UserFacts(name="bob")).env["CHECKPOINT_URI"]
    assert uri == "s3://checkpoints/_none/bob/"


def test_the_container_fits_restricted_pod_security(catalog, baseline):
    pod = apply(baseline, fragment_of(catalog, "gpu-full", 3))
    security = pod["spec"]["containers"][0]["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["runAsUser"] == 1000
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"]["securityContext"]["fsGroup"] == 100


def test_storage_is_mounted_as_the_catalog_says(catalog):
    fragment = fragment_of(catalog, "gpu-full", 3)
    mounts = {mount["mountPath"]: mount for mount in fragment.mounts}
    assert list(mounts) == ["/home/jovyan", "/scratch", "/data", "/models", "/shared", "/dev/shm"]
    assert mounts["/data"]["readOnly"] is True
    assert "readOnly" not in mounts["/shared"]
    assert mounts["/shared"]["subPath"] == "nlp/alice"
    volumes = {volume["name"]: volume for volume in fragment.volumes}
    scratch = volumes["workspace-scratch"]["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert scratch["storageClassName"] == "local-nvme"
    assert volumes["workspace-shared-memory"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}


def test_scratch_without_a_class_is_the_disk_of_the_node(catalog):
    volumes = {volume["name"]: volume for volume in fragment_of(catalog, "gpu-slice", 1).volumes}
    assert volumes["workspace-scratch"]["emptyDir"] == {"sizeLimit": "50Gi"}


def test_the_home_claim_is_built_apart(catalog):
    user = UserFacts(name="alice", team="nlp", home_claim="claim-alice")
    workspace = compose(catalog, catalog.by_key["gpu-full", 3], {})
    claim = build_claim(catalog, workspace, user)
    assert claim is not None
    assert claim["metadata"]["name"] == "claim-alice"
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "200Gi"}},
        "storageClassName": "notebook-rwo-ssd",
    }
    home = build_fragment(catalog, workspace, user).volumes[0]
    assert home["persistentVolumeClaim"]["claimName"] == "claim-alice"


def test_building_twice_gives_the_same(catalog):
    assert fragment_of(catalog, "gpu-full", 3) == fragment_of(catalog, "gpu-full", 3)
