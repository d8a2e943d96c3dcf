"""How guard is called by a hook: by its name where that is this very installation, else by its path."""

import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from guard.errors import WrongUsage
from guard.install.base import Environ
from guard.install.shell import OWN_NAMES


def by_name(environ: Environ) -> str | None:
    """The name by which the search path leads to this installation, if one does."""
    return next((name for name in OWN_NAMES if _found(name, environ)), None)


def by_path(environ: Environ) -> str:
    """The whole path of this installation's program, quoted for a shell."""
    found = (_found(name, environ) for name in OWN_NAMES)
    path = next((one for one in found if one), None) or next(iter(_scripts()), None)
    if path is not None:
        return shlex.quote(path)
    return f"{shlex.quote(sys.executable)} -m guard"


def checked(command: str) -> str:
    """A command that a person gave, if a shell could take it for one."""
    told = command.strip()
    try:
        words = shlex.split(told)
    except ValueError as error:
        raise WrongUsage(f"--command: {error}", "quote it for the shell") from None
    if not words or not told.isprintable():
        raise WrongUsage("--command should be one line that a shell can run")
    return told


def _found(name: str, environ: Environ) -> str | None:
    """Where the search path leads for this name, if that is this installation."""
    path = shutil.which(name, path=environ.get("PATH", ""))
    if path is None:
        return None
    own = {os.path.realpath(script) for script in _scripts()}
    return os.path.abspath(path) if os.path.realpath(path) in own else None


def _scripts() -> Iterator[str]:
    """The programs that were installed with the code that runs here."""
    called = Path(sys.argv[0])
    if called.name in OWN_NAMES and called.is_absolute() and os.access(called, os.X_OK):
        yield str(called)
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    for folder in dict.fromkeys(folders):
        for name in OWN_NAMES:
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                yield path
