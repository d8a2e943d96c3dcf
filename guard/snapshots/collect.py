"""Read the project into the stream of a snapshot, with a note on everything that does not go in."""

import os
import stat
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from guard.core.base.first_use import late_pattern
from guard.core.base.paths import spell
from guard.core.base.text import fit_line
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.paths import folders_above, is_relative, tree_path
from guard.core.snapshots.snapshot import LogHead, Manifest, Occasion, Skipped
from guard.errors import GuardError
from guard.snapshots.fast_import import FolderDelta, ImportStream
from guard.snapshots.git_state import GitStateSaver
from guard.snapshots.project import Project
from guard.snapshots.read_file import Content, Large, read_entry
from guard.snapshots.rebuilt import LeftOut, RebuiltFolders
from guard.snapshots.shadow import Shadow
from guard.snapshots.stat_cache import RulesMark, StatCache, is_same_file
from guard.snapshots.walk import FOLDER, SnapshotWalk, WalkedFolder, WalkEntry, open_path
from guard.store.lock import read_mark
from guard.system.private_files import Folder, close

_USUAL_MODES = (0o100644, 0o100755)
_WALK_SHARE = 0.6
_LARGE_BYTES_PER_SECOND = 40e6
UNSTEADY = "changed while it was read"
_NO_TIME = "time limit: nothing from here on"
_TOO_LARGE = "time limit: too large for what is left of it"
_OFTEN = 256
"""So many files are read between two words on how far it is."""
_MEGABYTE = 1_000_000
_MOST_KEPT_ON = 10_000
_MOST_HIDDEN_FILES = 20_000
_MOST_HIDDEN_BYTES = 1_000_000_000
_TOO_MUCH_HIDDEN = (
    "hidden by a rule that is newer than the baseline, and from here on too much to keep"
)
_MAY_BE_ESCAPED = late_pattern(rb"\.[gG]|[gG][iI][tT]~1|escaped%")


class SnapshotDraft:
    """One snapshot while it is made."""

    def __init__(
        self,
        project: Project,
        shadow: Shadow,
        stream: ImportStream,
        before: StatCache,
        wanted: Sequence[bytes],
        limits: SnapshotLimits,
        rules: RulesMark | None = None,
        trusts_rules: bool = True,
    ) -> None:
        self._workspace = shadow.path.parent
        place = os.stat(self._workspace)
        self._own = frozenset({(place.st_dev, place.st_ino)})
        self._deadline = project.deadline.part(_WALK_SHARE)
        self.walk = SnapshotWalk(project.repository.root, self._own, self._deadline)
        looked = time.time_ns()
        self.worktree = FolderDelta(stream, b"worktree/", before.worktree, looked)
        self.nested = FolderDelta(stream, b"nested/", before.nested, looked)
        self.modules = FolderDelta(stream, b"", before.modules, looked)
        self.absent: set[bytes] = set()
        self.unread: dict[bytes, str] = self.walk.not_read
        self._unread_of_git: dict[bytes, str] = {}
        self.folders: set[bytes] = set()
        self.not_needed: dict[bytes, str] = {}
        self._project, self._shadow, self._stream = project, shadow, stream
        self._limits, self._rules, self._trusts_rules = limits, rules, trusts_rules
        self._most_bytes = limits.settings.snapshot_max_file_bytes
        self._put_aside = GitStateSaver(project, shadow, stream, self._unread_of_git)
        self._wanted = frozenset(path for path in wanted if is_relative(path))
        self._large: dict[bytes, None] = {}
        self._walked: set[bytes] = set()
        self._modes: dict[str, list[str]] = defaultdict(list)
        self._escaped: dict[str, str] = {}
        self._bytes = 0
        self._read = 0

    def collect(self) -> None:
        """Collect everything, small files first: should the time run out, most of the work is saved."""
        self._limits.tell("saving the work tree")
        for found in self.walk.folders():
            self._look_into(found)
        self._collect_rebuilt()
        for path in sorted(self._wanted):
            self._fetch_missing(path)
        self._put_aside.keep_staged()
        self._put_aside.keep_stashes()
        self._put_aside.keep_autostashes()
        self._put_aside.keep_operation()
        root, git_dir = self.walk.root, self._project.repository.git_dir
        for path in self.walk.nested:
            self._look_into_git(root, path + b"/.git", self.nested)
        if b".git" not in self._unread_of_git:
            self._look_into_git(git_dir, b"modules", self.modules)
        for path in self._large:
            self._fetch(path, large=True)
        for table in self.tables:
            table.sweep()

    @property
    def tables(self) -> tuple[FolderDelta, FolderDelta, FolderDelta]:
        return self.worktree, self.nested, self.modules

    def _look_into(self, found: WalkedFolder) -> None:
        """Collect one folder. A file that is as it was takes no more than a look: with very many files nothing else counts."""
        before, now, prefix = self.worktree.before, self.worktree.now, found.prefix
        late = False
        plain = not _MAY_BE_ESCAPED.search(prefix + b"/".join(found.files))
        for name, status in found.files.items():
            path = prefix + name
            known = before.get(path)
            if known is None or not is_same_file(known, status):
                if not late and self._deadline.has_passed():
                    self.unread[path], late = _NO_TIME, True
                if not late:
                    self._keep(found.entry(name, status))
            else:
                now[path] = known
                if plain and status.st_mode in _USUAL_MODES:
                    self._bytes += status.st_size
                else:
                    self._note(path, status)
        self._walked.add(prefix[:-1])
        self._tell_files()

    def _tell_files(self) -> None:
        self._limits.tell(f"saving the work tree; {len(self.worktree.now)} files")

    def _keep(self, entry: WalkEntry) -> None:
        found = read_entry(entry, self._most_bytes)
        if isinstance(found, Large):
            close(found.descriptor)
            self._large[entry.path] = None
        else:
            self._put(entry.path, found)
        self._read += 1
        if self._read % _OFTEN == 0:
            self._tell_files()

    def _put(self, path: bytes, found: Content | str | None) -> None:
        if isinstance(found, str):
            self.unread[path] = found
        elif found is not None:
            self.worktree.put(path, found)
            self._note(path, found.status)
            if not found.steady:
                self.unread[path] = UNSTEADY

    def _note(self, path: bytes, status: os.stat_result) -> None:
        self._bytes += status.st_size
        if status.st_mode not in _USUAL_MODES and not stat.S_ISLNK(status.st_mode):
            self._modes[f"{stat.S_IMODE(status.st_mode):o}"].append(spell(path))
        if _MAY_BE_ESCAPED.search(path) and (place := tree_path(path)) != path:
            self._escaped[spell(place)] = spell(path)

    def _collect_rebuilt(self) -> None:
        """Collect what is work in folders that a tool may rebuild: all that git lists, or does not ignore by an old rule."""
        folders = self.walk.rebuilt
        if not folders:
            return
        known = (self._project, self._shadow, self.worktree.files)
        looking = RebuiltFolders(*known, self._rules, self._trusts_rules)
        left = looking.find_left_out(folders, self.walk.nested)
        self._unread_of_git.update(left.unread)
        for folder, why in folders.items():
            if folder in left.paths:
                self.not_needed[folder] = why
            else:
                self._collect_folder(folder, left.paths | left.hidden)
                inside = (path for path in left.paths if path.startswith(folder + b"/"))
                self.not_needed.update(dict.fromkeys(inside, why))
        for folder in left.submodules:
            self._collect_folder(folder, frozenset())
        before = looking.find_at_baseline(self._find_kept_before(left))
        for path in sorted(left.tracked | before):
            self._fetch_missing(path)
        self._collect_hidden(left.hidden)

    def _collect_folder(self, folder: bytes, skip: Set[bytes]) -> None:
        walk = replace(self.walk, below=folder, skip=skip)
        for found in walk.folders():
            self._look_into(found)

    def _collect_hidden(self, paths: Set[bytes]) -> None:
        """Collect what only a rule of this iteration hides, up to a limit: a tool may have installed it just now."""
        count, size = len(self.worktree.now), self._bytes
        for path in sorted(paths):
            for found in self._hidden_folders(path):
                self._look_into(found)
                files, data = len(self.worktree.now) - count, self._bytes - size
                if files > _MOST_HIDDEN_FILES or data > _MOST_HIDDEN_BYTES:
                    self.unread[path] = _TOO_MUCH_HIDDEN
                    return

    def _hidden_folders(self, path: bytes) -> Iterator[WalkedFolder]:
        with open_path(self.walk.root, path) as found:
            is_folder = found == FOLDER
        if is_folder:
            yield from replace(self.walk, below=path).folders()
        else:
            self._fetch_missing(path)

    def _find_kept_before(self, left: LeftOut) -> set[bytes]:
        """Find files that are left out now and are in the last snapshot: a rule may have come only to hide them.

        Where there are very many, a tool has installed them.
        """
        gone = self.worktree.before.keys() - self.worktree.now.keys()
        found = {path for path in gone if left.has(path)}
        return found if len(found) <= _MOST_KEPT_ON else set()

    def _fetch_missing(self, path: bytes) -> None:
        if path not in self.worktree.now and path not in self.unread:
            self._fetch(path)

    def _fetch(self, path: bytes, large: bool = False) -> None:
        with open_path(self.walk.root, path) as found:
            if found is None or found == FOLDER:
                if path in self._wanted:
                    (self.folders if found else self.absent).add(path)
            elif isinstance(found, str):
                self.unread[path] = found
            elif path in self._walked or not self.worktree.now.keys().isdisjoint(
                folders_above(path)
            ):
                # A folder became a file meanwhile, or a file a folder.
                self.unread[path] = UNSTEADY
            elif large:
                self._keep_large(found[0])
            elif self.worktree.knows(path, found[1]):
                self._note(path, found[1])
            elif path not in self._large:
                self._keep(found[0])

    def _keep_large(self, entry: WalkEntry) -> None:
        found = read_entry(entry, self._most_bytes)
        if not isinstance(found, Large):
            self._put(entry.path, found)
        elif self._put_large(self.worktree, entry.path, found):
            self._note(entry.path, found.status)

    def _put_large(self, table: FolderDelta, path: bytes, found: Large) -> bool:
        """Collect a large file; return whether there was time for it."""
        size, name = found.status.st_size, spell(path)

        def tell(done: int) -> None:
            far = f"{done // _MEGABYTE} of {size // _MEGABYTE} MB"
            self._limits.tell(f"saving the work tree; {far} of {name}")

        try:
            if size > self._project.deadline.left() / 2 * _LARGE_BYTES_PER_SECOND:
                self.unread[path] = _TOO_LARGE
                return False
            if not table.put_large(path, found, tell):
                self.unread[path] = UNSTEADY
            return True
        finally:
            close(found.descriptor)

    def _look_into_git(self, root: Path, folder: bytes, table: FolderDelta) -> None:
        """Collect the git directory of a repository inside this one: its commits may be nowhere else."""
        walk = SnapshotWalk(root, self._own, self._deadline, folder)
        for found in walk.folders():
            self._limits.tell(f"saving a nested repository; {spell(folder)}")
            for name, status in found.files.items():
                if not table.knows(found.prefix + name, status):
                    self._keep_git(found.entry(name, status), table)
        self._unread_of_git.update(walk.not_read)

    def _keep_git(self, entry: WalkEntry, table: FolderDelta) -> None:
        found = read_entry(entry, self._most_bytes)
        if isinstance(found, Large):
            self._put_large(table, entry.path, found)
        elif isinstance(found, str):
            self._unread_of_git[entry.path] = found
        elif found is not None:
            table.put(entry.path, found)
            if not found.steady:
                self._unread_of_git[entry.path] = UNSTEADY

    def manifest(self, identity: str, occasion: Occasion, skipped: Sequence[Skipped]) -> bytes:
        manifest = Manifest(
            id=identity,
            at=occasion.at,
            kind=occasion.kind,
            run=occasion.run,
            iteration=occasion.iteration,
            worktree=spell(os.fsencode(self._project.repository.root)),
            log=_head_of_log(self._workspace),
            files=len(self.worktree.now),
            bytes=self._bytes,
            whole=self.whole,
            skipped=tuple(skipped),
            modes={bits: tuple(paths) for bits, paths in sorted(self._modes.items())},
            empty_folders=tuple(spell(path) for path in self.walk.empty),
            nested=tuple(spell(path) for path in self.walk.nested),
            escaped=self._escaped,
        )
        return manifest.model_dump_json(indent=1).encode() + b"\n"

    def find_skipped(self) -> list[Skipped]:
        """List what is not in the snapshot, the losses before what is not needed."""
        both = [*sorted(self.trouble.items()), *sorted(self.not_needed.items())]
        return [Skipped(path=spell(path), why=fit_line(why)) for path, why in both]

    @property
    def trouble(self) -> dict[bytes, str]:
        """Why a path is not in the snapshot, or not as it was."""
        return {**self.unread, **self._unread_of_git}

    @property
    def whole(self) -> bool:
        """Whether nothing is missing but what git ignores in folders that a tool rebuilds."""
        return not self.trouble


def _head_of_log(workspace: Path) -> LogHead | None:
    """Where the log stands; a log that cannot be read does not stop the snapshot."""
    with suppress(GuardError, OSError):
        folder = Folder.open(workspace)
        if folder is not None:
            with folder:
                mark = read_mark(folder)
            return LogHead(seq=mark.seq, hash=mark.hash) if mark and mark.seq else None
    return None
