"""Ask git about one repository: each question has a time limit, and a refusal is an error with git's message."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from guard.errors import RepositoryProblem
from guard.git.locate import Repository
from guard.git.run import TIME_LIMIT_SECONDS, git_command, git_environment, run_git

_MOST_BYTES = 512 * 1024 * 1024
_LONGEST_WORDS = 400


@dataclass(frozen=True)
class RepositoryReader:
    """Runs git on one repository."""

    repository: Repository
    environ: Mapping[str, str]
    time_limit: float = TIME_LIMIT_SECONDS
    extra: Mapping[str, str] = field(default_factory=dict)

    def ask(self, *words: str, stdin: bytes | None = None, codes: Collection[int] = (0,)) -> bytes:
        if not self.repository.git_dir_exists:
            raise RepositoryProblem(
                f"the git directory {self.repository.git_dir} no longer exists",
                "restore it; the folder that `guard where` prints still has what guard recorded",
            )
        finished = run_git(
            *words,
            environ=self.environ,
            git_dir=self.repository.git_dir,
            work_tree=self.repository.root,
            time_limit=self.time_limit,
            stdin=stdin,
            extra=self.extra,
            most_bytes=_MOST_BYTES,
        )
        if finished.code not in codes:
            why = finished.message or f"exit code {finished.code}"
            if len(why) > _LONGEST_WORDS:
                # The last words of git's message are why it stopped.
                why = "…" + why[-_LONGEST_WORDS:]
            raise RepositoryProblem(
                f"git {words[0]} failed: {why}", "run `git status`, then `git fsck`"
            )
        return finished.stdout

    def command(self, *words: str) -> tuple[list[str], dict[str, str]]:
        """Return the argv and the environment for a question, for a caller that runs it itself."""
        place = {"git_dir": self.repository.git_dir, "work_tree": self.repository.root}
        return git_command(*words, **place), {**git_environment(self.environ), **self.extra}

    def line(self, *words: str) -> str | None:
        """Ask for one line; None if git says no by its exit status alone."""
        answer = self.ask(*words, codes=(0, 1))
        return answer.decode(errors="surrogateescape").rstrip("\n") or None

    def with_variable(self, name: str, value: str) -> "RepositoryReader":
        return replace(self, extra={**self.extra, name: value})

    def with_settings(self, settings: Mapping[str, str]) -> "RepositoryReader":
        """Return a reader whose settings win over the repository's; names may have any character in them."""
        named = dict(self.extra)
        for number, (key, value) in enumerate(settings.items()):
            named |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return replace(self, extra={**named, "GIT_CONFIG_COUNT": str(len(settings))})
