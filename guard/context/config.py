"""Read the configuration from files and variables; `core/config` resolves it."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from guard.core.base.text import utf8_text
from guard.core.config.resolve import BadSetting, Resolved, SettingSource, knobs, nest_keys, resolve
from guard.errors import ConfigProblem
from guard.system.foreign_files import read_regular

PROJECT_FILE, PYPROJECT, USER_FILE = "guard.toml", "pyproject.toml", "config.toml"
_MOST_BYTES = 1024 * 1024


def user_folder(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_CONFIG_HOME", ".config")


def state_home(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_STATE_HOME", os.path.join(".local", "state"))


def cache_home(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_CACHE_HOME", ".cache")


def _base(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    # A relative path would depend on the current folder, so it counts as unset, as the XDG specification says.
    path = environ.get(variable, "")
    home = environ.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(path) and not os.path.isabs(home):
        raise ConfigProblem(
            f"HOME is {home!r}, which is not an absolute path", f"set HOME or {variable}"
        )
    return Path(path if os.path.isabs(path) else os.path.join(home, below_home), "guard")


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
    ) -> Resolved:
        """Return the settings in force for a work tree.

        `frozen` holds the project's settings from the start of an iteration; it replaces the project's files.
        """
        sources = [*self._user_sources, SettingSource("command line", dict(flags or {}))]
        unread: list[str] = []
        if self._explicit is None:
            from_project, unread = self._project_sources(project, frozen)
            sources = [*from_project, *sources]
        try:
            resolved = resolve(sources)
        except BadSetting as error:
            raise ConfigProblem(str(error), "`guard config` lists every key") from None
        return replace(resolved, warnings=(*unread, *resolved.warnings))

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


def _read(path: Path, *, required: bool = False) -> dict[str, Any] | None:
    try:
        data = read_regular(path, _MOST_BYTES)
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
    if len(data) > _MOST_BYTES:
        raise ConfigProblem(
            f"{path} is larger than {_MOST_BYTES} bytes", "fix the file, or move it away"
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
    variables = {knob.variable: knob.key for knob in knobs()}
    sources = []
    for name, text in environ.items():
        key = variables.get(name, "")
        if not key and name.startswith("GUARD_") and "__" in name:
            key = name.removeprefix("GUARD_").replace("__", ".").lower()
        if not text or not key:
            continue
        section, _, last = key.rpartition(".")
        values = {section: {last: text}} if section else {key: text}
        sources.append(SettingSource(name, values, textual=True))
    return sources
