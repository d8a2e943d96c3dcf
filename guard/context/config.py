"""Read the configuration from files and variables; `core/config` resolves it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from guard.core.base.first_use import dataclass
from guard.core.base.text import utf8_text
from guard.core.config.resolve import (
    BadSetting,
    Resolved,
    SettingSource,
    key_of_variable,
    nest_keys,
    resolve,
)
from guard.errors import ConfigProblem
from guard.system.foreign_files import read_regular
from guard.system.homes import cache_home as cache_home
from guard.system.homes import state_home as state_home
from guard.system.homes import user_folder as user_folder

PROJECT_FILE, PYPROJECT, USER_FILE = "guard.toml", "pyproject.toml", "config.toml"
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Approval:
    """What the user trusts of the project's settings, as it is in one commit."""

    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The content of each file that has settings of guard, by its name."""
    sources: tuple[SettingSource, ...] = ()
    warnings: tuple[str, ...] = ()
    is_known: bool = False
    """Whether the user trusts any: then an edited file gets one warning, not one for each key."""


NO_APPROVAL = Approval()
TRUST_FOLDER = "trust.d"
"""In the state home: one record for each repository whose settings the user trusts."""


def has_records(environ: Mapping[str, str]) -> bool:
    """Tell whether the user trusts the settings of any repository."""
    return os.path.lexists(state_home(environ) / TRUST_FOLDER)


def _settle(source: SettingSource, approval: Approval) -> SettingSource:
    return replace(source, is_settled=True) if approval.is_known else source


def _edited(sources: Sequence[SettingSource], approval: Approval) -> list[str]:
    """Return a warning of each file of the work tree that is not as the user trusts it."""
    found = {os.path.basename(source.origin): source.values for source in sources}
    names = [
        name
        for name in (PYPROJECT, PROJECT_FILE)
        if approval.files and approval.files.get(name, {}) != found.get(name, {})
    ]
    return [
        f"{name} was edited since you trusted it; the edit does not count until you run `guard trust`"
        for name in names
    ]


class ConfigSources:
    """Reads each configuration file and the variables once per call of guard."""

    def __init__(self, environ: Mapping[str, str], explicit: Path | None = None) -> None:
        self._environ = environ
        self._explicit = explicit
        self._projects: dict[Path, tuple[list[SettingSource], list[str]]] = {}

    def resolve(
        self,
        project: Path | None,
        flags: Mapping[str, Any] | None = None,
        frozen: Mapping[str, Any] | None = None,
        approval: Approval = NO_APPROVAL,
    ) -> Resolved:
        """Return the settings in force for a work tree.

        `frozen` holds the project's settings from the start of an iteration; it replaces the project's files. `approval`
        holds what the user trusts of them.
        """
        sources = [*self._user_sources, SettingSource("command line", dict(flags or {}))]
        warnings: list[str] = []
        if self._explicit is None:
            from_project, unread = self._project_sources(project, frozen)
            settled = [_settle(source, approval) for source in from_project]
            edited = [] if project is None or frozen is not None else _edited(settled, approval)
            warnings = [*unread, *approval.warnings, *edited]
            sources = [*settled, *approval.sources, *sources]
        try:
            resolved = resolve(sources)
        except BadSetting as error:
            raise ConfigProblem(str(error), "`guard config` lists every key") from None
        return replace(resolved, warnings=(*warnings, *resolved.warnings))

    @cached_property
    def _user_sources(self) -> list[SettingSource]:
        path = self._explicit or user_folder(self._environ) / USER_FILE
        values = _read(path, required=self._explicit is not None) or {}
        return [SettingSource(utf8_text(path), values), *_environment(self._environ)]

    def _project_sources(
        self, project: Path | None, frozen: Mapping[str, Any] | None
    ) -> tuple[list[SettingSource], list[str]]:
        """Return the project's sources, and warnings of its files that cannot be read: they must not stop guard."""
        if frozen is not None:
            return [SettingSource("baseline", nest_keys(frozen), trusted=False)], []
        if project is None:
            return [], []
        if project not in self._projects:
            sources, unread = self._projects[project] = [], []
            for path in (project / PYPROJECT, project / PROJECT_FILE):
                try:
                    values = _read(path)
                except ConfigProblem as error:
                    unread.append(f"{utf8_text(error.message)}; none of its settings count")
                else:
                    if values:
                        sources.append(SettingSource(utf8_text(path), values, trusted=False))
        return self._projects[project]

    def project_values(self, project: Path) -> dict[str, Mapping[str, Any]]:
        """Return what each file of the project says now, by its name; nothing of one that cannot be read."""
        found = {
            os.path.basename(source.origin): source.values
            for source in self._project_sources(project, None)[0]
        }
        return {name: found.get(name, {}) for name in (PYPROJECT, PROJECT_FILE)}


def _read(path: Path, *, required: bool = False) -> dict[str, Any] | None:
    try:
        data = read_regular(path, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise ConfigProblem(
                f"{path}: there is no such file", "check the path after --config"
            ) from None
        return None
    except OSError as error:
        raise ConfigProblem(
            f"{path}: {error.strerror}", "make it a regular file that you may read"
        ) from None
    return parse_settings(path, data)


def parse_settings(path: Path, data: bytes) -> dict[str, Any]:
    """Return guard's settings in the content of a file; ConfigProblem if there is no telling."""
    if len(data) > MOST_BYTES:
        raise ConfigProblem(
            f"{path} is larger than {MOST_BYTES} bytes", "fix the file, or move it away"
        )
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigProblem(
            f"{path} is not TOML: {error}", "fix the file, or move it away"
        ) from None
    section = own_section(path, document)
    if not isinstance(section, dict):
        raise ConfigProblem(f"{path}: tool.guard should be a table", "write [tool.guard]")
    return section


def own_section(path: Path, document: dict[str, Any]) -> Any:
    """Return guard's part of a file: the whole file, or `[tool.guard]` of a pyproject.toml."""
    if path.name != PYPROJECT:
        return document
    tool = document.get("tool")
    return tool.get("guard", {}) if isinstance(tool, dict) else {}


def _environment(environ: Mapping[str, str]) -> list[SettingSource]:
    # One source per variable, so that `guard config` can name the variable as the origin of the value.
    sources = []
    for name, text in environ.items():
        key = key_of_variable(name)
        if not text or not key:
            continue
        section, _, last = key.rpartition(".")
        values = {section: {last: text}} if section else {key: text}
        sources.append(SettingSource(name, values, textual=True))
    return sources
