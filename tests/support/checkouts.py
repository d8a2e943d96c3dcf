"""Checkouts of a repository in a test, and a look at everything that a project has."""

import os
import stat
from pathlib import Path

from guard.git.locate import repository_at
from guard.prove.checkout import Checkouts

State = dict[str, tuple[int, int, int, bytes]]


def open_checkouts(project: Path) -> Checkouts:
    """The checkouts of a repository, in a folder beside it."""
    root = project.parent / "cache" / "prove"
    return Checkouts(repository_at(project), root, os.environ)


def state_of(folder: Path) -> State:
    """Every entry of a folder, with `.git`: its mode, times and bytes."""
    found = {}
    for here, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(here, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.fsencode(os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                content = Path(path).read_bytes()
            found[path] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


def contents(folder: Path) -> dict[bytes, bytes]:
    """What a checkout has beside its `.git`: the bytes of each file, the text of each link with an arrow before it."""
    found = {}
    for here, folders, names in os.walk(os.fsencode(folder)):
        if b".git" in folders:
            folders.remove(b".git")
        for name in (*names, *folders):
            path = os.path.join(here, name)
            key = os.path.relpath(path, os.fsencode(folder))
            if os.path.islink(path):
                found[key] = b"-> " + os.readlink(path)
            elif os.path.isfile(path):
                found[key] = Path(os.fsdecode(path)).read_bytes()
            elif not os.listdir(path):
                found[key + b"/"] = b""
    return found
