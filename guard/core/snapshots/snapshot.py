"""What the log and the shadow repository record of a snapshot and of a rescue."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import Field

from guard.core.base.fields import Count, Digest, Frozen, Id, Instant, Line, Oid, Seq
from guard.core.base.paths import Spelled
from guard.core.base.text import escape, fit_line, plural

_MORE = "…"
MOST_NAMED = 100
"""How many paths a result lists; the manifest in the snapshot has all of them."""


SnapshotKind = Literal["baseline", "check", "rescue", "restore", "rollback", "landing", "by_hand"]
"""What a snapshot was taken for."""


class Occasion(NamedTuple):
    """Why and when a snapshot is taken."""

    kind: SnapshotKind
    at: datetime
    run: str | None = None
    iteration: int | None = None

    @property
    def name(self) -> str:
        """The beginning of the snapshot's id."""
        return f"{self.run}-{self.iteration}" if self.run else self.kind.replace("_", "-")


_OUT_OF_REACH = ("nested_repository", "filter", "encoding", "unjudged")


class HeldBack(Frozen):
    """A path that was not committed; its bytes are in the snapshot, unless they could not be read."""

    path: Line
    why: Line


class Snapshot(Frozen):
    """The work tree as it was, byte for byte, in the shadow repository."""

    id: Id
    ref: Line
    files: Count
    skipped: tuple[Line, ...]
    """What is not in it, and why; at most as many as a result lists."""
    whole: bool
    """Whether all is in it but what git ignores in folders that a tool rebuilds (caches, installed packages)."""
    recover: Line
    """A command that brings it back into the folder DIR."""

    @property
    def words(self) -> str:
        """What can be said of the work tree: that it is safe, only if all of it is in the snapshot."""
        return "the work tree is safe" if self.whole else "the work tree is safe, but not all of it"


class Anchor(NamedTuple):
    """What a snapshot remembers of the log."""

    snapshot: str
    at: datetime
    seq: int
    hash: str


class PlannedCommit(Frozen):
    """What one commit of a rescue says, and the paths in it; no more than a result lists."""

    subject: Line
    files: Count
    paths: tuple[Line, ...]


class Rescue(Frozen):
    """What became of the work that an iteration left uncommitted."""

    commits: tuple[Oid, ...]
    snapshot: Snapshot | None
    held_back: tuple[HeldBack, ...]
    branch: Line | None
    """The rescue branch, where the commits are not on the branch of the work tree."""
    reason: Line
    """`rescued`, `on_branch`, `planned`, `nothing`, `held_back`, `alive`, `refused`, or `not_plain:` and what is not."""
    detail: Line
    plan: tuple[PlannedCommit, ...] = ()
    """The commits, in their order: made, or planned only."""
    ticked: tuple[Line, ...] = ()
    """Tasks whose boxes were ticked in the task file."""

    @property
    def saved_all(self) -> bool:
        """Whether all that was left is in commits, on the branch of the work tree or on a rescue branch."""
        return bool(self.commits) and not self.held_back

    @property
    def has_failed(self) -> bool:
        """Whether guard or git failed, so that the result says nothing of the agent."""
        return self.reason in ("refused", "not_plain:git", "not_plain:obstacle")

    @property
    def is_out_of_reach(self) -> bool:
        """Whether there was nothing but work that guard does not commit by itself, as in a submodule."""
        named = [held for held in self.held_back if held.path != _MORE]
        return (
            self.reason == "held_back"
            and bool(named)
            and all(held.why.startswith(_OUT_OF_REACH) for held in named)
        )

    def with_note(self, note: str) -> "Rescue":
        return self.model_copy(update={"detail": fit_line(f"{self.detail}; {note}")})


class Skipped(Frozen):
    """A path that is not in the snapshot."""

    path: Spelled
    why: Line


class LogHead(Frozen):
    """A record of the log, by its number and its hash."""

    seq: Seq
    hash: Digest


class Manifest(Frozen):
    """What git's trees cannot say of a snapshot. Paths are relative to the work tree."""

    schema_: Literal["guard/manifest/1"] = Field("guard/manifest/1", alias="schema")
    id: Id
    at: Instant
    kind: SnapshotKind
    run: Id | None
    iteration: Seq | None
    worktree: Spelled
    """Where the work tree was."""
    log: LogHead | None
    """The last record of the log by then; null if there was none. A log that was rewritten since has another one there."""
    files: Count
    bytes: Count
    whole: bool
    skipped: tuple[Skipped, ...]
    modes: dict[Line, tuple[Spelled, ...]]
    """Permission bits, in octal, of files that have others than 644 and 755."""
    empty_folders: tuple[Spelled, ...]
    nested: tuple[Spelled, ...]
    """Folders that are repositories of their own."""
    escaped: dict[Spelled, Spelled]
    """Where a name stands that git refuses in a tree, and the path that it belongs to."""


def list_skipped(skipped: Sequence[Skipped]) -> tuple[Line, ...]:
    """Skipped paths as lines; one more line says how many are not listed."""
    lines = [fit_line(f"{escape(entry.path)[:400]}: {entry.why}") for entry in skipped[:MOST_NAMED]]
    more = len(skipped) - len(lines)
    return (*lines, f"and {plural(more, 'more path')}") if more else tuple(lines)


def list_held_back(held: Sequence[HeldBack]) -> tuple[HeldBack, ...]:
    """The first of what was held back; one more entry says how many are not listed."""
    more = len(held) - MOST_NAMED
    rest = (HeldBack(path=_MORE, why=f"and {plural(more, 'more path')}"),) if more > 0 else ()
    return (*held[:MOST_NAMED], *rest)
