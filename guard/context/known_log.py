"""Remember on this machine which logs have begun, so that guard does not take a log that is gone for a new one.

Each log has a record in the state home, outside its workspace, for each repository that is kept in it. The record holds what
tells that repository from another one at the same path, and a place in the log that the log must still have.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import Field

from guard.context.config import state_home
from guard.context.workspace import path_of_uri
from guard.core.base.fields import Digest, Frozen, Instant, Line, Seq, parse_document
from guard.core.iteration.facts import Process
from guard.core.log.record import Position
from guard.errors import GuardError
from guard.git.locate import Repository
from guard.system.folder_identity import folder_identity, is_same_folder
from guard.system.private_files import Folder
from guard.system.process_identity import is_alive

FOLDER = "logs.d"
_RENEWED_AFTER = 100
"""Records."""
SUPERVISOR = "GUARD_SUPERVISOR"
"""Names the guard that runs the agent, and the workspace of its log, to the commands that the agent calls."""


class KnownLog(Frozen):
    """What this machine remembers of a log. Paths are `file:` URIs."""

    schema_: Literal["guard/known-log/1"] = Field("guard/known-log/1", alias="schema")
    workspace: str
    worktree: str
    worktree_identity: Line | None
    """What tells this folder from a later one at the same path; null if it could not be read."""
    common_dir: str
    common_dir_identity: Line | None
    at: Instant
    """When this record was written."""
    seq: Seq
    hash: Digest
    """The last record of the log by then."""

    def is_same_repository(self) -> bool:
        """Tell whether the repository at its path is still the one of which this log was kept."""
        places = (
            (self.worktree, self.worktree_identity),
            (self.common_dir, self.common_dir_identity),
        )
        return any(
            known is not None and is_same_folder(known, folder_identity(path_of_uri(uri)))
            for uri, known in places
        )


class LogKeeper:
    """Answers for one workspace whether its log has begun, and remembers that it has."""

    def __init__(
        self,
        workspace: Path,
        repository: Repository | None,
        environ: Mapping[str, str],
        now: Callable[[], datetime],
        warn: Callable[[str], None],
    ) -> None:
        self._workspace = Path(os.path.realpath(workspace.parent), workspace.name)
        self._repository = repository
        self._environ = environ
        self._now = now
        self._warn = warn
        self._is_noted = False
        self._has_warned = False

    @cached_property
    def _folder(self) -> Path:
        return state_home(self._environ) / FOLDER

    @property
    def _name(self) -> str | None:
        if self._repository is None:
            return None
        return f"{self._prefix}{_digest(self._repository.common_dir)}.json"

    @property
    def _prefix(self) -> str:
        return f"{_digest(self._workspace)}."

    @cached_property
    def known_seq(self) -> int:
        """Return a record number that the log must have reached; 0 if this machine remembers none."""
        name = self._name
        with suppress(GuardError, OSError, ValueError, KeyError, TypeError):
            folder = Folder.open(self._folder) if name is not None else None
            if folder is not None and name is not None:
                with folder:
                    return int(json.loads(folder.read(name) or b'{"seq": 0}')["seq"])
        return 0

    def find_known(self) -> KnownLog | None:
        """Return what is remembered of this log, for a repository that is still there."""
        found = [known for known in self._all_known() if isinstance(known, KnownLog)]
        return max(found, key=lambda known: known.seq, default=None)

    def find_loss(self) -> str | None:
        """Say why a log must have been here, for a workspace that has none; None if nothing speaks of one."""
        known = self.find_known()
        if known is not None:
            return f"it had {known.seq} records at {known.at:%Y-%m-%d %H:%M:%S} UTC"
        for trouble in self._all_known():
            if isinstance(trouble, str):
                return trouble
        supervisor = self.find_supervisor()
        if supervisor is not None:
            return f"guard (pid {supervisor}) is running an iteration that it recorded there"
        self._warn_of_refs()
        return None

    def _all_known(self) -> Iterator[KnownLog | str]:
        """Yield what is remembered of this workspace's log: a record, or a sentence on one that cannot be read."""
        try:
            folder = Folder.open(self._folder)
            if folder is None:
                if _leads_nowhere(self._folder):
                    yield f"{self._folder}, which remembers the logs, lies behind a link that leads nowhere"
                return
            with folder:
                for name in [name for name in folder.names() if name.startswith(self._prefix)]:
                    try:
                        known = parse_document(KnownLog, folder.read(name) or b"")
                    except (GuardError, OSError, ValueError):
                        yield f"{folder.path_of(name)}, which remembers it, cannot be read"
                    else:
                        if known.is_same_repository():
                            yield known
        except (GuardError, OSError):
            yield f"{self._folder}, which remembers the logs, cannot be read"

    def find_supervisor(self) -> int | None:
        """Return the pid of the guard that runs the calling agent and keeps this log; None if there is none."""
        pid, _, rest = self._environ.get(SUPERVISOR, "").partition(":")
        digest, _, start = rest.partition(":")
        ours = pid.isdecimal() and digest == _digest(self._workspace)
        return int(pid) if ours and is_alive(int(pid), start) else None

    def supervisor_variable(self, process: Process | None) -> dict[str, str]:
        """Return the variable by which the agent's own calls of guard know that this process keeps the log."""
        if process is None:
            return {}
        return {SUPERVISOR: f"{process.pid}:{_digest(self._workspace)}:{process.start}"}

    def _warn_of_refs(self) -> None:
        from guard.git.refs import has_guard_refs

        repository = self._repository
        if self._has_warned or repository is None:
            return
        self._has_warned = True
        if has_guard_refs(repository.common_dir) and not self._is_known_elsewhere(repository):
            self._warn(
                "the repository has refs of an earlier guard (refs/guard), but this machine remembers no log of it: "
                "guard takes it for a copy, and begins anew"
            )

    def _is_known_elsewhere(self, repository: Repository) -> bool:
        # Then the refs are from another workspace of the same repository.
        with suppress(GuardError, OSError):
            folder = Folder.open(self._folder)
            if folder is not None:
                with folder:
                    suffix = f".{_digest(repository.common_dir)}.json"
                    return any(name.endswith(suffix) for name in folder.names())
        return False

    def note(self, head: Position) -> None:
        """Remember the first change of this process, and one after it has grown much; what cannot be written is left."""
        is_first, self._is_noted = not self._is_noted, True
        if not is_first and head.seq < self.known_seq + _RENEWED_AFTER:
            return
        known = self._read_own()
        if known is None:
            self.renew(head)
        elif head.seq > known.seq:
            self._write(
                known.model_copy(update={"at": self._now(), "seq": head.seq, "hash": head.hash})
            )

    def _read_own(self) -> KnownLog | None:
        name = self._name
        with suppress(GuardError, OSError, ValueError):
            folder = Folder.open(self._folder) if name is not None else None
            if folder is not None and name is not None:
                with folder:
                    return parse_document(KnownLog, folder.read(name) or b"")
        return None

    def renew(self, head: Position) -> None:
        """Remember the log up to this record, whatever was remembered before; what cannot be written is left."""
        repository = self._repository
        if repository is None or not head.seq:
            return
        record = KnownLog(
            workspace=self._workspace.as_uri(),
            worktree=repository.root.as_uri(),
            worktree_identity=folder_identity(repository.root),
            common_dir=repository.common_dir.as_uri(),
            common_dir_identity=folder_identity(repository.common_dir),
            at=self._now(),
            seq=head.seq,
            hash=head.hash,
        )
        self._write(record)

    def _write(self, record: KnownLog) -> None:
        name = self._name
        assert name is not None
        with suppress(GuardError, OSError):
            os.makedirs(self._folder.parent, mode=0o700, exist_ok=True)
            with Folder.make(self._folder) as folder:
                folder.replace(
                    name, record.model_dump_json(indent=2).encode() + b"\n", locked=False
                )
        self.__dict__["known_seq"] = record.seq

    def forget(self) -> None:
        """Forget the log, so that a new one may begin; what cannot be read is forgotten too."""
        with suppress(GuardError, OSError):
            folder = Folder.open(self._folder)
            if folder is not None:
                with folder:
                    for name in folder.names():
                        if name.startswith(self._prefix):
                            folder.remove(name)
        self._is_noted = False
        self.__dict__["known_seq"] = 0


def _leads_nowhere(path: Path) -> bool:
    return any(part.is_symlink() and not part.exists() for part in (path, *path.parents))


def _digest(path: Path) -> str:
    return sha256(os.fsencode(path)).hexdigest()[:32]
