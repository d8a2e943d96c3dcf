"""The shadow repository in the workspace: a snapshot goes in as one stream, and is read back before it counts.

It is guard's own: bare, with its own settings and attributes, so that nothing of the project's (filters, line ends, ignore
rules, hooks) bears on what is kept. It is made beside its place and moved there, so that a half-made one is never used.
"""

import errno
import fcntl
import hashlib
import os
import shlex
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path

from guard.core.base.first_use import dataclass, late_pattern
from guard.core.base.text import LONGEST_LINE, escape, fit_line
from guard.errors import RepositoryProblem, StateProblem, StoreUnavailable
from guard.git.locate import Repository, read_common_dir
from guard.git.obstacles import GitObstacle, refuse_obstacles, refuse_to_lend
from guard.git.run import feed_git, refuse_overtime, run_git
from guard.snapshots import stat_cache
from guard.snapshots.fast_import import ImportStream, TreeChanges, parse_tree
from guard.system.clock import Deadline
from guard.system.private_files import Folder, close, try_lock
from guard.system.processes import Finished

SHADOW_FOLDER = "shadow.git"
LOCK = "guard.lock"
REFS = "refs/guard/snapshot"
_REF_IN_COMMAND = late_pattern(rf"{REFS}/[A-Za-z0-9_-]+")
UNPROMOTED = "refs/guard/unpromoted"
"""A snapshot of a rescue has a second name here until all of its work is committed on its branch."""
_ATTRIBUTES = b"* -text -ident -filter -working-tree-encoding -export-ignore -export-subst\n"
_SETTINGS = {
    "core.compression": "1",
    "core.fsync": "all",
    "core.ignoreCase": "false",
    "core.logAllRefUpdates": "false",
    "core.protectHFS": "false",
    "core.protectNTFS": "false",
    "core.sharedRepository": "0600",
    "fastimport.unpackLimit": "0",
}
OPTIONS = tuple(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))
IMPORT = ("fast-import", "--quiet", "--done", "--date-format=now", "--depth=0")
_FOLDERS = (
    *("objects/pack", "objects/info", "info", "refs/guard/snapshot", "refs/guard/unpromoted"),
    *("guard.locks", stat_cache.FOLDER),
)
_ONLY_FILES = ("objects/pack", "refs/guard/snapshot", "refs/guard/unpromoted")
_FILES = ("config", "HEAD", "packed-refs", "info/attributes", LOCK)
_BORROWED = ("objects/info/alternates", "commondir")
_OPEN_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LEFTOVERS = (
    *("objects/pack/tmp_*", "objects/pack/.tmp-*", "fast_import_crash_*"),
    f"{stat_cache.FOLDER}/.*.tmp",
)
_PAUSE = 0.01
_TREE = b"040000"


@dataclass(frozen=True)
class Shadow:
    """The repository, while one snapshot is made or read."""

    path: Path
    environ: Mapping[str, str]
    deadline: Deadline
    object_format: str = "sha1"
    lock: tuple[int, ...] = ()
    """Held by git too while it imports: it may outlive a guard that is killed, and counts on objects not to be pruned."""

    def call(
        self, *words: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None
    ) -> bytes:
        """Run git in this repository; its failure is a snapshot that could not be made."""
        try:
            finished = run_git(
                *OPTIONS,
                *words,
                environ=self.environ,
                git_dir=self.path,
                time_limit=self.deadline.left(),
                stdin=stdin,
                extra=extra,
            )
        except RepositoryProblem:
            if not self.deadline.has_passed():
                raise
            finished = Finished(None, b"", b"")
        return self._require_success(words[0], finished).stdout

    @contextmanager
    def import_commit(self, ref: str) -> Iterator[ImportStream]:
        """Open a stream into one new commit, which is there when the block has ended, and not before.

        Without `--done` a stream that is cut off, as by a kill, would be taken for a whole one.
        """
        with feed_git(
            *OPTIONS,
            *IMPORT,
            environ=self.environ,
            git_dir=self.path,
            time_limit=self.deadline.left(),
            lends=self.lock,
        ) as program:
            with suppress(BrokenPipeError):
                stream = ImportStream(program, self.object_format)
                stream.begin(ref)
                yield stream
                program.write(b"done\n")
            self._require_success("fast-import", program.finish())

    def _require_success(self, word: str, finished: Finished) -> Finished:
        if finished.code == 0:
            return finished
        refuse_overtime()
        if finished.code is None or self.deadline.has_passed():
            raise snapshot_error(self.path, f"it took longer than {self.deadline.seconds:g} s")
        message = finished.message
        fatal = next((part for part in message.split("; ") if part.startswith("fatal: ")), message)
        ended = f"signal {-finished.code}" if finished.code < 0 else f"exit code {finished.code}"
        raise snapshot_error(self.path, fatal or f"git {word} ended with {ended}")

    def folders(self, commit: str) -> dict[bytes, str]:
        listed = parse_tree(self.call("ls-tree", "-z", commit))
        return {path: oid for path, (mode, oid) in listed.items() if mode == _TREE}

    def trees_of(self, commit: str, in_packs: Set[str]) -> dict[bytes, str] | None:
        """The trees at the top of an earlier snapshot; None if not all of its objects are there any more."""
        try:
            if not in_packs or in_packs - self._read_back():
                self.call("rev-list", "--objects", "--quiet", commit, "--")
            return self.folders(commit)
        except StoreUnavailable:
            return None

    def _read_back(self) -> Set[str]:
        found, before = stat_cache.pack_stamps(self.path), stat_cache.verified_packs(self.path)
        return {name for name, stamp in found.items() if stamp == before.get(name)}

    def verify(
        self, ref: str, changes: TreeChanges, base: Mapping[bytes, str]
    ) -> tuple[str, frozenset[str]]:
        """Read a new snapshot back: compare its tree with what was written, and verify every pack that is new or was touched.

        What it has in common with the one that it starts from was read back then. Return its commit, and the packs that it
        is in.
        """
        found = stat_cache.pack_stamps(self.path)
        new = sorted(found.keys() - self._read_back())
        if new:
            self._read_packs(new)
        stdin = "\n".join([ref, *{oid for _mode, oid in changes.written.values()}]).encode()
        answers = self.call("cat-file", "--batch-check", stdin=stdin)
        commit = answers.partition(b" ")[0].decode()
        if b" missing\n" in answers or self.changes(commit, base) != changes:
            raise snapshot_error(self.path, "what was read back is not what was written")
        stat_cache.note_verified_packs(self.path, found)
        return commit, frozenset(found)

    def _read_packs(self, names: Sequence[str]) -> None:
        try:
            for name in names:  # As `git verify-pack` does it, which is one more process for each.
                self.call("index-pack", "--verify", stat_cache.pack_file(self.path, name))
        except StoreUnavailable as error:
            raise self.explain_damage(error) from None

    def explain_damage(self, error: StoreUnavailable) -> StoreUnavailable:
        """Return the error with what to do if the shadow repository itself is damaged."""
        if self.deadline.has_passed():
            return error
        return StoreUnavailable(
            error.message,
            f"guard changed nothing in the project; if {self.path} itself is damaged, move it away: "
            "the next snapshot makes a new one, and the old one still has what is whole in it",
        )

    def changes(self, commit: str, base: Mapping[bytes, str]) -> TreeChanges:
        """What a snapshot has that the trees it starts from have not, and what it has no longer."""
        written, deleted = dict[bytes, tuple[bytes, str]](), set[bytes]()
        trees = self.folders(commit)
        for name, before in base.items():
            after = trees.pop(name, None) or self.empty_tree
            if after == before:
                continue
            fields = self.call("diff-tree", "-r", "-z", "--no-renames", before, after).split(b"\0")
            for about, path in zip(fields[:-1:2], fields[1::2], strict=True):
                _old_mode, mode, _old, oid, letter = about.split()
                if letter == b"D":
                    deleted.add(name + b"/" + path)
                else:
                    written[name + b"/" + path] = (mode, oid.decode())
        words = ("ls-tree", "-r", "-z", commit, "--", *map(os.fsdecode, trees), "manifest.json")
        return TreeChanges(written | parse_tree(self.call(*words)), deleted)

    @property
    def empty_tree(self) -> str:
        return hashlib.new(self.object_format, b"tree 0\0", usedforsecurity=False).hexdigest()


def snapshot_error(path: Path, why: str) -> StoreUnavailable:
    return StoreUnavailable(
        fit_line(f"cannot write a snapshot to {escape(os.fspath(path))}: {why}"),
        "guard changed nothing in the project; free some space or repair the workspace, then try again",
    )


@contextmanager
def open_shadow(
    workspace: Path, environ: Mapping[str, str], deadline: Deadline, object_format: str
) -> Iterator[Shadow]:
    """Open the shadow repository, made if there is none; what killed writers left is deleted while no other guard writes."""
    path = workspace / SHADOW_FOLDER
    try:
        _open_workspace(workspace).close()  # Never through a link in its place.
        if not os.path.lexists(path):
            _make(workspace, environ, deadline, object_format)
        refuse_untrusted(workspace)
        descriptor = os.open(path / LOCK, _OPEN_LOCK, 0o600)
    except OSError as error:
        raise snapshot_error(path, f"{error.strerror}") from None
    try:
        _sweep(workspace, descriptor)
        while not try_lock(descriptor, fcntl.LOCK_SH):
            if deadline.has_passed():
                raise snapshot_error(path, f"another process held it for {deadline.seconds:g} s")
            time.sleep(_PAUSE)
        found = _read_object_format(Shadow(path, environ, deadline))
        yield Shadow(path, environ, deadline, found, (descriptor,))
    finally:
        _sweep(workspace, descriptor)
        close(descriptor)


def _read_object_format(shadow: Shadow) -> str:
    try:
        return shadow.call("rev-parse", "--show-object-format").decode().strip()
    except StoreUnavailable as error:
        raise shadow.explain_damage(error) from None


def _make(
    workspace: Path, environ: Mapping[str, str], deadline: Deadline, object_format: str
) -> None:
    path = workspace / SHADOW_FOLDER
    try:
        with scratch_folder(workspace) as half:
            words = ("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}")
            Shadow(half, environ, deadline).call(*words)
            with Folder.make(half / "info") as info:
                info.replace("attributes", _ATTRIBUTES, durable=True)
            os.rename(half, path)
    except (OSError, StoreUnavailable):
        if not os.path.lexists(path):
            raise


@contextmanager
def scratch_folder(workspace: Path) -> Iterator[Path]:
    """A temporary folder in the workspace; if this process is killed, the next sweep deletes it.

    Its lock tells the sweep of another process that it is in use.
    """
    while True:
        folder = workspace / f".{SHADOW_FOLDER}.{os.urandom(6).hex()}.tmp"
        os.mkdir(folder, 0o700)
        lock = _lock_folder(folder)
        if lock is not None:
            break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        close(lock)


def _lock_folder(folder: Path) -> int | None:
    """Return the lock of a folder as a descriptor; None if it is another process's, or the folder is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if try_lock(descriptor) and os.path.lexists(folder):
        return descriptor
    close(descriptor)
    return None


def _open_workspace(workspace: Path) -> Folder:
    folder = Folder.open(workspace)
    if folder is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return folder


def refuse_untrusted(workspace: Path) -> None:
    """Refuse a shadow repository in which git would write through a link, or depend on another repository.

    Objects lent from another repository count as present when they are written, and vanish with their owner.
    """
    with _open_workspace(workspace) as folder:
        for path in _FOLDERS:
            # Opening each folder on the way refuses links, and what is not ours.
            with folder.walk(f"{SHADOW_FOLDER}/{path}/any") as (found, _):
                if found is not None and path in _ONLY_FILES:
                    _refuse_special(found)
        for path in _FILES:
            with folder.walk(f"{SHADOW_FOLDER}/{path}") as (parent, name):
                if parent is not None:
                    with parent.open_if_any(name):
                        pass
        for path in _BORROWED:
            with folder.walk(f"{SHADOW_FOLDER}/{path}") as (parent, name):
                if parent is not None and parent.exists(name):
                    raise StateProblem(
                        f"{parent.path_of(name)} makes the snapshots depend on another repository",
                        "delete that file; snapshots that are newer than it may not be whole",
                    )
    refuse_pipes(workspace)


def refuse_pipes(workspace: Path) -> None:
    """Refuse a shadow repository in which git would wait for a pipe or a device; for reading alone links do no harm."""
    shadow = Path(os.path.realpath(workspace / SHADOW_FOLDER))
    repository = Repository(shadow, shadow, read_common_dir(shadow))
    try:
        refuse_obstacles(repository, ("rev-parse",))
        refuse_to_lend(repository)
    except GitObstacle as error:
        raise StateProblem(error.message, error.hint) from None
    for name in _FILES:
        with suppress(OSError):
            if not stat.S_ISREG(os.stat(shadow / name).st_mode):
                raise StateProblem(
                    f"{shadow / name} is not a regular file, so guard does not read it",
                    "find out which program changed it, and move it away",
                )


def _refuse_special(folder: Folder) -> None:
    """Refuse a folder with a link or a pipe in it: git would write through the one, and wait for the other."""
    with os.scandir(folder.descriptor) as entries:
        for entry in entries:
            if not entry.is_file(follow_symlinks=False):
                raise StateProblem(
                    f"{folder.path_of(entry.name)} is not a regular file, so guard does not trust it",
                    "find out which program changed it, and move it away",
                )


def _sweep(workspace: Path, descriptor: int) -> None:
    if not try_lock(descriptor):
        return
    shadow = workspace / SHADOW_FOLDER
    with suppress(OSError):
        for pattern in _LEFTOVERS:
            for leftover in shadow.glob(pattern):
                leftover.unlink(missing_ok=True)
        for half in workspace.glob(f".{SHADOW_FOLDER}.*.tmp"):
            lock = _lock_folder(half)
            if lock is not None:
                shutil.rmtree(half, ignore_errors=True)
                close(lock)
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def recovery_command(shadow: Path, ref: str, files: int) -> str:
    """The command that brings a snapshot back into a folder.

    The attributes in the shadow repository see to it that `git archive` converts nothing.
    """
    tree = f"{ref}:worktree" if files else ref
    place = shlex.quote(f"--git-dir={shadow}")
    command = f"git {place} archive {tree} | tar -x -C DIR"
    if len(command) <= LONGEST_LINE and command.isprintable():
        return command
    return f'git --git-dir="$(guard where)/{shadow.name}" archive {tree} | tar -x -C DIR'


def ref_in_command(command: str) -> str | None:
    """The ref of the snapshot that a recovery command brings back."""
    found = _REF_IN_COMMAND.search(command)
    return found[0] if found else None
