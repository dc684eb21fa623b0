"""The command as people and CI use it: exit status, JSON, texts."""

import json
from pathlib import Path

import pytest
import yaml

from hub_ext.cli.app import VERBS, main
from hub_ext.render.documents import to_yaml

CATALOG = Path(__file__).parents[2] / "golden" / "catalog.yaml"


@pytest.fixture
def run(capsys):
    """Run the command; gives its status, what it printed, and what it complained about."""

    def call(*args):
        status = main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def catalog(tmp_path):
    """A copy of the catalog that a test may change."""
    path = tmp_path / "catalog.yaml"
    path.write_text(CATALOG.read_text(encoding="utf-8"), encoding="utf-8")
    return path


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


class TestStatus:
    def test_all_well(self, run, catalog):
        status, out, _ = run("validate", catalog)
        assert status == 0
        assert out.startswith(f"{catalog}: 4 profiles, 3 images, 5 pools, 2 teams (4 active, 1 deprecated); ")

    def test_findings_name_file_line_path_and_remedy(self, run, catalog):
        edit(catalog, "sharing: exclusive, perNode: 8", "sharing: exclusive, perNodes: 8")
        status, out, err = run("validate", catalog)
        assert status == 1
        assert f"{catalog}:33: error[unknown-key] at pools.gpu-exclusive.gpu.perNodes" in err
        assert "perNode" in err
        assert "1 error" in out

    def test_warnings_fail_with_strict_only(self, run, catalog):
        assert run("validate", catalog)[0] == 0
        assert run("validate", catalog, "--strict")[0] == 1

    @pytest.mark.parametrize(
        "verb", [["validate"], ["render", "--target", "kueue"], ["explain", "--user", "ada"]]
    )
    def test_what_cannot_be_read_is_no_finding(self, run, verb, tmp_path):
        status, _, err = run(verb[0], tmp_path / "none.yaml", *verb[1:])
        assert status == 2
        assert "none.yaml" in err

    def test_a_command_line_that_makes_no_sense(self, run, catalog):
        status, _, err = run("render", catalog, "--target", "pod", "--profile", "gpu-full")
        assert (status, err) == (
            2,
            "gpu-workspaces render: say who asks: --user NAME, and --groups A,B if it matters\n",
        )
        status, _, err = run(
            "explain", catalog, "--user", "ada", "--profile", "gpu-full", "--choice", "image"
        )
        assert status == 2
        assert "QUESTION=ANSWER" in err

    @pytest.mark.parametrize("args", [[], ["nothing"], ["render"]])
    def test_usage(self, args, capsys):
        with pytest.raises(SystemExit) as stopped:
            main(args)
        assert stopped.value.code == 2

    @pytest.mark.parametrize("verb", VERBS)
    def test_help(self, verb, capsys):
        with pytest.raises(SystemExit) as stopped:
            main([verb, "--help"])
        assert stopped.value.code == 0
        assert "exit status" in capsys.readouterr().out


class TestJson:
    def test_findings_have_the_same_seven_fields(self, run, catalog):
        edit(catalog, "images: [base]", "images: [bass]")
        status, out, err = run("validate", catalog, "--json")
        report = json.loads(out)
        assert (status, report["status"], report["verb"], err) == (1, 1, "validate", "")
        for finding in report["findings"]:
            assert list(finding) == ["severity", "code", "path", "file", "line", "message", "help"]
        assert "unknown-image" in {finding["code"] for finding in report["findings"]}

    def test_a_failure_is_json_too(self, run, tmp_path):
        status, out, _ = run("import", tmp_path / "none.yaml", "--json")
        assert status == 2
        assert json.loads(out)["status"] == 2

    def test_documents(self, run, catalog):
        _, out, _ = run("render", catalog, "--target", "resourcequota", "--json")
        report = json.loads(out)
        assert [d["kind"] for d in report["result"]["documents"]] == ["ResourceQuota", "ResourceQuota"]
        assert {finding["severity"] for finding in report["findings"]} == {"note"}


class TestRender:
    def pod(self, run, *args):
        status, out, _ = run("render", CATALOG, "--target", "pod", "--user", "ada", *args)
        assert status == 0
        return list(yaml.safe_load_all(out))[-1]

    def test_a_pod_on_the_hub_s_own(self, run, tmp_path):
        pod = self.pod(run, "--groups", "nlp", "--profile", "gpu-full", "--choice", "cards=two")
        assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
        baseline = tmp_path / "pod.yaml"
        pod["spec"]["hostname"] = "from-the-hub"
        baseline.write_text(to_yaml(pod), encoding="utf-8")
        other = self.pod(run, "--profile", "notebook-cpu", "--baseline", baseline)
        assert other["spec"]["hostname"] == "from-the-hub"
        assert "nvidia.com/gpu" not in other["spec"]["containers"][0]["resources"]["limits"]

    def test_a_baseline_that_is_no_pod(self, run, catalog):
        args = ("--target", "pod", "--user", "ada", "--profile", "notebook-cpu", "--baseline", catalog)
        status, _, err = run("render", catalog, *args)
        assert status == 2
        assert "not a Pod" in err

    def test_what_is_not_offered_is_refused(self, run):
        status, out, err = run("render", CATALOG, "--target", "pod", "--user", "eve", "--profile", "gpu-full")
        assert (status, out) == (1, "")
        assert "error[unknown-profile]" in err

    def test_an_old_version_moves_on_that_day(self, run):
        pod = self.pod(run, "--groups", "nlp", "--profile", "gpu-full@2", "--on", "2027-05-01")
        assert pod["metadata"]["labels"]["gpu-workspaces.jupyter.org/profile-version"] == "3"

    def test_into_a_file(self, run, tmp_path):
        path = tmp_path / "kueue.yaml"
        status, out, _ = run("render", CATALOG, "--target", "kueue", "-o", path)
        assert (status, out) == (0, "")
        assert "ClusterQueue" in path.read_text(encoding="utf-8")

    def test_the_catalog_goes_to_the_chart_as_it_was_written(self, run, catalog):
        _, out, _ = run("render", catalog, "--target", "z2jh")
        written = yaml.safe_load(catalog.read_text(encoding="utf-8"))
        plain = json.loads(json.dumps(written, default=str))
        assert yaml.safe_load(out)["custom"]["gpuWorkspaces"] == plain
        rendered = catalog.with_name("values.yaml")
        rendered.write_text(out, encoding="utf-8")
        assert run("render", rendered, "--target", "z2jh")[1] == out


class TestExplain:
    def explain(self, run, *args):
        status, out, _ = run("explain", CATALOG, "--user", "ada", "--json", *args)
        report = json.loads(out)
        return status, report["result"], report["findings"]

    def test_each_value_names_where_it_was_written(self, run):
        status, result, _ = self.explain(run, "--profile", "notebook-cpu", "--choice", "size=large")
        origins = {line["topic"]: line["origin"].partition(" ")[0] for line in result["lines"]}
        assert status == 0
        assert origins["processors"] == "optionSets.size.options.large.resources.cpu"
        assert origins["kept after a stop"] == "defaults.storage.home"
        assert origins["nodes"] == "pools.cpu.nodeSelector"
        assert origins["image"] == "images.base"
        assert all(
            line["origin"].partition("(")[2].startswith(str(CATALOG)) or line["origin"] == "built in"
            for line in result["lines"]
        )

    def test_other_answers_say_why_not(self, run):
        _, result, _ = self.explain(
            run, "--groups", "nlp", "--profile", "gpu-full", "--choice", "image=pytorch-cu124"
        )
        reasons = {option["name"]: option["reason"] for option in result["options"]}
        assert reasons["image=pytorch-cu130"] == ""
        assert reasons["cards=two"].startswith("Two cards goes only with Image")

    def test_an_option_of_another_team_names_the_team(self, run, catalog):
        labels = "labels: {tier: gpu}\n    access: "
        edit(catalog, f"{labels}{{teams: [nlp]}}", f"{labels}{{everyone: true}}")
        status, out, _ = run("explain", catalog, "--user", "eve", "--profile", "gpu-full", "--json")
        assert status == 0
        options = {option["name"]: option for option in json.loads(out)["result"]["options"]}
        assert options["cards=two"]["reason"] == "offered to team nlp only"

    def test_a_refusal_lists_what_there_is_instead(self, run):
        status, result, findings = self.explain(run, "--profile", "gpu-full")
        assert status == 1
        assert findings[0]["code"] == "unknown-profile"
        verdicts = {profile["name"]: profile for profile in result["profiles"]}
        assert verdicts["gpu-full@3"]["reason"] == "offered to team nlp only"
        assert verdicts["notebook-cpu@1"]["offered"]

    def test_without_a_profile_it_lists_all(self, run):
        _, result, _ = self.explain(run, "--groups", "nlp")
        assert [p["name"] for p in result["profiles"] if not p["offered"]] == ["gpu-full@2"]


class TestDiff:
    def test_nothing(self, run, catalog):
        status, out, _ = run("diff", CATALOG, catalog)
        assert (status, out) == (0, "Users will notice nothing.\n")

    def test_what_breaks_fails(self, run, catalog):
        edit(
            catalog,
            "home: {class: notebook-rwo-ssd, size: 50Gi, mountPath: /home/jovyan}",
            "home: {class: notebook-rwo-ssd, size: 50Gi, mountPath: /home/someone}",
        )
        status, out, _ = run("diff", CATALOG, catalog)
        assert status == 1
        assert "home-path" in out

    def test_for_a_pull_request(self, run, catalog):
        edit(
            catalog,
            "perHour: 2.40, currency: EUR}\n\n  - name: gpu-slice",
            "perHour: 9, currency: EUR}\n\n  - name: gpu-slice",
        )
        edit(catalog, "perHour: 0.15", "perHour: 0.30")
        status, out, _ = run("diff", CATALOG, catalog, "--markdown")
        assert status == 0
        assert out.startswith("### Workspace catalog")
        assert "0.30 EUR" in out


class TestPublish:
    def test_a_published_version_must_not_change(self, run, catalog):
        status, out, _ = run("validate", catalog, "--publish")
        assert (status, "5 versions more published" in out) == (0, True)
        edit(catalog, "memory: {request: 4Gi, limit: 8Gi}", "memory: {request: 2Gi, limit: 8Gi}")
        status, _, err = run("validate", catalog, "--publish")
        assert status == 1
        assert "error[version-changed]" in err
        assert run("render", catalog, "--target", "kueue")[0] == 1


class TestImport:
    def test_the_draft_is_a_catalog(self, run, tmp_path):
        values = tmp_path / "values.yaml"
        values.write_text(
            to_yaml(
                {
                    "singleuser": {
                        "profileList": [{"display_name": "A", "kubespawner_override": {"cpu_guarantee": 1}}]
                    }
                }
            ),
            encoding="utf-8",
        )
        draft = tmp_path / "draft.yaml"
        status, out, err = run("import", values, "-o", draft)
        assert status == 0
        assert out == f"{draft}: 1 profile, 1 thing to look at\n"
        assert "not-stated" in err
        assert run("validate", draft)[0] == 0

    def test_what_is_wrong_in_the_list_fails(self, run, tmp_path):
        values = tmp_path / "values.yaml"
        values.write_text(
            "profile_list: [{display_name: A, kubespawner_override: {mem_limit: 16Gi}}]", encoding="utf-8"
        )
        status, out, err = run("import", values)
        assert status == 1
        assert f"{values}:1: error[bad-quantity] at profile_list[0].kubespawner_override.mem_limit" in err
        assert "kind: Catalog" in out


def test_verbs_of_other_packages_join(monkeypatch, run, capsys):
    class Entry:
        name = "greet"
        value = "tests.unit.cli.greet"

    monkeypatch.setattr("hub_ext.cli.app.entry_points", lambda group: [Entry])
    assert run("greet", "--name", "ada")[:2] == (0, "hello ada\n")
