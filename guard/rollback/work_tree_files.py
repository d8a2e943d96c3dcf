"""The files of a revert, brought into the work tree or taken back out of it: each one whole, and none that changed since."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from guard.core.base.paths import path_line, unspell
from guard.core.snapshots.restore import There
from guard.rollback.stage import StagedRollback, both, put, seen
from guard.snapshots.safe_writer import PathRefused, SafeFolder


class Meanwhile(Exception):
    """A file is not what it was any more."""


@dataclass(frozen=True)
class _Step:
    path: bytes
    there: There | None
    wanted: There | None


def bring(staged: StagedRollback, target: SafeFolder) -> None:
    """Make the work tree what the revert has; `Meanwhile` for the first file that is not as it was put ready."""

    def changed(path: bytes, why: str) -> None:
        raise Meanwhile(f"{path_line(path)}: {why}")

    with both(staged) as (before, after):
        _exchange(staged, target, after, before, staged.paths, changed)


def take_back(staged: StagedRollback, target: SafeFolder, keep: frozenset[bytes]) -> list[str]:
    """Make the work tree what it was; what somebody changed since, or is to `keep`, is left as it is and named."""
    left: list[str] = []

    def changed(path: bytes, why: str) -> None:
        left.append(f"{path_line(path)}: {why}")

    paths = [path for path in staged.paths if path not in keep]
    left += [f"{path_line(path)}: committed meanwhile" for path in staged.paths if path in keep]
    with both(staged) as (before, after):
        _exchange(staged, target, before, after, paths, changed)
    for path in staged.paths:
        target.sweep(path)
    for folder in reversed(staged.journal.new_folders):
        target.remove_folder(unspell(folder))
    return left


def tidy(staged: StagedRollback, target: SafeFolder) -> None:
    """The revert is in place: folders that are empty by it go, as git would have it."""
    with both(staged) as (_before, after):
        gone = [path for path in staged.paths if seen(after, path, staged.journal.head) is None]
    for path in staged.paths:
        target.sweep(path)
    for path in gone:
        _fold(target, path, b"")


def _exchange(
    staged: StagedRollback,
    target: SafeFolder,
    source: SafeFolder,
    other: SafeFolder,
    paths: Sequence[bytes],
    changed: Callable[[bytes, str], None],
) -> None:
    """From one version to the other; those that are there already stay, as others do that are neither."""
    steps = list(_steps(staged, target, source, other, paths, changed))
    removed = [step.path for step in steps if step.wanted is None]
    for step in steps:
        try:
            if step.wanted is None:
                assert step.there is not None
                target.remove(step.path, step.there)
        except (PathRefused, OSError) as error:
            changed(step.path, str(error))
    for step in steps:
        try:
            if step.wanted is not None:
                for path in removed:
                    if path.startswith(step.path + b"/"):
                        _fold(target, path, step.path)
                put(source, target, step.path, step.wanted, step.there)
        except (PathRefused, OSError) as error:
            changed(step.path, str(error))


def _steps(
    staged: StagedRollback,
    target: SafeFolder,
    source: SafeFolder,
    other: SafeFolder,
    paths: Sequence[bytes],
    changed: Callable[[bytes, str], None],
) -> Iterator[_Step]:
    like = staged.journal.head
    for path in paths:
        now, wanted = seen(target, path, like), seen(source, path, like)
        if now == wanted:
            continue
        if now != seen(other, path, like):
            changed(path, "somebody changed it meanwhile")
            continue
        yield _Step(path, now, wanted)


def _fold(target: SafeFolder, path: bytes, top: bytes) -> None:
    """Remove the folders above a path that are empty, up to and including `top`."""
    while b"/" in path and path != top:
        path = path.rpartition(b"/")[0]
        if not target.remove_folder(path):
            return
