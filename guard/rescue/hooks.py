"""The repository's own hooks, where the user lets them have a say: `pre-commit` once, `commit-msg` for each commit."""

import os
from collections.abc import Mapping
from pathlib import Path

from guard.core.rescuing import cut
from guard.core.text import visible
from guard.git.call import config_value
from guard.processes import run
from guard.rescue.project import Project

_SHARE = 0.5
_MOST_WORDS = 4096


class HookRefused(Exception):
    """A hook said no; its words are the argument."""


def run_hook(project: Project, name: str, *words: str, index: Path) -> bool:
    """Run a hook over what is in this index; whether there is one."""
    program = _program(project, name)
    if program is None:
        return False
    try:
        done = run(
            [program, *words],
            environ=_environ(project, index),
            time_limit=project.deadline.left() * _SHARE,
            cwd=project.repository.root,
            most_stderr=_MOST_WORDS,
            leaves_nothing=True,
        )
    except OSError as error:
        raise HookRefused(f"{name} does not start: {error.strerror}") from None
    if done.code != 0:
        said = visible(" ".join((done.stderr or done.stdout).decode(errors="replace").split()))
        ended = "did not end in time" if done.code is None else f"said no ({done.code})"
        raise HookRefused(cut(f"{name} {ended}: {said[-300:]}" if said else f"{name} {ended}"))
    return True


def _program(project: Project, name: str) -> str | None:
    repository = project.repository
    told = config_value("core.hooksPath", repository.git_dir, project.environ, "path")
    folder = repository.root / told if told else repository.common_dir / "hooks"
    program = os.fspath(folder / name)
    return program if os.path.isfile(program) and os.access(program, os.X_OK) else None


def _environ(project: Project, index: Path) -> Mapping[str, str]:
    """As git would call it: with the index that is to be committed, and with no editor."""
    plain = {name: text for name, text in project.environ.items() if not name.startswith("GIT_")}
    return {
        **plain,
        "GIT_DIR": os.fspath(project.repository.git_dir),
        "GIT_WORK_TREE": os.fspath(project.repository.root),
        "GIT_INDEX_FILE": os.fspath(index),
        "GIT_EDITOR": ":",
        "GIT_PREFIX": "",
    }
