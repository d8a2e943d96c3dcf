"""The files by which a step speaks to its runner: always written whole, so that nothing that an agent put there counts."""

import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from guard.core.github.escape import output_file
from guard.github.environment import Surroundings


def write_outputs(job: Surroundings, values: Mapping[str, str]) -> None:
    """The outputs of this step, and no others."""
    _write(job, "GITHUB_OUTPUT", output_file(values, f"guard_{secrets.token_hex(16)}"))


def write_summary(job: Surroundings, text: str) -> None:
    """The page of this step."""
    _write(job, "GITHUB_STEP_SUMMARY", text)


def emptied(paths: Iterable[Path]) -> list[str]:
    """Empty these files; the names of those that were not empty."""
    found = []
    for path in paths:
        with suppress(OSError):
            if path.is_symlink() or path.stat().st_size:
                found.append(path.name)
                _put(path, b"")
    return found


def _write(job: Surroundings, name: str, text: str) -> None:
    if told := job.environ.get(name):
        _put(Path(told), text.encode())


def _put(path: Path, data: bytes) -> None:
    """A new file in the place of the old one: whoever holds that one open, or has made it a link, writes elsewhere."""
    other = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with other.open("xb") as file:
        file.write(data)
    os.replace(other, path)
