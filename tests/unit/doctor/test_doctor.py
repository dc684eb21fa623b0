"""The doctor: causes from the ground up, on facts that were written down on a real H200."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from hub_ext.cli import main
from services.doctor import framework_probe, probe
from services.doctor import observe as observing
from services.doctor.facts import Cuda, DeviceFile, End, Facts, Framework, Nvml, Probe, facts_from
from services.doctor.judge import INIT, Health, Layer, cause, diagnose
from services.doctor.observe import observe
from services.doctor.reasons import TEXTS, Reason, Who
from tests.devcluster.waiting import until

FILE = Path(__file__).parent / "h200.json"
H200 = facts_from(json.loads(FILE.read_text()))
PAGE = (Path(__file__).parents[3] / "services" / "doctor" / "REFERENCE.md").read_text(encoding="utf-8")


def with_cuda(**fields) -> Facts:
    return replace(H200, cuda=replace(H200.cuda, **fields))


def failing(code: int, **environment: str) -> Facts:
    facts = with_cuda(init=code, devices=None, allocate=None, capability=None)
    return replace(facts, environment=environment)


def with_framework(**fields) -> Facts:
    return replace(H200, frameworks=(replace(H200.frameworks[0], **fields),))


def closed(path: str) -> Facts:
    files = tuple(replace(one, usable=one.path != path) for one in H200.device_files)
    return replace(H200, device_files=files)


def without(part: str) -> tuple[DeviceFile, ...]:
    return tuple(one for one in H200.device_files if part not in one.path)


def lost(end: End, step: str) -> Facts:
    """The driver's probe ended while it asked, and what it would have said is unknown."""
    ended = Probe(end=end, step=step, error="so it ended")
    return replace(H200, probe=ended, cuda=Cuda(), nvml=Nvml())


def test_a_card_that_works_is_well():
    verdicts = diagnose(H200)
    assert {one.health for one in verdicts} == {Health.WELL}
    assert [one.layer for one in verdicts] == list(Layer)
    assert cause(verdicts) is None


CASES = {
    "no card": (replace(H200, device_files=()), Reason.NO_DEVICES),
    "only control files": (replace(H200, device_files=without("/dev/nvidia0")), Reason.NO_DEVICES),
    "closed": (closed("/dev/nvidia0"), Reason.DEVICES_CLOSED),
    "driver away": (replace(H200, nvml=Nvml(init=9)), Reason.DRIVER_NOT_LOADED),
    "card lost": (replace(H200, nvml=Nvml(init=15)), Reason.CARD_LOST),
    "updated": (replace(H200, nvml=Nvml(init=18)), Reason.LIBRARY_MISMATCH),
    "no library": (with_cuda(library=None, init=None, error="no such file"), Reason.LIBCUDA_MISSING),
    "monitoring only": (
        replace(
            with_cuda(library=None, init=None), environment={"NVIDIA_DRIVER_CAPABILITIES": "utility, video"}
        ),
        Reason.CAPABILITIES,
    ),
    "all capabilities": (
        replace(with_cuda(library=None, init=None), environment={"NVIDIA_DRIVER_CAPABILITIES": "all"}),
        Reason.LIBCUDA_MISSING,
    ),
    "stub": (with_cuda(library="/usr/local/cuda/lib64/stubs/libcuda.so.1", init=34), Reason.LIBCUDA_STUB),
    "hidden": (failing(100, CUDA_VISIBLE_DEVICES=""), Reason.HIDDEN),
    "no device": (failing(100), Reason.NO_CUDA_DEVICE),
    "sees none": (with_cuda(devices=()), Reason.NO_CUDA_DEVICE),
    "fabric manager": (failing(802), Reason.FABRIC),
    "mismatch": (failing(803), Reason.LIBRARY_MISMATCH),
    "compat": (failing(804), Reason.COMPAT_UNSUPPORTED),
    "mps": (failing(805), Reason.MPS),
    "old driver": (failing(35), Reason.DRIVER_TOO_OLD),
    "unknown": (failing(999), Reason.CUDA_FAILED),
    "no uvm": (replace(failing(999), device_files=without("uvm")), Reason.UVM_MISSING),
    "driver hangs": (lost(End.HUNG, "nvml"), Reason.DRIVER_HANGS),
    "driver crashes": (lost(End.CRASHED, "nvml"), Reason.DRIVER_CRASHED),
    "probe crashes at once": (lost(End.CRASHED, ""), Reason.DRIVER_CRASHED),
    "later image": (replace(H200, image_cuda="14.0"), Reason.DRIVER_TOO_OLD),
    "memory": (with_cuda(allocate=2), Reason.MEMORY_TAKEN),
    "exclusive": (with_cuda(allocate=46), Reason.CARD_BUSY),
    "without cuda": (with_framework(cuda=None, devices=None), Reason.FRAMEWORK_WITHOUT_CUDA),
    "too new": (with_framework(cuda="14.0", devices=0), Reason.FRAMEWORK_TOO_NEW),
    "blind": (with_framework(devices=0), Reason.FRAMEWORK_BLIND),
    "wrong card": (with_framework(arches=("sm_100", "sm_120")), Reason.FRAMEWORK_WRONG_CARD),
    "framework hangs": (with_framework(version="", end=End.HUNG), Reason.FRAMEWORK_HANGS),
    "broken": (with_framework(version="", cuda=None, error="ImportError"), Reason.FRAMEWORK_BROKEN),
}


def test_a_driver_below_a_folder_of_that_name_is_no_stub():
    assert cause(diagnose(with_cuda(library="/data/stubs/driver/libcuda.so.1"))) is None


@pytest.mark.parametrize(("facts", "reason"), CASES.values(), ids=CASES)
def test_causes(facts, reason):
    found = cause(diagnose(facts))
    assert found is not None
    assert found.reason is reason


def test_every_reason_has_a_case_and_a_text():
    assert {reason for _, reason in CASES.values()} == set(Reason)
    assert set(TEXTS) == set(Reason)


@pytest.mark.parametrize(
    "facts",
    [
        replace(H200, image_cuda="13.9"),  # minor versions within a major one go together
        replace(H200, image_cuda="unknown"),
        with_framework(cuda="", devices=1),  # jax does not say which
        with_framework(arches=("sm_80", "compute_80")),
        with_framework(arches=("sm_90a",)),
        replace(H200, frameworks=()),
        replace(H200, environment={"CUDA_VISIBLE_DEVICES": "0"}),
    ],
)
def test_what_only_looks_wrong_is_well(facts):
    assert cause(diagnose(facts)) is None


def test_what_stands_on_a_broken_layer_follows():
    healths = [one.health for one in diagnose(failing(802))]
    assert healths == [Health.WELL] * 3 + [Health.BROKEN] + [Health.FOLLOWS] * 2


@pytest.mark.parametrize(
    ("step", "layer"),
    [
        ("nvml", Layer.DRIVER),
        ("libcuda", Layer.LIBRARIES),
        ("cuInit", Layer.CUDA),
        ("memory", Layer.MEMORY),
        ("a later one", Layer.DRIVER),
    ],
)
def test_a_hung_driver_is_told_where_it_hung_and_not_as_missing(step, layer):
    known = H200 if step == "memory" else with_cuda(init=None, devices=None)
    known = replace(known, probe=Probe(end=End.HUNG, step=step, error="no answer within 60 seconds"))
    found = cause(diagnose(known))
    assert (found.layer, found.reason) == (layer, Reason.DRIVER_HANGS)
    assert found.evidence == f"{step}: no answer within 60 seconds"
    assert TEXTS[found.reason].who is Who.ADMIN


def test_a_probe_that_could_not_be_started_says_nothing_about_the_gpu():
    facts = replace(lost(End.NOT_STARTED, ""), frameworks=None)
    assert cause(diagnose(facts)) is None
    assert {one.health for one in diagnose(facts)} == {Health.WELL, Health.UNKNOWN}


def test_what_could_not_be_looked_at_is_not_called_well():
    unknown = replace(H200, frameworks=None, kernel_driver=None, nvml=Nvml())
    assert [one.health for one in diagnose(unknown) if one.health is not Health.WELL] == [
        Health.UNKNOWN,
        Health.UNKNOWN,
    ]
    nothing = Facts(device_files=(DeviceFile(path="/dev/nvidia0", usable=True),))
    assert cause(diagnose(nothing)) is not None


def test_facts_that_were_written_down_are_judged(capsys):
    assert main(["doctor", "--facts", str(FILE)]) == 0
    assert "All is well." in capsys.readouterr().out


def test_the_command_says_who_can_mend_it(capsys, tmp_path):
    file = tmp_path / "facts.json"
    file.write_text(json.dumps({"result": {"facts": asdict(failing(802))}}))
    assert main(["doctor", "--json", "--facts", str(file)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["result"]["cause"], told["result"]["who"]) == ("fabric", Who.ADMIN.value)
    assert told["findings"][0]["code"] == "fabric"


@pytest.mark.parametrize("text", ["no JSON", '{"result": 3}', "[]", '{"cuda": 3}', '{"colour": 1}'])
def test_other_files_are_refused(capsys, tmp_path, text):
    file = tmp_path / "facts.json"
    file.write_text(text)
    assert main(["doctor", "--facts", str(file)]) == 2
    assert "not what" in capsys.readouterr().err


# What is seen


@pytest.fixture
def root(tmp_path):
    (tmp_path / "dev" / "nvidia-caps").mkdir(parents=True)
    for name in ("nvidia0", "nvidiactl", "nvidia-caps/nvidia-cap1"):
        (tmp_path / "dev" / name).touch()
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: "
        "12\n"
    )
    return tmp_path


def framework(folder: Path, name: str, text: str) -> dict[str, str]:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(text)
    return {**os.environ, "PYTHONPATH": str(folder)}


TORCH = """
__version__ = "2.11.0"
class version: cuda = {cuda!r}
class cuda:
    def is_available(): return {available}
    def device_count(): return 1
    def get_arch_list(): return ["sm_90"]
    def init(): raise RuntimeError("The NVIDIA driver on your system is too old\\nmore")
"""


def test_devices_and_driver_are_seen(root):
    seen = observe(python=sys.executable, root=root, environment={"CUDA_VISIBLE_DEVICES": "0", "HOME": "/x"})
    assert [one.path for one in seen.device_files] == [
        "/dev/nvidia-caps/nvidia-cap1",
        "/dev/nvidia0",
        "/dev/nvidiactl",
    ]
    assert seen.kernel_driver == "580.159.04"
    assert seen.environment == {"CUDA_VISIBLE_DEVICES": "0"}
    assert seen.cuda.library is None
    assert "libcuda.so.1" in seen.cuda.error
    assert seen.nvml.init is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            TORCH.format(cuda="13.0", available=True),
            Framework(name="torch", version="2.11.0", cuda="13.0", devices=1, arches=("sm_90",)),
        ),
        (
            TORCH.format(cuda="14.0", available=False),
            Framework(
                name="torch",
                version="2.11.0",
                cuda="14.0",
                devices=0,
                error="The NVIDIA driver on your system is too old",
            ),
        ),
        (TORCH.format(cuda=None, available=False), Framework(name="torch", version="2.11.0", cuda=None)),
        (
            "raise ImportError('libcudart.so.13: cannot open')",
            Framework(name="torch", error="ImportError: libcudart.so.13: cannot open"),
        ),
        (
            "import os; os.abort()",
            Framework(name="torch", end=End.CRASHED, error="it ended by SIGABRT"),
        ),
        (
            "print('a banner')\n" + TORCH.format(cuda=None, available=False),
            Framework(name="torch", version="2.11.0", cuda=None),
        ),
    ],
    ids=["sees", "too-new", "without", "missing-library", "crash", "banner"],
)
def test_frameworks_are_asked_in_a_process_of_their_own(root, tmp_path, text, expected):
    environment = framework(tmp_path, "torch", text)
    seen = observe(python=sys.executable, root=root, environment=environment)
    assert [one for one in seen.frameworks if one.name == "torch"] == [expected]


PROBE = """
import os, signal, sys
print('{"step": "nvml"}', flush=True)
print('{"step": "cuInit", "nvml": {"init": 0}, "cuda": {"library": "/lib/libcuda.so.1"}}', flush=True)
sys.stdout.write('{"step": "cut')
sys.stdout.flush()
%s
"""


@pytest.mark.parametrize(
    ("fate", "reason", "said"),
    [
        (
            "open(THERE, 'w').close(); signal.pause()",
            Reason.DRIVER_HANGS,
            "cuInit: no answer within 0.5 seconds",
        ),
        ("os.kill(os.getpid(), signal.SIGSEGV)", Reason.DRIVER_CRASHED, "cuInit: it ended by SIGSEGV"),
        ("sys.exit('Xid 79')", Reason.DRIVER_CRASHED, "cuInit: Xid 79"),
    ],
    ids=["hangs", "crashes", "gives-up"],
)
def test_a_driver_that_gives_no_answer(root, tmp_path, monkeypatch, fate, reason, said):
    """What was answered before is kept; nothing is called missing that was found."""
    there, wait = tmp_path / "there", subprocess.Popen.wait

    def late(process, seconds=None):
        """Let the time begin when the probe is where it hangs, or has ended: it may take long until then."""
        until(
            lambda: None if there.exists() or process.poll() is not None else "on its way", what="the probe"
        )
        return wait(process, seconds)

    (tmp_path / "driver_probe.py").write_text(PROBE % fate.replace("THERE", repr(str(there))))
    monkeypatch.setattr(subprocess.Popen, "wait", late)
    monkeypatch.setattr(observing, "HERE", tmp_path)
    monkeypatch.setattr(observing, "SECONDS", 0.5)
    seen = observe(python="/no/python", root=root, environment={})
    assert seen.cuda.library == "/lib/libcuda.so.1"
    found = cause(diagnose(seen))
    assert (found.reason, found.evidence) == (reason, said)
    assert facts_from(json.loads(json.dumps(asdict(seen)))) == seen


def test_nobody_waits_for_a_probe_that_cannot_be_killed(monkeypatch):
    """A process that waits inside the driver ends when that lets it, not when it is told to."""
    monkeypatch.setattr(subprocess.Popen, "kill", lambda self: None)
    monkeypatch.setattr(probe, "KILL_SECONDS", 0.1)
    answer = probe.ask([sys.executable, "-c", "import time; time.sleep(5)"], dict(os.environ), 0.1)
    assert answer.end is End.HUNG


def test_an_interpreter_that_is_not_there_is_unknown(root):
    assert observe(python="/no/python", root=root, environment={}).frameworks is None


def test_jax_without_its_plugin_is_a_build_without_cuda(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", type("jax", (), {"__version__": "0.11"}))
    assert framework_probe.ask_jax() == {"version": "0.11", "cuda": None}


# The page


@pytest.mark.parametrize("reason", Reason)
def test_reasons_have_a_row(reason):
    told = TEXTS[reason]
    assert f"\n| `{reason}` | {told.sentence} | {told.who} | {told.remedy} |\n" in PAGE


@pytest.mark.parametrize("code", INIT)
def test_codes_are_those_of_cuda(code):
    """Every one is named in the page, for people who search for a number."""
    assert str(code) in PAGE


def test_nothing_but_python_is_needed():
    """Loading the doctor loads no library that an image may lack."""
    script = (
        "import sys, services.doctor.verb; "
        "print([m for m in ('pydantic', 'httpx', 'yaml', 'ruamel', 'jupyterhub', 'tornado') if m in "
        "sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_defaults_are_unknown():
    assert (Cuda().init, Nvml().init, Facts().frameworks) == (None, None, None)
