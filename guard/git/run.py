"""Run git as an argv list, with a time limit, and so that the repository cannot make it run anything.

The repository's own configuration is the agent's to edit and git cannot be told to ignore it, so whatever it could use to
run code or to reach out is overridden on every call. The caller's `GIT_*` variables are dropped: inside a hook they name
another repository. Git is looked up as `guard.system.programs` says.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from itertools import islice
from pathlib import Path

from guard.errors import RepositoryProblem
from guard.git.locate import Repository, read_common_dir
from guard.git.obstacles import refuse_obstacles
from guard.system.clock import Deadline
from guard.system.dialogue import Dialogue, open_dialogue
from guard.system.processes import FedProcess, Finished, feed, run
from guard.system.programs import search_program

TIME_LIMIT_SECONDS = 10.0
FETCH_ALL = "git fetch --refetch --no-filter"
"""Brings all objects that a partial clone does not have."""
LEAST_SECONDS = 0.5
"""A git that works answers a short question in this time on most machines."""
_DOUBT_SECONDS = 60.0
_DEADLINE: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
_MOST_WORDS = 65536
_OVERRIDES = {
    "advice.graftFileDeprecated": "false",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.pager": "cat",
    "core.splitIndex": "false",
    "core.sshCommand": "false",
    "core.askPass": "",
    "core.commitGraph": "false",
    "credential.helper": "",
    "diff.external": "",
    "gc.auto": "0",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "trailer.separators": ":",
}
_ENVIRONMENT = {
    # No protocol at all, whatever the repository's `protocol.*.allow` says: an object that is missing may be fetched from a
    # remote whose address is a command, and an older git does not know GIT_NO_LAZY_FETCH.
    "GIT_ALLOW_PROTOCOL": "",
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


class GitTimedOut(RepositoryProblem):
    """A call of git that did not end in its time."""


class _Doubt:
    """Remembers that git has just not answered: until it answers again, no call gets more time than that one had."""

    def __init__(self) -> None:
        self._seconds, self._since = 0.0, float("-inf")

    def begin(self, seconds: float) -> None:
        self._seconds, self._since = max(LEAST_SECONDS, seconds), time.monotonic()

    def end(self) -> None:
        self._since = float("-inf")

    def limit(self, seconds: float) -> float:
        # It passes, because a process may live for days: git may have been mended in the meantime.
        is_fresh = time.monotonic() - self._since < _DOUBT_SECONDS
        return min(seconds, self._seconds) if is_fresh else seconds


_DOUBT = _Doubt()


@contextmanager
def limit_git(deadline: Deadline | None) -> Iterator[None]:
    """Let no git that is run in this block go on after the deadline, whatever its own time limit is.

    None lifts the deadline of a block around this one, for work that has limits of its own.
    """
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def limited_deadline(seconds: float) -> Deadline:
    """Return a deadline after so many seconds, or that of the block if it is earlier."""
    deadline = _DEADLINE.get()
    return Deadline(seconds if deadline is None else min(seconds, deadline.left()))


def refuse_overtime() -> None:
    """Raise `GitTimedOut` if the deadline of the block has passed."""
    deadline = _DEADLINE.get()
    if deadline is not None and deadline.has_passed():
        raise GitTimedOut(
            f"git used up the {deadline.seconds:.3g} s that it may take in a check",
            "find out why git is slow here, or raise completion_check.max_seconds",
        )


def _seconds_left(time_limit: float) -> float:
    refuse_overtime()
    deadline = _DEADLINE.get()
    return time_limit if deadline is None else min(time_limit, deadline.left())


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {**_plain_environment(environ), **_ENVIRONMENT}


def environment_of_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program that runs git itself: the overrides are in variables, not in options."""
    named = {"GIT_CONFIG_COUNT": str(len(_OVERRIDES))}
    for number, (key, value) in enumerate(_OVERRIDES.items()):
        named |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**git_environment(environ), **named}


def _plain_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environ.items() if not name.startswith("GIT_")}


def run_git(
    *words: str,
    environ: Mapping[str, str],
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    time_limit: float = TIME_LIMIT_SECONDS,
    stdin: bytes | None = None,
    extra: Mapping[str, str] | None = None,
    most_bytes: int | None = None,
    lends: Sequence[int] = (),
) -> Finished:
    """Run git and return what it printed, whatever its exit status; failing to run it at all is an error.

    `extra` are variables on top of the usual ones, such as an index of our own. A lock on a descriptor that it `lends` is
    held until git itself has ended, whatever becomes of guard.
    """
    variables = {**git_environment(environ), **(extra or {})}
    argv = git_command(*words, git_dir=git_dir, work_tree=work_tree)
    return _run(argv, variables, work_tree, time_limit, stdin, most_bytes, lends)


def git_command(
    *words: str, git_dir: Path | None = None, work_tree: Path | None = None
) -> list[str]:
    argv = ["git"]
    argv += [f"--git-dir={git_dir}"] if git_dir else []
    argv += [f"--work-tree={work_tree}"] if work_tree else []
    for key, value in _OVERRIDES.items():
        argv += ["-c", f"{key}={value}"]
    return [*argv, *words]


def feed_git(
    *words: str,
    environ: Mapping[str, str],
    git_dir: Path,
    time_limit: float,
    lends: Sequence[int] = (),
) -> AbstractContextManager[FedProcess]:
    """Run git while its input is written piece by piece; it does not outlive the block."""
    argv = git_command(*words, git_dir=git_dir)
    return feed(argv, git_environment(environ), _seconds_left(time_limit), lends)


def open_git_dialogue(
    *words: str, environ: Mapping[str, str], git_dir: Path, time_limit: float
) -> AbstractContextManager[Dialogue]:
    """Run git while it is asked one thing after another; it does not outlive the block."""
    argv = git_command(*words, git_dir=git_dir)
    return open_dialogue(argv, git_environment(environ), _seconds_left(time_limit))


def read_config(key: str, git_dir: Path, environ: Mapping[str, str], kind: str = "") -> str | None:
    """Read git's configuration, the user's and the system's included and nothing overridden; None if not set.

    Reading a value runs nothing of the repository's.
    """
    refuse_obstacles(Repository(git_dir, git_dir, read_common_dir(git_dir)), ("config",))
    return _read_setting([f"--git-dir={git_dir}", "config"], key, environ, kind)


def find_config(pattern: str, git_dir: Path, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the keys, in small letters, that match a pattern and are set anywhere, as `read_config` would read them."""
    refuse_obstacles(Repository(git_dir, git_dir, read_common_dir(git_dir)), ("config",))
    words = [f"--git-dir={git_dir}", "config", "--null", "--name-only", "--get-regexp", pattern]
    answer = _run(["git", *words], _plain_environment(environ), None, TIME_LIMIT_SECONDS)
    return frozenset(filter(None, os.fsdecode(answer.stdout).split("\0")))


def read_users_config(key: str, environ: Mapping[str, str], kind: str = "") -> str | None:
    # Whatever a repository's configuration says.
    return _read_setting(["config", "--global", "--includes"], key, environ, kind)


def _read_setting(
    words: Sequence[str], key: str, environ: Mapping[str, str], kind: str
) -> str | None:
    argv = ["git", *words, *([f"--type={kind}"] if kind else []), "--get", key]
    answer = _run(argv, _plain_environment(environ), None, TIME_LIMIT_SECONDS)
    return os.fsdecode(answer.stdout).rstrip("\n") if answer.code == 0 else None


def _run(
    argv: list[str],
    environ: Mapping[str, str],
    cwd: Path | None,
    time_limit: float,
    stdin: bytes | None = None,
    most_bytes: int | None = None,
    lends: Sequence[int] = (),
) -> Finished:
    limit = _DOUBT.limit(_seconds_left(time_limit))
    try:
        finished = run(
            argv,
            environ=environ,
            time_limit=limit,
            cwd=cwd or os.sep,
            stdin=stdin,
            most_stdout=most_bytes,
            most_stderr=_MOST_WORDS,
            lends=lends,
        )
    except FileNotFoundError:
        if cwd is not None and not cwd.is_dir():
            raise RepositoryProblem(
                f"the work tree {cwd} no longer exists", "restore it, or change to another folder"
            ) from None
        search = search_program("git", environ)
        raise RepositoryProblem(
            search.problem, search.hint or "install git 2.31 or newer"
        ) from None
    if finished.overflowed:
        raise RepositoryProblem(
            f"`git {_subcommand(argv)}` printed more than {most_bytes} bytes",
            "the repository is too large for guard",
        )
    if finished.code is None:
        refuse_overtime()
        _DOUBT.begin(limit)
        raise GitTimedOut(
            f"`git {_subcommand(argv)}` took longer than {limit:.3g} s",
            "try again; if it stays slow, find out which program keeps the disk busy",
        )
    _DOUBT.end()
    return finished


def _subcommand(argv: list[str]) -> str:
    # Behind the options that come first.
    settings = {at + 1 for at, word in enumerate(argv) if word == "-c"}
    named = (w for at, w in enumerate(argv) if at not in settings and not w.startswith("-"))
    return next(islice(named, 1, None), argv[-1])
