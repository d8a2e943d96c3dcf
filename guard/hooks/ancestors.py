"""Find the git process or the agent CLI that called a hook, among the processes above it."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.core.iteration.facts import Process

_MOST_ANCESTORS = 32
_STARTERS = frozenset(
    (
        *("sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"),
        *("env", "timeout", "nice", "nohup", "sudo", "doas", "stdbuf", "uv", "uvx", "pipx"),
    )
)
"""Programs that a hook's command may be started through, and that end with it."""


def ancestors() -> list[tuple[int, str, str]]:
    """Return pid, name and start of each process above this one, nearest first; empty where `/proc` does not tell."""
    found: list[tuple[int, str, str]] = []
    pid = os.getppid()
    while pid > 1 and len(found) < _MOST_ANCESTORS:
        status = _read_status(pid)
        if status is None:
            break
        name, parent, start = status
        found.append((pid, name, start))
        pid = parent
    return found


def calling_git() -> str | None:
    """Return a name for the git process that called this hook; all hooks of one commit get the same name."""
    return next((f"{pid}-{start}" for pid, name, start in ancestors() if name == "git"), None)


def calling_agent() -> "Process | None":
    """Return the agent CLI: the nearest process above this one that is not in `_STARTERS`."""
    found = next(((pid, name) for pid, name, _ in ancestors() if name not in _STARTERS), None)
    if found is None or not found[1]:
        return None
    # Loaded only here: git's hooks need `calling_git` alone, and a commit waits for them.
    from guard.core.iteration.facts import Process
    from guard.system.host import read_host
    from guard.system.process_identity import start_time

    start = start_time(found[0])
    return Process(pid=found[0], start=start, host=read_host()) if start is not None else None


def has_ended(process: "Process | None") -> bool:
    from guard.context.lease import is_here
    from guard.system.process_identity import is_alive

    return process is not None and is_here(process) and not is_alive(process.pid, process.start)


def _read_status(pid: int) -> tuple[str, int, str] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            before, _, after = file.read(4096).decode("utf-8", "replace").rpartition(")")
    except OSError:
        return None
    fields = after.split()
    # The name stands in brackets, and may itself hold brackets.
    return before.partition("(")[2], int(fields[1]), fields[19]
