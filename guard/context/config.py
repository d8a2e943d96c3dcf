"""Configuration on disk and in the environment: found, read, and handed to `core.settings` to be judged."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guard.core.base.text import valid
from guard.core.config.resolve import BadSetting, Resolved, SettingSource, knobs, nested, resolve
from guard.errors import ConfigProblem

PROJECT_FILE, PYPROJECT, USER_FILE = "guard.toml", "pyproject.toml", "config.toml"
_MOST_BYTES = 1024 * 1024


def user_folder(environ: Mapping[str, str]) -> Path:
    """Where the user's own configuration lies."""
    return _base(environ, "XDG_CONFIG_HOME", ".config")


def state_home(environ: Mapping[str, str]) -> Path:
    """Where guard keeps its workspaces."""
    return _base(environ, "XDG_STATE_HOME", os.path.join(".local", "state"))


def _base(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    """A relative path says nothing, by the rule of the XDG specification: it would follow the current folder around."""
    told = environ.get(variable, "")
    home = environ.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(told) and not os.path.isabs(home):
        raise ConfigProblem(
            f"HOME is {home!r}, which is not a whole path", f"set HOME or {variable}"
        )
    return Path(told if os.path.isabs(told) else os.path.join(home, below_home), "guard")


def load(
    project: Path | None,
    environ: Mapping[str, str],
    explicit: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    frozen: Mapping[str, Any] | None = None,
) -> Resolved:
    """The settings in force for a work tree; `explicit` is read instead of the project's and the user's file.

    `frozen` is what the project's files said when an iteration began: it stands for them, whatever they say by now.
    """
    if explicit is not None:
        sources = [SettingSource(valid(explicit), _read(explicit, required=True) or {})]
    else:
        user = user_folder(environ) / USER_FILE
        own = (
            [SettingSource("baseline", nested(frozen), trusted=False)]
            if frozen is not None
            else None
        )
        sources = [
            *(own or _project_sources(project)),
            SettingSource(valid(user), _read(user) or {}),
        ]
    sources += _environment(environ)
    sources.append(SettingSource("command line", dict(flags or {})))
    try:
        return resolve(sources)
    except BadSetting as error:
        raise ConfigProblem(str(error), "`guard config` lists every key") from None


def _project_sources(project: Path | None) -> list[SettingSource]:
    if project is None:
        return []
    found = []
    for name in (PYPROJECT, PROJECT_FILE):
        values = _read(project / name)
        if values:
            found.append(SettingSource(valid(project / name), values, trusted=False))
    return found


def _read(path: Path, *, required: bool = False) -> dict[str, Any] | None:
    try:
        data = _bounded(path)
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise ConfigProblem(f"{path}: there is no such file", "check --config") from None
        return None
    except OSError as error:
        raise ConfigProblem(f"{path}: {error.strerror}", "check its permissions") from None
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigProblem(f"{path} is not TOML: {error}", "mend it, or move it away") from None
    section = own_section(path, document)
    if not isinstance(section, dict):
        raise ConfigProblem(f"{path}: tool.guard should be a table", "write [tool.guard]")
    return section


def own_section(path: Path, document: dict[str, Any]) -> Any:
    """The part of a file that is guard's: all of it, or `[tool.guard]` of a pyproject.toml."""
    if path.name != PYPROJECT:
        return document
    tool = document.get("tool")
    return tool.get("guard", {}) if isinstance(tool, dict) else {}


def _bounded(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not os.path.isfile(path):
            raise ConfigProblem(f"{path} is not a regular file", "mend it, or move it away")
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ConfigProblem(
            f"{path} is larger than {_MOST_BYTES} bytes", "mend it, or move it away"
        )
    return data


def _environment(environ: Mapping[str, str]) -> list[SettingSource]:
    """One source per variable, so that each is named as the origin of its value."""
    variables = {knob.variable: knob.key for knob in knobs()}
    sources = []
    for name, text in environ.items():
        if not text:
            continue
        if name in variables:
            key = variables[name]
        elif name.startswith("GUARD_") and "__" in name:
            key = name.removeprefix("GUARD_").replace("__", ".").lower()
        else:
            continue
        section, _, last = key.rpartition(".")
        values = {section: {last: text}} if section else {key: text}
        sources.append(SettingSource(name, values, textual=True))
    return sources
