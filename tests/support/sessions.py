"""Scripted stand-ins for an agent: real processes that answer a probe or play a session, in a few lines of shell."""

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, AnyStr

from tests.support import write

QUICK = ("--max-probes", "2", "--probe-interval", "0.1")


def script(path: Path, text: str) -> str:
    """A program of these lines of shell; the command that starts it."""
    write(path, f"#!/bin/sh\n{text}\n").chmod(0o755)
    return shlex.quote(str(path))


def answering(folder: Path, status: str, **fields: Any) -> str:
    """A probe command that gives this answer, and counts how often it was asked."""
    answer = json.dumps({"status": status, "message": f"I am {status}", **fields})
    text = f"cat > /dev/null\necho asked >> {folder}/asked\necho {shlex.quote(answer)}"
    return script(folder / f"answer-{status}", text)


def asked(folder: Path) -> int:
    """How often the probe command of this folder was asked."""
    file = folder / "asked"
    return len(file.read_text().splitlines()) if file.exists() else 0


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for a condition, as long as a machine that has much else to do may need."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def started(*words: str | Path, listen: bool = False) -> subprocess.Popen[str]:
    """Guard in a process of its own, with nobody at its keys; what it says is thrown away unless somebody listens."""
    heard = subprocess.PIPE if listen else subprocess.DEVNULL
    argv = [sys.executable, "-m", "guard", *map(str, words)]
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=heard, stderr=heard, text=True, errors="replace"
    )


def hear(process: subprocess.Popen[str], words: str) -> None:
    """Read the errors of a guard that is listened to until a line has these words."""
    assert process.stderr is not None
    assert any(words in line for line in process.stderr), f"it never said {words!r}"


@contextmanager
def ending(
    process: subprocess.Popen[AnyStr], seconds: float = 240
) -> Iterator[subprocess.Popen[AnyStr]]:
    """A process that does not outlive the block, however that ends: `with Popen` alone would wait for it for ever.

    After some minutes it is killed, so that nobody who listens to it in the block waits for ever either.
    """
    limit = threading.Timer(seconds, process.kill)
    limit.daemon = True
    limit.start()
    with process:
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()


def killed(process: subprocess.Popen[str]) -> None:
    """End a process as a machine without memory does."""
    process.kill()
    process.wait()


def seen_by_guard(file: Path) -> None:
    """Wait until a guard that watches over an iteration has looked since this file changed."""
    until(file.exists)
    changed = file.stat().st_ctime
    state = Path(os.environ["XDG_STATE_HOME"])
    until(lambda: any(beat.stat().st_mtime > changed for beat in state.rglob("output.d/*.stdout")))
