"""Choose the folder for a repository's state, and find it again."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote_to_bytes

from guard.context.config import state_home
from guard.core.config.resolve import Resolved
from guard.errors import (
    ConfigProblem,
    RepositoryProblem,
    StateProblem,
    StoreUnavailable,
    WrongUsage,
)
from guard.git import locate
from guard.git.locate import Repository
from guard.store.dsn import Dsn, is_dsn, parse_dsn
from guard.system.host import machine_id
from guard.system.private_files import Folder

INDEX = "index.d"
_ENTRY_SCHEMA = "guard/worktree/1"
_LARGEST_NUMBER = 2**53
_TITLE = b"# State of guard"
_README = """\
# State of guard

This folder belongs to `guard`, the completion guard for coding agents. It holds the state of

    {subject}

`events.jsonl`, with the numbered segments before it, is the log. Guard makes every other file from it, and
`guard rebuild` makes them again. Do not edit any of these files: `guard verify` finds edits and damage.
If you delete this folder, you lose the history of the runs and the snapshots; the repository stays as it is.
Guard then refuses to go on as if nothing had happened, until you run `guard init --fresh`.
"""


# Every command reads this document, and `guard where` reads no other one: so it is no model of pydantic, whose import takes
# longer than all the rest of that command. `guard.schemas.generate` makes a model of it for the schema.
@dataclass(frozen=True)
class WorktreeEntry:
    """One work tree in the index, with its workspace. Paths are `file:` URIs."""

    worktree: str
    git_dir: str
    common_dir: str
    device: int
    inode: int
    workspace: str

    @classmethod
    def parse(cls, data: bytes) -> "WorktreeEntry":
        """Return the entry; ValueError says what is wrong with the document."""
        values = json.loads(data)
        if not isinstance(values, dict) or values.pop("schema", None) != _ENTRY_SCHEMA:
            raise ValueError(f"schema: it should be {_ENTRY_SCHEMA!r}")
        kinds = {field.name: field.type for field in fields(cls)}
        for name in sorted({*kinds, *values}):
            if name not in kinds:
                raise ValueError(f"{name}: there is no such field")
            if type(values.get(name)) is not kinds[name]:
                raise ValueError(f"{name}: it is missing or of a wrong type")
            if kinds[name] is int and not 0 <= values[name] <= _LARGEST_NUMBER:
                raise ValueError(f"{name}: {values[name]} is out of range")
        return cls(**values)

    def as_json(self) -> bytes:
        document = {"schema": _ENTRY_SCHEMA, **asdict(self)}
        return json.dumps(document, indent=2).encode() + b"\n"


@dataclass(frozen=True)
class Workspace:
    """The folder of the state, and why guard chose it."""

    path: Path
    """The folder on this machine; with a server, its local half: snapshots, kept output, what hooks have spooled."""
    origin: str
    repository: Repository | None
    explicit: bool
    server: "Dsn | None" = None
    """Where the shared half is: log, views and leases; None if they lie in the folder, too."""

    @property
    def name(self) -> str:
        """Return what `--workspace` takes to mean this one; never with a password."""
        return self.server.shown if self.server is not None else str(self.path)

    @property
    def key(self) -> str:
        """Return one id for all work trees of the workspace, which every machine that shares it comes to."""
        if self.server is None:
            return worktree_key_of_path(self.path)
        return _readable_id(Path(self.shared_name), Path(self.shared_name))

    @property
    def shared_name(self) -> str:
        """Return the name of the workspace in the database."""
        if self.server is not None and self.server.name is not None:
            return self.server.name
        return self.path.name


def worktree_key(root: Path, environ: Mapping[str, str] = os.environ) -> str:
    """Return the name of a work tree in the log: of this path on this machine."""
    machine = machine_id(environ)
    return _readable_id(root, root, f"{machine}\n" if machine else "")


def worktree_key_of_path(root: Path) -> str:
    """Return the name that older guards gave a work tree, whatever the machine."""
    return _readable_id(root, root)


# The state lies outside the work tree and outside `.git`, because agents run `git clean -fdx` and sometimes `rm -rf .git`. An
# index in the state home maps each work tree to its workspace. Guard asks the index before git, so it finds the workspace
# even if `.git` is gone.
def find_repository(start: Path, environ: Mapping[str, str]) -> Repository:
    home = state_home(environ)
    try:
        start = start.absolute()
    except FileNotFoundError:
        raise RepositoryProblem(
            "the current folder no longer exists",
            "change to another folder, or name a repository with --repo",
        ) from None
    return locate.find_repository(start, lambda folder: _recall_repository(home, folder))


def choose(
    repository: Repository | None, flag: str | None, config: Resolved, environ: Mapping[str, str]
) -> Workspace:
    """Choose the workspace: by flag, variable or configuration, else by the index, else the default."""
    given = flag or config.settings.workspace
    if given and is_dsn(given):
        return _on_server(given, repository, flag, config, environ)
    if given:
        origin = "--workspace" if flag else config.origins["workspace"]
        if os.path.isabs(origin) and not os.path.isabs(os.path.expanduser(given)):
            raise ConfigProblem(
                f"{origin}: workspace {given!r} is a relative path, which would depend on the current folder",
                "write an absolute path",
            )
        return Workspace(_check_path(given), origin, repository, explicit=True)
    if repository is None:
        raise WrongUsage(
            "there is no repository here, and no workspace was given", "use --repo or --workspace"
        )
    home = state_home(environ)
    entry = _entry(home, repository.root)
    if entry is not None and entry.common_dir == repository.common_dir.as_uri():
        return Workspace(path_of_uri(entry.workspace), "index", repository, explicit=False)
    return Workspace(_default_path(home, repository), "default", repository, explicit=False)


def _on_server(
    given: str,
    repository: Repository | None,
    flag: str | None,
    config: Resolved,
    environ: Mapping[str, str],
) -> Workspace:
    origin = "--workspace" if flag else config.origins["workspace"]
    server = _parse_dsn(given, origin)
    if flag and server.has_password:
        raise WrongUsage(
            "--workspace has a password in it, which every user of this machine can read in the list of processes",
            "leave it out, and set PGPASSWORD or use ~/.pgpass; in GUARD_WORKSPACE or your own config it may stay",
        )
    if flag and is_dsn(configured := config.settings.workspace or ""):
        # A command that guard starts is told the address without the password, which it finds where its parent did.
        known = _parse_dsn(configured, config.origins["workspace"])
        server = known if known.shown == server.shown else server
    home = state_home(environ)
    if repository is None:
        name = _readable_id(Path(server.name or "fleet"), Path(server.shown))
        return Workspace(home / name, origin, None, explicit=True, server=server)
    return Workspace(
        _default_path(home, repository), origin, repository, explicit=True, server=server
    )


def show_place(given: str) -> str:
    """Return a path or an address without its password."""
    if not is_dsn(given):
        return re.sub(r"(?<=://)([^/@:]*):[^/@]*(?=@)", r"\1", given)
    try:
        return parse_dsn(given).shown
    except ValueError:
        return "postgresql://…"


def _parse_dsn(given: str, origin: str) -> Dsn:
    try:
        return parse_dsn(given)
    except ValueError as error:
        raise WrongUsage(
            f"{origin} is no address of a PostgreSQL server: {error}",
            "write postgresql://USER@HOST/DATABASE",
        ) from None


def _default_path(home: Path, repository: Repository) -> Path:
    main = repository.common_dir
    label = main.parent if main.name == ".git" else main
    return home / _readable_id(label, main)


def _check_path(given: str) -> Path:
    if "\0" in given:
        raise WrongUsage("the path of the workspace contains a NUL character", "name a folder")
    path = Path(os.path.abspath(os.path.expanduser(given)))
    if len(os.fsencode(path.name)) > 255 or len(os.fsencode(path)) > 4000:
        raise WrongUsage("the path of the workspace is too long", "name another folder")
    if not path.parent.is_dir():
        raise WrongUsage(
            f"cannot create the workspace {path}: {path.parent} does not exist",
            "create that folder first, or check the spelling",
        )
    return path


def ensure(workspace: Workspace, environ: Mapping[str, str]) -> None:
    """Create the folder, its README and its entry in the index where they are missing.

    Only the folder is required: a full disk may have room for a record but not for the other two.
    """
    try:
        if not workspace.explicit or workspace.server is not None:
            os.makedirs(workspace.path.parent, mode=0o700, exist_ok=True)
        folder = Folder.make(workspace.path)
        _refuse_others(folder)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot prepare {workspace.path}: {error.strerror}",
            "`guard doctor` checks the workspace",
        ) from None
    with folder, suppress(OSError, StoreUnavailable):
        if not folder.exists("README.md"):
            subject = workspace.repository.common_dir if workspace.repository else "runs of agents"
            text = os.fsencode(_README.format(subject=subject))
            folder.replace("README.md", text, locked=False)
        if workspace.repository is not None and not workspace.explicit:
            _remember(state_home(environ), workspace, workspace.repository)


def is_workspace(folder: Folder) -> bool:
    """Tell whether the folder is guard's, or empty."""
    from guard.store.lock import LOCK

    names = folder.names()
    # Another guard process may be writing the README now.
    ours = any(
        name in (LOCK, "shadow.git") or name.startswith(("events.", ".README.md."))
        for name in names
    )
    return not names or ours or (folder.read("README.md") or b"").startswith(_TITLE)


def _refuse_others(folder: Folder) -> None:
    if not is_workspace(folder):
        folder.close()
        raise WrongUsage(
            f"{folder.path} contains files that are not guard's", "name a new or an empty folder"
        )


def _remember(home: Path, workspace: Workspace, repository: Repository) -> None:
    status = os.stat(repository.root)
    entry = WorktreeEntry(
        worktree=repository.root.as_uri(),
        git_dir=repository.git_dir.as_uri(),
        common_dir=repository.common_dir.as_uri(),
        device=status.st_dev,
        inode=status.st_ino,
        workspace=workspace.path.as_uri(),
    )
    data = entry.as_json()
    with Folder.make(home / INDEX) as folder:
        name = _entry_name(repository.root)
        if folder.read(name) != data:
            folder.replace(name, data, locked=False)


def refuse_damaged_index(repository: Repository, environ: Mapping[str, str]) -> None:
    """Raise if the next command could not read the entry of this work tree."""
    _entry(state_home(environ), repository.root)


def _recall_repository(home: Path, folder: Path) -> Repository | None:
    # The index knows the work tree even if its `.git` is gone; device and inode tell whether it is still the same folder.
    entry = _entry(home, folder)
    if entry is None:
        return None
    status = os.stat(folder)
    if (status.st_dev, status.st_ino) != (entry.device, entry.inode):
        return None
    git_dir, common_dir = path_of_uri(entry.git_dir), path_of_uri(entry.common_dir)
    return Repository(folder, git_dir, common_dir, git_dir_exists=False)


def list_entries(
    environ: Mapping[str, str], notice: Callable[[str], None]
) -> Iterator[WorktreeEntry]:
    """Yield every entry of the index, those of one workspace among them; a damaged one is only told of."""
    home = state_home(environ)
    opened = Folder.open(home / INDEX)
    if opened is None:
        return
    with opened as index:
        for name in sorted(index.names()):
            if not name.endswith(".json") or name.startswith("."):
                continue
            try:
                yield WorktreeEntry.parse(index.read(name) or b"")
            except (ValueError, RecursionError, StateProblem) as error:
                notice(f"{home / INDEX / name} is left out: {error}")


def _entry(home: Path, folder: Path) -> WorktreeEntry | None:
    opened = Folder.open(home / INDEX)
    if opened is None:
        return None
    with opened as index:
        data = index.read(_entry_name(folder))
    if data is None:
        return None
    try:
        entry = WorktreeEntry.parse(data)
    except (ValueError, RecursionError) as error:
        raise StateProblem(
            f"{home / INDEX / _entry_name(folder)} is damaged: {error}",
            "delete the file; the next command writes it again",
        ) from None
    return entry if entry.worktree == folder.as_uri() else None


def path_of_uri(uri: str) -> Path:
    # A `file:` URI can hold any path in JSON, whatever its bytes.
    return Path(os.fsdecode(unquote_to_bytes(uri.removeprefix("file://"))))


def _entry_name(folder: Path) -> str:
    return f"{_digest(folder)}.json"


def _readable_id(label: Path, subject: Path, before: str = "") -> str:
    # A readable id: the last part of the label, and a hash of the subject's whole path.
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in label.name)
    digest = sha256(before.encode() + os.fsencode(subject)).hexdigest()
    return f"{plain.lstrip('-_')[:64] or 'repository'}-{digest[:12]}"


def _digest(path: Path) -> str:
    return sha256(os.fsencode(path)).hexdigest()
