"""What an import says about real-life profile lists, and what the draft makes of them."""

import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from kubespawner import KubeSpawner

from hub_ext.catalog.load import examine, load_catalog
from hub_ext.catalog.problems import Loc
from hub_ext.errors import Severity
from hub_ext.importer.chart import KEYS
from hub_ext.importer.codes import Code
from hub_ext.importer.compare import differences
from hub_ext.importer.draft import Draft, import_values
from hub_ext.importer.traits import TRAITS
from hub_ext.render.documents import to_yaml

LISTS = sorted((Path(__file__).parents[2] / "golden" / "profile_lists").glob("*.yaml"))


def imported(*profiles: dict[str, Any], **values: Any) -> Draft:
    return import_values([("values.yaml", to_yaml({**values, "profile_list": list(profiles)}))])


def profile(name: str = "One", /, **override: Any) -> dict[str, Any]:
    amounts = {"cpu_guarantee": 1, "mem_guarantee": "1G", "image": "registry.example.org/base:1"}
    return {"display_name": name, "default": True, "kubespawner_override": amounts | override}


def said(draft: Draft, code: Code) -> list[str]:
    return [finding.path for finding in draft.findings if finding.code == code]


def errors(draft: Draft) -> list[str]:
    return [finding.code for finding in draft.findings if finding.severity is Severity.ERROR]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_drafts(path, golden):
    draft = import_values([(path.name, path.read_text(encoding="utf-8"))])
    findings = "".join(f"# {line}\n" for finding in draft.findings for line in str(finding).splitlines())
    golden(f"drafts/{path.stem}.yaml", findings + to_yaml(draft.catalog))
    examination = examine(draft.catalog)
    assert examination.errors == ()
    assert examination.catalog is not None
    assert differences(examination.catalog, draft.combinations) == ()


def test_the_list_of_settings_is_the_one_of_the_installed_spawner():
    installed = set(KubeSpawner.class_trait_names(config=True))
    assert installed - TRAITS <= set(), "settings that the import would call unknown"


def test_every_code_is_ranked():
    assert all(code.meaning for code in Code)


class TestNames:
    def test_equal_slugs_are_refused_by_number(self):
        draft = imported(profile("GPU (A100)"), profile("GPU A100"), profile("GPU [A100]"))
        messages = [f.message for f in draft.findings if f.code == Code.DUPLICATE_SLUG]
        assert messages == [
            "profiles 1 and 2 both have the slug 'gpu-a100'",
            "profiles 1 and 3 both have the slug 'gpu-a100'",
        ]
        assert [p["name"] for p in draft.catalog["profiles"]] == ["gpu-a100", "gpu-a100-2", "gpu-a100-3"]

    def test_a_pictogram_has_no_slug(self):
        draft = imported(profile("Plain"), profile("\N{ROCKET}"))
        assert said(draft, Code.EMPTY_SLUG) == ["profile_list[1]"]

    def test_own_slugs_are_kept(self):
        draft = imported({**profile("GPU (A100)"), "slug": "one"}, {**profile("GPU A100"), "slug": "four"})
        assert errors(draft) == []
        assert [p["name"] for p in draft.catalog["profiles"]] == ["one", "four"]

    def test_a_name_that_the_catalog_does_not_allow_is_changed_and_told(self):
        draft = imported({**profile(), "slug": "GPU_One"})
        assert draft.catalog["profiles"][0]["name"] == "gpu-one"
        assert said(draft, Code.RENAMED) == ["profile_list[0]"]


class TestDefault:
    def test_one_level_too_deep_it_is_no_default(self):
        draft = imported(
            {"display_name": "CPU", "kubespawner_override": {"cpu_guarantee": 1, "default": True}},
            {
                "display_name": "GPU",
                "kubespawner_override": {"extra_resource_limits": {"nvidia.com/gpu": "1"}},
            },
        )
        assert said(draft, Code.UNKNOWN_SETTING) == ["profile_list[0].kubespawner_override.default"]
        assert "one level up" in next(f.help for f in draft.findings if f.code == Code.UNKNOWN_SETTING)
        assert said(draft, Code.DEFAULT_IMPLICIT) == ["profile_list[0]"]
        assert draft.catalog["defaults"] == {"profile": "cpu@latest"}

    @pytest.mark.parametrize(("first", "second"), [("False", "True"), ("no", "yes")])
    def test_a_text_counts_by_its_meaning(self, first, second):
        draft = imported({**profile("ML"), "default": first}, {**profile("Base"), "default": second})
        assert said(draft, Code.DEFAULT_NOT_BOOLEAN) == ["profile_list[0].default", "profile_list[1].default"]
        assert draft.catalog["defaults"] == {"profile": "base@latest"}

    def test_two_are_told_and_the_first_is_kept(self):
        slices = {"a": {"display_name": "A", "default": True}, "b": {"display_name": "B", "default": True}}
        draft = imported(
            profile("ML"),
            {**profile("Base"), "profile_options": {"s": {"display_name": "S", "choices": slices}}},
        )
        assert said(draft, Code.TWO_DEFAULTS) == [
            "profile_list[1].profile_options.s.choices.b.default",
            "profile_list[1].default",
        ]
        assert draft.catalog["defaults"] == {"profile": "ml@latest"}
        assert draft.catalog["profiles"][1]["choices"]["s"]["default"] == "a"

    def test_misspelt_and_one_level_too_deep(self):
        draft = imported(profile(defualt=True))
        (remedy,) = (f.help for f in draft.findings if f.code == Code.UNKNOWN_SETTING)
        assert remedy.startswith("Did you mean default?")
        assert "one level up" in remedy


class TestAmounts:
    @pytest.mark.parametrize(
        ("override", "result"),
        [
            ({"mem_limit": "16GB"}, None),
            ({"mem_limit": "16Gi"}, None),
            ({"mem_limit": "-1G"}, None),
            ({"mem_limit": True}, None),
            ({"cpu_limit": "500m"}, None),
            ({"cpu_limit": "2"}, None),
            ({"mem_guarantee": "7.222G"}, "7754563452"),
            ({"mem_guarantee": 128041414033}, "128041414033"),
            ({"mem_guarantee": 128041414033.0}, "128041414033"),
            ({"mem_guarantee": "2G"}, "2Gi"),
        ],
        ids=str,
    )
    def test_memory_and_processors_in_the_words_of_the_spawner(self, override, result):
        draft = imported(profile(**override))
        if result is None:
            assert said(draft, Code.BAD_QUANTITY) == [
                f"profile_list[0].kubespawner_override.{next(iter(override))}"
            ]
        else:
            assert errors(draft) == []
            assert draft.catalog["profiles"][0]["resources"]["memory"]["request"] == result

    @pytest.mark.parametrize(
        ("limits", "code"),
        [
            (None, None),
            ("nvidia.com/gpu: 1", Code.WRONG_SHAPE),
            ([{"nvidia.com/gpu": 1}], Code.WRONG_SHAPE),
            ({"nvidia.com/gpu": 1}, None),
            ({"nvidia": {"com/gpu": 1}}, Code.WRONG_SHAPE),
            ({"nvidia.com/gpu": "500m"}, Code.BAD_QUANTITY),
            ({"rdma/hca": 1}, Code.NOT_CARRIED),
        ],
        ids=str,
    )
    def test_resources_are_a_flat_mapping(self, limits, code):
        draft = imported(profile(extra_resource_limits=limits))
        found = {f.code for f in draft.findings} - {Code.GUESSED}
        assert found == ({code} if code else set())

    @pytest.mark.parametrize(
        ("singleuser", "code", "place"),
        [
            ({"extraResource": {"limits": "nvidia.com/gpu: 1"}}, Code.WRONG_SHAPE, "extraResource.limits"),
            ({"extraResource": {"limits": [{"x/y": 1}]}}, Code.WRONG_SHAPE, "extraResource.limits"),
            (
                {"extraResource": {"guarantees": {"nvidia": {"com/gpu": 1}}}},
                Code.WRONG_SHAPE,
                "extraResource.guarantees.nvidia",
            ),
            ({"extraResource": {"limits": None}}, None, ""),
            ({"extraResource": {"limits": {"nvidia.com/gpu": 1}}}, None, ""),
            ({"cpu": {"limit": "500m"}}, Code.BAD_QUANTITY, "cpu.limit"),
            ({"memory": {"guarantee": "16Gi"}}, Code.BAD_QUANTITY, "memory.guarantee"),
        ],
        ids=str,
    )
    def test_what_the_hub_says_for_all_is_held_to_the_same(self, singleuser, code, place):
        values = {"singleuser": singleuser | {"profileList": [{"display_name": "A"}]}}
        draft = import_values([("values.yaml", to_yaml(values))])
        told = [(f.code, f.path) for f in draft.findings if f.severity is Severity.ERROR]
        assert told == ([(code, f"singleuser.{place}")] if code else [])

    def test_a_limit_without_reservation_is_both(self):
        draft = imported({"display_name": "A", "kubespawner_override": {"cpu_limit": 2, "mem_limit": "4G"}})
        resources = draft.catalog["profiles"][0]["resources"]
        assert resources == {
            "cpu": {"request": "2", "limit": "2"},
            "memory": {"request": "4Gi", "limit": "4Gi"},
        }

    def test_amounts_of_the_hub_count(self):
        values = {"singleuser": {"cpu": {"limit": 2, "guarantee": 0.5}}}
        values["singleuser"]["profileList"] = [{"display_name": "A", "kubespawner_override": {}}]
        draft = import_values([("values.yaml", to_yaml(values))])
        resources = draft.catalog["profiles"][0]["resources"]
        assert resources["cpu"] == {"request": "500m", "limit": "2"}
        assert resources["memory"] == {"request": "1Gi"}, "what the chart reserves by itself"


class TestGpus:
    GPU = "nvidia.com/gpu"
    slices: ClassVar = {
        "slice": {
            "display_name": "Size",
            "choices": {
                "full": {"display_name": "Full", "default": True, "kubespawner_override": {}},
                "s": {
                    "display_name": "18 GB",
                    "kubespawner_override": {"extra_resource_limits": {"nvidia.com/mig-1g.18gb": "1"}},
                },
            },
        }
    }

    def test_a_slice_takes_the_place_of_the_card(self):
        whole = profile("G", extra_resource_limits={"nvidia.com/gpu": "1"})
        draft = imported({**whole, "profile_options": self.slices})
        assert said(draft, Code.TWO_ACCELERATORS) == ["profile_list[0].profile_options.slice.choices.s"]
        combination = next(c for c in draft.combinations if c.picks == {"slice": "s"})
        catalog = load_catalog(draft.catalog)
        assert combination.facts.gpu == ("nvidia.com/mig-1g.18gb", 1)
        assert differences(catalog, draft.combinations) == ()

    @pytest.mark.parametrize(
        ("title", "shares"),
        [
            ("0.5 T4, about 1.5 CPU", 2),
            ("1/4 GPU", 4),
            ("half an A100", 2),
            ("T4, 1.5 CPU", 0),
            ("A100 40 GB", 0),
        ],
    )
    def test_a_part_of_a_card_in_the_title_is_a_shared_card(self, title, shares):
        draft = imported(profile(title, extra_resource_limits={"nvidia.com/gpu": "1"}))
        gpu = draft.catalog["pools"]["gpu"]["gpu"]
        assert gpu == (
            {"sharing": "time-slicing", "replicas": shares} if shares else {"sharing": "exclusive"}
        )
        assert len(said(draft, Code.GUESSED)) == 1

    @pytest.mark.parametrize(
        ("guarantees", "limits", "kept"),
        [({GPU: 2}, {GPU: 1}, 1), ({GPU: 2}, {}, 2), ({GPU: "1"}, {GPU: 1}, None), ({}, {GPU: 1}, None)],
    )
    def test_a_guarantee_that_is_not_the_limit_is_no_pod(self, guarantees, limits, kept):
        draft = imported(
            profile(extra_resource_guarantees=guarantees, extra_resource_limits=limits),
        )
        helps = [f.help for f in draft.findings if f.code == Code.GUARANTEE_DIFFERS]
        expected = f"Write the limit alone; the draft asks for {kept}."
        assert helps == ([expected] if kept else [])
        assert draft.catalog["profiles"][0]["resources"]["gpu"].get("count", 1) == (kept or 1)

    def test_a_guarantee_that_only_a_choice_gives_is_told_there(self):
        options = {
            "one": {"display_name": "One"},
            "two": {
                "display_name": "Two",
                "kubespawner_override": {"extra_resource_guarantees": {self.GPU: 2}},
            },
        }
        draft = imported(
            {
                **profile(extra_resource_limits={self.GPU: 1}),
                "profile_options": {"n": {"display_name": "Number", "choices": options}},
            }
        )
        assert said(draft, Code.GUARANTEE_DIFFERS) == ["profile_list[0].profile_options.n.choices.two"]

    def test_a_plus_in_the_name_of_a_slice_is_a_dot(self):
        draft = imported(profile(extra_resource_limits={"nvidia.com/mig-1g.18gb+me": 1, "nvidia.com/a b": 1}))
        helps = [f.help for f in draft.findings if f.code == Code.BAD_NAME]
        assert helps[0].startswith("Write nvidia.com/mig-1g.18gb.me:")
        assert helps[1] == ""
        assert differences(load_catalog(draft.catalog), draft.combinations) == ()
        assert draft.combinations[0].facts.gpu == ("nvidia.com/mig-1g.18gb.me", 1)


class TestSettings:
    def test_a_setting_that_does_not_exist_is_named_with_what_was_meant(self):
        draft = imported(profile(extra_tolerations=[{"key": "team"}], mem_guaranttee="1G"))
        found = {f.path.rpartition(".")[2]: f.help for f in draft.findings if f.code == Code.UNKNOWN_SETTING}
        assert found == {
            "extra_tolerations": "KubeSpawner calls it tolerations.",
            "mem_guaranttee": "Did you mean mem_guarantee?",
        }

    def test_keys_at_the_wrong_level(self):
        draft = imported(
            {**profile("A"), "cmd": None},
            profile("B", cmd="start-singleuser.sh"),
            {"display_name": "C", "kubespawner_overide": {"cpu_limit": 4}},
            {**profile("D"), "allowed_groups": ["x"]},
        )
        assert said(draft, Code.MISPLACED_KEY) == ["profile_list[0].cmd"]
        assert said(draft, Code.UNKNOWN_KEY) == ["profile_list[2].kubespawner_overide"]
        key = draft.catalog["profiles"][1]["images"][0]
        assert draft.catalog["images"][key]["command"] == ["start-singleuser.sh"]
        assert draft.catalog["profiles"][3]["access"] == {"groups": ["x"]}

    def test_a_setting_that_the_catalog_has_no_words_for_is_told(self):
        draft = imported(profile(lifecycle_hooks={}, node_affinity_required=[], privileged=True))
        assert [path.rpartition(".")[2] for path in said(draft, Code.NOT_CARRIED)] == [
            "lifecycle_hooks",
            "node_affinity_required",
            "privileged",
        ]

    def test_tolerations_are_added_and_that_is_told(self):
        toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
        draft = imported(profile(tolerations=[toleration]))
        assert said(draft, Code.ADDED_NOT_REPLACED) == ["profile_list[0].kubespawner_override.tolerations"]
        assert draft.catalog["pools"]["cpu"]["tolerations"] == [toleration]

    def test_access_that_is_decided_elsewhere_opens_nothing(self):
        draft = imported({**profile(), "access": "keycloak"})
        assert said(draft, Code.NOT_CARRIED) == ["profile_list[0].access"]
        assert draft.catalog["profiles"][0]["access"] == {"groups": []}
        assert "access-empty" in {finding.code for finding in examine(draft.catalog).errors}


class TestChoices:
    def test_an_empty_value_of_a_choice_takes_a_limit_away(self):
        exact = 16005176754
        machines = {
            "m15": {
                "display_name": "15 GB",
                "default": True,
                "kubespawner_override": {
                    "mem_limit": exact,
                    "mem_guarantee": exact,
                    "cpu_guarantee": 2,
                },
            },
            "gpu": {
                "display_name": "T4",
                "kubespawner_override": {
                    "mem_limit": None,
                    "mem_guarantee": "14G",
                    "node_selector": {"type": "g4dn"},
                    "extra_resource_limits": {"nvidia.com/gpu": "1"},
                },
            },
        }
        questions = {"requests": {"display_name": "Machine", "choices": machines}}
        draft = imported({**profile(), "profile_options": questions, "constraints": []})
        options = draft.catalog["profiles"][0]["choices"]["requests"]["options"]
        assert options["m15"]["resources"]["memory"] == {"request": "16005176754", "limit": "16005176754"}
        assert options["gpu"]["resources"]["memory"] == {"request": "14Gi"}
        assert options["gpu"]["resources"]["gpu"] == {"pool": "gpu-g4dn", "count": 1}
        assert options["m15"]["resources"]["gpu"] is None
        assert said(draft, Code.NOT_CARRIED) == ["profile_list[0].constraints"]
        assert differences(load_catalog(draft.catalog), draft.combinations) == ()

    def test_one_image_question_of_two_profiles_becomes_an_option_set(self):
        image = {
            "display_name": "Image",
            "choices": {
                k: {"display_name": k, "kubespawner_override": {"image": f"r.example.org/{k}:1"}}
                for k in "ab"
            },
        }
        draft = imported(*({**profile(name), "profile_options": {"image": image}} for name in ("A", "B")))
        assert list(draft.catalog["optionSets"]) == ["image"]
        assert [p["choices"] for p in draft.catalog["profiles"]] == [{"image": "image"}] * 2

    def test_a_typed_image_is_bounded_to_the_registries_in_use(self):
        choices = {
            "a": {"display_name": "A", "kubespawner_override": {"image": "registry.example.org:5000/a:1"}}
        }
        typed = {"enabled": True, "kubespawner_override": {"image": "{value}"}}
        question = {"display_name": "Env", "choices": choices, "unlisted_choice": typed}
        draft = imported({**profile(), "profile_options": {"env": question}})
        choice = draft.catalog["profiles"][0]["choices"]["image"]
        assert choice["custom"] == {"registries": ["registry.example.org:5000"], "allowTag": True}
        assert said(draft, Code.RENAMED) == ["profile_list[0].profile_options.env"]
        assert said(draft, Code.NOT_STATED) == ["profile_list[0].profile_options.env.unlisted_choice"]

    def test_what_a_choice_cannot_change_is_told(self):
        choices = {
            k: {"display_name": k, "kubespawner_override": {"extra_labels": {"tier": k}}} for k in "ab"
        }
        draft = imported({**profile(), "profile_options": {"x": {"display_name": "X", "choices": choices}}})
        assert len(said(draft, Code.NOT_CARRIED)) == 2


class TestValues:
    def test_an_empty_mapping_clears_nothing(self):
        base = {"singleuser": {"nodeSelector": {"zone": "a"}, "profileList": [profile()]}}
        texts = [("a.yaml", to_yaml(base)), ("b.yaml", to_yaml({"singleuser": {"nodeSelector": {}}}))]
        finding = next(f for f in import_values(texts).findings if f.code == Code.NO_EFFECT)
        assert (finding.path, finding.file, finding.line) == ("singleuser.nodeSelector", "b.yaml", 2)
        assert "null" in finding.help

    def test_a_later_file_wins(self):
        texts = [
            ("a.yaml", to_yaml({"singleuser": {"profileList": [profile("Old")]}})),
            ("b.yaml", to_yaml({"singleuser": {"profileList": [profile("New")]}})),
        ]
        assert [p["name"] for p in import_values(texts).catalog["profiles"]] == ["new"]

    def test_a_list_below_a_parent_chart_is_found(self):
        text = to_yaml({"basehub": {"jupyterhub": {"singleuser": {"profileList": [profile()]}}}})
        draft = import_values([("values.yaml", text)])
        assert [p["name"] for p in draft.catalog["profiles"]] == ["one"]

    def test_keys_that_the_chart_refuses(self):
        values = {
            "profiles": "[]",
            "values_checksum": "abc",
            "singleuser": {"spec": {}, "gid": 100, "profileList": [profile()]},
            "proxy": {"extraEnv": {}},
        }
        draft = import_values([("values.yaml", to_yaml(values))])
        found = {f.path: f.help for f in draft.findings if f.code == Code.UNKNOWN_KEY}
        assert list(found) == [
            "profiles",
            "values_checksum",
            "singleuser.spec",
            "singleuser.gid",
            "proxy.extraEnv",
        ]
        assert "custom.profiles" in found["profiles"]
        assert "extraPodConfig" in found["singleuser.spec"]
        assert "fsGid" in found["singleuser.gid"]

    def test_keys_that_the_chart_refuses_are_told_without_a_list_too(self):
        values = {"profiles": "[]", "singleuser": {"gid": 100}, "proxy": {"extraEnv": {}}}
        draft = import_values([("values.yaml", to_yaml(values))])
        assert said(draft, Code.UNKNOWN_KEY) == ["profiles", "singleuser.gid", "proxy.extraEnv"]

    def test_keys_below_a_parent_chart_have_its_path(self):
        chart = {"singleuser": {"spec": {}, "profileList": [profile()]}}
        draft = import_values([("values.yaml", to_yaml({"mine": 1, "jupyterhub": chart}))])
        assert said(draft, Code.UNKNOWN_KEY) == ["jupyterhub.singleuser.spec"]

    @pytest.mark.given("Z2JH_DATA")
    def test_the_keys_are_those_of_the_chart(self):
        known: dict[Loc, set[str]] = {place: set() for place in KEYS}
        for path in Path(os.environ["Z2JH_DATA"]).glob("values.schema-*.yaml"):
            schema = yaml.safe_load(path.read_text(encoding="utf-8"))
            for place in KEYS:
                node = schema
                for step in place:
                    node = node["properties"][step]
                known[place] |= set(node["properties"])
        assert {place: set(keys) for place, keys in KEYS.items()} == known

    @pytest.mark.parametrize(
        "values",
        [
            {},
            {"singleuser": {"profileList": []}},
            {"hub": {"extraConfig": {"a": "c.KubeSpawner.profile_list = []"}}},
        ],
        ids=["nothing", "empty", "python"],
    )
    def test_without_a_list_there_is_no_draft(self, values):
        draft = import_values([("values.yaml", to_yaml(values))])
        assert draft.catalog == {}
        assert errors(draft)

    def test_not_yaml(self):
        draft = import_values([("values.yaml", "a: [")])
        assert errors(draft) == [Code.UNREADABLE]
        assert draft.catalog == {}

    def test_a_key_that_is_written_twice_is_told(self):
        text = "profile_list:\n- display_name: A\n  slug: a\n  slug: b\n"
        assert said(import_values([("values.yaml", text)]), Code.YAML) == ["profile_list[0].slug"]
