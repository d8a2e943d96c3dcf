"""Read reflogs: how each ref came to where it stands, and what the stash holds.

They tell a commit that was made here from one that was fetched. Their times come from the environment of the writer, so
only their order and their words are used.
"""

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from guard.core.base.first_use import late_pattern
from guard.core.base.paths import spell, unspell
from guard.errors import RepositoryProblem
from guard.git.gitdir_files import file_size, has_reftable, heads, read_portion
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader

_MOST_ENTRIES = 50
_NAMES = ("-r", "-z", "--name-only")
_LINE = late_pattern(
    rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*?(?:<([^>\t]*)>[^\t]*)?(?:\t(.*))?"
)
MADE = late_pattern(
    r"(?:commit(?: \([\w-]+\))?|cherry-pick|revert|am|rebase): "
    r"|(?:rebase|pull)\b.*?\((?:pick|reword|edit|squash|fixup|continue|merge)\)"
    r"|(?:merge|pull)\b.*: (?:Merge made by|In-index merge)"
)
TAKEN_OVER = late_pattern(
    r"cherry-pick|am: |commit \((?:amend|cherry-pick)\)|rebase|pull\b.*\(pick\)"
)
"""The commit may repeat an earlier one."""
MAILED = late_pattern(r"am: ")
FETCHED = late_pattern(r"(?:fetch|pull|remote update)\b")
"""Of a remote-tracking ref: it follows the remote; `update by push` is the other way round."""
_FROM_ELSEWHERE = r"(?:pull\b(?!(?: -\S+)* \.(?:\s|:))|merge FETCH_HEAD\b)"
"""`git pull . BRANCH` brings nothing that was not here."""
FORWARDED = late_pattern(
    rf"fetch\b|push$|{_FROM_ELSEWHERE}.*: Fast-forward|pull\b.*(?:\(start\))?: checkout "
    r"|(?:reset|checkout|branch): .*\bFETCH_HEAD$"
)
"""Of a local ref: it was moved to what had been fetched, or to what another repository pushed."""
PULLED_MERGE = late_pattern(rf"{_FROM_ELSEWHERE}.*: Merge made by")
"""Of a local ref: it merges what had been fetched."""


class Move(NamedTuple):
    """One entry: from where to where a ref moved, and by which command."""

    old: str
    new: str
    words: str
    email: str = ""
    """Of whoever moved it."""

    @property
    def step(self) -> tuple[str, str]:
        """What a branch and the HEAD that is on it have in common: the new commit, and the command."""
        return self.new, self.words.partition(":")[0]

    def is_by(self, command: re.Pattern[str]) -> bool:
        """Tell whether the entry is by such a command, for example one that has `MADE` a commit."""
        return command.match(self.words) is not None


def reflog_lengths(repository: Repository) -> dict[str, int]:
    """Return how long the reflog of each work tree's HEAD is: a place to read on from."""
    return {name: file_size(path.parent / "logs" / "HEAD") for name, path in heads(repository)}


def read_moves_of_heads(
    git: RepositoryReader, places: Mapping[str, int], starts: Mapping[str, str | None]
) -> Iterator[tuple[str, list[Move]]]:
    """Yield what each work tree's HEAD did after its place, by its spelled name; all moves if it has no place."""
    for name, path in heads(git.repository):
        found = read_portion(path.parent / "logs" / "HEAD", places.get(name, 0))
        moves = _parse(found.data) if found else []
        whole = found is not None and found.offset == places.get(name, 0)
        ref = spell(os.fsencode(name))
        if has_reftable(git.repository) or not whole or not _continues(moves, starts.get(ref)):
            moves = moves_after(read_moves(git, ref), {starts.get(ref)})
        yield ref, moves


def _continues(moves: Sequence[Move], start: str | None) -> bool:
    # The moves do not begin where HEAD stood if old entries were expired since.
    return not moves or start is None or moves[0].old == start


def read_moves(git: RepositoryReader, name: str) -> list[Move]:
    # Oldest first.
    if has_reftable(git.repository):
        return read_moves_by_git(git, name)
    repository, ref = git.repository, os.fsdecode(unspell(name))
    folder = repository.common_dir
    if ref == "HEAD":
        folder = repository.git_dir
    elif ref == "main-worktree/HEAD":
        ref = "HEAD"
    if ref.startswith("worktrees/"):
        folder, ref = folder / ref.removesuffix("/HEAD"), "HEAD"
    found = read_portion(folder / "logs" / ref)
    return _parse(found.data) if found else []


def moves_after(moves: Sequence[Move], starts: Container[str | None]) -> list[Move]:
    """Return the moves after the ref last stood at a start; all if it never did."""
    places = [number for number, move in enumerate(moves, 1) if move.new in starts]
    return list(moves[places[-1] :] if places else moves)


def _parse(data: bytes) -> list[Move]:
    found = (_LINE.fullmatch(line) for line in data.split(b"\n"))
    return [
        Move(line[1].decode(), line[2].decode(), _text(line[4]), _text(line[3]))
        for line in found
        if line
    ]


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


def read_moves_by_git(git: RepositoryReader, name: str) -> list[Move]:
    # Git lists the newest first, and not where a move began.
    words = ("log", "--walk-reflogs", "--no-show-signature", "--format=%H%x00%ge%x00%gs")
    answer = git.ask(*words, "--end-of-options", os.fsdecode(unspell(name)), "--", codes=(0, 128))
    moves: list[Move] = []
    for line in reversed(answer.splitlines()):
        oid, email, subject = line.split(b"\0", 2)
        old = moves[-1].new if moves else ""
        moves.append(Move(old, oid.decode(), _text(subject), _text(email)))
    return moves


def read_stash(repository: Repository, tip: str | None) -> tuple[str, ...]:
    """Return the entries of the stash, oldest first; `tip` is where its ref stands."""
    if tip is None:
        return ()
    found = read_portion(repository.common_dir / "logs" / "refs" / "stash")
    entries = [move.new for move in _parse(found.data)] if found else []
    return tuple(entries if tip in entries else [*entries, tip])


def paths_gone_from_stash(git: RepositoryReader, before: Sequence[str]) -> set[str]:
    """Return the paths, spelled, in stash entries that were there before and are gone: popped, or thrown away."""
    now = read_stash(git.repository, git.line("rev-parse", "--quiet", "--verify", "refs/stash"))
    gone = [oid for oid in before if oid not in now]
    found: set[str] = set()
    for oid in gone[-_MOST_ENTRIES:]:
        found |= _paths(git, oid)
    return found


def _paths(git: RepositoryReader, oid: str) -> set[str]:
    # What the entry changes against the commit on which it was made, and the files that it has beside, in a third parent.
    names = b""
    with suppress(RepositoryProblem):
        names += git.ask("diff-tree", *_NAMES, "--no-renames", f"{oid}^1", oid)
        if git.line("rev-parse", "--quiet", "--verify", f"{oid}^3") is not None:
            names += git.ask("ls-tree", *_NAMES, "--full-tree", f"{oid}^3")
    return {spell(name) for name in names.split(b"\0") if name}
