"""Why the user's program ended, by its exit status and by the exception that ended it.

What a program merely says in between is no reason: it may have caught the error and gone on.

Source: Python's tracebacks and how they are chained; `[rank0]: ` before those of torchrun's workers;
papermill, which puts the traceback of a cell behind its own.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
import signal

from .common import GIVE_UP

_GPU = re.compile(
    rb"CUDA out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|"
    rb"RESOURCE_EXHAUSTED|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"
)
_COLOR = re.compile(rb"\x1b\[[0-9;]*m")
_RANK = re.compile(rb"^\[rank\d+\]: ?", re.M)
_HEADER = re.compile(rb"^.*Traceback \(most recent call last\)", re.M)
_CHAIN = re.compile(
    rb"(?:During handling of the above exception, another exception occurred:|"
    rb"The above exception was the direct cause of the following exception:)\s*$"
)
_ERROR = re.compile(rb"^[A-Za-z_][\w.]*(?:Error|Exception|NoSuchKernel)\b.*", re.M)
_NO_PAPERMILL = re.compile(rb"No module named '?papermill'?(?:\.|$)", re.M)
_LAST = 20
"""Lines at the end of what a program without Python says."""
_OF_TORCHRUN = b"ChildFailedError"
_OF_A_CELL = b"PapermillExecutionError"


def judge(status: int, log: bytes, *, ending: bool, kills: int, notebook: bool) -> tuple[str, int]:
    """Say why a program ended: a reason of `status.RunReason`, and the exit status of the pod.

    Parameters
    ----------
    log
        The end of what it said.
    ending
        Whether the cluster wanted it to end.
    kills
        For memory, in its container while it ran.
    notebook
        Whether papermill ran it.
    """
    if status == 0:
        return "succeeded", 0
    if kills or (status == -signal.SIGKILL and not ending):
        return "out-of-memory", 137
    if ending:
        return "ended-by-cluster", 143
    # The status that asks for no other try is not the program's to give.
    own = status if 0 < status < 128 and status != GIVE_UP else 1
    return _told(_COLOR.sub(b"", log), notebook=notebook) or ("program-failed", own)


def _told(log: bytes, *, notebook: bool) -> tuple[str, int] | None:
    errors = last_errors(log)
    if notebook and _OF_A_CELL not in log:
        if b"NoSuchKernel" in errors:
            return "kernel-missing", GIVE_UP
        if _NO_PAPERMILL.search(errors):
            return "papermill-missing", GIVE_UP
    return ("gpu-out-of-memory", 1) if _GPU.search(errors) else None


def last_errors(log: bytes) -> bytes:
    """Give the lines that name the exception that ended a program, with those that led to it.

    Where there is no traceback, the last lines: it may not be in Python.
    """
    headers = [match.start() for match in _HEADER.finditer(log)]
    if not headers:
        return b"\n".join(log.splitlines()[-_LAST:])
    first = len(headers) - 1
    while first and _CHAIN.search(_RANK.sub(b"", log[headers[first - 1] : headers[first]]).rstrip()):
        first -= 1
    found = _errors(log[headers[first] :])
    if _OF_TORCHRUN in found:
        found = _errors(b"\n".join(line for line in log.splitlines() if _RANK.match(line)))
    return found


def _errors(text: bytes) -> bytes:
    return b"\n".join(_ERROR.findall(_RANK.sub(b"", text)))
