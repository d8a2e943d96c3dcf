"""Record the commits that git's hooks noted, and find the commits that bypassed the hooks."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypedDict

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.first_use import late_pattern
from guard.core.base.text import plural
from guard.core.hooks.git.events import CommitEvent, CommitRecorded, CommitsRewritten
from guard.core.hooks.git.note import HookNote, iteration_of
from guard.core.hooks.git.state import COMMITS, MOST_NAMES, MissedCommits, find_missed
from guard.core.iteration.baseline import Baseline
from guard.core.iteration.run import RUN, Run
from guard.git.reader import RepositoryReader
from guard.git.reflogs import moves_after, read_moves
from guard.hooks.git.note import PASSED
from guard.hooks.spool_file import document_names, is_temporary, read_document, remove_leftovers
from guard.store import Store
from guard.system.private_files import Folder

MOST_AT_ONCE = MOST_NAMES // 2
MOST_MOVES = 200
_MOST_BYTES = 1024 * 1024
_NOTED_MOVE = late_pattern(r"commit\b|cherry-pick\b|revert\b")
"""Moves of HEAD for which git calls `post-commit`: not for merges, nor for patches that it applies."""


def ingest_commits(guard: Invocation, store: Store | None, folder: Folder) -> Iterator[str]:
    """Record all commits that hooks noted in a work tree; yield a complaint about each broken file, which is deleted.

    A process that dies before it deletes the files leaves names that the log has, and they are not recorded again.
    """
    remove_leftovers(folder, guard.clock.now().timestamp(), _is_leftover)
    while names := document_names(folder)[:MOST_AT_ONCE]:
        broken = _record(guard, store or guard.writable_store, folder, names)
        for name in names:
            with suppress(OSError):
                folder.remove(name)
        if broken:
            yield f"{plural(broken, 'file')} in {folder.path} could not be read"
        if set(names) & set(document_names(folder)):
            return  # Something that cannot be deleted, such as a folder.


def find_missed_commits(guard: Invocation, baseline: Baseline | None = None) -> MissedCommits:
    """Find commits that bypassed the hooks since the baseline, or lately; none where no hook ever noted a commit.

    The reflog tells commits made here from fetched ones.
    """
    view = guard.store.view(COMMITS, guard.worktree_key)
    if view is None or not guard.repository.git_dir_exists:
        return MissedCommits()
    git = RepositoryReader(guard.repository, guard.environ)
    moves = read_moves(git, "HEAD")
    has_earlier = False
    if baseline is not None:
        known, since = view.known_oids(), moves_after(moves, {baseline.head})
        has_earlier = any(move.new in known for move in moves[: len(moves) - len(since)])
        moves = since
    made = [move.new for move in moves[-MOST_MOVES:] if _NOTED_MOVE.match(move.words)]
    found = find_missed(view, made, recorded_before=has_earlier)
    previous = {commit.oid: commit.previous for commit in view.commits}
    unverified = [oid for oid in found.unverified if _has_changes(git, oid, previous[oid])]
    return replace(found, unverified=tuple(unverified))


def _is_leftover(name: str) -> bool:
    # A mark of passed checks stays behind when a commit is given up after them.
    return name.startswith(PASSED) or is_temporary(name)


def _record(guard: Invocation, store: Store, folder: Folder, names: list[str]) -> int:
    # Returns how many files are broken.
    with store.change() as change:
        key = guard.worktree_key
        view, run = change.view(COMMITS, key), change.view(RUN, key)
        folded = frozenset(view.folded if view is not None else ())
        notes = {name: _read_note(folder, name) for name in names if name not in folded}
        known = {commit.oid for commit in view.commits} if view is not None else set()
        for name, note in notes.items():
            # Two programs that both call the hook note the same commit.
            if note is not None and (note.oid is None or note.oid not in known):
                known |= {note.oid} if note.oid else set()
                change.append(_event(key, name, note, run))
    return sum(note is None for note in notes.values())


def _read_note(folder: Folder, name: str) -> HookNote | None:
    note = read_document(folder, name, HookNote, _MOST_BYTES)
    return note if note is None or note.event == "post-rewrite" or note.oid else None


class _Origin(TypedDict):
    at: datetime
    id: str
    run: str | None
    iteration: int | None
    worktree: str
    spooled: str


def _event(key: str, name: str, note: HookNote, run: Run | None) -> CommitEvent:
    at = datetime.fromtimestamp(note.seconds, UTC)
    run_id, number = iteration_of(run, note.mark, at) or (None, None)
    origin: _Origin = {
        "at": at,
        "id": new_id(),
        "run": run_id,
        "iteration": number,
        "worktree": key,
        "spooled": name,
    }
    if note.event == "post-rewrite":
        return CommitsRewritten(
            **origin, command=note.command, count=note.count, rewrites=note.pairs()
        )
    assert note.oid is not None
    return CommitRecorded(
        **origin,
        oid=note.oid,
        previous=note.previous,
        branch=note.branch,
        how=note.how,
        verified=note.verified,
    )


def _has_changes(git: RepositoryReader, oid: str, before: str | None) -> bool:
    # Some programs call no hook where nothing is staged.
    if before is None:
        return True
    trees = [
        git.line("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
        for commit in (oid, before)
    ]
    return trees[0] is None or trees[0] != trees[1]
