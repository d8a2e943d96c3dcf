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
from guard.prove.clean import (
    Product,
    compare,
    delete_all,
    delete_folder,
    list_products,
)
from guard.prove.git_folder import present_git
from guard.prove.own_git import OwnGit
from guard.prove.trees import LINK, TreeListing, Trees, parents_of
from guard.snapshots.objects import blob_digest
from guard.system.private_files import Folder, close, try_lock

_SLOT = re.compile("[a-z][a-z0-9_-]{0,31}")
_INDEX, _SET_UP, _LOCK = "index", "setup.json", "lock"
_DAY = 86400.0
_PIECE = 1024**2
_PAUSE = 0.05
_TICK = 0.002
_LONGEST_TICK = 0.1
_LATER = 3600
_FILE, _SUBMODULE = 0o100000, 0o160000
_FILE_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
"""The clock that Linux takes the times of files from."""
Run = Callable[[str, Path], bool]
"""Runs a command in a folder; returns whether it succeeded."""


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
            files, is_set_up = place.bring(tree, listing, setup)
            index = record.read(_INDEX) or b""
            present_git(self.trees, self._reader, place.path, index, tree, head_commit)
            _settle(files)
            yield Checkout(place, listing, files, setup, self._project.root, is_set_up)

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

    def clean_up(self, keep_days: float) -> list[Path]:
        """Delete the checkouts of projects that are gone or were not used for `keep_days`; return their folders.

        What a killed guard left half-made in a slot is repaired when the slot is opened.
        """
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

    def bring(
        self, tree: str, listing: TreeListing, setup: SetUp | None
    ) -> tuple[dict[bytes, WrittenEntry], bool]:
        """Make the folder the tree; return its entries, and whether the products of the set-up are there."""
        try:
            files, is_set_up = self._clear(listing, setup)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot clear the checkout {self.path}: {error.strerror} ({error.filename})",
                "end what still uses it, or delete the folder",
            ) from None
        index = self.record.path_of(_INDEX)
        if _is_tree(files, listing):
            return files, is_set_up
        if files:
            # What git would read again because it is as young as the index was compared more precisely above.
            later = time.time() + _LATER
            os.utime(index, (later, later))
        self.git.call(
            *("read-tree", "--reset", "-u", tree),
            extra={"GIT_INDEX_FILE": index},
            work_tree=self.path,
            lends=(self.lock,),
        )
        new = self._read_index()
        self._refuse_wrong(tree, listing, files, new)
        return new, is_set_up

    def _clear(
        self, listing: TreeListing, setup: SetUp | None
    ) -> tuple[dict[bytes, WrittenEntry], bool]:
        """Delete what is not as guard left it; return the entries that are, and whether the set-up's products are."""
        self.record.remove(f"{_INDEX}.lock")
        os.makedirs(self.path, exist_ok=True)
        root = os.fsencode(self.path)
        files = self._read_index()
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

    def _read_index(self) -> dict[bytes, WrittenEntry]:
        data = self.record.read(_INDEX) or b""
        found = parse_index(data, 32 if self.git.object_format == "sha256" else 20)
        if found is None:
            self.record.remove(_INDEX)
        return found or {}

    def _refuse_wrong(
        self,
        tree: str,
        listing: TreeListing,
        old: Mapping[bytes, WrittenEntry],
        new: Mapping[bytes, WrittenEntry],
    ) -> None:
        """Raise if the checkout is not the tree, byte by byte; then nothing of it is used again."""
        wrong = None if _is_tree(new, listing) else f"the tree {tree}"
        written = (
            path for path, entry in new.items() if path not in old or old[path].stamp != entry.stamp
        )
        for path in written:
            if not _is_blob(self.path, path, new[path]):
                wrong = path_line(path)
                break
        if wrong is not None:
            self.record.remove(_INDEX)
            delete_folder(os.fsencode(self.git.folder))
            raise RepositoryProblem(
                f"git wrote something else than {wrong} has by its id: an object was damaged or exchanged",
                "run `git fsck` in the project, then try again",
            )

    def _read_products(self, key: str | None) -> dict[bytes, Product] | None:
        try:
            told = json.loads(self.record.read(_SET_UP) or b"null")
            if told is None or key is None or told["key"] != key:
                return None
            return {
                path.encode("latin-1"): Product(kind, WrittenStamp(*stamp) if stamp else None)
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
        files: Mapping[bytes, WrittenEntry],
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
        self._slot, self._listing, self._files, self._setup = slot, listing, files, setup
        self._shared = set[bytes]()

    @property
    def links_to_project(self) -> tuple[str, ...]:
        """The links of the tree that lead into the project's own work tree."""
        root = os.path.realpath(self.project)
        links = (path for path, (mode, _) in self._listing.files.items() if mode == LINK)
        return tuple(path_line(path) for path in links if _leads_into(self.path, path, root))

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
        found = compare(root, self._files, {})
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


def _is_tree(files: Mapping[bytes, WrittenEntry], listing: TreeListing) -> bool:
    wanted = listing.files
    if len(files) != len(wanted):
        return False
    for path, entry in files.items():
        mode, oid = wanted.get(path, (b"0", ""))
        if entry.oid.hex() != oid or entry.mode != _index_mode(mode):
            return False
    return True


def _index_mode(mode: bytes) -> int:
    # Trees of old times have more kinds of modes than git writes today.
    value = int(mode, 8)
    return (_FILE | 0o755 if value & 0o100 else _FILE | 0o644) if stat.S_ISREG(value) else value


def _is_blob(root: Path, path: bytes, entry: WrittenEntry) -> bool:
    if stat.S_IFMT(entry.mode) == _SUBMODULE:
        return True
    place, like = os.path.join(os.fsencode(root), path), entry.oid.hex()
    if stat.S_ISLNK(entry.mode):
        text = os.readlink(place)
        digest = blob_digest(like, len(text))
        digest.update(text)
        return digest.digest() == entry.oid
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        digest = blob_digest(like, status.st_size)
        while piece := os.read(descriptor, _PIECE):
            digest.update(piece)
    finally:
        close(descriptor)
    is_executable = bool(status.st_mode & 0o100)
    return digest.digest() == entry.oid and is_executable == bool(entry.mode & 0o100)


def _leads_into(root: Path, path: bytes, project: str) -> bool:
    real = os.path.realpath(os.path.join(os.fsencode(root), path))
    return os.fsdecode(real) == project or os.fsdecode(real).startswith(project.rstrip("/") + "/")


def _settle(files: Mapping[bytes, WrittenEntry]) -> None:
    """Wait until the clock of the files has moved on: what changes from now on has another time."""
    last = max((entry.stamp.changed for entry in files.values()), default=0)
    end = time.monotonic() + _LONGEST_TICK
    while time.clock_gettime_ns(_FILE_CLOCK) <= last and time.monotonic() < end:
        time.sleep(_TICK)


def _make_private(root: Path) -> None:
    os.makedirs(root.parent, mode=0o700, exist_ok=True)
    with Folder.make(root):
        pass


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
