"""What a snapshot and a rescue are, and the decisions in them: what may be committed, where, and under which message."""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import Field

from guard.core.base.fields import Count, Digest, Frozen, Id, Instant, Line, Oid, Seq
from guard.core.base.paths import Spelled, spelled
from guard.core.base.text import plural, visible

SNAPSHOT_MAX_FILE_BYTES = 1024**3
COMMIT_MAX_FILE_BYTES = 50 * 1024**2
KEEP_SNAPSHOTS = 50
KEEP_DAYS = 14.0
MOST_NAMED = 100
"""How many paths a result lists; the manifest in the snapshot has all of them."""
_MOST_IN_A_MESSAGE = 50
LONGEST_LINE = 512


Kind = Literal["baseline", "check", "rescue", "restore", "rollback", "by_hand"]
"""What a snapshot was taken for."""


class Occasion(NamedTuple):
    """Why and when a snapshot is taken."""

    kind: Kind
    at: datetime
    run: str | None = None
    iteration: int | None = None

    @property
    def name(self) -> str:
        """What its id begins with."""
        return f"{self.run}-{self.iteration}" if self.run else self.kind.replace("_", "-")


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
    """Whether all is in it but what is rebuilt anyway (caches, installed packages)."""
    recover: Line
    """A command that brings it back into the folder DIR."""


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

    def with_note(self, note: str) -> "Rescue":
        """The same with one more thing to know."""
        return self.model_copy(update={"detail": cut(f"{self.detail}; {note}")})


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
    kind: Kind
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


def shown(path: bytes) -> str:
    """A path for people, in one line of bounded length."""
    return cut(visible(spelled(path)))


def cut(text: str) -> str:
    """The text, or as much of it as a line holds."""
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


_ESCAPE = b"escaped%"
_HFS_IGNORES = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def refused_by_git(name: bytes) -> bool:
    """Whether git on some system takes this name for its own directory, and so refuses it in a tree."""
    text = _HFS_IGNORES.sub("", name.decode(errors="replace")).lower()
    pieces = (piece.partition(":")[0].rstrip(" .") for piece in text.split("\\"))
    return any(piece in (".git", "git~1") for piece in pieces)


def tree_path(path: bytes) -> bytes:
    """The path under which a file stands in a snapshot: its own, but for names that git refuses."""
    if b".g" not in path.lower() and b"git~1" not in path.lower() and _ESCAPE not in path:
        return path
    return b"/".join(_escaped(name) for name in path.split(b"/"))


def _escaped(name: bytes) -> bytes:
    if not refused_by_git(name) and not name.startswith(_ESCAPE):
        return name
    return _ESCAPE + name.replace(b"%", b"%25").replace(b"\\", b"%5c")


def own_path(place: bytes) -> bytes:
    """The path of the file that stands at this place in a snapshot: the way back from `tree_path`."""
    if _ESCAPE not in place:
        return place
    return b"/".join(_unescaped(name) for name in place.split(b"/"))


def _unescaped(name: bytes) -> bytes:
    if not name.startswith(_ESCAPE):
        return name
    return name.removeprefix(_ESCAPE).replace(b"%5c", b"\\").replace(b"%25", b"%")


_REBUILT = frozenset(
    b"node_modules __pycache__ .mypy_cache .pytest_cache .ruff_cache .tox .nox".split()
)


def rebuilt(name: bytes, inside: Container[bytes]) -> str | None:
    """What a folder is, if a tool makes it anew from what the project says: nobody's work is in it."""
    if name in _REBUILT:
        return "installed packages" if name == b"node_modules" else "a cache"
    if b"pyvenv.cfg" in inside and (b"bin" in inside or b"Scripts" in inside):
        return "a virtual environment"
    if name == b"target" and b"CACHEDIR.TAG" in inside:
        return "a cache"
    return None


def is_relative(path: bytes) -> bool:
    """Whether the path names something below the root, without detours."""
    return bool(path) and not {b"", b".", b".."} & set(path.split(b"/")) and b"\0" not in path


@dataclass(frozen=True)
class State:
    """The repository, as far as it decides whether a commit may be made in it."""

    git_dir: bool = True
    branch: str | None = None
    """The ref that HEAD names, spelled; None if it is detached."""
    baseline_branch: str | None = None
    operation: str | None = None
    """A merge, rebase or the like that is in progress."""
    misplaced: str | None = None
    """The setting by which the repository says that its work tree is elsewhere."""
    conflicts: bool = False
    lock: str | None = None
    index_damaged: bool = False
    elsewhere: bool = False
    """Whether the branch is checked out in another work tree too."""


def obstacle(state: State) -> str | None:
    """Why no commit may be made on the branch, in a word; None if the state is plain."""
    answers: tuple[tuple[bool, str], ...] = (
        (not state.git_dir, "no_git_dir"),
        (state.misplaced is not None, f"{state.misplaced}"),
        (state.operation is not None, f"{state.operation}"),
        (state.index_damaged, "index_damaged"),
        (state.conflicts, "conflicts"),
        (state.branch is None, "detached"),
        (state.branch != state.baseline_branch, "branch_changed"),
        (state.elsewhere, "checked_out_elsewhere"),
        (state.lock is not None, f"{state.lock}"),
    )
    return next((word for holds, word in answers if holds), None)


def snapshot_only(state: State, what: str) -> bool:
    """Whether even a rescue branch would be wrong: the repository is not the one that it seems to be, or not ours alone."""
    return not state.git_dir or what in (state.misplaced, "checked_out_elsewhere", "mass_deletion")


def is_mass_deletion(deleted: int, tracked: int) -> bool:
    """More than 20 files and more than 30 % of those that the last commit has."""
    return deleted > 20 and deleted * 10 > tracked * 3


def full_ref(branch: str | None) -> str | None:
    """A branch by its full name, however it was called."""
    return branch if branch is None or branch.startswith("refs/") else f"refs/heads/{branch}"


def trailer(run: str, iteration: int) -> str:
    """What marks a commit as guard's own."""
    return f"Guard-Rescue: {run}/{iteration}"


def commit_message(subject: str, body: str, run: str, iteration: int) -> bytes:
    """The message of a rescue commit; the trailer ends it."""
    parts = (cleaned(subject) or "chore: rescue uncommitted work", cleaned(body))
    return "\n\n".join([*filter(None, parts), f"{trailer(run, iteration)}\n"]).encode()


def listed(files: Sequence[str]) -> str:
    """As many lines as a message has room for; one more says how many are left out."""
    more = len(files) - _MOST_IN_A_MESSAGE
    rest = [f"and {plural(more, 'more file')}"] if more > 0 else []
    return "\n".join([*files[:_MOST_IN_A_MESSAGE], *rest])


def cleaned(text: str) -> str:
    """The text without what a terminal would obey, and without blanks at its ends."""
    lines = (visible(line.expandtabs(4).rstrip()) for line in text.splitlines())
    return "\n".join(lines).strip()


def capped_lines(skipped: Sequence[Skipped]) -> tuple[Line, ...]:
    """Skipped paths as lines; one more line says how many are not listed."""
    lines = [cut(f"{visible(one.path)[:400]}: {one.why}") for one in skipped[:MOST_NAMED]]
    more = len(skipped) - len(lines)
    return (*lines, f"and {plural(more, 'more path')}") if more else tuple(lines)


def capped_held(held: Sequence[HeldBack]) -> tuple[HeldBack, ...]:
    """The first of what was held back; one more entry says how many are not listed."""
    more = len(held) - MOST_NAMED
    rest = (HeldBack(path="…", why=f"and {plural(more, 'more path')}"),) if more > 0 else ()
    return (*held[:MOST_NAMED], *rest)
