"""A git directory of guard's own, which borrows the project's objects and has none of its configuration.

New objects are written here and nowhere else, and without git: git would set the times of the project's own objects. What is
read is held against its id.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from pathlib import Path

from guard.errors import RepositoryProblem
from guard.git.locate import Repository, repository_at
from guard.git.obstacles import object_folders, refuse_to_lend
from guard.git.run import FETCH_ALL, run_git
from guard.prove.clean import delete
from guard.snapshots.objects import Objects, ObjectUnreadable
from guard.system.foreign_files import read_regular
from guard.system.private_files import Folder
from guard.system.processes import Finished

_FILES = {
    "HEAD": b"ref: refs/heads/none\n",
    "info/attributes": b"* -text -eol -ident -filter -working-tree-encoding\n",
}
_KNOWN = {
    "": {"HEAD", "config", "info", "objects", "refs"},
    "info/": {"attributes"},
    "refs/": set[str](),
    "objects/info/": {"alternates"},
}
_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tfilemode = true\n\tsymlinks = true\n"
_SETTINGS = {
    "checkout.workers": "4",
    "core.autocrlf": "false",
    "core.fsync": "none",
    "core.ignoreCase": "false",
    "core.precomposeUnicode": "false",
    "core.protectHFS": "false",
    "core.protectNTFS": "false",
    "core.sparseCheckout": "false",
    "index.version": "2",
}
_OPTIONS = tuple(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))
_MOST_MODULES = 1000
_MOST_CONFIG_BYTES = 1024**2
_LONGEST_MESSAGE = 400


class OwnGit:
    """The git directory for one project."""

    def __init__(
        self, repository: Repository, folder: Path, environ: Mapping[str, str], time_limit: float
    ) -> None:
        self.repository, self.folder = repository, folder
        self._environ, self._time_limit = environ, time_limit
        self.lenders = [repository.common_dir, *_module_folders(repository)]
        self.prepare()

    def prepare(self) -> None:
        """Write the git directory as it has to be, whatever a run has made of it."""
        for name in ("objects/info", "info", "refs"):
            os.makedirs(self.folder / name, mode=0o700, exist_ok=True)
        lent = "".join(f"{line}\n" for line in self.object_folders)
        config = git_config(self.object_format)
        contents = {**_FILES, "config": config, "objects/info/alternates": os.fsencode(lent)}
        with Folder.make(self.folder) as top:
            for place, known in _KNOWN.items():
                _delete_others(top, place, known)
            for path, data in contents.items():
                with top.walk(path) as (folder, name):
                    if folder is not None and folder.read(name) != data:
                        folder.replace(name, data, locked=False)

    @property
    def attributes(self) -> bytes:
        """The attributes under which git converts nothing."""
        return _FILES["info/attributes"]

    @property
    def own_objects(self) -> str:
        return _quote(os.fspath(self.folder / "objects"))

    @property
    def object_format(self) -> str:
        # Git names it in the configuration, which the agent can write; then its objects are not found, and nothing worse.
        with suppress(OSError):
            config = read_regular(self.repository.common_dir / "config", _MOST_CONFIG_BYTES)
            if re.search(rb"(?im)^\s*objectformat\s*=\s*\"?sha256", config):
                return "sha256"
        return "sha1"

    @property
    def object_folders(self) -> list[str]:
        """The folders of objects that the project has and borrows, as git reads them in a file of lenders."""
        found: dict[str, None] = {}
        for lender in self.lenders:
            refuse_to_lend(Repository(lender, lender, lender))
            found |= dict.fromkeys(map(os.fspath, object_folders(lender / "objects")))
        return [_quote(path) for path in found]

    def call(
        self,
        *words: str,
        stdin: bytes | None = None,
        extra: Mapping[str, str] | None = None,
        work_tree: Path | None = None,
        lends: tuple[int, ...] = (),
    ) -> bytes:
        """Run git on guard's own git directory and return what it prints."""
        finished = run_git(
            *_OPTIONS,
            *words,
            environ=self._environ,
            git_dir=self.folder,
            work_tree=work_tree,
            time_limit=self._time_limit,
            stdin=stdin,
            extra={"GIT_CONFIG_GLOBAL": os.devnull, **(extra or {})},
            lends=lends,
        )
        if finished.code != 0:
            raise _refusal(words[0], finished)
        return finished.stdout

    def objects(self) -> Objects:
        return Objects(self.folder, self._environ, self._time_limit)

    def write(self, kind: str, data: bytes) -> str:
        """Write an object; return its id."""
        oid = self.id_of(kind, data)
        self.write_pieces(oid, kind, len(data), [data])
        return oid

    def write_pieces(self, oid: str, kind: str, size: int, pieces: Iterable[bytes]) -> None:
        folder = self.folder / "objects" / oid[:2]
        if (folder / oid[2:]).exists():
            return
        os.makedirs(folder, mode=0o700, exist_ok=True)
        temporary = folder / f".{os.urandom(8).hex()}.tmp"
        packer = zlib.compressobj(1)
        try:
            with open(temporary, "xb") as file:
                file.write(packer.compress(b"%s %d\0" % (kind.encode(), size)))
                for piece in pieces:
                    file.write(packer.compress(piece))
                file.write(packer.flush())
            os.replace(temporary, folder / oid[2:])
        finally:
            temporary.unlink(missing_ok=True)

    def id_of(self, kind: str, data: bytes) -> str:
        digest = hashlib.new(
            self.object_format, b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False
        )
        digest.update(data)
        return digest.hexdigest()

    def borrow_from(self, place: Path) -> None:
        # A submodule may have its git directory in its own folder.
        if not os.path.lexists(place / ".git"):
            return
        found = repository_at(place).common_dir
        if found not in self.lenders and (found / "objects").is_dir():
            self.lenders.append(found)
            self.prepare()


def _delete_others(top: Folder, place: str, known: Set[str]) -> None:
    with top.walk(f"{place}any") as (folder, _):
        if folder is not None:
            for name in set(folder.names()) - known:
                delete(folder.descriptor, name)


def git_config(object_format: str) -> bytes:
    """A configuration with nothing of the project's but the kind of its object ids."""
    sha256 = object_format == "sha256"
    more = "[extensions]\n\tobjectformat = sha256\n" if sha256 else ""
    return (_CONFIG.format(version=int(sha256)) + more).encode()


def _module_folders(repository: Repository) -> Iterator[Path]:
    """The git directories of submodules below the project's."""
    ahead = list(dict.fromkeys(d / "modules" for d in (repository.git_dir, repository.common_dir)))
    found = 0
    while ahead and found < _MOST_MODULES:
        found += 1
        folder = ahead.pop()
        with suppress(OSError):
            names = sorted(
                entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)
            )
            for name in names[:_MOST_MODULES]:
                below = folder / name
                if (below / "objects").is_dir() and (below / "HEAD").is_file():
                    yield below
                    ahead.append(below / "modules")
                else:
                    # The name of a submodule may have a slash in it.
                    ahead.append(below)


@contextmanager
def explain_unreadable(what: str) -> Iterator[None]:
    """Turn an object that cannot be read into an error that names what it is of."""
    try:
        yield
    except ObjectUnreadable as error:
        raise RepositoryProblem(
            f"git cannot give guard {what}: {error}",
            f"run `git fsck`; a shallow clone gets more by `git fetch --unshallow`, a partial one by `{FETCH_ALL}`",
        ) from None


def _quote(path: str) -> str:
    """A path as git reads it in a file of lenders, where a quote or a hash at the beginning and a line end mean something."""
    if path.isprintable() and path[0] not in '"#':
        return path
    return '"' + "".join(_quote_byte(byte) for byte in os.fsencode(path)) + '"'


def _quote_byte(byte: int) -> str:
    character = chr(byte)
    return (
        character
        if byte < 0x80 and character.isprintable() and character not in '"\\'
        else f"\\{byte:03o}"
    )


def _refusal(word: str, finished: Finished) -> RepositoryProblem:
    message = finished.message or f"exit code {finished.code}"
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + "…"
    return RepositoryProblem(
        f"git {word} failed in guard's checkout: {message}",
        f"look whether the disk is full; run `git fsck`; in a partial clone `{FETCH_ALL}` brings what is missing",
    )
