"""Task files on disk: where a spec's is, and how many of its boxes are open. What a box is, is in `core.taskfile`."""

from pathlib import Path

from guard.core.settings import Settings
from guard.core.taskfile import open_boxes

_MOST_BYTES = 4 * 1024 * 1024


def open_tasks(root: Path, spec: str | None, settings: Settings) -> int | None:
    """How many boxes of a spec's task file are open; None if there is no task file to look at."""
    path = task_file(root, spec, settings)
    return boxes_in(path) if path is not None else None


def boxes_in(path: Path) -> int | None:
    """How many boxes of a task file are open; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return len(open_boxes(file.read(_MOST_BYTES).decode(errors="replace")))
    except OSError:
        return None


def task_file(root: Path, spec: str | None, settings: Settings) -> Path | None:
    """The task file of a spec, by the pattern in the settings, then `tasks.md`; None without a spec or a file."""
    if spec is None:
        return None
    pattern = settings.completion_check.task_file
    for name in (pattern.replace("{spec}", spec), "tasks.md"):
        path = root / name
        if path.is_file():
            return path
    return None
