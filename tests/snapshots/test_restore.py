"""Every state, brought back: to a folder, and in place after the whole work tree was deleted."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from guard.git.locate import find_repository
from guard.snapshots.project import Site
from guard.snapshots.restore import ChosenSnapshot, SnapshotSource, choose
from guard.snapshots.take import take_and_prune
from tests.rescue.states import STATES, State, start
from tests.support import TIME_LIMIT
from tests.support.rescues import BY_HAND, NOW, contents


def quiet(_done: int, _of: int) -> None:
    """Nobody hears of it."""


@contextmanager
def kept(state: State, root: Path, workspace: Path) -> Iterator[ChosenSnapshot]:
    """A snapshot of a state, open for reading."""
    start(root)
    known = find_repository(root, lambda _: None)
    workspace.mkdir(mode=0o700)
    state.build(root)
    taken = take_and_prune(Site(known, workspace, os.environ, TIME_LIMIT), BY_HAND)
    with choose(
        SnapshotSource(workspace, known, os.environ, TIME_LIMIT), taken.id, staged=False
    ) as held:
        yield held


def left_out(state: State) -> tuple[bytes, ...]:
    return tuple(os.fsencode(line.partition(": ")[0]) + b"/" for line in state.skipped)


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_every_state_comes_back(
    state: State, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    with kept(state, repository, workspace) as held:
        before = {
            path: what
            for path, what in contents(repository).items()
            if not path.startswith(left_out(state))
        }
        _place, found = held.to_folder(tmp_path / "back", None, [], quiet)
        assert (found.trouble, found.refused) == ({}, {})
        back = contents(tmp_path / "back")
        assert back == {**back, **before}
        for entry in repository.iterdir():
            if entry.name != ".git" and not os.fsencode(entry.name + "/").startswith(
                left_out(state)
            ):
                (shutil.rmtree if entry.is_dir() and not entry.is_symlink() else os.unlink)(entry)
        _place, found = held.in_place([], NOW, quiet)
        assert (found.trouble, found.refused) == ({}, {})
        again = contents(repository)
        assert again == {**again, **before}
