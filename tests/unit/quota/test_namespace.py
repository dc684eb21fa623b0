"""What quotas and limit ranges of a namespace will say, and what they do not do."""

from __future__ import annotations

from typing import Any

import pytest

from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.namespace import (
    ResourceQuota,
    applies,
    charge,
    effective_hard,
    expect,
    findings,
    read_quota,
    with_defaults,
)
from hub_ext.quota.verdicts import Fault, Reason

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"


def quota(used: dict[str, str] | None = None, scopes: Any = None, **hard: str) -> ResourceQuota:
    keys = {key.replace("__", "."): value for key, value in hard.items()}
    spec = {"hard": keys, **({"scopeSelector": {"matchExpressions": scopes}} if scopes else {})}
    return read_quota(
        {
            "metadata": {"namespace": "nlp", "name": "team"},
            "spec": spec,
            "status": {"hard": keys, "used": used or {}},
        }
    )


def of_keys(hard: dict[str, str], used: dict[str, str] | None = None) -> ResourceQuota:
    return read_quota(
        {
            "metadata": {"namespace": "nlp", "name": "team"},
            "spec": {"hard": hard},
            "status": {"used": used or {}},
        }
    )


def spec(limits: dict[str, str], requests: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    resources = {"limits": limits, "requests": requests or {}}
    return {"containers": [{"name": "notebook", "resources": resources}], **more}


def test_a_limit_on_gpus_written_with_the_wrong_prefix_bounds_nothing() -> None:
    """Kubernetes takes the key and never counts it: the check must not claim that four is enforced."""
    wrong = of_keys({f"limits.{GPU}": "4"}, {})
    assert effective_hard(wrong) == {}
    assert expect(spec({GPU: "9"}), [wrong]) is None
    (finding,) = findings([wrong])
    assert (finding.severity.value, finding.code) == ("error", "ineffective-quota-key")
    assert finding.help == f"Write requests.{GPU}: 4."


def test_a_foreign_scheduler_may_read_the_key_so_it_is_only_a_warning() -> None:
    (finding,) = findings([of_keys({f"limits.{GPU}": "4"})], foreign_scheduler=True)
    assert finding.severity.value == "warning"


@pytest.mark.parametrize(
    ("key", "effective"),
    [
        (f"requests.{GPU}", True),
        (GPU, False),
        (f"limits.{GPU}", False),
        ("limits.cpu", True),
        ("cpu", True),
        ("count/jobs.batch", True),
        ("pods", True),
    ],
)
def test_which_keys_bound_pods(key: str, effective: bool) -> None:
    assert bool(effective_hard(of_keys({key: "4"}))) is effective


def test_a_bound_of_zero_is_a_bound() -> None:
    refusal = expect(spec({GPU: "1"}), [of_keys({f"requests.{GPU}": "0"})])
    assert refusal is not None
    assert refusal.reason is Reason.NAMESPACE_QUOTA
    assert "the namespace may have no GPUs" in refusal.text


def test_names_that_no_quota_bounds_are_reported_when_others_are() -> None:
    quotas = [of_keys({f"requests.{GPU}": "4"}, {f"requests.{GPU}": "0"})]
    (finding,) = findings(quotas, offered=[GPU, SHARED, SHARED, "cpu"])
    assert (finding.severity.value, finding.code) == ("warning", "quota-gap")
    assert SHARED in finding.message
    assert findings([of_keys({"limits.cpu": "4"})], offered=[GPU]) == (), "no GPU is meant to be bounded"


def test_a_profile_without_the_limits_that_the_quota_counts_is_refused_before_it_is_created() -> None:
    counting = of_keys({"limits.memory": "500Gi", "limits.cpu": "64", f"requests.{GPU}": "8"})
    pod = spec({GPU: "1"}, {"memory": "14G"})
    refusal = expect(pod, [counting])
    assert refusal is not None
    assert (refusal.reason, refusal.fault) == (Reason.LIMITS_REQUIRED, Fault.ADMIN)
    assert "states no limit of memory and no limit of CPU cores, which" in refusal.text
    assert "limits.memory, limits.cpu" in refusal.detail
    defaults = {"spec": {"limits": [{"type": "Container", "default": {"cpu": "4", "memory": "16Gi"}}]}}
    assert expect(pod, [counting], [defaults]) is None


def test_requests_are_required_where_requests_are_counted() -> None:
    counting = of_keys({"requests.cpu": "64", "memory": "1Ti"})
    assert expect(spec({"cpu": "1", "memory": "1Gi"}), [counting]) is None, "a limit stands for a request"
    refusal = expect(spec({}, {"cpu": "1"}), [counting])
    assert refusal is not None
    assert "states no request of memory," in refusal.text
    pod_level = {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    assert expect(spec({}, **pod_level), [counting]) is None


def test_every_init_container_must_say_it_too() -> None:
    pod = spec({"cpu": "1"}, initContainers=[{"name": "prepare"}])
    refusal = expect(pod, [of_keys({"limits.cpu": "8"})])
    assert refusal is not None
    assert refusal.reason is Reason.LIMITS_REQUIRED


def test_what_a_pod_is_charged_under_each_key() -> None:
    charged = charge(spec({"cpu": "2", GPU: "1"}, {"cpu": "1", "memory": "1Gi"}))
    assert charged == Resources(
        {
            "pods": 1,
            "count/pods": 1,
            "cpu": 1000,
            "requests.cpu": 1000,
            "limits.cpu": 2000,
            "memory": 1024**3,
            "requests.memory": 1024**3,
            f"requests.{GPU}": 1,
        }
    )


def test_an_exceeded_quota_is_foreseen_with_its_numbers() -> None:
    full = of_keys({f"requests.{GPU}": "8"}, {f"requests.{GPU}": "7"})
    assert expect(spec({GPU: "1"}), [full]) is None
    refusal = expect(spec({GPU: "2"}), [full])
    assert refusal is not None
    (shortage,) = refusal.shortages
    assert (shortage.asked, shortage.used, shortage.limit, shortage.left) == (2, 7, 8, 1)


@pytest.mark.parametrize(
    ("scope", "pod", "covered"),
    [
        (
            {"scopeName": "PriorityClass", "operator": "In", "values": ["batch"]},
            {"priorityClassName": "batch"},
            True,
        ),
        ({"scopeName": "PriorityClass", "operator": "In", "values": ["batch"]}, {}, False),
        ({"scopeName": "PriorityClass", "operator": "NotIn", "values": ["batch"]}, {}, True),
        ({"scopeName": "PriorityClass", "operator": "Exists"}, {"priorityClassName": "x"}, True),
        ({"scopeName": "PriorityClass", "operator": "DoesNotExist"}, {"priorityClassName": "x"}, False),
        ({"scopeName": "Terminating", "operator": "Exists"}, {"activeDeadlineSeconds": 60}, True),
        ({"scopeName": "NotTerminating", "operator": "Exists"}, {"activeDeadlineSeconds": 60}, False),
        ({"scopeName": "NotBestEffort", "operator": "Exists"}, {}, True),
        ({"scopeName": "BestEffort", "operator": "Exists"}, {}, False),
        ({"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}, {}, False),
    ],
)
def test_scopes_say_which_pods_a_quota_counts(
    scope: dict[str, Any], pod: dict[str, Any], covered: bool
) -> None:
    scoped = quota(None, [scope], pods="0")
    body = spec({"cpu": "1"}, **pod)
    assert applies(scoped, body) is covered
    assert (expect(body, [scoped]) is not None) is covered


def test_plain_scopes_are_read_too() -> None:
    old = read_quota(
        {
            "metadata": {"name": "q"},
            "spec": {"hard": {"pods": "1"}, "scopes": ["NotTerminating"]},
            "status": {},
        }
    )
    assert old.scopes == (("NotTerminating", "Exists", ()),)
    assert old.hard["pods"] == 1


def test_defaults_complete_a_copy() -> None:
    before = spec({"memory": "2Gi"}, {})
    ranges = [
        {
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "default": {"cpu": "2", "memory": "1Gi"},
                        "defaultRequest": {"cpu": "1", "memory": "512Mi"},
                    },
                    {"type": "Pod", "max": {"cpu": "9"}},
                ]
            }
        }
    ]
    completed = with_defaults(before, ranges)["containers"][0]["resources"]
    assert completed["limits"] == {"cpu": "2", "memory": "2Gi"}
    assert completed["requests"] == {"cpu": "1", "memory": "2Gi"}
    assert before == spec({"memory": "2Gi"}, {})


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"max": {GPU: "1"}}, "at most 1 GPU per container, and it has 2"),
        ({"max": {GPU: "2", "memory": "8Gi"}}, "at most 8 GiB of memory per container, and it has 16 GiB"),
        ({"min": {"cpu": "2"}}, "at least 2 CPU cores per container, and it has 1"),
        ({"max": {GPU: "2"}, "min": {"cpu": "500m"}}, ""),
        ({"max": {"ephemeral-storage": "1Gi"}}, ""),
    ],
)
def test_sizes_that_a_limit_range_does_not_permit_are_foreseen(limits: dict[str, Any], text: str) -> None:
    pod = spec({GPU: "2", "memory": "16Gi"}, {"cpu": "1", "memory": "1Gi"})
    refusal = expect(pod, [], [{"spec": {"limits": [{"type": "Container", **limits}]}}])
    assert (refusal.reason if refusal else None) == (Reason.LIMIT_RANGE if text else None)
    assert text in (refusal.text if refusal else "")
