"""Clean checkouts of trees, in slots that are used again.

A slot is a folder outside the work tree, always the same. Before each use every entry in it is compared with what guard wrote,
to the nanosecond, and what differs is deleted; git then writes only the difference to the tree that is wanted. Every file
that git has written is read back and held against its id. The `.git` in a checkout is a new one each time.
"""

import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import translate
from hashlib import sha256
from pathlib import Path

from guard.context.config import cache_home
from guard.context.workspace import worktree_key
from guard.core.base.paths import path_line
from guard.errors import RepositoryProblem, StoreUnavailable
from guard.git.index_file import WrittenEntry, WrittenStamp, parse_index
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader
from guard.prove.bounded_run import end_leftovers
from guard.prove.clean import (
    Product,
    compare,
    delete_all,
    delete_folder,
    list_products,
)
from guard.prove.git_folder import present_git
from guard.prove.own_git import OwnGit
from guard.prove.trees import LINK, FileEntry, TreeListing, Trees, parents_of
from guard.snapshots.objects import blob_digest
from guard.system.private_files import Folder, close, try_lock

_SLOT = re.compile("[a-z][a-z0-9_-]{0,31}")
_INDEX, _SET_UP, _LOCK = "index", "setup.json", "lock"
_SCRATCH = "scratch"
_DAY = 86400.0
_PIECE = 1024**2
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PAUSE = 0.05
_TICK = 0.002
_LONGEST_TICK = 0.1
_LATER, _LONG_AGO = 3600, 1
_FILE, _SUBMODULE = 0o100000, 0o160000
_FILE_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
"""The clock that Linux takes the times of files from."""
Run = Callable[[str, Path], bool]
"""Runs a command in a folder; returns whether it succeeded."""
FileStamp = tuple[int, int, int, int] | None
"""By what it is seen that a file was written; None for one that is not there."""


@dataclass(frozen=True)
class SetUp:
    """The command that prepares a checkout, and the globs of the files after whose change it has to run again."""

    command: str
    inputs: tuple[str, ...] = ()


class Checkouts:
    """The slots of one work tree."""

    def __init__(
        self,
        repository: Repository,
        root: Path,
        environ: Mapping[str, str],
        *,
        time_limit: float = 600.0,
        wait_seconds: float = 60.0,
    ) -> None:
        """`root` is the folder for the checkouts of all projects (`checkouts_root`); git gets `time_limit` for each call."""
        self._project = repository
        self._wait_seconds = wait_seconds
        self.folder = root / worktree_key(repository.root)
        _make_private(root)
        with Folder.make(self.folder) as folder:
            folder.replace("project", os.fsencode(repository.root), locked=False)
        self._git = OwnGit(repository, self.folder / "git", environ, time_limit)
        self.trees = Trees(self._git)
        self._reader = RepositoryReader(repository, environ)

    def tree_of(self, commit: str) -> str:
        """The commit's tree, with submodules and the files of Git LFS in it as far as their contents are at hand."""
        return self.trees.tree_of(commit)

    def compose(
        self,
        base_tree: str,
        remove: Iterable[bytes] = (),
        take: Iterable[tuple[bytes, str]] = (),
        replace: Mapping[bytes, bytes] | None = None,
    ) -> str:
        return self.trees.compose(base_tree, remove, take, replace)

    @contextmanager
    def open(
        self, slot: str, tree: str, head_commit: str, setup: SetUp | None = None
    ) -> Iterator["Checkout"]:
        """Bring the slot to this tree, and keep other guards out of it until the block ends."""
        if not _SLOT.fullmatch(slot):
            raise ValueError(slot)
        with self._hold(slot) as (record, descriptor):
            self._git.prepare()
            listing = self.trees.listing(tree)
            place = _Slot(self._git, record, self._tree_folder(slot), descriptor)
            is_set_up = place.bring(tree, listing, setup)
            index = record.read(_INDEX) or b""
            present_git(self.trees, self._reader, place.path, index, tree, head_commit)
            _settle()
            yield Checkout(place, listing, setup, self._project.root, is_set_up)

    def _tree_folder(self, slot: str) -> Path:
        # Some tests depend on the name of the project's folder.
        return self.folder / slot / (self._project.root.name or "project")

    @contextmanager
    def _hold(self, slot: str) -> Iterator[tuple[Folder, int]]:
        path = self.folder / f".{slot}"
        with Folder.make(path) as record:
            descriptor = record.open_file(_LOCK, os.O_RDWR | os.O_CREAT)
            try:
                _wait_for(descriptor, self._wait_seconds, path / _LOCK)
                os.utime(descriptor)
                yield record, descriptor
            finally:
                close(descriptor)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make a folder for what runs write beside their checkouts, and delete it when the block ends."""
        top = self.folder / _SCRATCH
        os.makedirs(top, mode=0o700, exist_ok=True)
        folder, descriptor = _locked_folder(top)
        try:
            yield folder
        finally:
            delete_folder(os.fsencode(folder))
            close(descriptor)

    def clean_up(self, keep_days: float) -> list[Path]:
        """Delete the checkouts of projects that are gone or were not used for `keep_days`; return their folders.

        What a killed guard left running or in its scratch folder goes, too. What it left half-made in a slot is repaired when
        the slot is opened.
        """
        end_leftovers()
        for folder in self.folder.glob(f"{_SCRATCH}/*"):
            with suppress(OSError):
                _delete_unlocked(folder)
        deleted = []
        for folder in sorted(self.folder.parent.iterdir()):
            if folder.is_symlink() or not folder.is_dir():
                continue
            with suppress(OSError):
                is_own = folder == self.folder
                if _is_old(folder, keep_days, is_own) and _delete_project(folder):
                    deleted.append(folder)
        return deleted


@dataclass(frozen=True)
class _Slot:
    """One slot while it is locked."""

    git: OwnGit
    record: Folder
    path: Path
    lock: int

    def bring(self, tree: str, listing: TreeListing, setup: SetUp | None) -> bool:
        """Make the folder the tree; return whether the products of the set-up are there."""
        try:
            files, is_set_up = self._clear(listing, setup)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot clear the checkout {self.path}: {error.strerror} ({error.filename})",
                "end what still uses it, or delete the folder",
            ) from None
        index = self.record.path_of(_INDEX)
        missing = _missing(files, listing)
        if not missing and len(files) == len(listing.files):
            return is_set_up
        if files:
            # What git would read again because it is as young as the index was compared more precisely above.
            later = time.time() + _LATER
            os.utime(index, (later, later))
        self._call("read-tree", "--reset", "-u", tree)
        self._refuse_wrong(tree, listing, missing, is_new=not files)
        return is_set_up

    def _clear(
        self, listing: TreeListing, setup: SetUp | None
    ) -> tuple[dict[bytes, WrittenEntry], bool]:
        """Delete what is not as guard left it; return the entries that are, and whether the set-up's products are."""
        self.record.remove(f"{_INDEX}.lock")
        os.makedirs(self.path, exist_ok=True)
        root = os.fsencode(self.path)
        files = self.read_index()
        products = self._read_products(setup_key(listing, setup))
        found = compare(root, files, products or {})
        if products is None or found.spoiled or _collides(products, listing):
            self.record.remove(_SET_UP)
            found = compare(root, files, {}) if products else found
            products = None
        delete_all(root, found.wrong)
        for path in found.changed:
            del files[path]
        return files, products is not None

    def read_index(self) -> dict[bytes, WrittenEntry]:
        data = self.record.read(_INDEX) or b""
        found = parse_index(data, 32 if self.git.object_format == "sha256" else 20)
        if found is None:
            self.record.remove(_INDEX)
        return found or {}

    def _refuse_wrong(
        self,
        tree: str,
        listing: TreeListing,
        written: Iterable[bytes],
        *,
        is_new: bool,
    ) -> None:
        """Raise if the checkout is not the tree, byte by byte; then nothing of it is used again."""
        wrong = (
            None if self._call("ls-files", "-sz") == _index_lines(listing) else f"the tree {tree}"
        )
        if wrong is None and is_new:
            wrong = self._find_unequal()
        elif wrong is None:
            unequal = (
                path for path in written if not _is_blob(self.path, path, listing.files[path])
            )
            wrong = next(map(path_line, unequal), None)
        if wrong is not None:
            self.record.remove(_INDEX)
            delete_folder(os.fsencode(self.git.folder))
            raise RepositoryProblem(
                f"git wrote something else than {wrong} has by its id: an object was damaged or exchanged",
                "run `git fsck` in the project, then try again",
            )

    def _find_unequal(self) -> str | None:
        """Let git read every file back; return one that is not as its id says."""
        index = self.record.path_of(_INDEX)
        # Git reads again what may be younger than its index.
        os.utime(index, (_LONG_AGO, _LONG_AGO))
        unequal = self._call("diff-files", "-z", "--name-only")
        return path_line(unequal.partition(b"\0")[0]) if unequal else None

    def _call(self, *words: str) -> bytes:
        return self.git.call(
            *words,
            extra={"GIT_INDEX_FILE": self.record.path_of(_INDEX)},
            work_tree=self.path,
            lends=(self.lock,),
        )

    def _read_products(self, key: str | None) -> dict[bytes, Product] | None:
        try:
            told = json.loads(self.record.read(_SET_UP) or b"null")
            if told is None or key is None or told["key"] != key:
                return None
            return {
                path.encode("latin-1"): Product(kind, _stamp(*stamp) if stamp else None)
                for path, kind, stamp in told["products"]
            }
        except (ValueError, TypeError, KeyError):
            return None

    def write_products(self, key: str, products: Mapping[bytes, Product]) -> None:
        listed = [(path.decode("latin-1"), *product) for path, product in products.items()]
        told = json.dumps({"key": key, "products": listed}).encode()
        self.record.replace(_SET_UP, told)

    def forget_products(self) -> None:
        self.record.remove(_SET_UP)


class Checkout:
    """A clean tree of files, to run something in."""

    def __init__(
        self,
        slot: _Slot,
        listing: TreeListing,
        setup: SetUp | None,
        project: Path,
        is_set_up: bool,
    ) -> None:
        self.path = slot.path
        self.project = project
        self.is_set_up = is_set_up
        """Whether nothing has to be set up, or the products of an earlier set-up are there."""
        self.notes = listing.notes
        self.lends = (slot.lock,)
        """The descriptor that keeps other guards out; what is given it keeps them out after guard has ended."""
        self._slot, self._listing, self._setup = slot, listing, setup
        self._shared = set[bytes]()

    @property
    def links_to_project(self) -> tuple[str, ...]:
        """The links of the tree that lead into the project's own work tree."""
        root = os.path.realpath(self.project)
        links = (path for path, (mode, _) in self._listing.files.items() if mode == LINK)
        return tuple(path_line(path) for path in links if _leads_into(self.path, path, root))

    def stamps(self, wanted: Callable[[str], bool]) -> dict[bytes, FileStamp]:
        """Return when each file of the commit that is wanted was last written."""
        root = os.fsencode(self.path)
        files = (path for path, (mode, _) in self._listing.files.items() if mode != LINK)
        return {path: _file_stamp(root, path) for path in files if wanted(os.fsdecode(path))}

    def written_since(self, stamps: Mapping[bytes, FileStamp]) -> Iterator[bytes]:
        """Yield the files that were written, or are gone, since the stamps were taken."""
        root = os.fsencode(self.path)
        return (path for path, stamp in stamps.items() if _file_stamp(root, path) != stamp)

    def is_as_committed(self, path: bytes) -> bool:
        try:
            return _is_blob(self.path, path, self._listing.files[path])
        except OSError:
            return False

    def set_up(self, run: Run) -> bool:
        """Run the set-up unless its products are there; return whether the checkout is set up.

        Its products are kept for the next use of the slot, unless it changed files of the tree.
        """
        if self._setup is None or self.is_set_up:
            return True
        key = setup_key(self._listing, self._setup)
        if key is None or not run(self._setup.command, self.path):
            self._slot.forget_products()
            return False
        root = os.fsencode(self.path)
        found = compare(root, self._slot.read_index(), {})
        if found.changed:
            names = ", ".join(path_line(path) for path in found.changed[:3])
            self.notes += (f"the set-up changes files of the tree ({names}), so it runs each time",)
        else:
            made = [path for path in found.wrong if path not in self._shared and path != b".git"]
            self._slot.write_products(key, list_products(root, made))
        self.is_set_up = True
        return True


def checkouts_root(repository: Repository, environ: Mapping[str, str]) -> Path:
    """The folder for all checkouts: in the user's cache, or among the temporary files if the project lies around that."""
    for root in (
        cache_home(environ) / "prove",
        Path(tempfile.gettempdir(), f"guard-{os.getuid()}"),
    ):
        if not Path(os.path.realpath(root)).is_relative_to(repository.root):
            return root
    raise RepositoryProblem(
        f"{root} lies in the work tree, so guard has no place for a checkout of it",
        "set XDG_CACHE_HOME to a folder outside the project",
    )


def setup_key(listing: TreeListing, setup: SetUp | None) -> str | None:
    """What the products of a set-up depend on; None if there is none."""
    if setup is None:
        return None
    globs = [re.compile(translate(glob)) for glob in setup.inputs]
    digest = sha256(setup.command.encode(errors="surrogateescape"))
    for path, (mode, oid) in sorted(listing.files.items()):
        name = os.fsdecode(path)
        if any(glob.fullmatch(name) or glob.fullmatch(os.path.basename(name)) for glob in globs):
            digest.update(b"\0%s\0%s %s" % (path, mode, oid.encode()))
    return digest.hexdigest()


def _collides(products: Mapping[bytes, Product], listing: TreeListing) -> bool:
    """Tell whether the tree has a file where the set-up made something, or below a file that it made."""
    if not products:
        return False
    folders = {parent for path in listing.files for parent in parents_of(path)}
    return any(
        path in listing.files or (path in folders and not stat.S_ISDIR(product.kind))
        for path, product in products.items()
    )


def _missing(files: Mapping[bytes, WrittenEntry], listing: TreeListing) -> list[bytes]:
    """The files of the tree that are not there, or are there with another content or mode."""
    modes = {mode: _index_mode(mode) for mode in {mode for mode, _ in listing.files.values()}}
    there = {path: (entry.mode, entry.oid.hex()) for path, entry in files.items()}
    return [
        path for path, (mode, oid) in listing.files.items() if there.get(path) != (modes[mode], oid)
    ]


def _index_lines(listing: TreeListing) -> bytes:
    """What git lists of an index that holds this tree."""
    files = sorted(listing.files.items())
    modes = {mode: b"%06o" % _index_mode(mode) for mode in {mode for _, (mode, _) in files}}
    return b"".join(
        b"%s %s 0\t%s\0" % (modes[mode], oid.encode(), path) for path, (mode, oid) in files
    )


def _index_mode(mode: bytes) -> int:
    # Trees of old times have more kinds of modes than git writes today.
    value = int(mode, 8)
    return (_FILE | 0o755 if value & 0o100 else _FILE | 0o644) if stat.S_ISREG(value) else value


def _is_blob(root: Path, path: bytes, wanted: FileEntry) -> bool:
    mode, oid = _index_mode(wanted[0]), wanted[1]
    if stat.S_IFMT(mode) == _SUBMODULE:
        return True
    place = os.path.join(os.fsencode(root), path)
    if stat.S_ISLNK(mode):
        text = os.readlink(place)
        digest = blob_digest(oid, len(text))
        digest.update(text)
        return digest.hexdigest() == oid
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        digest = blob_digest(oid, status.st_size)
        while piece := os.read(descriptor, _PIECE):
            digest.update(piece)
    finally:
        close(descriptor)
    is_executable = bool(status.st_mode & 0o100)
    return digest.hexdigest() == oid and is_executable == bool(mode & 0o100)


def _stamp(changed: int, written: int, inode: int, size: int) -> WrittenStamp:
    return changed, written, inode, size


def _leads_into(root: Path, path: bytes, project: str) -> bool:
    real = os.path.realpath(os.path.join(os.fsencode(root), path))
    return os.fsdecode(real) == project or os.fsdecode(real).startswith(project.rstrip("/") + "/")


def _file_stamp(root: bytes, path: bytes) -> FileStamp:
    try:
        status = os.lstat(os.path.join(root, path))
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size


def _settle() -> None:
    """Wait until the clock of the files has moved on: what changes from now on has another time."""
    last, end = time.clock_gettime_ns(_FILE_CLOCK), time.monotonic() + _LONGEST_TICK
    while time.clock_gettime_ns(_FILE_CLOCK) <= last and time.monotonic() < end:
        time.sleep(_TICK)


def _make_private(root: Path) -> None:
    os.makedirs(root.parent, mode=0o700, exist_ok=True)
    with Folder.make(root):
        pass


def _locked_folder(top: Path) -> tuple[Path, int]:
    """Make a folder that is locked until the descriptor is closed."""
    while True:
        folder = Path(tempfile.mkdtemp(dir=top))
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, _OPEN_FOLDER)
            if try_lock(descriptor) and folder.exists():
                return folder, descriptor
            # Another guard took it for one that was left.
            close(descriptor)


def _delete_unlocked(folder: Path) -> None:
    descriptor = os.open(folder, _OPEN_FOLDER)
    try:
        if try_lock(descriptor):
            delete_folder(os.fsencode(folder))
    finally:
        close(descriptor)


def _wait_for(descriptor: int, seconds: float, path: Path) -> None:
    end = time.monotonic() + seconds
    while not try_lock(descriptor):
        if time.monotonic() >= end:
            raise StoreUnavailable(
                f"guard waited {seconds:g} s for the checkout of another guard ({path})",
                "try again when the other proof has ended",
            )
        time.sleep(_PAUSE)


def _is_old(folder: Path, keep_days: float, is_own: bool) -> bool:
    """Tell whether the checkouts of a project have not been used for so long, or the project is gone."""
    used = [lock.stat().st_mtime for lock in folder.glob(f".*/{_LOCK}")]
    if time.time() - max(used, default=folder.stat().st_mtime) > keep_days * _DAY:
        return True
    with suppress(OSError):
        project = os.fsdecode((folder / "project").read_bytes())
        return not is_own and not os.path.isdir(project)
    return False


def _delete_project(folder: Path) -> bool:
    """Delete the checkouts of a project; return False if another guard uses one."""
    held: list[int] = []
    try:
        for lock in folder.glob(f".*/{_LOCK}"):
            held.append(os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC))
            if not try_lock(held[-1]):
                return False
        delete_folder(os.fsencode(folder))
    finally:
        for descriptor in held:
            close(descriptor)
    return True
