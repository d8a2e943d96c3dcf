"""Make a private home for a CLI that cannot fork a session without a trace: copies of the session, links to the login.

Credentials are linked and not copied, so that a guard that is killed leaves none behind.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from guard.probe.base import CannotAsk

MOST_BYTES = 512 * 1024 * 1024
MOST_FILES = 20_000


def make_folder(path: Path) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def link_files(source: Path, target: Path, *names: str) -> None:
    for name in names:
        if (source / name).is_file():
            (target / name).symlink_to(source / name)


def copy_session(source: Path, target: Path) -> None:
    """Copy a session, a file or a folder; links, pipes and the like are no part of one."""
    try:
        files = list(_files(source))
        if len(files) > MOST_FILES or sum(size for _, size in files) > MOST_BYTES:
            raise CannotAsk("no_session", "the session is too large to be copied for a probe")
        for path, _ in files:
            place = target / path.relative_to(source)
            make_folder(place.parent)
            shutil.copyfile(path, place, follow_symlinks=False)
    except OSError as error:
        detail = f"the session cannot be copied for a probe: {error.strerror}"
        raise CannotAsk("no_session", detail) from None


def _files(source: Path) -> Iterator[tuple[Path, int]]:
    paths = [source] if not source.is_dir() else []
    for place, _, names in os.walk(source):
        paths += [Path(place, name) for name in names]
    for path in paths:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            yield path, status.st_size
