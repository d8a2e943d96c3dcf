"""Ask git about one repository: each question has a time limit, and a refusal is an error with git's message."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from guard.core.base.first_use import dataclass
from guard.errors import RepositoryProblem
from guard.git.locate import Repository
from guard.git.obstacles import explain_timeout, is_writer, may_name_hooks, refuse_obstacles
from guard.git.run import (
    FETCH_ALL,
    LEAST_SECONDS,
    TIME_LIMIT_SECONDS,
    GitTimedOut,
    git_command,
    git_environment,
    run_git,
)

_MOST_BYTES = 512 * 1024 * 1024
_LONGEST_WORDS = 400
_HOOKS = r"^hook\."
_TIMEOUTS: dict[Path, int] = {}
"""How many calls in a row did not end in their time, by git directory: the next one gets half the time of the one before.

Half a second is left to every call: a git that answers again is to be noticed."""


def missing_error(repository: Repository) -> RepositoryProblem:
    """Return the error for a work tree that does not lead to its git directory any more."""
    if repository.git_dir.is_dir():
        return RepositoryProblem(
            f"{repository.root / '.git'} does not lead to {repository.git_dir} any more",
            "restore it as it was; `git worktree repair`, run in the main work tree, writes it anew",
        )
    return RepositoryProblem(
        f"the git directory {repository.git_dir} no longer exists",
        "restore it; the folder that `guard where` prints still has what guard recorded",
    )


@dataclass(frozen=True)
class RepositoryReader:
    """Runs git on one repository."""

    repository: Repository
    environ: Mapping[str, str]
    time_limit: float = TIME_LIMIT_SECONDS
    extra: Mapping[str, str] = field(default_factory=dict)

    def ask(self, *words: str, stdin: bytes | None = None, codes: Collection[int] = (0,)) -> bytes:
        if not self.repository.git_dir_exists:
            raise missing_error(self.repository)
        refuse_obstacles(self.repository, words, self.extra)
        extra = self._without_hooks(words).extra
        less = self.time_limit / 2 ** _TIMEOUTS.get(self.repository.git_dir, 0)
        limit = max(less, min(self.time_limit, LEAST_SECONDS))
        try:
            finished = run_git(
                *words,
                environ=self.environ,
                git_dir=self.repository.git_dir,
                work_tree=self.repository.root,
                time_limit=limit,
                stdin=stdin,
                extra=extra,
                most_bytes=_MOST_BYTES,
            )
        except GitTimedOut as error:
            _TIMEOUTS[self.repository.git_dir] = _TIMEOUTS.get(self.repository.git_dir, 0) + 1
            raise explain_timeout(self.repository, error) from None
        _TIMEOUTS.pop(self.repository.git_dir, None)
        if finished.code not in codes:
            why = finished.message or f"exit code {finished.code}"
            if len(why) > _LONGEST_WORDS:
                # The last words of git's message are why it stopped.
                why = "…" + why[-_LONGEST_WORDS:]
            is_partial = "promisor" in why
            hint = f"run `{FETCH_ALL}`" if is_partial else "run `git status`, then `git fsck`"
            raise RepositoryProblem(f"git {words[0]} failed: {why}", hint)
        return finished.stdout

    def command(self, *words: str) -> tuple[list[str], dict[str, str]]:
        """Return the argv and the environment for a call, for a caller that makes it itself, at once."""
        refuse_obstacles(self.repository, words, self.extra)
        extra = self._without_hooks(words).extra
        place = {"git_dir": self.repository.git_dir, "work_tree": self.repository.root}
        return git_command(*words, **place), {**git_environment(self.environ), **extra}

    def line(self, *words: str) -> str | None:
        """Ask for one line; None if git says no by its exit status alone."""
        answer = self.ask(*words, codes=(0, 1))
        return answer.decode(errors="surrogateescape").rstrip("\n") or None

    def with_variable(self, name: str, value: str) -> "RepositoryReader":
        return replace(self, extra={**self.extra, name: value})

    def with_settings(self, settings: Mapping[str, str]) -> "RepositoryReader":
        """Return a reader whose settings win over the repository's; names may have any character in them."""
        named, first = dict(self.extra), int(self.extra.get("GIT_CONFIG_COUNT", "0"))
        for number, (key, value) in enumerate(settings.items(), first):
            named |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return replace(self, extra={**named, "GIT_CONFIG_COUNT": str(first + len(settings))})

    def _without_hooks(self, words: Sequence[str]) -> "RepositoryReader":
        # From git 2.54 on settings can name commands as hooks, which have nothing to do with the folder of hooks.
        if not is_writer(words) or not may_name_hooks(self.repository):
            return self
        listed = self.ask("config", "--null", "--name-only", "--get-regexp", _HOOKS, codes=(0, 1))
        names = {name.rpartition(b".")[0] for name in listed.split(b"\0") if name}
        return self.with_settings({f"{os.fsdecode(name)}.enabled": "false" for name in names})
