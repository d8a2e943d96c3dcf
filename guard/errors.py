"""The errors that end a command; each class has an exit code."""

from typing import ClassVar

EXIT_CODES: dict[int, str] = {
    0: "complete, allowed, or nothing to say",
    1: "no: findings or a refusal",
    2: "wrong usage",
    3: "a bug in guard",
    4: "repository, git or config problem",
    5: "state unreadable, tampered with, or from a newer guard",
    6: "store or lock not available in time (try again)",
    10: "timeout: a genuine stall",
    11: "waiting for helpers",
    12: "still working",
    13: "limited: usage limit or outage, retry_at says until when",
    14: "blocked: a person is needed",
    15: "the probe failed for good",
    16: "interrupted: background work was killed with the session",
    20: "breaker open",
    130: "Ctrl-C",
}


class GuardError(Exception):
    """An error with a sentence on what happened, and a hint on what to do next."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ReaderGone(Exception):
    """The reader of guard's output closed the pipe, as `head` does; click would exit with code 1."""


class Refused(GuardError):
    """A negative answer to the request, given as an exit code."""

    exit_code = 1


class WrongUsage(GuardError):
    """The command line or an argument is wrong."""

    exit_code = 2


class RepositoryProblem(GuardError):
    """The repository or git cannot answer."""

    exit_code = 4


class ConfigProblem(GuardError):
    """A configuration file or variable is wrong."""

    exit_code = 4


class StateProblem(GuardError):
    """The state is unreadable, was tampered with, or comes from a newer guard."""

    exit_code = 5


class StoreUnavailable(GuardError):
    """The store or its lock was not available in time; nothing was recorded."""

    exit_code = 6


class BreakerOpen(GuardError):
    """The breaker is open, so no iteration may begin."""

    exit_code = 20
