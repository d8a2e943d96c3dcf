"""The agent's program that called a hook, as a process: while it lives, so may its session."""

import os

from guard.core.iteration.events import Process
from guard.system.process_identity import is_alive, start_time

_BETWEEN = frozenset(
    [
        "sh",
        "bash",
        "dash",
        "ash",
        "zsh",
        "ksh",
        "fish",
        "busybox",
        "env",
        "timeout",
        "nice",
        "nohup",
        "sudo",
        "doas",
        "stdbuf",
        "uv",
        "uvx",
        "pipx",
    ]
)
"""What a hook's command may be started through, and that ends with it."""


def host() -> Process | None:
    """The nearest process above this one that is not only there to start it; None where nobody tells."""
    pid = os.getppid()
    while pid > 1:
        name, above = _name_and_parent(pid)
        if name not in _BETWEEN:
            start = start_time(pid)
            return Process(pid=pid, start=start) if name and start is not None else None
        pid = above
    return None


def is_gone(process: Process | None) -> bool:
    """Whether it is known to have ended."""
    return process is not None and not is_alive(process.pid, process.start)


def _name_and_parent(pid: int) -> tuple[str, int]:
    """From `/proc`; the name stands in brackets and may hold some itself."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            told = file.read(4096).decode(errors="replace")
    except OSError:
        return "", 0
    before, _, after = told.rpartition(")")
    return before.partition("(")[2], int(after.split()[1])
