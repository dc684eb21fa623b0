"""Who may run what, where, with what: each refusal has a reason, and says what may stand there instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hub_ext.catalog.model import RunKind
from hub_ext.names import parse_image
from hub_ext.selection_access import Person
from services.job_handoff.form import read_parameter
from services.job_handoff.inputs import check_kernel
from services.job_handoff.model import read_request
from services.job_handoff.offers import offers_for
from services.job_handoff.plan import Plan, Scene, ServerImage, plan_run
from services.job_handoff.settings import HandoffSettings
from services.job_handoff.verdicts import RunRefusedError

from .conftest import ADA, DIGEST, TODAY, body

RUN = "run-abcdefghijklmnop"
SERVER = parse_image("registry.example.com/lab:2@sha256:" + "b" * 64)


def refusal(scene: Scene, **changes: Any) -> RunRefusedError:
    with pytest.raises(RunRefusedError) as error:
        plan_run(scene, read_request(body(**changes)), run=RUN)
    return error.value


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"labels": {"a": "b"}}, "labels"),
        ({"annotations": {}}, "annotations"),
        ({"serviceAccount": "default"}, "serviceAccount"),
        ({"volumes": []}, "volumes"),
        ({"podSpec": {}}, "podSpec"),
        ({"entry": {"type": "script", "path": "/etc/passwd"}}, "entry.path"),
        ({"entry": {"type": "script", "path": "../a.py"}}, "entry.path"),
        ({"entry": {"type": "script", "path": "a\x00.py"}}, "entry.path"),
        ({"entry": {"type": "notebook", "path": "a.ipynb", "parameters": {"a b": 1}}}, "entry.parameters"),
        ({"entry": {"type": "container", "image": "x"}}, "entry"),
        ({"source": {"type": "snapshot", "sha256": "x"}}, "source.sha256"),
        ({"source": {"type": "git", "url": "https://u:p@h/x", "commit": "a" * 40}}, "source.url"),
        ({"source": {"type": "git", "url": "ssh://h/x", "commit": "a" * 40}}, "source.url"),
        ({"source": {"type": "git", "url": "https://h/x", "commit": "main"}}, "source.commit"),
        ({"nodes": 0}, "nodes"),
        ({"nodes": "2"}, "nodes"),
        ({"retries": 1000}, "retries"),
        ({"maxDuration": "long"}, "maxDuration"),
        ({"key": "../../x"}, "key"),
        ({"outputs": ["/etc/**"]}, "outputs.0"),
        ({"release": True}, ""),
        ({"resumeFrom": "other"}, "resumeFrom"),
        ({"environment": {"A B": "x"}}, "environment"),
        ({"schedule": {"cron": "* * * * *\n"}}, "schedule.cron"),
        ({"schedule": {"cron": "* " * 100}}, "schedule.cron"),
        ({"schedule": {"cron": "0 6 * * *", "timeZone": "../UTC"}}, "schedule.timeZone"),
        ({"schedule": {"cron": "0 6 * * *", "timeZone": ""}}, "schedule.timeZone"),
    ],
)
def test_what_is_no_request_is_refused_with_its_place(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RunRefusedError) as error:
        read_request(body(**changes))
    assert (error.value.reason, error.value.status) == ("bad-request", 400)
    assert error.value.field.startswith(field)


def nested(levels: int) -> Any:
    """A list in a list in a list …"""
    made: Any = 1
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), [{"x": -float("inf")}], "\ud800", {"\udfff": 1}, 10**5000, nested(5000)],
    ids=["nan", "infinity", "within", "half a letter", "half a name", "number", "levels"],
)
def test_what_only_python_takes_for_json_is_refused(value: Any) -> None:
    with pytest.raises(RunRefusedError) as error:
        read_request(body(entry={"type": "notebook", "path": "a.ipynb", "parameters": {"x": value}}))
    assert error.value.reason == "bad-request"
    assert error.value.text.isprintable()


def test_a_request_is_measured_in_bytes_as_it_is_handed_on() -> None:
    """Variables of a process have 128 KiB each, and a letter has up to four bytes."""
    entry = {"type": "notebook", "path": "a.ipynb", "parameters": {"x": "漢" * 30_000}}
    with pytest.raises(RunRefusedError, match="larger than 64 KiB"):
        read_request(body(entry=entry))


@pytest.mark.parametrize("text", ["x=NaN", "x=-Infinity", "x=1e999", "x=" + "9" * 5000, "x=" + "[" * 100_000])
def test_a_value_that_is_no_json_is_a_text(text: str) -> None:
    assert read_parameter(text) == ("x", text[2:])


@pytest.mark.parametrize(
    ("text", "value"), [("x=", ""), ("x=1e-05", 1e-05), ('x="a b"', "a b"), ("x=a=b", "a=b"), ("x={}", {})]
)
def test_a_value_is_read_as_json_where_it_is(text: str, value: object) -> None:
    assert read_parameter(text) == ("x", value)


@pytest.mark.parametrize("raw", [None, [], "x", 3, {"a": {"b": [1]}}])
def test_a_body_of_any_shape_is_a_bad_request(raw: object) -> None:
    with pytest.raises(RunRefusedError):
        read_request(raw)


def test_a_plan_says_everything(plan: Callable[..., Plan]) -> None:
    made = plan()
    assert (made.kind, made.team, made.queue, made.priority) == (RunKind.JOB, "nlp", "nlp", "normal")
    assert made.max_duration == timedelta(hours=12)
    assert made.lineage == made.id


@pytest.mark.parametrize(
    ("changes", "reason", "status"),
    [
        ({"profile": "desk"}, "not-runnable", 400),
        ({"profile": "nothing"}, "unknown-profile", 400),
        ({"kind": "rayjob"}, "kind-not-offered", 400),
        ({"nodes": 2}, "too-many-nodes", 400),
        ({"profile": "card", "kind": "trainjob", "nodes": 5}, "too-many-nodes", 400),
        ({"maxDuration": "13h"}, "too-long", 400),
        ({"maxDuration": "1s"}, "too-long", 400),
        ({"priority": "urgent"}, "priority-not-allowed", 403),
        ({"priority": "none"}, "priority-not-allowed", 403),
        ({"profile": "moving"}, "image-not-pinned", 400),
        ({"image": "server"}, "no-server", 400),
        ({"team": "vision"}, "not-allowed", 403),
        ({"profile": "ray", "schedule": {"cron": "0 * * * *"}}, "schedule-kind", 400),
        (
            {"source": {"type": "git", "url": "https://git.example.com/a", "commit": "a" * 40}},
            "git-not-allowed",
            400,
        ),
        (
            {"profile": "card", "kind": "trainjob", "entry": {"type": "notebook", "path": "a.ipynb"}},
            "kind-not-offered",
            400,
        ),
    ],
)
def test_what_may_not_be_is_refused(scene: Scene, changes: dict[str, Any], reason: str, status: int) -> None:
    error = refusal(scene, **changes)
    assert (error.reason, error.status) == (reason, status)
    assert error.text.endswith((".", "?"))


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "PYTHONSTARTUP",
        "NVIDIA_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "KUBERNETES_SERVICE_HOST",
        "JUPYTERHUB_API_TOKEN",
        "HANDOFF_TOKEN",
        "CHECKPOINT_URI",
        "AWS_ACCESS_KEY_ID",
        "HTTPS_PROXY",
        "PATH",
        "SOMETHING_ELSE",
    ],
)
def test_variables_that_are_not_allowed(scene: Scene, settings: HandoffSettings, name: str) -> None:
    error = refusal(scene, environment={name: "x"})
    assert (error.reason, error.field) == ("environment-not-allowed", f"environment.{name}")
    if name != "SOMETHING_ELSE":
        # No setting opens what changes who a run is.
        open_all = replace(scene, settings=settings.model_copy(update={"environment": ("*",)}))
        assert refusal(open_all, environment={name: "x"}).reason == "environment-not-allowed"


def test_variables_that_are_allowed_and_those_that_are_credentials(
    scene: Scene, plan: Callable[..., Plan]
) -> None:
    assert plan(environment={"APP_MODE": "x", "OMP_NUM_THREADS": "2"}).request.environment["APP_MODE"] == "x"
    assert refusal(scene, environment={"APP_API_KEY": "x"}).reason == "credential-in-environment"


def test_the_image_of_the_server_is_taken_by_digest_and_never_a_moving_tag(scene: Scene) -> None:
    request = read_request(body(image="server", server="", profile="moving"))
    made = plan_run(replace(scene, server=ServerImage(reference=SERVER)), request, run=RUN)
    assert str(made.image) == str(SERVER)
    moving = ServerImage(reference=parse_image("registry.example.com/lab:latest"))
    with pytest.raises(RunRefusedError) as error:
        plan_run(replace(scene, server=moving), request, run=RUN)
    assert error.value.reason == "image-not-pinned"


@pytest.mark.parametrize(
    ("named", "override", "kernels", "result"),
    [
        ("conda-env-ml-py", None, ["python3"], None),
        ("conda-env-ml-py", "python3", ["python3"], "python3"),
        ("python3", None, ["python3"], "python3"),
        ("python3", "r", ["python3"], None),
        (None, None, ["python3"], "none"),
    ],
)
def test_a_kernel_that_is_missing_is_refused_unless_another_is_asked_for(
    named: str | None, override: str | None, kernels: list[str], result: str | None
) -> None:
    if result is None:
        with pytest.raises(RunRefusedError) as error:
            check_kernel(named, override, kernels)
        assert (error.value.reason, error.value.allowed) == ("kernel-missing", tuple(kernels))
    else:
        assert check_kernel(named, override, kernels) == (None if result == "none" else result)


def test_the_kernel_is_checked_where_it_is_known(scene: Scene) -> None:
    notebook = {"type": "notebook", "path": "train.ipynb"}
    known = replace(scene, source_kernels={"train.ipynb": "conda-env-ml-py"})
    assert refusal(known, entry=notebook, kernels=["python3"]).reason == "kernel-missing"
    plan_run(known, read_request(body(entry=notebook)), run=RUN)


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "APP_MAX_TOKENS", "APP_SECRETARY", "APP_PASSWORDLESS"]
)
def test_a_name_that_only_begins_like_a_credential_s_is_none(scene: Scene, name: str) -> None:
    plan_run(scene, read_request(body(environment={name: "1"})), run=RUN)


@pytest.mark.parametrize(
    "name", ["APP_TOKEN", "APP_TOKEN_2", "APP_MYTOKEN", "APP_API_KEY", "APP_db_password"]
)
def test_a_name_of_a_credential_is_one(scene: Scene, name: str) -> None:
    assert refusal(scene, environment={name: "x"}).reason == "credential-in-environment"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"environment": {"APP_X": "hf_" + "a" * 34}}, "environment"),
        (
            {"entry": {"type": "script", "path": "train.py", "arguments": ["--t=ghp_" + "a" * 36]}},
            "entry.arguments",
        ),
        (
            {
                "entry": {
                    "type": "notebook",
                    "path": "train.ipynb",
                    "parameters": {"a": [{"b": "AKIA" + "A" * 16}]},
                }
            },
            "entry.parameters",
        ),
    ],
)
def test_a_credential_is_not_kept_with_what_was_asked_for(
    scene: Scene, changes: dict[str, Any], field: str
) -> None:
    """It would stand in the record, in the executed notebook and on the page."""
    error = refusal(scene, **changes)
    assert (error.reason, error.field) == ("credential-in-environment", field)
    assert "aaaa" not in error.text.lower()


def test_a_notebook_that_nothing_could_run_is_refused_before_it_waits(scene: Scene) -> None:
    """Papermill would say so, once the run has had its turn in the queue."""
    notebook = {"type": "notebook", "path": "train.ipynb"}
    nameless = replace(scene, source_kernels={"train.ipynb": None})
    error = refusal(nameless, entry=notebook, kernels=["python3"])
    assert (error.reason, error.field, error.allowed) == ("kernel-missing", "entry.kernel", ("python3",))
    plan_run(nameless, read_request(body(entry={**notebook, "kernel": "python3"})), run=RUN)
    plan_run(scene, read_request(body(entry=notebook)), run=RUN)  # in a commit, nobody has looked


def test_one_rule_decides_for_the_button_and_for_the_submission(
    scene: Scene, settings: HandoffSettings
) -> None:
    person = Person(name="eve", groups=frozenset({"users", "analyst", "admin", "nlp"}))
    closed = settings.model_copy(update={"groups": ("developer",)})
    error = refusal(replace(scene, settings=closed, person=person))
    assert (error.reason, error.status, error.allowed) == ("group-required", 403, ("developer",))
    offers = offers_for(scene.catalog, closed, person, servers={}, today=TODAY)
    assert (offers["allowed"], offers["profiles"]) == (False, [])
    assert "developer" in offers["refusal"]


def test_offers_name_what_may_be_run(scene: Scene, settings: HandoffSettings) -> None:
    offers = offers_for(scene.catalog, settings, ADA, servers={"": "desk"}, today=TODAY)
    assert [one["name"] for one in offers["profiles"]] == [
        "cpu",
        "card",
        "slice",
        "share",
        "ray",
        "moving",
        "private",
    ]
    assert [one["name"] for one in offers["priorities"]] == ["normal"]
    outsider = Person(name="eve")
    assert "no team" in offers_for(scene.catalog, settings, outsider, servers={}, today=TODAY)["refusal"]
    assert refusal(replace(scene, person=outsider)).reason == "no-team"


def test_access_that_was_withdrawn_is_judged_by_the_groups_of_this_moment(scene: Scene) -> None:
    gone = replace(scene, person=Person(name="ada"))
    assert refusal(gone, profile="card").status == 403


def test_a_kind_whose_controller_is_missing_is_refused_with_the_reason(scene: Scene) -> None:
    without = replace(scene, unavailable={RunKind.TRAIN_JOB: "Kubeflow Trainer is not installed."})
    error = refusal(without, profile="card", kind="trainjob")
    assert error.reason == "kind-unavailable"
    assert "not installed" in error.message


def test_shares_are_told_for_what_they_are(plan: Callable[..., Plan]) -> None:
    assert "neither memory nor faults" in plan(profile="share").notices[0]
    assert "not separate GPUs" in plan(profile="share", kind="trainjob", nodes=2).notices[0]
    assert plan(profile="slice").notices == ()


def test_the_request_has_no_place_for_parts_of_a_pod() -> None:
    fields = set(read_request(body()).model_dump(by_alias=True))
    forbidden = {
        "labels",
        "annotations",
        "volumes",
        "serviceAccount",
        "tolerations",
        "securityContext",
        "command",
    }
    assert not fields & forbidden
    assert DIGEST
