"""The runner's two verbs: `run` does all of it, `fetch` only puts the source in place.

Shell: everything.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import urllib.error
from typing import Any

from .client import Service
from .common import DISK, EVERY, GIVE_UP, LOG, PATIENCE, WORK, RunError, leave_word, read_end, say
from .ending import judge
from .program import Program, command_of, kernels, memory_kills
from .sending import Sender, restore
from .source import fetch


def run(spec: dict[str, Any], service: Service) -> int:
    """Do the whole run; gives the exit status of the pod."""
    folder = fetch(spec, service)
    resumed = restore(spec, service)
    environment = {**os.environ, "RESUME": "1" if resumed else "0"}
    for name in ("HANDOFF_TOKEN", "HANDOFF_SPEC"):
        environment.pop(name, None)
    with contextlib.suppress(FileExistsError):  # a file of that name is the user's own
        (folder / "outputs").mkdir()
    say(f"{'resuming from checkpoints' if resumed else 'starting'}: {spec['entry']['path']}")
    before = memory_kills() or 0
    program = Program(command_of(spec, folder), folder, environment, spec["logSize"])
    signal.signal(signal.SIGTERM, lambda *_: program.end())
    sender = Sender(spec, service, folder, os.environ.get("HOSTNAME", "pod"))
    status = _follow(program, sender, spec["grace"])
    program.kill()
    patience = PATIENCE if not program.ending else max(5.0, spec["grace"] / 3)
    sender.round(patience)
    sender.results(patience)
    tail = _tail()
    reason, code = judge(
        status,
        tail,
        ending=program.ending,
        kills=(memory_kills() or 0) - before,
        notebook=spec["entry"]["type"] == "notebook",
    )
    message = tail[-1000:].decode(errors="replace")
    if reason == "kernel-missing":
        message = f"kernels of the image: {', '.join(kernels()) or 'none'}"
    if reason == "succeeded" and sender.lost:
        reason, message = "results-not-kept", sender.lost
    leave_word(reason, message, code)
    sender.last_word(patience)
    return code


def _follow(program: Program, sender: Sender, grace: int) -> int:
    """Send news until the program has ended, and end it in time when the cluster wants the pod back."""
    deadline: float | None = None
    while True:
        status = program.wait(1.0 if program.ending else EVERY)
        if status is not None:
            return status
        if program.ending:
            deadline = deadline or time.monotonic() + grace * 0.6
            if time.monotonic() > deadline:
                program.kill()
        sender.round()


def _tail() -> bytes:
    try:
        with LOG.open("rb") as file:
            file.seek(max(0, LOG.stat().st_size - 65536))
            return file.read()
    except OSError:
        return b""


def main(verb: str) -> int:
    """Do what the pod is for; gives its exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    spec = json.loads(os.environ["HANDOFF_SPEC"])
    service = Service(os.environ["HANDOFF_URL"], os.environ["HANDOFF_TOKEN"], os.environ["RUN_ID"])
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        if verb == "fetch":
            fetch(spec, service)
            return 0
        if (earlier := read_end()) is not None:
            sys.stdout.buffer.write(_tail())
            say("this pod has ended before; another try needs a pod of its own")
            leave_word(*earlier)
            return earlier[2]
        return run(spec, service)
    except RunError as error:
        say(str(error))
        leave_word(error.reason, str(error), GIVE_UP)
        return GIVE_UP
    except OSError as error:
        say(f"{reason_of(error)}: {error}")
        leave_word(reason_of(error), str(error), 1)
        return 1


def reason_of(error: OSError) -> str:
    """Say whose fault an error of the system is."""
    if error.errno in DISK:
        return "disk-full"
    away = isinstance(error, (urllib.error.URLError, ConnectionError, TimeoutError))
    return "service-away" if away else "failed"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1] if len(sys.argv) > 1 else "run"))
