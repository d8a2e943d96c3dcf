"""Find the commit whose settings the user trusts: `guard trust` records hashes of the project's files in the state home.

What a commit holds cannot be edited, and whatever has another hash does not count. So an agent may write what it likes into
the files: guard takes the keys that only the user may set from the content that the user has seen, or from nowhere.
"""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from guard.context.config import (
    MOST_BYTES,
    NO_APPROVAL,
    PROJECT_FILE,
    TRUST_FOLDER,
    Approval,
    parse_settings,
    state_home,
)
from guard.core.base.fields import Digest, Frozen, Instant, Line, Oid, parse_document
from guard.core.base.first_use import dataclass
from guard.core.base.text import utf8_text
from guard.core.config.resolve import SettingSource
from guard.errors import ConfigProblem, GuardError
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader
from guard.system.folder_identity import folder_identity, is_same_folder
from guard.system.private_files import Folder

FileName = Literal["pyproject.toml", "guard.toml"]
FILES: tuple[FileName, ...] = ("pyproject.toml", "guard.toml")
_REGULAR = (b"100644", b"100755")


class TrustedFile(Frozen):
    """One file of the project's settings, as the user trusts it."""

    file: FileName
    digest: Digest | None
    """Of the bytes of guard.toml, or of guard's table in pyproject.toml; null if there was none."""


class TrustRecord(Frozen):
    """What the user trusts of one repository's settings. The path is a `file:` URI."""

    schema_: Literal["guard/trust-record/1"] = Field("guard/trust-record/1", alias="schema")
    common_dir: str
    common_dir_identity: Line | None
    """What tells this repository from a later one at the same path; null if it could not be read."""
    at: Instant
    commit: Oid
    """The commit whose files the user looked at; others with the same content are trusted as well."""
    files: tuple[TrustedFile, TrustedFile]
    proof_required: bool
    """Whether they say `prove.required`: an edit does not take that back."""


@dataclass(frozen=True)
class CommittedFile:
    """A file of the project's settings in a commit."""

    name: FileName
    values: Mapping[str, Any]
    digest: str | None
    problem: str | None = None
    """Why its content cannot be trusted."""


def read_committed(git: RepositoryReader, commit: str) -> tuple[CommittedFile, ...]:
    """Return the settings in a commit, as git keeps them: no filter and no link changes them."""
    listed = git.ask("ls-tree", "-z", "--full-tree", commit, "--", *FILES).split(b"\0")
    entries = {name: head.split() for head, _, name in (line.partition(b"\t") for line in listed)}
    return tuple(_read_blob(git, name, entries.get(name.encode())) for name in FILES)


def _read_blob(git: RepositoryReader, name: FileName, entry: list[bytes] | None) -> CommittedFile:
    if entry is None:
        return CommittedFile(name, {}, None)
    mode, _, oid = entry
    if mode not in _REGULAR:
        return CommittedFile(name, {}, None, f"{name} is a link or a folder, not a file")
    size = int(git.ask("cat-file", "-s", oid.decode()))
    data = git.ask("cat-file", "blob", oid.decode()) if size <= MOST_BYTES else b" " * size
    try:
        values = parse_settings(Path(name), data)
    except ConfigProblem as error:
        return CommittedFile(name, {}, None, error.message)
    return CommittedFile(name, values, _digest(name, values, data) if values else None)


def _digest(name: FileName, values: Mapping[str, Any], data: bytes) -> str:
    # The rest of pyproject.toml changes with every dependency, and says nothing to guard.
    table = json.dumps(values, sort_keys=True, default=repr).encode()
    return sha256(data if name == PROJECT_FILE else table).hexdigest()


class ProjectTrust:
    """What the user trusts of a repository's settings."""

    def __init__(
        self, repository: Repository, environ: Mapping[str, str], git_seconds: float
    ) -> None:
        self._repository = repository
        self._environ = environ
        self._git = RepositoryReader(repository, environ, git_seconds)
        self._approvals: dict[tuple[str, ...], Approval] = {}

    @property
    def path(self) -> Path:
        return state_home(self._environ) / TRUST_FOLDER / self._name

    @property
    def _name(self) -> str:
        place = os.fsencode(self._repository.common_dir)
        return f"{sha256(place).hexdigest()[:32]}.json"

    @cached_property
    def problem(self) -> str | None:
        """Return why the record cannot be read; None if it can be, or if there is none."""
        return self._read()[1]

    @cached_property
    def record(self) -> TrustRecord | None:
        return self._read()[0]

    def _read(self) -> tuple[TrustRecord | None, str | None]:
        try:
            folder = Folder.open(self.path.parent)
            if folder is None:
                return None, None
            with folder:
                data = folder.read(self._name)
            found = parse_document(TrustRecord, data) if data is not None else None
        except (GuardError, OSError, ValueError) as error:
            said = error.message if isinstance(error, GuardError) else str(error)
            return None, f"{utf8_text(self.path)} cannot be read, so nothing is trusted: {said}"
        if found is None or self._is_ours(found):
            return found, None
        return None, None

    def _is_ours(self, found: TrustRecord) -> bool:
        # Another repository at the same path has not been looked at.
        known, place = found.common_dir_identity, self._repository.common_dir
        same = known is None or is_same_folder(known, folder_identity(place))
        return same and found.common_dir == place.as_uri()

    def grant(self, commit: str, files: tuple[CommittedFile, ...], now: datetime) -> TrustRecord:
        """Record that the user trusts these files."""
        first, second = (TrustedFile(file=file.name, digest=file.digest) for file in files)
        place = self._repository.common_dir
        record = TrustRecord(
            common_dir=place.as_uri(),
            common_dir_identity=folder_identity(place),
            at=now,
            commit=commit,
            files=(first, second),
            proof_required=any(_requires_proof(file.values) for file in files),
        )
        os.makedirs(self.path.parent.parent, mode=0o700, exist_ok=True)
        with Folder.make(self.path.parent) as folder:
            data = record.model_dump_json(indent=2).encode() + b"\n"
            folder.replace(self._name, data, durable=True, locked=False)
        self._forget_answers()
        return record

    def revoke(self) -> None:
        folder = Folder.open(self.path.parent)
        if folder is not None:
            with folder:
                folder.remove(self._name)
        self._forget_answers()

    def _forget_answers(self) -> None:
        self._approvals.clear()
        for name in ("record", "problem"):
            self.__dict__.pop(name, None)

    def find_commit(self, commits: Iterable[str]) -> str | None:
        """Return the first of the commits that has the content which the user trusts."""
        if self.record is None:
            return None
        files = ((commit, read_committed(self._git, commit)) for commit in dict.fromkeys(commits))
        return next((commit for commit, found in files if not self.edited_files(found)), None)

    def edited_files(self, files: tuple[CommittedFile, ...]) -> tuple[FileName, ...]:
        """Return which of the files are not as the user trusts them."""
        known = {file.file: file.digest for file in self.record.files} if self.record else {}
        return tuple(
            file.name
            for file in files
            if file.problem is not None or file.digest != known.get(file.name)
        )

    def approve(self, commits: tuple[str, ...]) -> Approval:
        """Return the trusted content, if one of the commits has it; else a warning that says what was edited."""
        if self.record is None:
            return Approval(warnings=(self.problem,)) if self.problem else NO_APPROVAL
        if commits not in self._approvals:
            try:
                self._approvals[commits] = self._approve(commits, self.record)
            except GuardError as error:
                # A repository that git cannot read is no reason to stop a rescue.
                said = f"guard cannot read the settings that you trust: {error.message}"
                return Approval({}, self._kept_sources(self.record), (said,), is_known=True)
        return self._approvals[commits]

    def _approve(self, commits: tuple[str, ...], record: TrustRecord) -> Approval:
        commit = self.find_commit(commits)
        if commit is None:
            edited: tuple[str, ...] = ()
            with suppress(IndexError):
                edited = self.edited_files(read_committed(self._git, commits[0]))
            said = (
                f"{' and '.join(edited) or 'the project'} was edited since you trusted it: keys that only you "
                "may set do not count until you look at it and run `guard trust`"
            )
            return Approval({}, self._kept_sources(record), (said,), is_known=True)
        files = [file for file in read_committed(self._git, commit) if file.values]
        sources = (
            SettingSource(
                f"{file.name} of {commit[:12]}, trusted", file.values, trusted=False, approved=True
            )
            for file in files
        )
        values: dict[str, Mapping[str, Any]] = {file.name: file.values for file in files}
        return Approval(values, tuple(sources), is_known=True)

    @staticmethod
    def _kept_sources(record: TrustRecord) -> tuple[SettingSource, ...]:
        if not record.proof_required:
            return ()
        values = {"prove": {"required": True}}
        return (SettingSource("what you trusted last", values, trusted=False, approved=True),)


def _requires_proof(values: Mapping[str, Any]) -> bool:
    table = values.get("prove")
    return isinstance(table, Mapping) and table.get("required") is True
