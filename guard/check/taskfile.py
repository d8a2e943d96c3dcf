"""Find the task file of a spec, and count its open boxes."""

import codecs
from pathlib import Path

from guard.core.base.taskfile import boxes, open_boxes
from guard.core.config.settings import Settings
from guard.system.foreign_files import read_regular

_MOST_BYTES = 16 * 1024 * 1024


def count_open_tasks(root: Path, spec: str | None, settings: Settings) -> int | None:
    """Count the open boxes of a spec's task file; None if there is no task file that can be read."""
    path = find_task_file(root, spec, settings)
    return count_open_boxes(path) if path is not None else None


def count_open_boxes(path: Path) -> int | None:
    """Count the open boxes of a task file; None if it has no box that can be read."""
    text = _text(path)
    if text is None or not boxes(text):
        return None
    return len(open_boxes(text))


def _text(path: Path) -> str | None:
    # In UTF-8, or in UTF-16 if the file begins with the mark of it.
    try:
        data = read_regular(path, _MOST_BYTES)
    except OSError:
        return None
    if len(data) > _MOST_BYTES:
        return None
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if wide else "utf-8", errors="replace")


def find_task_file(root: Path, spec: str | None, settings: Settings) -> Path | None:
    """Return the task file of a spec, by the pattern in the settings, then `tasks.md`; None without a spec or a file.

    A spec with an empty name has only the latter.
    """
    if spec is None:
        return None
    pattern = settings.completion_check.task_file
    for name in (*([pattern.replace("{spec}", spec)] if spec else []), "tasks.md"):
        path = root / name
        if path.is_file():
            return path
    return None
