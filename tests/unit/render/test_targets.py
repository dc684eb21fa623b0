"""What each target says, piece by piece, and that it fits the published schemas.

The schemas are not ours to keep. `Z2JH_DATA` names a folder with `values.schema-<version>.yaml` and
`values-<version>.yaml` of the chart (its repository, folder `jupyterhub/`); `WORKSPACEKIND_CRD` names the
file `kubeflow.org_workspacekinds.yaml` (kubeflow/notebooks, branch notebooks-v2). Without them the golden
files alone are compared.
"""

import os
from pathlib import Path

import jsonschema
import pytest
import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.names import parse_image
from hub_ext.render.bounds import team_bounds
from hub_ext.render.documents import thaw, to_yaml
from hub_ext.render.gpu_operator import device_plugin_config, render_gpu_operator
from hub_ext.render.kueue import render_kueue
from hub_ext.render.quotas import quota_hard, render_limit_ranges, render_resource_quotas
from hub_ext.render.target import Code
from hub_ext.render.workspacekind import render_workspace_kinds
from hub_ext.render.z2jh import extra_image, render_z2jh

CHART = os.environ.get("Z2JH_DATA")
CRD = os.environ.get("WORKSPACEKIND_CRD")
DIGEST = "sha256:" + "0123456789abcdef" * 4


def changed(catalog_text, **replacements):
    for old, new in replacements.items():
        assert old in catalog_text
        catalog_text = catalog_text.replace(old, new)
    return load_catalog(yaml.safe_load(catalog_text))


@pytest.fixture(scope="module")
def text():
    return (Path(__file__).parents[2] / "golden" / "catalog.yaml").read_text(encoding="utf-8")


class TestChart:
    @pytest.mark.parametrize(
        ("image", "name", "tag"),
        [
            (f"r.example.com:5000/a/b@{DIGEST}", "r.example.com:5000/a/b@sha256", DIGEST[7:]),
            (f"r.example.com/a:1.2@{DIGEST}", "r.example.com/a:1.2@sha256", DIGEST[7:]),
            ("r.example.com/a:7e10", "r.example.com/a", "7e10"),
            ("jupyter/base", "jupyter/base", "latest"),
        ],
    )
    def test_name_and_tag_join_to_the_image(self, image, name, tag):
        written = extra_image(parse_image(image))
        assert written == {"name": name, "tag": tag}
        joined = f"{name}:{tag}"
        assert parse_image(joined).digest == parse_image(image).digest

    def test_only_the_puller_accepts_the_taints_of_gpu_nodes(self, catalog):
        values = render_z2jh(catalog, {}).documents[0]
        assert [t["key"] for t in values["prePuller"]["extraTolerations"]] == ["nvidia.com/gpu", "team"]
        assert "singleuser" not in values, "user pods get taints by profile, not all of them"

    def test_images_that_nobody_can_start_are_not_pulled(self, text):
        retired = changed(
            text,
            **{"state: deprecated": "state: retired", "[pytorch-cu130, pytorch-cu124]": "[pytorch-cu130]"},
        )
        assert list(render_z2jh(retired, {}).documents[0]["prePuller"]["extraImages"]) == [
            "base",
            "pytorch-cu130",
        ]

    @pytest.mark.given("Z2JH_DATA")
    @pytest.mark.parametrize("version", ["4.4.0", "5.0-dev"])
    def test_the_chart_accepts_the_values(self, version, catalog, text):
        folder = Path(CHART)
        schema = yaml.safe_load((folder / f"values.schema-{version}.yaml").read_text(encoding="utf-8"))
        values = yaml.safe_load((folder / f"values-{version}.yaml").read_text(encoding="utf-8"))
        rendered = yaml.safe_load(to_yaml(*render_z2jh(catalog, yaml.safe_load(text)).documents))
        jsonschema.Draft7Validator(schema).validate(merged(values, rendered))


def merged(base, top):
    both = isinstance(base, dict) and isinstance(top, dict)
    return {k: merged(base.get(k), top.get(k, base.get(k))) for k in {**base, **top}} if both else top


class TestGpuOperator:
    def test_a_card_that_nobody_shares_needs_no_sharing(self, catalog):
        config = device_plugin_config(catalog.pools["gpu-exclusive"].gpu)
        assert config == {"version": "v1", "flags": {"migStrategy": "none"}}

    def test_shares(self, catalog):
        sharing = device_plugin_config(catalog.pools["gpu-shared"].gpu)["sharing"]
        assert sharing["timeSlicing"]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]
        assert sharing["timeSlicing"]["failRequestsGreaterThanOne"] is True
        assert list(device_plugin_config(catalog.pools["gpu-mps"].gpu)["sharing"]) == ["mps"]

    def test_every_layout_can_be_named_by_a_node_label(self, catalog):
        maps = {d["metadata"]["name"]: d["data"] for d in render_gpu_operator(catalog).documents}
        layouts = yaml.safe_load(maps["gpu-workspaces-mig"]["config.yaml"])["mig-configs"]
        assert layouts["all-disabled"] == [{"devices": "all", "mig-enabled": False}]
        assert layouts["gpu-mig"][0]["mig-devices"] == {"1g.18gb": 3, "2g.35gb": 2}
        assert list(maps["gpu-workspaces-device-plugin"]) == [
            "gpu-exclusive",
            "gpu-mig",
            "gpu-shared",
            "gpu-mps",
        ]

    def test_a_name_that_the_plugin_ignores_is_told(self, text):
        renamed = changed(text, **{"renameByDefault: true\n": "resourceName: example.com/share\n"})
        assert [f.path for f in render_gpu_operator(renamed).findings if f.code == Code.NOT_EXPRESSIBLE] == []
        renamed = changed(text, **{"renameByDefault: true\n": "resourceName: nvidia.com/share\n"})
        found = [f for f in render_gpu_operator(renamed).findings if f.code == Code.NOT_EXPRESSIBLE]
        assert [f.path for f in found] == ["pools.gpu-shared.gpu.resourceName"]

    def test_cards_of_others_are_left_alone(self, text):
        amd = changed(
            text,
            **{"product: NVIDIA-H200, sharing: exclusive": "sharing: exclusive, resourceName: amd.com/gpu"},
        )
        assert "gpu-exclusive" not in render_gpu_operator(amd).documents[0]["data"]


class TestQuotas:
    def test_extended_resources_are_counted_by_requests_only(self, catalog):
        for name in catalog.teams:
            assert all(key.startswith("requests.") for key in quota_hard(catalog, name))

    def test_what_the_quota_names_and_what_gpu_equivalents_leave(self, catalog):
        bounds = team_bounds(catalog, "nlp").gpus
        assert bounds["nvidia.com/gpu"] == 4, "named; six cards' worth would be more"
        assert bounds["nvidia.com/mig-1g.18gb"] == 6
        assert bounds["nvidia.com/mig-2g.35gb"] == 0, "no profile leads there"

    def test_worth_alone_becomes_a_bound_per_resource(self, text):
        worth = changed(
            text,
            **{
                "      nvidia.com/gpu: 4\n      nvidia.com/mig-1g.18gb: 6\n": "",
                "      nvidia.com/gpu.shared: 8\n": "",
                "gpuEquivalents: 6": "gpuEquivalents: 2",
            },
        )
        bounds = team_bounds(worth, "nlp").gpus
        assert bounds["nvidia.com/gpu"] == 2
        assert bounds["nvidia.com/mig-1g.18gb"] == 14, "seven slices of the smallest size are a card"
        assert bounds["nvidia.com/gpu.shared"] == 8, "the smallest share is a quarter of a card"

    def test_a_container_that_names_no_gpu_gets_none(self, catalog):
        """Kubernetes takes `max` for the default of what has none."""
        for document in render_limit_ranges(catalog).documents:
            limits = document["spec"]["limits"][0]
            assert set(limits["default"]) == set(limits["max"])
            assert set(limits["default"].values()) == {"0"}

    def test_a_team_in_the_hub_s_namespace_is_told(self, text):
        shared = changed(text, **{"    namespace: team-vision\n": ""})
        rendering = render_resource_quotas(shared)
        assert [d["metadata"]["namespace"] for d in rendering.documents] == ["team-nlp"]
        assert [f.path for f in rendering.findings if f.code == Code.NO_NAMESPACE] == ["teams.vision"]

    def test_teams_that_share_a_namespace_are_told(self, text):
        shared = changed(text, **{"namespace: team-vision": "namespace: team-nlp"})
        for render in (render_resource_quotas, render_limit_ranges):
            assert render(shared).documents == ()
            paths = [f.path for f in render(shared).findings if f.code == Code.NO_NAMESPACE]
            assert paths == ["teams.nlp", "teams.vision"]


class TestKueue:
    def test_each_resource_and_flavor_stands_in_one_group(self, catalog):
        for queue in (d for d in render_kueue(catalog).documents if d["kind"] == "ClusterQueue"):
            groups = queue["spec"]["resourceGroups"]
            resources = [r for group in groups for r in group["coveredResources"]]
            flavors = [f["name"] for group in groups for f in group["flavors"]]
            assert len(set(resources)) == len(resources)
            assert len(set(flavors)) == len(flavors)
            for group in groups:
                for flavor in group["flavors"]:
                    assert [r["name"] for r in flavor["resources"]] == group["coveredResources"]

    def test_every_queue_leads_to_a_flavor_that_is_there(self, catalog):
        documents = render_kueue(catalog).documents
        made = {d["metadata"]["name"] for d in documents if d["kind"] == "ResourceFlavor"}
        used = {
            f["name"]
            for d in documents
            if d["kind"] == "ClusterQueue"
            for group in d["spec"]["resourceGroups"]
            for f in group["flavors"]
        }
        assert used == made

    def test_teams_without_a_namespace_use_the_hub_s(self, text):
        shared = changed(text, **{"    namespace: team-vision\n": ""})
        assert any(f.code == Code.NO_NAMESPACE for f in render_kueue(shared).findings)
        queues = [d for d in render_kueue(shared, namespace="hub").documents if d["kind"] == "LocalQueue"]
        assert [(d["metadata"]["namespace"], d["metadata"]["name"]) for d in queues] == [
            ("team-nlp", "nlp"),
            ("hub", "vision"),
        ]

    def test_pools_that_share_a_resource_are_told(self, catalog):
        messages = [f.message for f in render_kueue(catalog).findings]
        assert any("gpu-shared, gpu-mps all offer nvidia.com/gpu.shared" in message for message in messages)


class TestWorkspaceKind:
    def test_an_old_version_leads_to_the_new_one(self, catalog):
        kinds = {d["metadata"]["name"]: d["spec"] for d in render_workspace_kinds(catalog).documents}
        values = {v["id"]: v for v in kinds["gpu-full"]["podTemplate"]["options"]["podConfig"]["values"]}
        assert values["v2"]["redirect"] == {
            "to": "v3.cards-one",
            "message": {"level": "Warning", "text": "CUDA 12.4 images end on 31 March"},
        }

    def test_what_is_not_offered_together_is_denied(self, catalog):
        kinds = {d["metadata"]["name"]: d["spec"] for d in render_workspace_kinds(catalog).documents}
        rules = [r for r in kinds["gpu-full"]["filterRules"] if r["scope"] == "POD_CONFIG"]
        denied = {
            r["match"][1]["matchPodConfig"]["selector"]["matchLabels"]["workspace-option"]: r["match"][0][
                "matchImageConfig"
            ]["selector"]["matchExpressions"][0]["values"]
            for r in rules
        }
        assert denied == {"v3.cards-two": ["pytorch-cu130"], "v2": ["pytorch-cu124"]}

    def test_what_kubeflow_has_no_words_for_is_told_once(self, catalog):
        paths = [f.path for f in render_workspace_kinds(catalog).findings]
        assert len(set(paths)) == len(paths)
        assert {"profiles[*].price", "profiles[*].storage.checkpoints"} <= set(paths)

    @pytest.mark.given("WORKSPACEKIND_CRD")
    def test_it_fits_the_published_schema(self, catalog):
        crd = yaml.safe_load(Path(CRD).read_text(encoding="utf-8"))
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for document in render_workspace_kinds(catalog).documents:
            jsonschema.Draft202012Validator(schema).validate(thaw(document))


@pytest.mark.parametrize(
    "render",
    [render_gpu_operator, render_resource_quotas, render_limit_ranges, render_kueue, render_workspace_kinds],
)
def test_a_catalog_without_pools_and_teams_renders(render):
    smallest = {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {"base": {"ref": f"r.example.com/a@{DIGEST}", "displayName": "Base"}},
        "profiles": [
            {
                "name": "a",
                "version": 1,
                "displayName": "A",
                "images": ["base"],
                "resources": {"cpu": 1, "memory": "1Gi"},
            }
        ],
    }
    render(load_catalog(smallest)).to_yaml()
