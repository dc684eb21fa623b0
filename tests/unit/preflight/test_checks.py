"""Each check: a scene that it complains about, and one that only looks like it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hub_ext.errors import Severity
from hub_ext.quota.refusals import Answer
from hub_ext.rights import Rights, Rule, Where
from services.preflight.checks import CHECKS
from services.preflight.problems import Outcome, judge
from services.preflight.scene import Metrics, Trial, merged
from tests.unit.preflight.scenes import (
    GPU_TAINT,
    HUB,
    OBJECTS,
    PRODUCT,
    SHARING,
    VALUES,
    bound,
    node,
    on_gpu,
    policy,
    scene,
    thing,
)

BY_CODE = {check.code: check for check in CHECKS}


def findings(code: str, **changes: Any) -> list[tuple[Severity, str]]:
    result = judge(BY_CODE[code], scene(**changes))
    assert not result.missing, f"{code} could not be checked: {result.missing}"
    return [(one.severity, one.message) for one in result.observations]


def test_a_cluster_that_is_well_passes_every_check():
    results = {check.code: judge(check, scene()) for check in CHECKS}
    assert {code: r.observations for code, r in results.items() if r.outcome is not Outcome.PASSED} == {}


def test_codes_are_unique():
    assert len(BY_CODE) == len(CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_what_was_not_looked_at_is_not_passed(check):
    nothing = scene(objects=dict.fromkeys(OBJECTS), metrics=None, trials=None, hub=None)
    object.__setattr__(nothing, "catalog", None)
    object.__setattr__(nothing, "values", None)
    result = judge(check, nothing)
    assert result.outcome is Outcome.NOT_CHECKED
    assert set(result.missing) == {*check.kinds, *check.needs}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_an_empty_cluster_and_empty_values_are_no_crash(check):
    result = judge(check, scene(objects={kind: [] for kind in OBJECTS}, values={}))
    assert result.missing == tuple(need for need in check.needs if need in {"pool_nodes", "pods_on_gpus"})


@pytest.mark.parametrize(
    "part", [{}, {"spec": None}, {"spec": {"template": None}}, {"metadata": {"name": "x"}}]
)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_objects_that_were_cut_are_no_crash(check, part):
    objects = {kind: [{**thing(kind, "x", "jupyterhub"), **part}] for kind in OBJECTS}
    odd = {"hub": None, "singleuser": {"extraEnv": None, "storage": []}}
    assert judge(check, scene(objects=objects, values=odd)).check is check


def h200(**changes: Any) -> list[dict[str, Any]]:
    """The nodes, the first of them with other labels."""
    first, *rest = OBJECTS["Node"]
    return [
        {**first, "metadata": {**first["metadata"], "labels": first["metadata"]["labels"] | changes}},
        *rest,
    ]


def values(path: str, value: Any) -> dict[str, Any]:
    made = value
    for step in reversed(path.split(".")):
        made = {step: made}
    return merged([VALUES, made])


def claim(name: str, *, namespace: str = "jupyterhub", user: str = "", server: str = "", **spec: Any):
    annotations = {"hub.jupyter.org/username": user, "hub.jupyter.org/servername": server}
    return thing(
        "PersistentVolumeClaim",
        name,
        namespace,
        metadata={"annotations": annotations},
        spec={"accessModes": ["ReadOnlyMany"], **spec},
        status={"phase": "Bound"},
    )


def workspace(
    name: str,
    *,
    namespace: str = "jupyterhub",
    user: str,
    server: str = "",
    metadata: Any = None,
    **fields: Any,
):
    notes = {"hub.jupyter.org/username": user} | ({"hub.jupyter.org/servername": server} if server else {})
    about = {"labels": {"component": "singleuser-server"}, "annotations": notes, **(metadata or {})}
    return thing("Pod", name, namespace, metadata=about, **{"status": {"phase": "Running"}, **fields})


def plugin(**sharing: Any) -> dict[str, Any]:
    import yaml

    text = yaml.safe_dump({"version": "v1", "sharing": sharing})
    return thing("ConfigMap", "plugin", "gpu-operator", data={"any": text})


def quota(status: Any = None, **hard: str) -> dict[str, Any]:
    hard = {key.replace("__", "."): value for key, value in hard.items()}
    return thing(
        "ResourceQuota",
        "q",
        "jupyterhub",
        spec={"hard": hard},
        status={"hard": hard} if status is None else status,
    )


def hook(*, service: Any, **fields: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}
    one = {"name": "hook", "rules": [rule], "clientConfig": {"service": service}, **fields}
    return thing("ValidatingWebhookConfiguration", "policy", webhooks=[one])


TEAM = {"teams": {"nlp": {"displayName": "Language", "groups": ["nlp"], "namespace": "ws-nlp"}}}
PRIVILEGED = Answer(
    code=403,
    reason="Forbidden",
    message='pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged (container "c" must '
    "not set securityContext.privileged=true)",
)
AWAY = {"namespace": "policy", "name": "policy"}
READY = thing(
    "EndpointSlice",
    "policy-x",
    "policy",
    metadata={"labels": {"kubernetes.io/service-name": "policy"}},
    endpoints=[{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
)
QUEUE = thing("LocalQueue", "nlp", "jupyterhub", spec={"clusterQueue": "nlp"})
IMMEDIATE = {**OBJECTS["StorageClass"][0], "volumeBindingMode": "Immediate"}
ZONES = [node(f"n{zone}", {}, **{"topology.kubernetes.io/zone": zone}) for zone in "ab"]
ANY_ZONE = [node("n1", {}, **{"topology.kubernetes.io/zone": "a"})]


def daemons(image: str) -> list[dict[str, Any]]:
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    return [thing("DaemonSet", "d", "gpu-operator", spec={"template": template})]


WRONG = {
    "kubernetes-version": {
        "objects": {
            "Node": [
                {**OBJECTS["Node"][0], "status": {"nodeInfo": {"kubeletVersion": "v1.31.9"}}},
            ]
        }
    },
    "pool-nodes": {"objects": {"Node": OBJECTS["Node"][1:]}},
    "pool-taints": {
        "objects": {
            "Node": [
                {**OBJECTS["Node"][1], "spec": {"taints": [{**GPU_TAINT, "key": "dedicated"}]}},
            ]
        }
    },
    "resource-offered": {"objects": {"Node": [node("h200-1", {"nvidia.com/gpu": "1"}, pool="h200")]}},
    "driver-cuda": {"objects": {"Node": h200(**{"nvidia.com/cuda.runtime-version.full": "12.8"})}},
    "gpu-nodes": {
        "objects": {"Node": [node("x", {}, **{PRODUCT: "NVIDIA-H200", "nvidia.com/gpu.count": "8"})]}
    },
    "mig-state": {"objects": {"Node": h200(**{"nvidia.com/mig.config.state": "failed"})}},
    "sharing": {"objects": {"Node": h200(**{SHARING: "time-slicing"})}},
    "product": {"objects": {"Node": h200(**{PRODUCT: "NVIDIA-H100-80GB-HBM3"})}},
    "single-shares": {
        "objects": {
            "ConfigMap": [plugin(timeSlicing={"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]})]
        }
    },
    "plugin-and-dra": {
        "objects": {
            "ResourceSlice": [
                thing("ResourceSlice", "s", spec={"driver": "gpu.nvidia.com", "nodeName": "h200-1"})
            ]
        }
    },
    "toolkit-version": {
        "objects": {"DaemonSet": daemons("nvcr.io/nvidia/k8s/container-toolkit:v1.17.7-ubi8")}
    },
    "devices-by-variable": {
        "objects": {"ClusterPolicy": [thing("ClusterPolicy", "p", spec={"cdi": {"enabled": False}})]}
    },
    "exporter": {"objects": {"DaemonSet": daemons("nvcr.io/nvidia/k8s-device-plugin:v0.20.0")}},
    "exporter-fields": {"metrics": Metrics(fields=frozenset({"DCGM_FI_DEV_GPU_UTIL"}), pod_label="pod")},
    "exporter-pods": {"metrics": Metrics(fields=frozenset({"DCGM_FI_DEV_GPU_UTIL"}), pod_label="")},
    "storage-class": {"objects": {"StorageClass": [thing("StorageClass", "slow")]}},
    "home-zone": {"objects": {"StorageClass": [IMMEDIATE], "Node": ZONES}},
    "home-single-pod": {"objects": {"CSIDriver": []}},
    "claims": {"objects": {"PersistentVolumeClaim": [claim("datasets", accessModes=["ReadWriteOnce"])]}},
    "home-growth": {"objects": {"StorageClass": [{**IMMEDIATE, "allowVolumeExpansion": False}]}},
    "home-snapshots": {
        "objects": {"VolumeSnapshotClass": [thing("VolumeSnapshotClass", "x", driver="other")]}
    },
    "gpu-quota": {"objects": {"ResourceQuota": [quota(**{"limits.nvidia.com/gpu": "4"})]}},
    "quota-defaults": {"objects": {"ResourceQuota": [quota(limits__cpu="64")]}},
    "quota-status": {"objects": {"ResourceQuota": [quota({}, requests__cpu="64")]}},
    "priority-class": {"objects": {"PriorityClass": []}},
    "runtime-class": {"objects": {"RuntimeClass": [thing("RuntimeClass", "runc")]}},
    "queues": {"objects": {"LocalQueue": [QUEUE]}},
    "training-runtime": {
        "objects": {
            "ClusterTrainingRuntime": [
                thing(
                    "ClusterTrainingRuntime",
                    "torch",
                    spec={"mlPolicy": {"torch": {"numProcPerNode": "auto"}}},
                )
            ]
        }
    },
    "pod-security": {"objects": {"Namespace": [thing("Namespace", "jupyterhub")]}},
    "host-access": {
        "objects": {
            "Pod": [
                thing(
                    "Pod",
                    "jupyter-ada",
                    "jupyterhub",
                    spec={"containers": [{"name": "x", "securityContext": {"privileged": True}}]},
                )
            ]
        }
    },
    "root-user": {"values": values("singleuser.uid", 0)},
    "privilege-escalation": {"values": values("singleuser.extraEnv.GRANT_SUDO", "yes")},
    "cloud-metadata": {"values": values("singleuser.networkPolicy.enabled", False)},
    "account-token": {"values": values("singleuser.serviceAccountName", "single-user")},
    "shared-secret": {
        "values": values("singleuser.extraEnv.T", {"valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}})
    },
    "gpu-variable": {"values": values("singleuser.extraEnv.NVIDIA_VISIBLE_DEVICES", "all")},
    "node-rights": {"values": values("singleuser.extraPodConfig.hostNetwork", True)},
    "open-policy": {"values": values("singleuser.networkPolicy.egressAllowRules.privateIPs", True)},
    "network-policy": {"objects": {"NetworkPolicy": [policy("in", policyTypes=["Ingress"])]}},
    "policy-metadata": {
        "objects": {
            "NetworkPolicy": [
                policy("out", egress=[{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]}])
            ]
        }
    },
    "webhook": {"objects": {"ValidatingWebhookConfiguration": [hook(service=AWAY)]}},
    "rights": {"objects": {"ClusterRoleBinding": []}},
    "rights-beyond": {
        "objects": {
            "ClusterRole": [
                *OBJECTS["ClusterRole"],
                thing(
                    "ClusterRole",
                    "edit",
                    rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}],
                ),
            ],
            "ClusterRoleBinding": [
                *OBJECTS["ClusterRoleBinding"],
                bound("ClusterRole", "edit", "prepuller"),
            ],
        }
    },
    "chart-keys": {"values": values("singleuser.gid", 100)},
    "spawner": {"values": values("hub.config.JupyterHub.spawner_class", "kubespawner.KubeSpawner")},
    "replaced-traits": {"values": values("hub.config.KubeSpawner.extra_labels", {"a": "b"})},
    "empty-map": {
        "layers": (
            {"singleuser": {"nodeSelector": {"type": "cpu"}}},
            {"singleuser": {"nodeSelector": {}}},
        )
    },
    "resource-map": {"values": values("singleuser.extraResource.limits", {"nvidia": {"com/gpu": 1}})},
    "replaced-list": {
        "layers": (
            {"singleuser": {"extraTolerations": [{"key": "a"}]}},
            {"singleuser": {"extraTolerations": [{"key": "b"}]}},
        )
    },
    "ignored-section": {"values": values("hub.config.JupyterHub.services", [{"name": "x"}])},
    "number-tag": {"values": values("singleuser.image.tag", 3.1)},
    "one-culler": {"values": values("cull.enabled", True)},
    "home-deletion": {"values": values("cull", {"enabled": True, "users": True})},
    "failure-limit": {"values": values("hub.consecutiveFailureLimit", None)},
    "name-templates": {
        "values": merged(
            [
                values("hub.allowNamedServers", True),
                values("singleuser.storage.dynamic.pvcNameTemplate", "claim-{username}{servername}"),
            ]
        )
    },
    "server-names": {
        "objects": {"PersistentVolumeClaim": [claim("claim-a", user="ada", server="My.Server")]}
    },
    "old-claim-names": {
        "objects": {
            "PersistentVolumeClaim": [claim("claim-abc000-40example-2eorg", user="abc000@example.org")]
        }
    },
    "dry-run": {"trials": (Trial(profile="full@1", namespace="jupyterhub", refusal=PRIVILEGED),)},
    "hub-version": {"hub": replace(HUB, version="5.3.0")},
    "hub-spawner": {"hub": replace(HUB, spawner="kubespawner.KubeSpawner")},
    "hub-services": {"hub": replace(HUB, services={"old": {}})},
    "hub-health": {"hub": replace(HUB, health={"prepuller": "GET /services/prepuller/health: status 503"})},
    "unknown-workspaces": {
        "hub": replace(HUB, running=frozenset({("ada", ""), ("bob", "gpu")})),
        "objects": {"Pod": [workspace("jupyter-ada", user="ada", server="gpu")]},
    },
    "hub-address": {"catalog": TEAM},
    "one-home": {
        "objects": {"PersistentVolumeClaim": [claim("claim-a", user="ada"), claim("claim-b", user="ada")]}
    },
    "volume-template": {
        "values": values(
            "singleuser.storage.extraVolumes",
            [{"name": "home", "persistentVolumeClaim": {"claimName": "claim-{user_server}"}}],
        )
    },
}


@pytest.mark.parametrize("code", BY_CODE)
def test_what_is_wrong_is_told(code):
    found = judge(BY_CODE[code], scene(**WRONG[code]))
    assert not found.missing
    assert found.observations
    for one in found.observations:
        assert one.code == code
        assert one.help
        assert one.link.endswith(f"#{code}")


KNOWN = replace(HUB, running=frozenset({("ada", ""), ("a@b.c", "gpu")}))

FINE = {
    "unknown-workspaces": [
        {"hub": KNOWN, "objects": {"Pod": [one]}}
        for one in (
            workspace("jupyter-ada", user="ada"),
            workspace("jupyter-a-40b-2ec--gpu", user="a@b.c", server="gpu"),
            workspace("jupyter-eve", namespace="of-another-hub", user="eve"),
            workspace("jupyter-eve", user="eve", metadata={"deletionTimestamp": "2026-11-30T12:00:00Z"}),
            workspace("jupyter-eve", user="eve", status={"phase": "Succeeded"}),
            thing("Pod", "hub", "jupyterhub", metadata={"labels": {"component": "hub"}}),
        )
    ],
    "dry-run": [{"trials": (Trial(profile="full@1", namespace="jupyterhub", refusal=None),)}],
    "hub-version": [{"hub": replace(HUB, version=one)} for one in ("5.5.1", "6.1.1", "6.2.0.dev")],
    "hub-spawner": [{"hub": replace(HUB, spawner="site.OwnWorkspaceSpawner")}],
    "hub-address": [
        {
            "catalog": TEAM,
            "values": values("hub.config.JupyterHub.hub_connect_url", "http://hub.jupyterhub.svc:8081"),
        }
    ],
    "driver-cuda": [{"objects": {"Node": h200(**{"nvidia.com/cuda.runtime-version.full": "13.2"})}}],
    "gpu-nodes": [{"objects": {"Node": [node("cpu", {})]}}],
    "mig-state": [{"objects": {"Node": h200(**{"nvidia.com/mig.config.state": ""})}}],
    "sharing": [{"objects": {"Node": h200(**{SHARING: "none"})}}],
    "product": [{"objects": {"Node": h200(**{PRODUCT: "NVIDIA-H200-MIG-1g.18gb"})}}],
    "single-shares": [
        {
            "objects": {
                "ConfigMap": [plugin(timeSlicing={"failRequestsGreaterThanOne": True, "resources": []})]
            }
        },
        {"objects": {"ConfigMap": [thing("ConfigMap", "c", "x", data={"a": "sharing: [resources"})]}},
    ],
    "plugin-and-dra": [
        {
            "objects": {
                "ResourceSlice": [
                    thing("ResourceSlice", "s", spec={"driver": "gpu.nvidia.com", "nodeName": "x"})
                ]
            }
        }
    ],
    "toolkit-version": [{"objects": {"DaemonSet": daemons("registry/container-toolkit@sha256:abc")}}],
    "devices-by-variable": [
        {"objects": {"ClusterPolicy": [thing("ClusterPolicy", "p", spec={"cdi": {"enabled": True}})]}}
    ],
    "exporter": [{"objects": {"Node": [node("cpu", {})], "DaemonSet": []}}],
    "home-zone": [{"objects": {"StorageClass": [IMMEDIATE], "Node": ANY_ZONE}}],
    "quota-defaults": [
        {
            "objects": {
                "ResourceQuota": [quota(limits__cpu="64")],
                "LimitRange": [
                    thing(
                        "LimitRange",
                        "l",
                        "jupyterhub",
                        spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
                    )
                ],
            }
        }
    ],
    "queues": [
        {
            "objects": {
                "LocalQueue": [QUEUE],
                "ClusterQueue": [
                    thing(
                        "ClusterQueue", "nlp", status={"conditions": [{"type": "Active", "status": "True"}]}
                    )
                ],
            }
        }
    ],
    "host-access": [
        {
            "objects": {
                "Pod": [thing("Pod", "cni", "kube-system", spec={"hostNetwork": True, "containers": []})],
            }
        }
    ],
    "node-rights": [
        {"values": values("singleuser.extraPodConfig", {"hostNetwork": False, "hostAliases": []})},
        {"values": values("singleuser.initContainers", [{"name": "a", "securityContext": None}])},
        {"values": values("singleuser.storage.extraVolumes", {"tmp": {"name": "tmp", "emptyDir": {}}})},
        {"values": values("singleuser.extraContainers", "none")},
    ],
    "shared-secret": [
        {"values": values("singleuser.extraEnv", {"TOKENIZERS_PARALLELISM": "false", "HF_TOKEN": ""})},
        {"values": values("singleuser.extraEnv.HF_TOKEN", "{user.name}")},
        {"values": values("singleuser.extraEnv", [{"name": "A", "value": "b"}, "odd"])},
        {"values": values("singleuser.extraEnv.A", {"valueFrom": {"fieldRef": {"fieldPath": "x"}}})},
    ],
    "open-policy": [
        {"values": values("singleuser.networkPolicy.egressAllowRules", {"dnsPortsPrivateIPs": True})}
    ],
    "replaced-list": [
        {"layers": ({"hub": {"a": [1, 2]}}, {"hub": {"a": [3, 2, 1]}})},
        {"layers": ({"hub": {"a": [1]}}, {"hub": {"a": None}}, {"hub": {"a": [2]}})},
        {"layers": ({"hub": {"a": {"b": 1}}}, {"hub": {"a": [2]}})},
    ],
    "ignored-section": [
        {"values": values("custom", {"gpuWorkspaces": {}, "gpuWorkspace": {}})},
        {"values": values("custom.gpus", 8)},
        {"values": values("hub.services.x", {})},
    ],
    "number-tag": [
        {"values": values("singleuser.image.tag", "3.10")},
        {"values": values("singleuser.image", {"name": "a", "tag": None, "tags": 3.1})},
    ],
    "account-token": [
        {
            "values": merged(
                [
                    values("singleuser.serviceAccountName", "single-user"),
                    values("hub.config.KubeSpawner.automount_service_account_token", False),
                ]
            )
        }
    ],
    "policy-metadata": [
        {"objects": {"NetworkPolicy": [policy("out", egress=[{"to": [{"ipBlock": block}]}])]}}
        for block in (
            {"cidr": "0.0.0.0/0", "except": ["169.254.169.254/32"]},
            {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "169.254.0.0/16"]},
            {"cidr": "10.0.0.0/8"},
            {"cidr": "::/0"},
            {},
        )
    ],
    "webhook": [
        {"objects": {"ValidatingWebhookConfiguration": [hook(service=AWAY)], "EndpointSlice": [READY]}},
        {"objects": {"ValidatingWebhookConfiguration": [hook(service=AWAY, failurePolicy="Ignore")]}},
        {
            "objects": {
                "ValidatingWebhookConfiguration": [
                    hook(
                        service=AWAY,
                        namespaceSelector={
                            "matchExpressions": [
                                {
                                    "key": "kubernetes.io/metadata.name",
                                    "operator": "NotIn",
                                    "values": ["jupyterhub"],
                                }
                            ]
                        },
                    )
                ]
            }
        },
    ],
    "spawner": [
        {
            "values": merged(
                [
                    values("hub.config.JupyterHub.spawner_class", None),
                    values("hub.extraConfig", {"gpu": "from hub_ext import configure\nconfigure(c)"}),
                ]
            )
        }
    ],
    "empty-map": [
        {
            "layers": (
                {"singleuser": {"nodeSelector": {"a": "b"}}},
                {"singleuser": {"nodeSelector": {"a": None}}},
            )
        },
        {"layers": ({"singleuser": {"nodeSelector": {}}},)},
        {"layers": ({"singleuser": {"extraVolumes": ["a"]}}, {"singleuser": {"extraVolumes": {}}})},
        {
            "layers": (
                {"singleuser": {"nodeSelector": {"a": "b"}}},
                {"singleuser": {"nodeSelector": {"a": None}}},
                {"singleuser": {"nodeSelector": {}}},
            )
        },
    ],
    "resource-map": [{"values": values("singleuser.extraResource.limits", None)}],
    "home-deletion": [
        {
            "values": merged(
                [
                    values("cull", {"enabled": True, "users": True}),
                    values("hub.config.KubeSpawner.delete_pvc", False),
                ]
            )
        }
    ],
    "name-templates": [
        {"values": values("singleuser.storage.dynamic.pvcNameTemplate", "claim-{username}{servername}")}
    ],
    "server-names": [{"objects": {"PersistentVolumeClaim": [claim("c", user="ada", server="train-2026")]}}],
    "old-claim-names": [
        {"objects": {"PersistentVolumeClaim": [claim("claim-ada-2b", user="ada-2b")]}},
        {"objects": {"PersistentVolumeClaim": [claim("claim-ann-lee", user="ann-lee")]}},
        {"objects": {"PersistentVolumeClaim": [claim("claim-a-b---1a2b3c4d", user="a@b")]}},
    ],
    "one-home": [
        {
            "objects": {
                "PersistentVolumeClaim": [
                    claim("claim-a", user="ada"),
                    claim("claim-b", user="ada", server="gpu"),
                ]
            }
        }
    ],
    "volume-template": [
        {
            "values": values(
                "singleuser.storage.extraVolumes",
                [{"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}],
            )
        }
    ],
}


@pytest.mark.parametrize(
    ("code", "number"), [(code, number) for code, changes in FINE.items() for number in range(len(changes))]
)
def test_what_only_looks_wrong_is_not_told(code, number):
    assert findings(code, **FINE[code][number]) == []


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("gpu", True),
        ("GPU", False),
        ("my.server", False),
        ("a--b", False),
        ("1gpu", False),
        ("gpu-", False),
        ("x" * 30, True),
        ("x" * 31, False),
        ("train-2026", True),
        ("", False),
    ],
)
def test_names_of_servers_are_judged_as_jupyterhub_6_does(name, allowed):
    from services.preflight.checks.upgrade import is_server_name

    assert is_server_name(name) is allowed


def test_a_missing_right_that_is_optional_is_a_note():
    (found,) = findings("rights", objects={"RoleBinding": []})
    assert found[0] is Severity.NOTE


def test_a_right_for_one_name_is_no_right_for_all():
    narrow = [
        thing(
            "ClusterRole",
            "look",
            rules=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"], "resourceNames": ["a"]}],
        )
    ]
    assert findings("rights", objects={"ClusterRole": narrow})[0][0] is Severity.ERROR


def test_rights_are_wanted_in_the_namespaces_of_teams_too():
    (found,) = findings("rights", catalog=TEAM)
    assert "create pods in ws-nlp" in found[1]
    granted = [*OBJECTS["RoleBinding"], bound("Role", "pull", "prepuller", "ws-nlp")]
    role = {**OBJECTS["Role"][0], "metadata": {"name": "pull", "namespace": "ws-nlp"}}
    both = {"RoleBinding": granted, "Role": [*OBJECTS["Role"], role]}
    assert findings("rights", catalog=TEAM, objects=both) == []


def test_rights_are_wanted_where_runs_are():
    rule = Rule(where=Where.JOBS, resources=("pods",), verbs=("get",), why="looks at runs")
    one = replace(scene(), rights=(Rights(name="prepuller", rules=(rule,)),))
    (found,) = judge(BY_CODE["rights"], one).observations
    assert found.message == "prepuller may not get pods in gpu-workspaces-runs"
    assert "gpu-workspaces manifests" in found.help


@pytest.mark.parametrize(
    "pods",
    [
        [],
        None,
        [on_gpu("Succeeded", **{"nvidia.com/gpu": "1"})],
        [on_gpu(cpu="1", **{"nvidia.com/gpu": "0"})],
    ],
    ids=["none", "unseen", "ended", "without"],
)
def test_whether_metrics_name_pods_is_seen_only_while_one_holds_a_card(pods):
    nameless = Metrics(fields=frozenset({"DCGM_FI_PROF_GR_ENGINE_ACTIVE"}), pod_label="")
    result = judge(BY_CODE["exporter-pods"], scene(metrics=nameless, objects={"Pod": pods}))
    assert (result.outcome, result.missing) == (Outcome.NOT_CHECKED, ("pods_on_gpus",))


@pytest.mark.parametrize(("code", "kind"), [("policy-metadata", "NetworkPolicy"), ("host-access", "Pod")])
def test_the_namespaces_of_teams_are_looked_at(code, kind):
    (wrong,) = WRONG[code]["objects"][kind]
    there = {**wrong, "metadata": {**wrong["metadata"], "namespace": "ws-nlp"}}
    (found,) = findings(code, catalog=TEAM, objects={kind: [there]})
    assert f"ws-nlp/{wrong['metadata']['name']}" in found[1]


def test_homes_are_looked_at_in_namespaces_of_teams_too():
    claims = [claim(name, namespace="ws-nlp", user="ada", server="GPU") for name in ("home-a", "home-b")]
    assert findings("one-home", objects={"PersistentVolumeClaim": claims}) == []
    assert findings("one-home", objects={"PersistentVolumeClaim": claims}, catalog=TEAM)
    assert findings("server-names", objects={"PersistentVolumeClaim": claims}, catalog=TEAM)


@pytest.mark.parametrize(
    ("name", "user", "server"),
    [
        ("claim-abc000-40example-2eorg", "abc000@example.org", ""),
        ("claim-ann-2dlee", "ann-lee", ""),
        ("claim--41da", "Ada", ""),
        ("claim-ada--my-2dlab", "ada", "my-lab"),
        ("claim-j-c3-b6rg", "j\u00f6rg", ""),
    ],
)
def test_names_of_older_hubs_are_known_by_what_they_escape(name, user, server):
    claims = {"PersistentVolumeClaim": [claim(name, user=user, server=server)]}
    ((severity, message),) = findings("old-claim-names", objects=claims)
    assert severity is Severity.NOTE
    assert message.startswith("1 homes")


def test_homes_of_two_namespaces_are_two_homes():
    """Who is in two teams has a home in the namespace of each."""
    claims = [claim("home-a", namespace=name, user="ada") for name in ("jupyterhub", "ws-nlp")]
    assert findings("one-home", objects={"PersistentVolumeClaim": claims}, catalog=TEAM) == []


def test_a_webhook_over_the_namespace_of_a_team_is_told():
    one = hook(service=AWAY, namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "ws-nlp"}})
    assert findings("webhook", objects={one["kind"]: [one]}) == []
    (found,) = findings("webhook", objects={one["kind"]: [one]}, catalog=TEAM)
    assert "every pod in ws-nlp" in found[1]


def test_a_pool_whose_nodes_come_on_demand_is_only_noted():
    from tests.unit.preflight.scenes import CATALOG

    pools = {**CATALOG["pools"], "h200": {**CATALOG["pools"]["h200"], "scaleUp": "5m"}}
    found = findings("pool-nodes", objects={"Node": OBJECTS["Node"][1:]}, catalog={"pools": pools})
    assert [severity for severity, _ in found] == [Severity.NOTE]


def test_helm_merges_maps_and_null_takes_away():
    base = {"singleuser": {"nodeSelector": {"type": "cpu"}, "uid": 1000}}
    assert merged([base, {"singleuser": {"nodeSelector": {}}}]) == base
    cleared = merged([base, {"singleuser": {"nodeSelector": {"type": None}}}])
    assert cleared["singleuser"] == {"nodeSelector": {}, "uid": 1000}
    assert merged([base, {"singleuser": {"nodeSelector": ["a"]}}])["singleuser"]["nodeSelector"] == ["a"]


@pytest.mark.parametrize(
    ("limits", "problems"),
    [
        (None, 0),
        ("nvidia.com/gpu: 2", 1),
        (["nvidia.com/gpu"], 1),
        ({"nvidia.com/gpu": 2}, 0),
        ({"nvidia.com/gpu": "2"}, 0),
        ({"nvidia": {"com/gpu": 2}}, 1),
        ({"memory": "2 GB"}, 1),
        ({}, 0),
    ],
)
def test_shapes_of_resource_maps(limits, problems):
    assert (
        len(findings("resource-map", values={"singleuser": {"extraResource": {"limits": limits}}}))
        == problems
    )


def test_every_key_that_the_chart_refuses_is_told_with_its_place():
    made = {"ours": {}, "singleuser": {"spec": {}, "gid": 100}, "proxy": {"extraEnv": {}}, "hub": {}}
    result = judge(BY_CODE["chart-keys"], scene(values=made))
    told = {one.path: one.help for one in result.observations}
    assert set(told) == {"ours", "singleuser.spec", "singleuser.gid", "proxy.extraEnv"}
    assert "custom.ours" in told["ours"]
    assert "extraPodConfig" in told["singleuser.spec"]


@pytest.mark.parametrize(
    ("code", "path", "value"),
    [
        ("node-rights", "singleuser.extraPodConfig", {"hostPID": True}),
        ("node-rights", "hub.config.KubeSpawner.extra_pod_config.hostIPC", True),
        ("node-rights", "hub.config.KubeSpawner.privileged", True),
        (
            "node-rights",
            "singleuser.initContainers",
            [{"name": "a", "securityContext": {"privileged": True}}],
        ),
        (
            "node-rights",
            "singleuser.extraContainers",
            [{"name": "fuse", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}],
        ),
        ("node-rights", "singleuser.storage.extraVolumes", [{"name": "h", "hostPath": {"path": "/"}}]),
        ("node-rights", "singleuser.storage.extraVolumes", {"h": {"name": "h", "hostPath": {"path": "/"}}}),
        ("node-rights", "hub.config.KubeSpawner.volumes", [{"name": "h", "hostPath": {"path": "/"}}]),
        ("shared-secret", "singleuser.extraEnv.HF_TOKEN", "hf_abc"),
        ("shared-secret", "singleuser.extraEnv.aws_secret_access_key", "abc"),
        ("shared-secret", "singleuser.extraEnv", [{"name": "OPENAI_API_KEY", "value": "sk-abc"}]),
        ("shared-secret", "singleuser.extraEnv.DB_PASSWORD", {"name": "DB_PASSWORD", "value": "x"}),
        ("shared-secret", "hub.config.KubeSpawner.environment.WANDB_API_KEY", "abc"),
        ("shared-secret", "singleuser.storage.extraVolumes", [{"name": "s", "secret": {"secretName": "s"}}]),
        ("open-policy", "singleuser.networkPolicy.egressAllowRules.cloudMetadataServer", True),
        ("ignored-section", "hub.config.kubeSpawner.uid", 1),
        ("ignored-section", "hub.config.JupyterHub.load_roles", []),
        ("ignored-section", "custom.gpuworkspaces", {}),
        ("ignored-section", "custom.gpuWorkspace", {}),
        ("number-tag", "hub.image.tag", 4),
        ("number-tag", "prePuller.extraImages.a.tag", 1.10),
    ],
)
def test_values_of_the_same_kind_are_told_wherever_they_stand(code, path, value):
    told = findings(code, values=values(path, value))
    assert len(told) == 1
    assert "abc" not in str(told)


def test_a_blueprint_that_opens_everything_is_told_everything():
    opened = {
        "singleuser": {
            "uid": 0,
            "allowPrivilegeEscalation": True,
            "serviceAccountName": "notebooks",
            "cloudMetadata": {"blockWithIptables": False},
            "networkPolicy": {"enabled": False},
            "extraEnv": {"TOKEN": {"valueFrom": {"secretKeyRef": {"name": "models", "key": "token"}}}},
        }
    }
    wrong = {
        check.code
        for check in CHECKS
        if check.needs == ("values",) and judge(check, scene(values=opened)).outcome is Outcome.FAILED
    }
    assert wrong >= {
        "root-user",
        "privilege-escalation",
        "cloud-metadata",
        "account-token",
        "shared-secret",
        "spawner",
    }
