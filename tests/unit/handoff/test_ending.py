"""Why a program ended: by the exception that ended it, not by what it said on the way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from services.job_handoff.runner.ending import judge

OOM = "CUDA out of memory. Tried to allocate 2.00 GiB"
CLASS = "class OutOfMemoryError(RuntimeError): pass\n"


def said_by(program: str) -> bytes:
    """What Python itself says when this ends."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    return done.stdout + done.stderr


def reason(log: bytes, *, notebook: bool = False, status: int = 1) -> str:
    return judge(status, log, ending=False, kills=0, notebook=notebook)[0]


CAUGHT = (
    f"import logging\ntry:\n raise RuntimeError('{OOM}')\nexcept RuntimeError: logging.exception('smaller')\n"
)


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (f"{CLASS}raise OutOfMemoryError('{OOM}')", "gpu-out-of-memory"),
        (
            f"try:\n raise RuntimeError('{OOM}')\nexcept RuntimeError as e: raise SystemError('x') from e",
            "gpu-out-of-memory",
        ),
        (f"try:\n raise RuntimeError('{OOM}')\nfinally: open('/none/of/these')", "gpu-out-of-memory"),
        (f"print('{OOM}, going on')\nraise ValueError('shape')", "program-failed"),
        (f"{CAUGHT}raise ValueError('shape')", "program-failed"),
        ("raise ValueError('RESOURCE_EXHAUSTED')", "gpu-out-of-memory"),
        (
            "print(\"ModuleNotFoundError: No module named 'papermill'\")\nraise SystemExit(2)",
            "program-failed",
        ),
        ("raise ModuleNotFoundError(\"No module named 'papermill'\")", "program-failed"),
        ("raise ValueError('NoSuchKernel')", "program-failed"),
        ("raise SystemExit(2)", "program-failed"),
    ],
)
def test_a_script_ends_by_its_last_exception(program: str, found: str) -> None:
    assert reason(said_by(program)) == found


RANKS = f"""[rank1]: Traceback (most recent call last):
[rank1]:   File "/workspace/files/./train.py", line 3, in <module>
[rank1]:     step()
[rank1]: torch.OutOfMemoryError: {OOM}
Traceback (most recent call last):
  File "/opt/conda/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
./train.py FAILED
"""


def test_a_worker_s_error_counts_and_not_what_torchrun_says_of_it() -> None:
    assert reason(RANKS.encode()) == "gpu-out-of-memory"
    assert reason(RANKS.replace(OOM, "x").replace("OutOfMemory", "Value").encode()) == "program-failed"


HEADER = "Traceback (most recent call last):\n"
CELL = """Traceback (most recent call last):
  File "<string>", line 6, in <module>
papermill.exceptions.PapermillExecutionError:
---------------------------------------------------------------------------
Exception encountered at "In [2]":
---------------------------------------------------------------------------
{name}                              Traceback (most recent call last)
Cell In[2], line 1
----> 1 run()

\x1b[0;31m{name}\x1b[0m: {text}
"""


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (CELL.format(name="OutOfMemoryError", text=OOM), "gpu-out-of-memory"),
        (CELL.format(name="ModuleNotFoundError", text="No module named 'papermill'"), "program-failed"),
        (CELL.format(name="NoSuchKernel", text="No such kernel named r"), "program-failed"),
        (
            f"{HEADER}jupyter_client.kernelspec.NoSuchKernel: No such kernel named r\n",
            "kernel-missing",
        ),
        (
            f"{HEADER}ModuleNotFoundError: No module named 'papermill'\n",
            "papermill-missing",
        ),
        (
            f"{HEADER}ModuleNotFoundError: No module named 'papermill_x'\n",
            "program-failed",
        ),
    ],
)
def test_a_notebook_that_could_not_begin_is_told_from_one_that_failed(log: str, found: str) -> None:
    assert reason(log.encode(), notebook=True) == found


def test_a_program_that_is_not_in_python_is_judged_by_its_last_lines() -> None:
    end = b"terminate called\nCUDA_ERROR_OUT_OF_MEMORY\n"
    assert reason(b"step\n" * 100 + end) == "gpu-out-of-memory"
    assert reason(end + b"step\n" * 100) == "program-failed"
    assert reason(b"") == "program-failed"
    assert reason(b"\xff\xfe\x00" * 1000) == "program-failed"


def test_no_program_can_ask_for_no_other_try() -> None:
    assert judge(42, b"", ending=False, kills=0, notebook=False) == ("program-failed", 1)
    assert judge(41, b"", ending=False, kills=0, notebook=False) == ("program-failed", 41)
    assert judge(-11, b"", ending=False, kills=0, notebook=False) == ("program-failed", 1)
