"""How git is run: as an argv list, with a time limit, and so that the repository cannot make it run anything.

The repository's own configuration is the agent's to edit and git cannot be told to ignore it, so whatever it could use to
run code or to reach out is overridden on every call. The caller's `GIT_*` variables are dropped: inside a hook they name
another repository.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from guard.errors import RepositoryProblem
from guard.processes import Finished, run

TIME_LIMIT_SECONDS = 10.0
_OVERRIDES = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "core.askPass": "",
    "credential.helper": "",
    "diff.external": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for git: the caller's without its `GIT_*` variables, and with ours."""
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    return {**kept, **_ENVIRONMENT}


def git(
    *words: str,
    environ: Mapping[str, str],
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    time_limit: float = TIME_LIMIT_SECONDS,
) -> Finished:
    """Run git and return what it said, whatever its exit status; trouble with running it at all is an error."""
    argv = [f"--git-dir={git_dir}"] if git_dir else []
    argv += [f"--work-tree={work_tree}"] if work_tree else []
    for key, value in _OVERRIDES.items():
        argv += ["-c", f"{key}={value}"]
    return _run([*argv, *words], environment(environ), work_tree, time_limit)


def config_value(key: str, git_dir: Path, environ: Mapping[str, str], kind: str = "") -> str | None:
    """What git's configuration says, the user's and the system's included and nothing overridden; None if nothing.

    Reading a value runs nothing of the repository's.
    """
    plain = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    words = [f"--git-dir={git_dir}", "config", *([f"--type={kind}"] if kind else []), "--get", key]
    answer = _run(words, plain, None, TIME_LIMIT_SECONDS)
    return os.fsdecode(answer.stdout).rstrip("\n") if answer.code == 0 else None


def _run(
    words: list[str], environ: Mapping[str, str], cwd: Path | None, time_limit: float
) -> Finished:
    try:
        finished = run(["git", *words], environ=environ, time_limit=time_limit, cwd=cwd or os.sep)
    except FileNotFoundError:
        raise RepositoryProblem("git is not installed", "install git 2.31 or newer") from None
    if finished.code is None:
        raise RepositoryProblem(
            f"git took longer than {time_limit:g} s: git {words[-1]}",
            "try again, or look what holds the disk",
        )
    return finished
