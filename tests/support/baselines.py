"""A baseline of a real repository, and what is found against it."""

import os
from collections.abc import Container
from pathlib import Path

from guard.core.iteration.baseline import Baseline, BaselineFold
from guard.core.iteration.events import BaselineRecorded
from guard.core.iteration.facts import DirtyFile
from guard.core.log.record import Position
from guard.core.work.count import Work, count_work
from guard.core.work.leftovers import Uncommitted, find_leftovers
from guard.git.dirty import read_dirty
from guard.git.history import read_history
from guard.git.locate import Repository, find_repository
from guard.git.reader import RepositoryReader
from guard.iteration import baseline as baselines
from tests.support.events import MOMENT

KEY = "project-0d5c9e4ad041"
COUNTS = (
    *("new_commits", "empty", "copies", "merges", "rewritten", "lost", "imported"),
    *("on_other_branches", "rescued", "users"),
)
"""The fields of the found work that count commits."""


def located(folder: Path) -> Repository:
    """The repository of a folder."""
    return find_repository(folder, lambda _: None)


def reader(folder: Path) -> RepositoryReader:
    return RepositoryReader(located(folder), os.environ)


def recorded(folder: Path, carried: tuple[DirtyFile, ...] = ()) -> BaselineRecorded:
    """A baseline taken and pinned, as it would go into the log."""
    return baselines.prepare(reader(folder), KEY, MOMENT, run="r1", iteration=1, carried=carried)


def taken(folder: Path, carried: tuple[DirtyFile, ...] = ()) -> Baseline:
    """The same as the view has it."""
    fold = BaselineFold(KEY)
    fold.apply(recorded(folder, carried))
    fold.reached = Position(1, 100, 1, "0" * 64)
    return fold.document()


def work_since(baseline: Baseline, folder: Path, others: Container[str] = ()) -> Work:
    """The new work since a baseline, beside iterations on these refs."""
    return count_work(read_history(reader(folder), baseline, others))


def left_since(baseline: Baseline, folder: Path) -> Uncommitted:
    """What was left uncommitted since a baseline."""
    now = read_dirty(reader(folder), baseline.dirty)
    return find_leftovers(baseline.dirty, now.files)
