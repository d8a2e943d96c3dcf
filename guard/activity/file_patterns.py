"""Find the files and folders that a setting's patterns name, within bounds and never through a link."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import translate
from pathlib import Path
from time import monotonic

from guard.activity.subject import AgentSubject, TooMuch
from guard.core.activity.settings import NAME_END, fill_patterns
from guard.system.foreign_files import FolderListing, list_folder

_MOST_ENTRIES = 20_000
_WILD = re.compile(r"[*?\[]")

Found = tuple[Path, os.stat_result]


def matching_files(subject: AgentSubject, patterns: str) -> Iterator[Found]:
    """The regular files that the patterns name, unordered; TooMuch if there are more entries than may be listed."""
    for folder, names in _walk_patterns(subject, patterns):
        for name in names.files:
            yield folder / name, names.files[name]


def matching_folders(subject: AgentSubject, patterns: str) -> Iterator[Path]:
    for folder, names in _walk_patterns(subject, patterns):
        for name in names.folders:
            yield folder / name


def newest_first(found: Iterator[Found], most: int) -> Iterator[Found]:
    """The `most` newest files; TooMuch is raised after them."""
    seen: list[Found] = []
    cut: TooMuch | None = None
    try:
        seen.extend(found)
    except TooMuch as error:
        cut = error
    yield from sorted(seen, key=lambda file: file[1].st_mtime, reverse=True)[:most]
    if cut is not None:
        raise cut


def _walk_patterns(subject: AgentSubject, patterns: str) -> Iterator[tuple[Path, FolderListing]]:
    if subject.root is None:
        return
    until, is_cut = monotonic() + subject.settings.collector_seconds, False
    for levels in fill_patterns(patterns, subject.agent.agent_id, subject.agent.task_id):
        walk = _PatternWalk(subject, _MOST_ENTRIES, until)
        yield from walk.walk(subject.root, levels)
        is_cut = is_cut or walk.is_cut
    if is_cut:
        raise TooMuch(f"more than {_MOST_ENTRIES} entries, or too slow")


class _PatternWalk:
    def __init__(self, subject: AgentSubject, entries: int, until: float) -> None:
        self._subject = subject
        self._left = entries
        self._until = until
        self.is_cut = False

    def walk(self, folder: Path, levels: tuple[str, ...]) -> Iterator[tuple[Path, FolderListing]]:
        first, rest = levels[0], levels[1:]
        if not _WILD.search(first):
            if rest and _is_folder(folder / first):
                yield from self.walk(folder / first, rest)
            elif not rest:
                yield folder, _single_entry(folder, first)
            return
        found = self._list_matching(folder, first)
        if not rest:
            yield folder, found
        for name in found.folders if rest else ():
            yield from self.walk(folder / name, rest)

    def _list_matching(self, folder: Path, pattern: str) -> FolderListing:
        nothing = FolderListing(folder, [], {})
        if self._left <= 0 or monotonic() > self._until:
            self.is_cut = True
            return nothing
        found = self._entries(folder) or nothing
        self._left -= found.seen
        self.is_cut = self.is_cut or self._left <= 0
        is_match = re.compile(translate(pattern).replace(NAME_END, "(?![A-Za-z0-9])")).match
        return FolderListing(
            folder,
            [name for name in found.folders if is_match(name)],
            {name: status for name, status in found.files.items() if is_match(name)},
        )

    def _entries(self, folder: Path) -> FolderListing | None:
        # A folder of all agents is listed once for all; the agent's own is not kept.
        subject, root = self._subject, os.fspath(self._subject.root or "")
        if subject.agent.agent_id in os.fspath(folder)[len(root) :]:
            return list_folder(folder, self._left)
        return subject.shared.listing(folder, _MOST_ENTRIES)


def _single_entry(folder: Path, name: str) -> FolderListing:
    found = FolderListing(folder, [], {})
    with suppress(OSError, ValueError):
        status = os.lstat(folder / name)
        if stat.S_ISDIR(status.st_mode):
            found.folders.append(name)
        elif stat.S_ISREG(status.st_mode):
            found.files[name] = status
    return found


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False
