"""The states of a repository that the tests build: what a naive commit loses in them, and beside it what a snapshot does."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Row, none_of, scratch
from guard.errors import RepositoryProblem
from guard.git.locate import find_repository
from guard.git.reader import RepositoryReader
from guard.git.refs import baseline_ref, pin
from guard.git.run import TIME_LIMIT_SECONDS
from guard.rescue import rescue
from guard.rescue.order import Orders
from guard.snapshots.project import Site
from guard.snapshots.take import take_and_prune
from tests.rescue.states import STATES, State, start
from tests.rescue.states_links import LINKS
from tests.rescue.states_start import dirty, identify, set_aside
from tests.support import TIME_LIMIT, git
from tests.support.losses import Loss, Work, lost_by_snapshot, naive_commit, work_in
from tests.support.planted_links import (
    KINDS,
    LINK_TO_OWN,
    LINKED_PLACES,
    OTHER_PLACES,
    PLACES,
    begin,
    imprint,
    is_planted,
    outside,
    plant,
)
from tests.support.rescues import BY_HAND, NOW, contents

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
    tried = [one for scene in _SCENES for one in _tried(*scene)]
    yield none_of(
        f"things planted below .git through which guard writes outside, of {len(tried)}",
        sum(one.wrote for one in tried),
        "links, hard links, pipes, sockets and devices at every place that git writes or reads",
        below="\n".join(f"- {one.what}: wrote outside" for one in tried if one.wrote),
    )
    yield none_of(
        f"things planted below .git with which a snapshot loses work, of {len(tried)}",
        sum(one.lost for one in tried),
        f"contents lost; the slowest took {max(one.seconds for one in tried):.1f} s",
        below="\n".join(f"- {one.what}: {one.lost} lost" for one in tried if one.lost),
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


class _Trial(NamedTuple):
    """What a baseline, a snapshot and a rescue did with one thing planted below the git directory."""

    what: str
    wrote: bool
    """Whether anything outside of the repository changed."""
    lost: int
    """How many contents the snapshot does not have."""
    seconds: float


def _linked_work_tree(root: Path) -> Path:
    primary = set_aside(root, "primary")
    git(primary, "worktree", "add", "-q", "-b", "side", os.fspath(root))
    return primary / ".git"


def _own_git_dir(root: Path) -> Path:
    return root / ".git"


_FEW_KINDS = ("link to a folder", LINK_TO_OWN, "pipe", "socket", "link to a device", "second name")
_SCENES = (
    (_own_git_dir, [*product(PLACES, KINDS), *product(OTHER_PLACES, _FEW_KINDS)], "main"),
    (_linked_work_tree, [*product((*LINKED_PLACES, *PLACES), _FEW_KINDS)], "side"),
)


def _tried(
    make: Callable[[Path], Path], cells: Sequence[tuple[str, str]], branch: str
) -> Iterator[_Trial]:
    with scratch() as folder, _surroundings(folder):
        root = folder / "project"
        git(folder, "init", "-q", "-b", "main", "project")
        identify(root)
        begin(root)
        git_dir = make(root)
        left = [os.fsencode(path) for path in dirty(root)]
        work = work_in(root, contents(root))
        subprocess.run(["cp", "-a", git_dir, folder / "saved.git"], check=True)
        site = Site(
            find_repository(root, lambda _: None),
            folder / "workspace",
            os.environ,
            TIME_LIMIT_SECONDS,
        )
        for place, kind in cells:
            if is_planted(place, kind):
                site.workspace.mkdir(mode=0o700)
                plant(git_dir, place, kind, outside(root))
                yield _try(site, f"{branch}: {place}: {kind}", Orders("r1", 2, branch, left), work)
                for name in ("workspace", "outside", "was_folder", git_dir):
                    shutil.rmtree(folder / name, ignore_errors=True)
                subprocess.run(["cp", "-a", folder / "saved.git", git_dir], check=True)


def _try(site: Site, what: str, orders: Orders, work: Work) -> _Trial:
    beside = outside(site.repository.root)
    before, begun = imprint(beside), time.monotonic()
    with suppress(RepositoryProblem):
        reader = RepositoryReader(site.repository, os.environ)
        pin(reader, baseline_ref("w"), [reader.ask("rev-parse", "HEAD").decode().strip()], NOW, "x")
    rescue(site, orders, NOW)
    seconds = time.monotonic() - begun
    lost = lost_by_snapshot(work, site.workspace / "shadow.git")
    return _Trial(what, imprint(beside) != before, lost, seconds)


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
