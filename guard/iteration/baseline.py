"""Take the baseline of a work tree, pin it, and find it again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from guard.context.ids import new_id
from guard.core.base.text import escape
from guard.core.iteration.baseline import BASELINE, EMPTY, Baseline
from guard.core.iteration.events import BaselineRecorded
from guard.core.iteration.facts import DirtyFile
from guard.core.work.count import Work
from guard.core.work.history import EMPTY_TREES
from guard.core.work.leftovers import attribute_files
from guard.errors import RepositoryProblem
from guard.git.dirty import read_dirty
from guard.git.gitdir_files import shallow_digest
from guard.git.reader import RepositoryReader
from guard.git.reflogs import read_stash, reflog_lengths
from guard.git.refs import Refs, baseline_ref, commit_of, lost_ref, pin, read_refs, tree_of
from guard.store import Store

UNRECORDED = "unrecorded"
"""The run of a baseline that was only named."""
MOST_REFS = 10_000
_LONGEST = 512
_BRANCHES = "refs/heads/"

_PIN_SUBJECT = (
    "guard: bookmark that keeps the commits of a baseline of {} (on no branch; guard replaces it)"
)
"""People see it in `git log --all`."""


def prepare(
    git: RepositoryReader,
    worktree: str,
    now: datetime,
    *,
    run: str,
    iteration: int,
    carried: Sequence[DirtyFile] = (),
    like: Sequence[DirtyFile] = (),
) -> BaselineRecorded:
    """Take a baseline and pin it; the caller records the event together with the start of the iteration.

    `carried` are files that an earlier iteration left uncommitted: unchanged since, they are not taken for the user's. `like`
    is what the baseline before had listed.
    """
    refs = read_refs(git)
    taken = BaselineRecorded(
        at=now,
        id=new_id(),
        run=run,
        iteration=iteration,
        worktree=worktree,
        baseline=new_id(),
        **standing_of(git, refs),
        dirty=attribute_files(read_dirty(git, (*carried, *like)).files, carried),
        pin=None,
        pinned=None,
        warnings=(),
    )
    tips = [refs.head, *(refs.names[name] for name in _ordered(refs)), *taken.stash]
    return taken.model_copy(update=_pin(git, [oid for oid in tips if oid], worktree, now))


def standing_of(git: RepositoryReader, refs: Refs) -> dict[str, Any]:
    """Return where the repository stands, as fields of a baseline; without what is uncommitted, and without a pin."""
    names = _ordered(refs)
    return {
        "head": refs.head,
        "tree": tree_of(git, refs.head) if refs.head else None,
        "branch": refs.branch,
        "refs": {name: refs.names[name] for name in names[:MOST_REFS]},
        "refs_omitted": max(0, len(names) - MOST_REFS),
        "stash": read_stash(git.repository, refs.names.get("refs/stash")),
        "shallow": shallow_digest(git.repository),
        "reflogs": reflog_lengths(git.repository),
    }


def _ordered(refs: Refs) -> list[str]:
    return sorted(refs.names, key=lambda name: (not name.startswith(_BRANCHES), name))


def _pin(git: RepositoryReader, tips: list[str], worktree: str, now: datetime) -> dict[str, Any]:
    # A repository that cannot be written to has a baseline without a pin.
    ref = baseline_ref(worktree)
    try:
        oid = pin(git, ref, tips, now, _PIN_SUBJECT.format(worktree)) if tips else None
    except RepositoryProblem as error:
        return {"warnings": (f"guard could not pin the baseline: {error.message}"[:_LONGEST],)}
    return {"pin": ref, "pinned": oid} if oid else {}


def load(store: Store, worktree: str) -> Baseline | None:
    return store.view(BASELINE, worktree)


def from_revision(git: RepositoryReader, revision: str) -> Baseline:
    """Return a baseline that the user names afterwards: HEAD is compared with it, and everything dirty is the iteration's."""
    empty = revision == EMPTY or revision in EMPTY_TREES
    head = None if empty else commit_of(git, revision)
    return Baseline(
        run=UNRECORDED,
        iteration=1,
        at=None,
        baseline=new_id(),
        revision=escape(revision)[:_LONGEST],
        head=head,
        tree=tree_of(git, head) if head else None,
        branch=read_refs(git).branch,
        refs={},
        refs_omitted=0,
        stash=(),
        shallow=shallow_digest(git.repository),
        reflogs={},
        dirty=(),
        pin=None,
        pinned=None,
        warnings=(),
    )


def move_to_revision(recorded: Baseline, named: Baseline) -> Baseline:
    """Make the named revision the baseline of the recorded iteration: what was dirty before stays the user's."""
    kept = ("run", "iteration", "at", "baseline", "dirty", "kept")
    return named.model_copy(update={name: getattr(recorded, name) for name in kept})


def keep_lost(git: RepositoryReader, baseline: Baseline, work: Work, now: datetime) -> str | None:
    """Pin the commits that no ref leads to any more, beside those pinned before; the ref, or None without such commits."""
    if not work.lost_tips:
        return None
    ref = lost_ref(baseline.baseline)
    before = git.line("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}")
    tips = [*work.lost_tips, *([before] if before else [])]
    pin(
        git,
        ref,
        tips,
        now,
        "guard: bookmark that keeps commits which an iteration lost (on no branch)",
    )
    return ref
