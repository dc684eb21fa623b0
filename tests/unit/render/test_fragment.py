"""Putting a profile onto a pod: nothing is left over, nothing else is touched."""

from copy import deepcopy
from dataclasses import replace

import pytest

from hub_ext.names import LABEL_PROFILE, LABEL_TEAM
from hub_ext.render.documents import freeze
from hub_ext.render.fragment import PodFragment, apply, literal, merge_tolerations

NOTHING = PodFragment(
    image="registry.example.com/base:1",
    requests={"cpu": "1", "memory": "2Gi"},
    limits={"memory": "2Gi"},
    env={},
    node_selector={},
    labels={},
    annotations={},
    pod_security={},
    container_security={},
)
GPU = replace(
    NOTHING,
    requests={"cpu": "8", "memory": "40Gi", "nvidia.com/gpu": "1"},
    limits={"cpu": "8", "memory": "40Gi", "nvidia.com/gpu": "1"},
    node_selector=freeze({"example.org/gpu": "true"}),
    tolerations=freeze([{"key": "gpu_only", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]),
)


def notebook(pod):
    return pod["spec"]["containers"][0]


def test_the_second_profile_never_sees_the_first(baseline):
    """A GPU start that failed must not leave its GPU, selector or toleration to the next start."""
    untouched = deepcopy(baseline)
    apply(baseline, GPU)
    light = apply(baseline, NOTHING)

    assert baseline == untouched
    assert notebook(light)["resources"] == {
        "requests": {"cpu": "1", "memory": "2Gi"},
        "limits": {"memory": "2Gi"},
    }
    assert "nodeSelector" not in light["spec"]
    assert [t["key"] for t in light["spec"]["tolerations"]] == ["hub.jupyter.org/dedicated"]


@pytest.mark.parametrize("fragment", [NOTHING, GPU], ids=["cpu", "gpu"])
def test_applying_twice_is_applying_once(baseline, fragment):
    once = apply(baseline, fragment)
    assert apply(once, fragment) == once


def test_tolerations_are_added_to_those_of_the_hub(baseline):
    keys = [t["key"] for t in apply(baseline, GPU)["spec"]["tolerations"]]
    assert keys == ["hub.jupyter.org/dedicated", "gpu_only"]


def test_equal_tolerations_are_kept_once():
    short = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
    assert merge_tolerations([short], [short | {"operator": "Equal"}]) == [short]
    assert len(merge_tolerations([{"key": "gpu", "operator": "Exists"}], [short])) == 2


def test_accelerators_of_the_hub_are_taken_away(baseline):
    notebook(baseline)["resources"]["limits"] = {"nvidia.com/mig-1g.18gb": "1", "example.com/fpga": "1"}
    sidecar = {"name": "sidecar", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    baseline["spec"]["containers"].append(sidecar)

    pod = apply(baseline, GPU)

    assert notebook(pod)["resources"]["limits"] == {
        "example.com/fpga": "1",
        "cpu": "8",
        "memory": "40Gi",
        "nvidia.com/gpu": "1",
    }
    assert pod["spec"]["containers"][1]["resources"] == {"limits": {}}


def test_a_limit_of_the_hub_does_not_stay_when_the_profile_has_none(baseline):
    notebook(baseline)["resources"]["limits"] = {"cpu": "0.5", "memory": "1Gi"}
    assert notebook(apply(baseline, NOTHING))["resources"]["limits"] == {"memory": "2Gi"}


def test_variables_about_the_container_are_those_of_the_profile(baseline):
    notebook(baseline)["env"].append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"})
    pod = apply(baseline, replace(GPU, env={"MEM_LIMIT": "42949672960"}))
    assert notebook(pod)["env"] == [
        {"name": "JUPYTERHUB_USER", "value": "alice"},
        {"name": "MEM_LIMIT", "value": "42949672960"},
    ]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("plain", "plain"), ("$(JUPYTERHUB_API_TOKEN)", "$$(JUPYTERHUB_API_TOKEN)"), ("$$", "$$$$")],
)
def test_no_text_can_read_another_variable(text, escaped):
    assert literal(text) == escaped


def test_the_home_of_the_hub_is_replaced_and_its_claim_forgotten(baseline):
    home = replace(
        NOTHING,
        volumes=freeze([{"name": "workspace-home", "persistentVolumeClaim": {"claimName": "home-alice"}}]),
        mounts=freeze([{"name": "workspace-home", "mountPath": "/home/jovyan"}]),
    )
    pod = apply(baseline, home)
    assert [v["persistentVolumeClaim"]["claimName"] for v in pod["spec"]["volumes"]] == ["home-alice"]
    assert notebook(pod)["volumeMounts"] == [{"name": "workspace-home", "mountPath": "/home/jovyan"}]
    assert apply(pod, home) == pod


def test_a_claim_that_the_pod_has_is_not_attached_twice(baseline):
    home = replace(
        NOTHING,
        volumes=freeze([{"name": "workspace-home", "persistentVolumeClaim": {"claimName": "claim-alice"}}]),
        mounts=freeze([{"name": "workspace-home", "mountPath": "/home/alice"}]),
    )
    pod = apply(baseline, home)
    assert pod["spec"]["volumes"] == baseline["spec"]["volumes"]
    assert {m["name"] for m in notebook(pod)["volumeMounts"]} == {"volume-alice"}
    assert apply(pod, home) == pod


def test_a_volume_that_a_sidecar_still_mounts_stays(baseline):
    mount = {"name": "volume-alice", "mountPath": "/home/jovyan"}
    baseline["spec"]["initContainers"] = [{"name": "chown", "image": "x", "volumeMounts": [mount]}]
    shm = replace(
        NOTHING,
        volumes=freeze([{"name": "new", "emptyDir": {}}]),
        mounts=freeze([{"name": "new", "mountPath": "/home/jovyan/"}]),
    )
    assert [v["name"] for v in apply(baseline, shm)["spec"]["volumes"]] == ["volume-alice", "new"]


def test_labels_of_the_product_cannot_be_brought_along(baseline):
    baseline["metadata"]["labels"][LABEL_TEAM] = "somebody-else"
    labels = apply(baseline, replace(NOTHING, labels={LABEL_PROFILE: "cpu"}))["metadata"]["labels"]
    assert labels == {
        "component": "singleuser-server",
        "hub.jupyter.org/username": "alice",
        LABEL_PROFILE: "cpu",
    }


def test_a_hub_that_runs_as_root_does_not_break_a_closed_profile(baseline):
    notebook(baseline)["securityContext"] = {"runAsUser": 0, "privileged": True}
    closed = {"runAsNonRoot": True, "allowPrivilegeEscalation": False}
    pod = apply(baseline, replace(NOTHING, container_security=closed))
    assert notebook(pod)["securityContext"] == closed


class TestWorkingFolder:
    work = replace(NOTHING, working_dir="/home/jovyan/work", env={})

    def test_it_is_made_by_the_user_before_the_server_starts(self, baseline):
        notebook(baseline)["env"].append({"name": "JUPYTERHUB_ROOT_DIR", "value": "/home"})
        pod = apply(baseline, self.work)
        maker = pod["spec"]["initContainers"][0]
        assert maker["command"] == ["mkdir", "-p", "/home/jovyan/work"]
        assert maker["volumeMounts"] == [{"name": "volume-alice", "mountPath": "/home/jovyan"}]
        assert maker["securityContext"] == notebook(pod)["securityContext"]
        assert notebook(pod)["workingDir"] == "/home/jovyan/work"
        assert "JUPYTERHUB_ROOT_DIR" not in {e["name"] for e in notebook(pod)["env"]}
        assert apply(pod, self.work) == pod

    def test_the_maker_asks_for_no_gpu(self, baseline):
        pod = apply(baseline, replace(GPU, working_dir="/home/jovyan/work"))
        assert pod["spec"]["initContainers"][0]["resources"] == {
            "requests": {"cpu": "8", "memory": "40Gi"},
            "limits": {"cpu": "8", "memory": "40Gi"},
        }

    def test_a_folder_that_is_a_volume_needs_no_maker(self, baseline):
        pod = apply(baseline, replace(NOTHING, working_dir="/home/jovyan"))
        assert "initContainers" not in pod["spec"]


def test_a_pod_of_another_shape_is_refused(baseline):
    notebook(baseline)["name"] = "main"
    with pytest.raises(ValueError, match="no container named 'notebook'"):
        apply(baseline, NOTHING)
