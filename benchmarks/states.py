"""The states of a repository that the tests build: what a naive commit loses in them, and beside it what a snapshot does."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Row, none_of, scratch
from guard.git.locate import find_repository
from guard.rescue import rescue
from guard.rescue.order import Orders
from guard.snapshots.project import Site
from guard.snapshots.take import take_and_prune
from tests.rescue.states import STATES, State, start
from tests.rescue.states_links import LINKS
from tests.rescue.states_start import identify
from tests.support import TIME_LIMIT, git
from tests.support.losses import Loss, Work, lost_by_snapshot, naive_commit, work_in
from tests.support.planted_links import imprint
from tests.support.rescues import BY_HAND, NOW

Both = tuple[Loss, Loss]


def rows() -> Iterator[Row]:
    measured = {name: _measured(state) for name, state in STATES.items()}
    naive = [loss for loss, _ours in measured.values() if loss.lost]
    silent = sum(loss.silent for loss in naive)
    yield none_of(
        f"states in which a snapshot loses work, of {len(measured)}",
        sum(ours.lost > 0 for _naive, ours in measured.values()),
        f"`git add -A && git commit` loses work in {len(naive)}, in {silent} of them silently",
        below=_table(measured),
    )
    yield none_of(
        f"states with links below .git in which a rescue writes outside, of {len(LINKS)}",
        sum(map(_writes_outside, LINKS.values())),
        "a naive commit follows the links",
    )


class _Scene(NamedTuple):
    site: Site
    left: Sequence[bytes]
    work: Work
    more: Mapping[str, str]


@contextmanager
def _built(state: State) -> Iterator[_Scene]:
    with scratch() as folder, _surroundings(folder):
        root, workspace = folder / "project", folder / "workspace"
        workspace.mkdir(mode=0o700)
        git(folder, "init", "-q", "-b", "main", "project")
        identify(root)
        start(root)
        known = find_repository(root, lambda _: None) if state.known else None
        left = [os.fsencode(path) for path in state.build(root)]
        work = work_in(root, state.kept(root, left))
        more = {name: value.format(root=root) for name, value in state.environ.items()}
        found = known or find_repository(root, lambda _: None)
        yield _Scene(Site(found, workspace, {**os.environ, **more}, TIME_LIMIT), left, work, more)


def _measured(state: State) -> Both:
    """What a naive commit loses, and what a snapshot that was taken before it."""
    with _built(state) as (site, _left, work, more):
        take_and_prune(site, BY_HAND)
        ours = Loss(lost_by_snapshot(work, site.workspace / "shadow.git"), len(work))
        return naive_commit(site.repository.root, work, more, state.patience), ours


def _writes_outside(state: State) -> bool:
    with _built(state) as (site, left, _work, _more):
        outside = site.workspace.parent / "outside"
        before = imprint(outside)
        rescue(site, Orders("r1", 2, state.branch, left), NOW)
        return imprint(outside) != before


@contextmanager
def _surroundings(folder: Path) -> Iterator[None]:
    """A home of its own, and no variables that git would heed."""
    before = dict(os.environ)
    (folder / "home").mkdir()
    for name in [name for name in before if name.startswith("GIT_")]:
        del os.environ[name]
    os.environ.update(HOME=str(folder / "home"), GIT_CONFIG_NOSYSTEM="1", LC_ALL="C.UTF-8")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _table(measured: dict[str, Both]) -> str:
    lines = ["| state | naive: contents lost | ours |", "|---|---|---|"]
    lines += [f"| {name} | {naive} | {ours} |" for name, (naive, ours) in measured.items()]
    return "\n".join(lines)
