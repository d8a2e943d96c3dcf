"""The processes above a hook: among them the git that called it, which is the same for all hooks of one commit."""

import os


def above() -> list[tuple[int, str, str]]:
    """Pid, name and start of each process above this one, the nearest first; none where `/proc` does not tell."""
    found: list[tuple[int, str, str]] = []
    pid = os.getppid()
    while pid > 1 and len(found) < 32:
        told = _told(pid)
        if told is None:
            break
        name, parent, start = told
        found.append((pid, name, start))
        pid = parent
    return found


def calling_git() -> str | None:
    """What names the git process that called this hook, and no other; None where nobody tells."""
    return next((f"{pid}-{start}" for pid, name, start in above() if name == "git"), None)


def _told(pid: int) -> tuple[str, int, str] | None:
    """The name stands in brackets, and may hold some itself."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            before, _, after = file.read(4096).decode("utf-8", "replace").rpartition(")")
    except OSError:
        return None
    fields = after.split()
    return before.partition("(")[2], int(fields[1]), fields[19]
