"""The trailer that names the iteration in which a commit is made."""

import os
from collections.abc import Mapping
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.base.text import visible
from guard.core.hooks.git.iteration_of import belongs_to
from guard.core.iteration.run import RUN
from guard.errors import GuardError
from guard.git.run import git
from guard.hooks.git.note import MARK
from guard.system.private_files import close, write_all
from guard.system.startup import prepare

TRAILER = "Guard-Run"
_MOST_BYTES = 1024 * 1024


def add(path: str, environ: Mapping[str, str]) -> None:
    """Put it at the end of the message, before git's comments; one that is there already is replaced."""
    prepare()
    guard = Invocation(environ=environ)
    try:
        whose = belongs_to(
            guard.store.view(RUN, guard.worktree_key), environ.get(MARK), guard.clock.now()
        )
    except GuardError:
        return
    if whose is None:
        return
    message = _read(path)
    if message is None:
        return
    words = ("interpret-trailers", "--if-exists", "replace", "--if-missing", "add")
    told = f"{TRAILER}: {visible(whose[0])}/{whose[1]}"
    done = git(
        *words,
        "--trailer",
        told,
        environ=environ,
        git_dir=guard.repository.git_dir,
        stdin=message,
        most_bytes=2 * _MOST_BYTES,
    )
    if done.code == 0 and done.stdout and done.stdout != message:
        _write(path, done.stdout)


def _read(path: str) -> bytes | None:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= _MOST_BYTES else None


def _write(path: str, data: bytes) -> None:
    """In its place: git has the name, and nobody else reads it meanwhile."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        write_all(descriptor, data)
    finally:
        close(descriptor)
