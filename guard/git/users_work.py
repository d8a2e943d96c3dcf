"""Find the commits that hold nothing but what the user had left uncommitted before the iteration.

A path that a commit changes is the user's if it has the content there that the baseline had, on disk, staged or stashed, or if
what the commit changes there is a part of what the user had changed, or if it has all the content of a file that the user had
left under another name. Ignored files and nested repositories count as they were.
"""

import os
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from guard.core.base.first_use import dataclass
from guard.core.base.paths import unspell
from guard.core.iteration.baseline import Baseline
from guard.core.iteration.facts import DirtyFile
from guard.core.work.history import Commit, History
from guard.core.work.leftovers import has_same_content
from guard.core.work.lines import is_on_the_way
from guard.git.content_hash import ContentReader
from guard.git.dirty import read_nested_heads
from guard.git.ignore_rules import find_ignored_paths
from guard.git.named_files import open_root
from guard.git.reader import RepositoryReader
from guard.git.repeats import PathInCommit, has_content, read_entries
from guard.git.status import without_filters

_MOST_COMPARED = 500
_MOST_ENDS = 50
_MOST_BLOB_BYTES = 64 * 1024 * 1024
_MOST_BYTES = 256 * 1024 * 1024
_MOST_TEXT = 1024 * 1024
_MOST_PARTS = 50
_MOST_STASHED = 50
_MOST_LOOKED_AT = 2000
_CLOCK_SECONDS = 0.05
"""So much a file's time can be behind the clock."""
_GITLINK = b"160000"
_MODES = {"file": b"100644", "executable": b"100755", "link": b"120000"}
_LARGE_FILE = b"version https://git-lfs.github.com/spec/"


def with_users_work(
    git: RepositoryReader, facts: History, baseline: Baseline, own: Iterable[Commit]
) -> History:
    """Add to the facts which of the agent's new commits, and which trees, have nothing but the user's work in them."""
    users = _UsersWork(git, baseline)
    commits = {commit.oid: commit for commit in islice(own, _MOST_COMPARED)}
    if not commits or not users.may_have_any:
        return facts
    changes = dict(read_entries(git, list(commits), "-c"))
    users.look_at(entry for found in changes.values() for entry in found)
    touching = {oid: found for oid, found in changes.items() if users.are_some_of(found)}
    if not touching:
        return facts
    entries = _without_baselines(git, touching, baseline.head)
    ends = _ends_since(git, facts)
    ended = (end.entries for end in ends.values())
    users.compare(entry for found in (*entries.values(), *ended) for entry in found)
    starts = {oid: commits[oid].parents[0] for oid in entries if len(commits[oid].parents) == 1}
    return replace(
        facts,
        users=frozenset(
            oid for oid, found in entries.items() if users.are_all(found, starts.get(oid))
        ),
        users_trees=frozenset(
            tree for tree, end in ends.items() if users.are_all(end.entries, end.start)
        ),
    )


def _without_baselines(
    git: RepositoryReader, changes: Mapping[str, list[PathInCommit]], head: str | None
) -> dict[str, list[PathInCommit]]:
    """Leave out the entries that the baseline's HEAD has too: an amended commit repeats them."""
    if head is None:
        return dict(changes)
    lines = [f"{oid} {head}" for oid in changes]
    unlike = {oid: {entry.path for entry in found} for oid, found in read_entries(git, lines)}
    return {
        oid: [entry for entry in found if entry.path in unlike.get(oid, ())]
        for oid, found in changes.items()
    }


class _End(NamedTuple):
    """What a ref that moved has otherwise than the commit on which the new ones build."""

    start: str
    entries: list[PathInCommit]


def _ends_since(git: RepositoryReader, facts: History) -> dict[str, _End]:
    """Return, for the tree of each ref that moved, what it has otherwise than the commits on which the new ones build."""
    tips = {*facts.names.values(), facts.head or ""} & facts.commits.keys()
    starts = {facts.before_head} if facts.before_head else set()
    if len(facts.around) == 1:
        starts |= facts.around.keys()
    ends = islice(sorted(tips), _MOST_ENDS)
    found: dict[str, _End] = {}
    chosen = list(ends)
    for start in sorted(starts):
        for tip, entries in read_entries(git, [f"{tip} {start}" for tip in chosen]):
            tree = facts.commits[tip].tree
            if tree not in found or len(entries) < len(found[tree].entries):
                found[tree] = _End(start, entries)
    return found


@dataclass
class _UsersWork:
    """What the user had left uncommitted at the baseline, beside what commits have at the same paths."""

    git: RepositoryReader
    baseline: Baseline
    same: set[PathInCommit] = field(default_factory=set)
    """Entries that are as the user had them."""
    stashed: dict[PathInCommit, str] = field(default_factory=dict)
    """Entries of the stash, each with the commit on which it was made."""
    moved: set[PathInCommit] = field(default_factory=set)
    """Entries at new paths with all the content of a file that the user had left, under its old name or another."""
    old: dict[bytes, str] = field(default_factory=dict)
    """Ignored files that are older than the baseline and unchanged since, each with its blob."""
    left: int = _MOST_PARTS
    """How many files may still be compared line by line."""

    def __post_init__(self) -> None:
        users = (file for file in self.baseline.dirty if file.left_by == "user")
        self.files = {unspell(file.path.removesuffix("/")): file for file in users}

    @property
    def _is_first(self) -> bool:
        # Later on, what is in the stash or ignored can be what an earlier iteration left there.
        return self.baseline.iteration == 1 and self.baseline.revision is None

    @property
    def may_have_any(self) -> bool:
        return bool(self.files) or (self._is_first and self.baseline.at is not None)

    def look_at(self, entries: Iterable[PathInCommit]) -> None:
        """Find out what the user had at the paths of these, in the stash or ignored, or under other names."""
        entries = set(entries)
        self.moved = self._find_moved(entry for entry in entries if entry.path not in self.files)
        if not self._is_first:
            return
        if self.baseline.stash:
            self.stashed = dict(_read_stashed(self.git, self.baseline.stash[-_MOST_STASHED:]))
        self.old = self._find_old(
            entry for entry in entries if entry.path not in self.files and not entry.is_gone
        )

    def _find_moved(self, entries: Iterable[PathInCommit]) -> set[PathInCommit]:
        users = [file for file in self.files.values() if file.kind in ("file", "executable")]
        contents = {file.content for file in users} - {None, sha256(b"").hexdigest()}
        found = list(islice((entry for entry in entries if has_content(entry)), _MOST_LOOKED_AT))
        wanted = sorted({entry.blob for entry in found if entry.mode != _GITLINK})
        if not contents or not wanted:
            return set()
        sizes = {int(file.stamp.partition(":")[0]) for file in users}
        theirs = {
            oid
            for oid, data in _read_blobs(self.git, wanted, sizes=sizes)
            if sha256(data).hexdigest() in contents
        }
        return {entry for entry in found if entry.blob in theirs}

    def _find_old(self, entries: Iterable[PathInCommit]) -> dict[bytes, str]:
        began = self.baseline.at
        if began is None:
            return {}
        root = open_root(self.git.repository.root)
        try:
            contents, until = ContentReader(root), began.timestamp() - _CLOCK_SECONDS
            found = {
                entry.path: entry.blob
                for entry in islice(entries, _MOST_LOOKED_AT)
                if _was_there(entry.path, root, until)
                and contents.blob(entry.path, entry.blob) == entry.blob
            }
        finally:
            os.close(root)
        if not found:
            return {}
        git = self.git.with_variable("GIT_LITERAL_PATHSPECS", "0")
        ignored = find_ignored_paths(git.ask, found).rules
        there = self._blobs_at(self.baseline.head, ignored)
        return {path: found[path] for path in ignored if path not in there}

    def are_some_of(self, entries: Iterable[PathInCommit]) -> bool:
        """Tell whether any path is one of the user's, whatever it has there."""
        stashed = {entry.path for entry in self.stashed}
        return any(
            entry.path in self.files
            or entry.path in self.old
            or entry.path in stashed
            or entry in self.moved
            for entry in entries
        )

    def are_all(self, entries: Collection[PathInCommit], start: str | None) -> bool:
        """Tell whether all that a commit has otherwise than `start` is the user's, whole or in part."""
        rest = set(entries) - self.same
        popped = rest & self.stashed.keys()
        if not entries or (popped and not any(has_content(entry) for entry in popped)):
            return False
        rest -= popped
        return not rest or (start is not None and self._are_parts(rest, start))

    def _are_parts(self, entries: Collection[PathInCommit], start: str) -> bool:
        """Tell whether each change to these files is a part of what the user had changed there."""
        if len(entries) > self.left or any(entry.is_gone for entry in entries):
            return False
        ends = {entry: list(self._versions(entry)) for entry in entries}
        if not all(ends.values()):
            return False
        self.left -= len(entries)
        paths = [entry.path for entry in entries]
        befores = self._blobs_at(start, paths)
        blobs = {entry.blob for entry in entries} | set(befores.values())
        starts: dict[str | None, dict[bytes, str]] = {}
        for versions in ends.values():
            for base, _, blob in versions:
                starts[base] = starts.get(base) or self._blobs_at(base, paths)
                blobs |= {blob or "", *starts[base].values()}
        texts = {
            blob: data.splitlines(keepends=True)
            for blob, data in _read_blobs(self.git, sorted(filter(None, blobs)), _MOST_TEXT)
            if b"\0" not in data
        }

        def lines(blob: str | None) -> list[bytes] | None:
            return [] if blob is None else texts.get(blob)

        def is_part(entry: PathInCommit) -> bool:
            for base, data, blob in ends[entry]:
                end = lines(blob) if data is None else data.splitlines(keepends=True)
                begin = lines(starts[base].get(entry.path))
                before, after = lines(befores.get(entry.path)), lines(entry.blob)
                if begin is None or before is None or after is None or end is None:
                    continue
                if is_on_the_way(begin, before, after, end):
                    return True
            return False

        return all(is_part(entry) for entry in entries)

    def _versions(
        self, entry: PathInCommit
    ) -> Iterator[tuple[str | None, bytes | None, str | None]]:
        """Yield what the user had there: the commit it builds on, and its bytes or its blob."""
        file = self.files.get(entry.path)
        if file is not None and self._has_mode(file, entry):
            if file.index is not None:
                yield self.baseline.head, None, file.index
            data = self._read_as_before(file, entry.path)
            if data is not None and b"\0" not in data:
                yield self.baseline.head, data, None
        for known, base in self.stashed.items():
            if (known.path, known.mode) == (entry.path, entry.mode):
                yield base, None, known.blob

    def _read_as_before(self, file: DirtyFile, path: bytes) -> bytes | None:
        root = open_root(self.git.repository.root)
        try:
            if file.kind not in ("file", "executable"):
                return None
            if not _is_as_before(file, ContentReader(root)):
                return None
            place = os.path.join(os.fsencode(self.git.repository.root), path)
            with open(place, "rb") as content:
                return content.read(_MOST_TEXT + 1)[:_MOST_TEXT]
        except OSError:
            return None
        finally:
            os.close(root)

    def _blobs_at(self, commit: str | None, paths: Iterable[bytes]) -> dict[bytes, str]:
        """Return the blobs that a commit has at these paths."""
        asked = [path for path in paths if b"\n" not in path]
        if commit is None or not asked:
            return {}
        stdin = b"".join(b"%s:%s\n" % (commit.encode(), path) for path in asked)
        answer = self.git.ask("cat-file", "--batch-check=%(objectname)", stdin=stdin)
        found = zip(asked, answer.decode(errors="replace").splitlines(), strict=False)
        return {path: line for path, line in found if not line.endswith(" missing")}

    def compare(self, entries: Iterable[PathInCommit]) -> None:
        """Find out which of the entries are as the user had them."""
        unsure = set[PathInCommit]()
        nested = set[PathInCommit]()
        for entry in set(entries):
            file = self.files.get(entry.path)
            if file is None:
                if self.old.get(entry.path) == entry.blob:
                    self.same.add(entry)
            elif _is_surely(file, entry):
                self.same.add(entry)
            elif file.kind == "repository" and entry.mode == _GITLINK:
                nested.add(entry)
            elif not entry.is_gone and self._has_mode(file, entry):
                unsure.add(entry)
        self.same |= self.moved | self._unchanged_nested(nested)
        self.same |= self._unchanged_on_disk(unsure)
        self.same |= self._with_same_bytes(unsure - self.same)

    def _unchanged_nested(self, entries: Collection[PathInCommit]) -> set[PathInCommit]:
        heads = dict(read_nested_heads(self.git, {entry.path for entry in entries}))
        return {
            entry
            for entry in entries
            if entry.path in heads
            and heads[entry.path] == (self.files[entry.path].content, entry.blob)
        }

    def _has_mode(self, file: DirtyFile, entry: PathInCommit) -> bool:
        if file.kind in ("file", "executable") and not self._keeps_modes:
            return entry.mode in (_MODES["file"], _MODES["executable"])
        return _MODES.get(file.kind) == entry.mode

    @cached_property
    def _keeps_modes(self) -> bool:
        return self.git.line("config", "--type=bool", "core.fileMode") != "false"

    def _unchanged_on_disk(self, entries: Collection[PathInCommit]) -> set[PathInCommit]:
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

    def _with_same_bytes(self, entries: Collection[PathInCommit]) -> set[PathInCommit]:
        wanted = {entry.blob for entry in entries if self.files[entry.path].content is not None}
        found: dict[str, set[str]] = {}
        for oid, data in _read_blobs(self.git, sorted(wanted)):
            found[oid] = {sha256(data).hexdigest(), *_named_by_pointer(data)}
        return {
            entry
            for entry in entries
            if self.files[entry.path].content in found.get(entry.blob, ())
        }


def _is_surely(file: DirtyFile, entry: PathInCommit) -> bool:
    if entry.is_gone:
        # A file that is there and untracked was taken out of the index, or the baseline's HEAD would not have it.
        return file.kind == "missing" or file.untracked or (file.staged and file.index is None)
    return entry.blob == file.index


def _was_there(path: bytes, root: int, until: float) -> bool:
    # By the time of the last change of any kind, which no program can set.
    try:
        return os.stat(path, dir_fd=root, follow_symlinks=False).st_ctime < until
    except (OSError, ValueError):
        return False


def _read_stashed(git: RepositoryReader, oids: Sequence[str]) -> Iterator[tuple[PathInCommit, str]]:
    """Yield what stash entries have on disk, staged and untracked, each with the commit on which the entry was made."""
    stdin = "".join(f"{oid}\n" for oid in oids).encode()
    answer = git.ask("rev-list", "--no-walk=unsorted", "--parents", "--stdin", stdin=stdin)
    bases: dict[str, str] = {}
    lines: list[str] = []
    for line in answer.decode().splitlines():
        oid, base, *parents = [*line.split(), "", ""]
        staged, *untracked = [parent for parent in parents if parent] or [""]
        if staged:
            lines += [f"{oid} {base}", f"{staged} {base}", *untracked]
            bases |= dict.fromkeys((oid, staged, *untracked), base)
    for oid, entries in read_entries(git, lines):
        yield from ((entry, bases[oid]) for entry in entries)


def _is_as_before(file: DirtyFile, contents: ContentReader) -> bool:
    now = contents.identity(unspell(file.path))
    return has_same_content(file, file.model_copy(update=now._asdict()))


def _named_by_pointer(data: bytes) -> Iterator[str]:
    # What git-lfs commits instead of a large file.
    if data.startswith(_LARGE_FILE):
        for line in data.splitlines():
            if line.startswith(b"oid sha256:"):
                yield line.removeprefix(b"oid sha256:").decode(errors="replace")


def _read_blobs(
    git: RepositoryReader,
    oids: list[str],
    most: int = _MOST_BLOB_BYTES,
    sizes: Container[int] | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Yield the blobs that are not too large, and of one of the sizes where some are named."""
    if not oids:
        return
    stdin = "".join(f"{oid}\n" for oid in oids).encode()
    chosen, left = [], _MOST_BYTES
    for line in git.ask("cat-file", "--batch-check", stdin=stdin).decode().splitlines():
        oid, kind, *size = line.split()
        if kind != "blob" or (sizes is not None and int(size[0]) not in sizes):
            continue
        if int(size[0]) <= min(most, left):
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
