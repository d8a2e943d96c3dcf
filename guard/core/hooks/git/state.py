"""Keep the view of the commits that git's hooks noted in one work tree, and find commits that bypassed the hooks."""

from collections.abc import Sequence
from typing import Any, Literal, assert_never, get_args

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Oid
from guard.core.base.first_use import dataclass
from guard.core.base.text import plural
from guard.core.hooks.events import SpoolName
from guard.core.hooks.git.events import CommitEvent, CommitRecorded, CommitsRewritten, How, Rewrite
from guard.core.log.events import IterationNumber
from guard.core.log.view import Fold, WorktreeView, worktree_view

MOST_COMMITS = 500
MOST_REWRITES = 500
MOST_NAMES = 500


class KnownCommit(Frozen):
    """One commit that a hook noted."""

    at: Instant
    oid: Oid
    previous: Oid | None
    branch: Line | None
    how: How
    verified: bool | None
    run: Id | None
    iteration: IterationNumber | None


class Commits(WorktreeView):
    """The commits of one work tree."""

    schema_: Literal["guard/commits/1"] = Field("guard/commits/1", alias="schema")
    total: Count
    """How many commits hooks ever noted."""
    commits: tuple[KnownCommit, ...]
    rewrites: tuple[Rewrite, ...]
    folded: tuple[SpoolName, ...]
    """The spool files that were recorded last."""

    def known_oids(self) -> frozenset[str]:
        """Return every commit that a hook noted, as made or as rewritten."""
        made = (commit.oid for commit in self.commits)
        return frozenset((*made, *(rewrite.new for rewrite in self.rewrites)))


class CommitsFold(Fold[Commits]):
    document_class = Commits

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._total = 0
        self._commits: list[KnownCommit] = []
        self._rewrites: list[Rewrite] = []
        self._folded: list[str] = []

    def restore(self, document: Commits) -> None:
        self.reached = document.position()
        self._total = document.total
        self._commits = list(document.commits)
        self._rewrites = list(document.rewrites)
        self._folded = list(document.folded)

    def apply(self, event: CommitEvent) -> None:
        match event:
            case CommitRecorded():
                self._total += 1
                fields = {name: getattr(event, name) for name in KnownCommit.model_fields}
                self._commits.append(KnownCommit.model_construct(**fields))
                del self._commits[:-MOST_COMMITS]
            case CommitsRewritten():
                self._rewrites += event.rewrites
                del self._rewrites[:-MOST_REWRITES]
            case _:
                assert_never(event)
        self._folded.append(event.spooled)
        del self._folded[:-MOST_NAMES]

    def contents(self) -> dict[str, Any]:
        return {
            "worktree": self.key,
            "total": self._total,
            "commits": tuple(self._commits),
            "rewrites": tuple(self._rewrites),
            "folded": tuple(self._folded),
        }


COMMITS = worktree_view(
    Commits,
    CommitsFold,
    get_args(CommitEvent),
    "commits",
    b'"type":"commit_recorded"',
    b'"type":"commits_rewritten"',
)


_SHOWN, _SHORT = 3, 10


@dataclass(frozen=True)
class MissedCommits:
    """Commits that bypassed guard's hooks."""

    unverified: tuple[str, ...] = ()
    """Made past guard's `pre-commit` hook, as with `--no-verify`."""
    unrecorded: tuple[str, ...] = ()
    """Noted by no hook."""

    def sentences(self) -> tuple[str, ...]:
        return tuple(
            f"{plural(len(oids), 'commit')} {how}: {_short_list(oids)}"
            for oids, how in (
                (self.unverified, "made past the pre-commit hook (--no-verify)"),
                (self.unrecorded, "made past every hook"),
            )
            if oids
        )


def find_missed(
    view: Commits | None, made: Sequence[str], *, recorded_before: bool
) -> MissedCommits:
    """Find the missed ones among `made`, the commits that were made here, oldest first."""
    # Only a commit after the first that a hook noted can have been missed, unless hooks were installed before all of them.
    known = view.known_oids() if view is not None else frozenset()
    unverified = (
        {commit.oid for commit in view.commits if commit.verified is False} if view else set()
    )
    first = next((place for place, oid in enumerate(made) if oid in known), len(made))
    expected = made if recorded_before else made[first:]
    return MissedCommits(
        unverified=tuple(oid for oid in dict.fromkeys(made) if oid in unverified),
        unrecorded=tuple(oid for oid in dict.fromkeys(expected) if oid not in known),
    )


def _short_list(oids: Sequence[str]) -> str:
    more = " …" if len(oids) > _SHOWN else ""
    return ", ".join(oid[:_SHORT] for oid in oids[:_SHOWN]) + more
