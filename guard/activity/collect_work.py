"""Collect signs of an agent's work: commits, test runs, changed files, files that were read."""

import os
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from guard.activity.file_patterns import matching_files, matching_folders
from guard.activity.subject import AgentSubject, PartialTrouble, Sign, TooMuch
from guard.core.activity.assess import CLOCK_SKEW
from guard.core.activity.sources import SourceName
from guard.git.authors import AuthoredCommit, list_commits_since
from guard.system.foreign_files import BoundedWalk, FolderListing

_MOST_ENTRIES, _MOST_DEPTH = 20_000, 16
_SKIPPED = frozenset(
    {
        ".git",
        "inbox",
        "node_modules",
        "__pycache__",
        ".venv",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
    }
)


def commits(subject: AgentSubject) -> Iterator[Sign]:
    """Commits that name the agent, or that only its own branches have; all of HEAD where it works alone."""
    if subject.root is None:
        return
    period, agent = subject.period, subject.agent.agent_id
    for commit in subject.shared.commits(subject.root, period, head=subject.is_alone):
        if subject.is_alone or commit.is_of(agent):
            yield subject.signal("GIT_COMMIT", commit.seconds, _title(commit))
    own = subject.shared.branches_of(agent, subject.root, period)
    if own:
        names = subject.shared.branches(subject.root, period)
        others = [name for name in names if name not in own]
        git = period.reader(subject.root)
        found = list_commits_since(git, subject.since, only=own, without=others)
        yield from (
            subject.signal("GIT_COMMIT", commit.seconds, _title(commit)) for commit in found
        )


def _title(commit: AuthoredCommit) -> str:
    return f"{commit.oid[:12]} {commit.subject}"


def runs_of_tests(subject: AgentSubject) -> Iterator[Sign]:
    """Test runs under guard, and traces of test runners in a work tree where the agent works alone."""
    last = subject.agent.last_test
    if last is not None:
        yield subject.signal("TEST_EXECUTION", last.at.timestamp(), "under guard")
    if subject.root is None or not subject.is_alone:
        return
    for run in subject.shared.test_runs(subject.root, subject.period):
        yield subject.signal("TEST_EXECUTION", run.at.timestamp(), f"{run.source}: {run.detail}")


def changed_files(subject: AgentSubject) -> Iterator[Sign]:
    """The newest change in each folder of the agent, or in a work tree where it works alone."""
    yield from _newest_signs(_own_folders(subject), subject, "FILE_MODIFICATION", "st_mtime")


def read_files(subject: AgentSubject) -> Iterator[Sign]:
    own = matching_folders(subject, subject.settings.workspace_folders)
    yield from _newest_signs(own, subject, "WORKSPACE_ACCESS", "st_atime")


def _newest_signs(
    roots: Iterable[Path], subject: AgentSubject, source: SourceName, time: str
) -> Iterator[Sign]:
    for root in roots:
        try:
            found = _newest_file(root, subject, time, set(_files_of_other_sources(subject)))
        except TooMuch as error:  # The other folders still count.
            yield PartialTrouble(str(error))
            continue
        if found is not None:
            yield subject.signal(source, *found)


def _files_of_other_sources(subject: AgentSubject) -> Iterator[Path]:
    # One file must not be a sign of two sources.
    settings = subject.settings
    for patterns in (settings.status_files, settings.devlog_files, settings.inbox_files):
        with suppress(TooMuch):
            yield from (path for path, _ in matching_files(subject, patterns))


def _own_folders(subject: AgentSubject) -> Iterator[Path]:
    if subject.is_alone and subject.root is not None:
        yield subject.root
    else:
        yield from matching_folders(subject, subject.settings.workspace_folders)


def _newest_file(
    root: Path, subject: AgentSubject, time: str, left_out: Container[Path] = ()
) -> tuple[float, str] | None:
    """The newest time of a file below a folder, not in the future, and the file's name."""
    limit, guard_folder = subject.settings.collector_seconds, subject.guard_folder
    walk = BoundedWalk(
        root,
        lambda folder: _folders_to_enter(folder, root, guard_folder),
        _MOST_ENTRIES,
        _MOST_DEPTH,
        limit,
    )
    now = subject.now_seconds + CLOCK_SKEW.total_seconds()
    best: tuple[float, str] | None = None
    for listing in walk:
        if _is_nested(listing, root):
            continue
        for name, status in listing.files.items():
            seconds: float = getattr(status, time)
            if seconds > now or (best is not None and seconds <= best[0]):
                continue
            path = listing.folder / name
            if path not in left_out:
                best = seconds, os.fspath(path.relative_to(root))
    if not walk.whole and (best is None or best[0] < subject.counts_since.timestamp()):
        raise TooMuch(f"{root.name}: too many files, or too deep, to look through")
    return best


def _folders_to_enter(listing: FolderListing, root: Path, guard_folder: Path | None) -> list[str]:
    """All folders but caches, the inbox, other work trees and guard's own state."""
    if _is_nested(listing, root):
        return []
    names = [name for name in listing.folders if name not in _SKIPPED]
    return [name for name in names if listing.folder / name != guard_folder]


def _is_nested(listing: FolderListing, root: Path) -> bool:
    return listing.folder != root and (".git" in listing.files or ".git" in listing.folders)
