"""Find the user's own folders for guard: configuration, state, cache."""

import os
from collections.abc import Mapping
from pathlib import Path

from guard.errors import ConfigProblem


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
