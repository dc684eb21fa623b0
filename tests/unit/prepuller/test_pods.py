"""The prepuller's pods: built for any image, and read back in whatever state a kubelet left them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hub_ext.cluster.events import Event, read_event
from services.prepuller.manifest import build_pull_pod, pod_name
from services.prepuller.pods import Step, read_pull_pod
from services.prepuller.reasons import Reason
from services.prepuller.settings import Settings
from services.prepuller.wants import make_want
from tests.unit.prepuller import world

WANT = make_want(world.ref("torch"), ["regcred"], "nvidia", ["amd64"])


def built(**more: Any) -> dict[str, Any]:
    return build_pull_pod(WANT, "gpu-1", settings=Settings(), **more)


def made(
    *,
    main: dict[str, Any] | None = None,
    tool: dict[str, Any] | None = None,
    node: str = "gpu-1",
    phase: str = "Pending",
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The built pod as a kubelet reports it: states of its two containers."""
    pod = built()
    pod["metadata"] |= {"uid": "u1", "creationTimestamp": world.at(0), **(metadata or {})}
    pod["spec"] |= {"nodeName": node} if node else {}
    pod["status"] = {
        "phase": phase,
        "initContainerStatuses": [{"name": "tool", "state": tool}] if tool else [],
        "containerStatuses": [{"name": "image", "state": main}] if main else [],
        **(status or {}),
    }
    return pod


def event(reason: str, message: str, *, seconds: float = 0, container: str = "image") -> Event:
    kind = "containers" if container == "image" else "initContainers"
    found = read_event(
        {
            "metadata": {"uid": f"{reason}{seconds}", "namespace": "p"},
            "involvedObject": {
                "kind": "Pod",
                "uid": "u1",
                "name": "x",
                **({"fieldPath": f"spec.{kind}{{{container}}}"} if container else {}),
            },
            "reason": reason,
            "message": message,
            "firstTimestamp": world.at(seconds),
            "lastTimestamp": world.at(seconds),
        },
        world.NOW,
    )
    assert found is not None
    return found


FINISHED_TOOL = {"terminated": {"exitCode": 0, "finishedAt": world.at(4), "reason": "Completed"}}
CREATING = {"waiting": {"reason": "ContainerCreating"}}
COMPLETED = {
    "terminated": {
        "exitCode": 0,
        "startedAt": world.at(94),
        "finishedAt": world.at(95),
        "reason": "Completed",
    }
}


def test_the_pod_asks_for_nothing_but_its_image() -> None:
    pod = built(tolerations=[{"key": world.GPU, "operator": "Exists"}], pools=["gpu"])
    spec = pod["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["automountServiceAccountToken"] is False
    assert spec["imagePullSecrets"] == [{"name": "regcred"}]
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["activeDeadlineSeconds"] == 45 * 60
    (main,) = spec["containers"]
    assert main["image"] == WANT.image
    assert main["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert main["command"][0] not in {"sh", "/bin/sh"}
    assert pod["metadata"]["namespace"] == "gpu-workspaces-prepuller"
    assert pod["metadata"]["labels"]["gpu-workspaces.jupyter.org/pool"] == "gpu"


def test_the_program_of_the_image_never_runs() -> None:
    (tool,), (main,) = built()["spec"]["initContainers"], built()["spec"]["containers"]
    assert tool["command"] == ["/bin/busybox", "cp", "/bin/busybox", *main["command"]]
    folder = main["command"][0].rpartition("/")[0]
    assert [mount["mountPath"] for mount in main["volumeMounts"]] == [folder]


@pytest.mark.parametrize("part", ["initContainers", "containers"])
def test_containers_fit_the_restricted_level(part: str) -> None:
    for container in built()["spec"][part]:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not security["privileged"]


def test_a_moving_tag_is_asked_for_again_and_a_digest_is_not() -> None:
    tag = build_pull_pod(make_want("r.example.org/x:1"), "n", settings=Settings())
    assert tag["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert built()["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_pulls_do_what_the_hub_says_of_all_workspaces() -> None:
    """Nodes without a way to a registry were given their images by other means."""
    assert (
        build_pull_pod(WANT, "n", settings=world.settings(shared={"pullPolicy": "Never"}))["spec"][
            "containers"
        ][0]["imagePullPolicy"]
        == "Never"
    )


def test_names_differ_by_image_credentials_and_node() -> None:
    wants = [
        make_want("r.example.org/x:1"),
        make_want("r.example.org/x:1", ["a"]),
        make_want("r.example.org/x:1", ["a", "b"]),
        make_want("r.example.org/x:1", [], "a"),
        make_want("r.example.org/x:11"),
        make_want("q.example.org/x:1"),
    ]
    names = {pod_name(want.id, node) for want in wants for node in ("n-1", "n", "1-n" * 60)}
    assert len(names) == len(wants) * 3
    assert all(len(name) <= 63 for name in names)
    assert make_want("r.example.org/x:1", ["b", "a"]) == wants[2]


def test_foreign_pods_are_not_read() -> None:
    pod = made(main=CREATING)
    del pod["metadata"]["labels"]
    assert read_pull_pod(pod, []) is None


def test_a_pull_that_came_says_how_long_it_took_and_how_large_it_is() -> None:
    events = [
        event("Pulling", "Pulling image", seconds=4),
        event(
            "Pulled",
            f'Successfully pulled image "{WANT.image}" in 1m21.28s (1m29s including waiting). '
            "Image size: 225073269 bytes.",
            seconds=93,
        ),
    ]
    pod = world.read(made(main=COMPLETED, tool=FINISHED_TOOL, phase="Succeeded"), events)
    assert (pod.step, pod.seconds, pod.size_bytes, pod.present) == (Step.DONE, 81.28, 225073269, False)
    assert pod.since == world.NOW + timedelta(seconds=95)
    assert not pod.in_flight


def test_without_events_the_time_between_the_containers_tells() -> None:
    pod = world.read(made(main=COMPLETED, tool=FINISHED_TOOL, phase="Succeeded"))
    assert (pod.step, pod.seconds, pod.size_bytes, pod.present) == (Step.DONE, 90.0, None, None)


def test_an_image_that_was_there_took_no_time() -> None:
    told = event("Pulled", f'Container image "{WANT.image}" already present on machine')
    pod = world.read(made(main=COMPLETED, tool=FINISHED_TOOL, phase="Succeeded"), [told])
    assert (pod.step, pod.seconds, pod.present) == (Step.DONE, None, True)


def test_a_program_that_fails_in_the_image_does_not_unmake_the_pull() -> None:
    failed = {"terminated": {"exitCode": 128, "reason": "StartError", "finishedAt": world.at(9)}}
    assert world.read(made(main=failed, tool=FINISHED_TOOL, phase="Failed")).step is Step.DONE


@pytest.mark.parametrize(
    ("pod", "step"),
    [
        (made(node=""), Step.WAITING),
        (made(), Step.PULLING),
        (made(main=CREATING, tool={"running": {"startedAt": world.at(1)}}), Step.PULLING),
        (made(main=CREATING, tool=FINISHED_TOOL), Step.PULLING),
        (made(main={"running": {"startedAt": world.at(9)}}, phase="Running"), Step.DONE),
    ],
)
def test_steps(pod: dict[str, Any], step: Step) -> None:
    assert world.read(pod).step is step


def test_a_pod_that_hangs_while_it_is_deleted_still_burdens_its_node() -> None:
    pod = world.read(made(main=CREATING, metadata={"deletionTimestamp": world.at(60)}))
    assert pod.ending
    assert pod.in_flight


REFUSALS = [
    ("ErrImagePull", f"rpc error: code = NotFound desc = {WANT.image}: not found", Reason.IMAGE_NOT_FOUND),
    (
        "ErrImagePull",
        "pull access denied, repository does not exist or may require authorization",
        Reason.IMAGE_ACCESS,
    ),
    (
        "ErrImagePull",
        "unexpected status from HEAD request to https://r: 429 Too Many Requests",
        Reason.REGISTRY_BUSY,
    ),
    ("ErrImagePull", "dial tcp 10.0.0.1:443: connect: connection refused", Reason.REGISTRY_UNREACHABLE),
    ("ErrImagePull", "write /var/lib/containerd: no space left on device", Reason.DISK_FULL),
    ("ErrImagePull", "no match for platform in manifest: not found", Reason.IMAGE_PLATFORM),
    ("ErrImagePull", "x509: certificate signed by unknown authority", Reason.REGISTRY_CERTIFICATE),
    ("InvalidImageName", "couldn't parse image name", Reason.IMAGE_INVALID),
    ("ErrImageNeverPull", "Container image is not present with pull policy of Never", Reason.IMAGE_ABSENT),
]


@pytest.mark.parametrize(("state", "message", "reason"), REFUSALS)
def test_refusals_by_reason(state: str, message: str, reason: Reason) -> None:
    waiting = {"waiting": {"reason": state, "message": message}}
    pod = world.read(made(main=waiting, tool=FINISHED_TOOL))
    assert (pod.step, pod.reason, pod.detail) == (Step.FAILED, reason, message)
    assert pod.in_flight, "the kubelet tries again until the pod is gone"


def test_while_a_kubelet_backs_off_an_older_event_tells_why() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{WANT.image}"'}}
    events = [
        event(
            "Failed",
            'Failed to pull image "x": unexpected status from HEAD request to https://r/x: 401 Unauthorized',
            seconds=1,
        ),
        event("Failed", "Error: ErrImagePull", seconds=1),
        event("BackOff", "Back-off pulling image", seconds=2),
    ]
    pod = world.read(made(main=waiting, tool=FINISHED_TOOL), events)
    assert (pod.reason, "401" in pod.detail) == (Reason.IMAGE_ACCESS, True)


def test_a_page_in_place_of_an_answer_is_cut_and_stays_one_line() -> None:
    page = "unexpected status: 502 Bad Gateway: <html>\n" + "<p>sorry</p>\n" * 500
    pod = world.read(made(main={"waiting": {"reason": "ErrImagePull", "message": page}}, tool=FINISHED_TOOL))
    assert ("\n" in pod.detail, len(pod.detail)) == (False, 600)


def test_a_missing_secret_is_told_before_what_follows_from_it() -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "pull access denied"}}
    told = event("FailedToRetrieveImagePullSecret", "Unable to retrieve (regcred)", container="")
    pod = world.read(made(main=waiting, tool=FINISHED_TOOL), [told])
    assert (pod.reason, pod.detail) == (Reason.SECRET_MISSING, told.message)


def test_the_tool_is_told_from_the_image() -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "connection refused"}}
    pod = world.read(made(main={"waiting": {"reason": "PodInitializing"}}, tool=waiting))
    assert pod.reason is Reason.TOOL_IMAGE
    broken = {"terminated": {"exitCode": 1, "finishedAt": world.at(3)}}
    assert world.read(made(tool=broken, phase="Failed")).reason is Reason.TOOL_IMAGE


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("DeadlineExceeded", Reason.TIMEOUT),
        ("Evicted", Reason.EVICTED),
        ("OutOfpods", Reason.NODE_REFUSED),
        ("UnexpectedAdmissionError", Reason.NODE_REFUSED),
        ("NodeLost", Reason.NODE_LOST),
        ("NodeShutdown", Reason.NODE_LOST),
        ("SomethingNew", Reason.NODE_LOST),
    ],
)
def test_pods_that_their_node_gave_up(reason: str, expected: Reason) -> None:
    unknown = {"terminated": {"reason": "ContainerStatusUnknown", "exitCode": 137}}
    pod = world.read(made(main=unknown, phase="Failed", status={"reason": reason, "message": "m"}))
    assert (pod.step, pod.reason) == (Step.FAILED, expected)
    assert not world.read(made(main=unknown, phase="Failed", status={"reason": "Evicted"})).in_flight
