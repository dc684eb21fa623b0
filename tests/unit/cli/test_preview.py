"""The pod of a hub's own configuration, without a hub and without a cluster."""

from pathlib import Path

import pytest
import yaml

from hub_ext.cli.app import main

pytestmark = pytest.mark.timeout(300)
"""Each test starts Python and loads a hub, which takes seconds on a machine that has nothing else to do."""

CATALOG = Path(__file__).parents[2] / "golden" / "catalog.yaml"
CONFIG = """
c = get_config()
print("configurations may talk")
c.JupyterHub.spawner_class = "gpu-workspaces"
c.KubeSpawner.volumes = {"home": {"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}}
c.KubeSpawner.volume_mounts = {"home": {"name": "home", "mountPath": "/home/jovyan"}}
c.KubeSpawner.extra_resource_limits = {"nvidia.com/gpu": "4"}
c.KubeSpawner.environment = {"SITE": "for {username}"}
"""
ASK = [
    "render",
    str(CATALOG),
    "--target",
    "pod",
    "--user",
    "ada",
    "--groups",
    "nlp",
    "--profile",
    "gpu-slice",
]


def test_the_profile_is_put_onto_what_the_hub_configures(tmp_path, capsys):
    config = tmp_path / "jupyterhub_config.py"
    config.write_text(CONFIG, encoding="utf-8")
    assert main([*ASK, "--hub-config", str(config), "--server", "two"]) == 0
    claim, pod = yaml.safe_load_all(capsys.readouterr().out)
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"]["name"] == "jupyter-ada--two"
    assert {"name": "SITE", "value": "for ada"} in container["env"]
    assert container["resources"]["limits"]["nvidia.com/mig-1g.18gb"] == "1"
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    assert claim["metadata"]["name"] == "claim-ada"
    homes = [m["name"] for m in container["volumeMounts"] if m["mountPath"] == "/home/jovyan"]
    assert [v for v in pod["spec"]["volumes"] if v["name"] in homes] == [
        {"name": homes[0], "persistentVolumeClaim": {"claimName": "claim-ada"}}
    ]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("raise KeyError('OIDC_SECRET')", "KeyError: 'OIDC_SECRET'"),
        (
            "c.JupyterHub.spawner_class = 'simple'",
            "SimpleLocalProcessSpawner is not a KubeSpawner",
        ),
    ],
    ids=["broken", "another spawner"],
)
def test_a_configuration_that_gives_no_pod_is_named_with_what_it_said(config, said, tmp_path, capsys):
    file = tmp_path / "jupyterhub_config.py"
    file.write_text(config, encoding="utf-8")
    assert main([*ASK, "--hub-config", str(file)]) == 2
    error = capsys.readouterr().err
    assert str(file) in error
    assert said in error
