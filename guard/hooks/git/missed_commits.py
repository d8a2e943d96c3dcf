"""Commits that came past guard's hooks: those that the reflog has beside those that the hooks told of.

The reflog tells what was made here from what was fetched; merges and patches that git applies call no `post-commit`.
"""

import re
from dataclasses import replace

from guard.context.invocation import Invocation
from guard.core.hooks.git.missed_commits import Noticed, notice
from guard.core.hooks.git.state import COMMITS
from guard.git.reader import RepositoryReader
from guard.git.reflogs import Move, after, moves_of
from guard.iteration.baseline import Baseline

MOST_MOVES = 200
_TOLD_OF = re.compile(r"commit\b|cherry-pick\b|revert\b")


def noticed(guard: Invocation, baseline: Baseline | None = None) -> Noticed:
    """What came past the hooks since the baseline, or lately; nothing where no hook ever told of a commit."""
    view = guard.store.view(COMMITS, guard.worktree_key)
    if view is None or not guard.repository.git_dir_exists:
        return Noticed()
    git = RepositoryReader(guard.repository, guard.environ)
    moves = moves_of(git, "HEAD")
    earlier = False
    if baseline is not None:
        known, began = view.known(), after(moves, {baseline.head})
        earlier = any(move.new in known for move in moves[: len(moves) - len(began)])
        moves = began
    made = [move.new for move in moves[-MOST_MOVES:] if _calls_a_hook(move)]
    found = notice(view, made, recorded_before=earlier)
    befores = {one.oid: one.previous for one in view.commits}
    unverified = [oid for oid in found.unverified if _brings_something(git, oid, befores[oid])]
    return replace(found, unverified=tuple(unverified))


def _brings_something(git: RepositoryReader, oid: str, before: str | None) -> bool:
    """Whether it has other files than HEAD had before: some programs call no hook where nothing is staged."""
    if before is None:
        return True
    trees = [
        git.line("rev-parse", "--verify", "--quiet", f"{one}^{{tree}}") for one in (oid, before)
    ]
    return trees[0] is None or trees[0] != trees[1]


def _calls_a_hook(move: Move) -> bool:
    return _TOLD_OF.match(move.words) is not None
