"""Write the command lines by which hooks call guard, and find them among others."""

import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from guard.errors import WrongUsage
from guard.system.programs import find_as_shell, own_python

Environ = Mapping[str, str]

OWN_NAMES = ("guard", "completion-guard")
MARK = "# completion-guard"
"""Ends a command that does not tell by its program's name that it is guard's."""
FORGIVEN = "|| true"
"""Ends a command whose failure the agent CLI would take for a no; guard never answers by its exit code."""
_MOST_DEPTH = 3
_PART = re.compile(
    r"""(?P<quoted>\\. | '[^']*' | "(?:\\.|[^"\\])*")
    |(?P<comment>(?<![^\s;&|()])\#[^\n]*)
    |(?P<operator>\$\( | [;&|<>()`\r\n])
    |.""",
    re.DOTALL | re.VERBOSE,
)
_SHELL_OPTION = re.compile(r"-[a-z]*c")


def hook_command(command: str, agent: str, event: str, *, forgiving: bool = True) -> str:
    line = f"{command} hook {agent} {event}"
    mark = "" if program_in(line, agent) is not None else MARK
    return " ".join(filter(None, [line, "" if forgiving else FORGIVEN, mark]))


def program_in(line: str, agent: str) -> str | None:
    """Return the command by which a line calls guard for this agent; None if it does anything else."""
    is_marked = line.rstrip().endswith(MARK)
    bare = line.rstrip().removesuffix(MARK).rstrip().removesuffix(FORGIVEN).rstrip()
    words = _split_words(bare)
    if len(words) < 4 or words[-3:-1] != ["hook", agent]:
        return None
    if not is_marked and (_split_commands(bare) != [bare] or not _is_guard(words[-4])):
        return None
    return bare.rsplit(None, 3)[0]


def called_events(line: str, agent: str, depth: int = 0) -> Iterator[str]:
    """Yield the events of an agent that a line calls guard's hook for, also through `sh -c`."""
    for command in _split_commands(line):
        words = _split_words(command)
        for place in range(1, len(words) - 2):
            if words[place : place + 2] == ["hook", agent] and any(map(_is_guard, words[:place])):
                yield words[place + 2]
        for option, inner in pairwise(words):
            if depth < _MOST_DEPTH and _SHELL_OPTION.fullmatch(option):
                yield from called_events(inner, agent, depth + 1)


def name_on_path(environ: Environ) -> str | None:
    """Return the name by which the search path leads to this installation, if one does."""
    return next((name for name in OWN_NAMES if _find(name, environ)), None)


def own_path(environ: Environ) -> str:
    """Return the absolute path of this installation's program, quoted for a shell."""
    found = (_find(name, environ) for name in OWN_NAMES)
    path = next((candidate for candidate in found if candidate), None) or next(
        iter(_own_scripts()), None
    )
    if path is not None:
        return shlex.quote(path)
    return shlex.join(own_python("-m", "guard"))


def check_command(command: str) -> str:
    """Return the value of `--command`, trimmed; raise a WrongUsage if no shell could run it."""
    line = command.strip()
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise WrongUsage(f"--command: {error}", "quote it for the shell") from None
    if not words or not line.isprintable():
        raise WrongUsage("--command should be one line that a shell can run")
    return line


def _split_commands(line: str) -> list[str]:
    # Cut at every operator that is not quoted; comments are left out.
    found = [""]
    for part in _PART.finditer(line):
        if part.lastgroup == "operator":
            found.append("")
        elif part.lastgroup != "comment":
            found[-1] += part[0]
    return found


def _split_words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _is_guard(word: str) -> bool:
    return word.rpartition("/")[2] in OWN_NAMES


def _find(name: str, environ: Environ) -> str | None:
    # None if the search path leads to another installation.
    path = find_as_shell(name, environ)
    if path is None:
        return None
    own = {os.path.realpath(script) for script in _own_scripts()}
    return os.path.abspath(path) if os.path.realpath(path) in own else None


def _own_scripts() -> Iterator[str]:
    # They were installed with the code that runs here.
    called = Path(sys.argv[0])
    if called.name in OWN_NAMES and called.is_absolute() and os.access(called, os.X_OK):
        yield str(called)
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    for folder in dict.fromkeys(folders):
        for name in OWN_NAMES:
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                yield path
