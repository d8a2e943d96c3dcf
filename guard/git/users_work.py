"""Find the commits that hold nothing but what the user had left uncommitted before the iteration.

A path that a commit changes is the user's if it has the content there that the baseline had, on disk or staged.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from guard.core.base.paths import unspell
from guard.core.iteration.baseline import Baseline
from guard.core.iteration.events import DirtyFile
from guard.core.work.history import Commit, History
from guard.core.work.leftovers import has_same_content
from guard.git.commits import diff_files
from guard.git.content_hash import ContentReader
from guard.git.named_files import open_root
from guard.git.reader import RepositoryReader
from guard.git.status import without_filters

_MOST_COMPARED = 500
_MOST_ENDS = 50
_MOST_BLOB_BYTES = 64 * 1024 * 1024
_MOST_BYTES = 256 * 1024 * 1024
_MODES = {"file": b"100644", "executable": b"100755", "link": b"120000"}
_LARGE_FILE = b"version https://git-lfs.github.com/spec/"


class _Entry(NamedTuple):
    """What a commit has at a path that it changes."""

    path: bytes
    mode: bytes
    blob: str

    @property
    def is_gone(self) -> bool:
        return not self.blob.strip("0")


def with_users_work(
    git: RepositoryReader, facts: History, baseline: Baseline, own: Iterable[Commit]
) -> History:
    """Add to the facts which of the agent's new commits, and which trees, have nothing but the user's work in them."""
    users = _UsersWork(git, baseline)
    commits = {commit.oid: commit for commit in islice(own, _MOST_COMPARED)}
    if not commits or not users.files:
        return facts
    changes = dict(_changed(git, list(commits), "-c"))
    touching = {oid: found for oid, found in changes.items() if users.are_some_of(found)}
    if not touching:
        return facts
    entries = _without_baselines(git, touching, baseline.head)
    ends = _ends_since(git, facts)
    users.compare(entry for found in (*entries.values(), *ends.values()) for entry in found)
    return replace(
        facts,
        users=frozenset(oid for oid, found in entries.items() if users.are_all(found)),
        users_trees=frozenset(tree for tree, found in ends.items() if users.are_all(found)),
    )


def _changed(
    git: RepositoryReader, lines: Collection[str], *options: str
) -> Iterator[tuple[str, list[_Entry]]]:
    for header, changed in diff_files(git, lines, *options):
        yield header, [_entry(raw, path) for raw, path in changed]


def _entry(raw: bytes, path: bytes) -> _Entry:
    # The modes of each parent and of the commit, then the blobs in the same order.
    words = raw.split(b" ")
    parents = len(words[0]) - len(words[0].lstrip(b":"))
    return _Entry(path, words[parents], words[2 * parents + 1].decode())


def _without_baselines(
    git: RepositoryReader, changes: Mapping[str, list[_Entry]], head: str | None
) -> dict[str, list[_Entry]]:
    """Leave out the entries that the baseline's HEAD has too: an amended commit repeats them."""
    if head is None:
        return dict(changes)
    lines = [f"{oid} {head}" for oid in changes]
    unlike = {oid: {entry.path for entry in found} for oid, found in _changed(git, lines)}
    return {
        oid: [entry for entry in found if entry.path in unlike.get(oid, ())]
        for oid, found in changes.items()
    }


def _ends_since(git: RepositoryReader, facts: History) -> dict[str, list[_Entry]]:
    """Return, for the tree of each ref that moved, what it has otherwise than the commits on which the new ones build."""
    tips = {*facts.names.values(), facts.head or ""} & facts.commits.keys()
    starts = {facts.before_head} if facts.before_head else set()
    if len(facts.around) == 1:
        starts |= facts.around.keys()
    ends = islice(sorted(tips), _MOST_ENDS)
    lines = [f"{tip} {start}" for tip in ends for start in starts]
    found: dict[str, list[_Entry]] = {}
    for tip, entries in _changed(git, lines):
        tree = facts.commits[tip].tree
        if tree not in found or len(entries) < len(found[tree]):
            found[tree] = entries
    return found


@dataclass
class _UsersWork:
    """What the user had left uncommitted at the baseline, beside what commits have at the same paths."""

    git: RepositoryReader
    baseline: Baseline
    same: set[_Entry] = field(default_factory=set)

    def __post_init__(self) -> None:
        users = (file for file in self.baseline.dirty if file.left_by == "user")
        self.files = {unspell(file.path): file for file in users}

    def are_some_of(self, entries: Iterable[_Entry]) -> bool:
        """Tell whether any path is one of the user's, whatever it has there."""
        return any(entry.path in self.files for entry in entries)

    def are_all(self, entries: Collection[_Entry]) -> bool:
        return bool(entries) and self.same.issuperset(entries)

    def compare(self, entries: Iterable[_Entry]) -> None:
        """Find out which of the entries are as the user had them."""
        unsure = set[_Entry]()
        for entry in set(entries):
            file = self.files.get(entry.path)
            if file is None:
                continue
            if _is_surely(file, entry):
                self.same.add(entry)
            elif not entry.is_gone and self._has_mode(file, entry):
                unsure.add(entry)
        self.same |= self._unchanged_on_disk(unsure)
        self.same |= self._with_same_bytes(unsure - self.same)

    def _has_mode(self, file: DirtyFile, entry: _Entry) -> bool:
        if file.kind in ("file", "executable") and not self._keeps_modes:
            return entry.mode in (_MODES["file"], _MODES["executable"])
        return _MODES.get(file.kind) == entry.mode

    @cached_property
    def _keeps_modes(self) -> bool:
        return self.git.line("config", "--type=bool", "core.fileMode") != "false"

    def _unchanged_on_disk(self, entries: Collection[_Entry]) -> set[_Entry]:
        """Return those that git would make of the files on disk, where these are still the user's: with its line ends."""
        root = open_root(self.git.repository.root)
        try:
            contents = ContentReader(root)
            asked = [
                entry
                for entry in entries
                if entry.mode != _MODES["link"]
                and b"\n" not in entry.path
                and _is_as_before(self.files[entry.path], contents)
            ]
        finally:
            os.close(root)
        if not asked:
            return set()
        names = b"".join(
            os.fsencode(self.git.repository.root) + b"/" + entry.path + b"\n" for entry in asked
        )
        git = without_filters(self.git)
        blobs = git.ask("hash-object", "--stdin-paths", stdin=names).decode().split()
        return {entry for entry, blob in zip(asked, blobs, strict=False) if entry.blob == blob}

    def _with_same_bytes(self, entries: Collection[_Entry]) -> set[_Entry]:
        wanted = {entry.blob for entry in entries if self.files[entry.path].content is not None}
        found: dict[str, set[str]] = {}
        for oid, data in _read_blobs(self.git, sorted(wanted)):
            found[oid] = {sha256(data).hexdigest(), *_named_by_pointer(data)}
        return {
            entry
            for entry in entries
            if self.files[entry.path].content in found.get(entry.blob, ())
        }


def _is_surely(file: DirtyFile, entry: _Entry) -> bool:
    if entry.is_gone:
        # A file that is there and untracked was taken out of the index, or the baseline's HEAD would not have it.
        return file.kind == "missing" or file.untracked or (file.staged and file.index is None)
    return entry.blob == file.index


def _is_as_before(file: DirtyFile, contents: ContentReader) -> bool:
    now = contents.identity(unspell(file.path))
    return has_same_content(file, file.model_copy(update=now._asdict()))


def _named_by_pointer(data: bytes) -> Iterator[str]:
    # What git-lfs commits instead of a large file.
    if data.startswith(_LARGE_FILE):
        for line in data.splitlines():
            if line.startswith(b"oid sha256:"):
                yield line.removeprefix(b"oid sha256:").decode(errors="replace")


def _read_blobs(git: RepositoryReader, oids: list[str]) -> Iterator[tuple[str, bytes]]:
    if not oids:
        return
    stdin = "".join(f"{oid}\n" for oid in oids).encode()
    chosen, left = [], _MOST_BYTES
    for line in git.ask("cat-file", "--batch-check", stdin=stdin).decode().splitlines():
        oid, kind, *size = line.split()
        if kind == "blob" and int(size[0]) <= min(_MOST_BLOB_BYTES, left):
            left -= int(size[0])
            chosen.append(oid)
    answer, place = b"", 0
    if chosen:
        answer = git.ask(
            "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in chosen).encode()
        )
    for oid in chosen:
        end = answer.index(b"\n", place)
        length = int(answer[place:end].split()[2])
        yield oid, answer[end + 1 : end + 1 + length]
        place = end + length + 2
