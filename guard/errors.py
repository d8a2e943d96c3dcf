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
    10: "stalled (timeout): no commits, and nothing alive",
    11: "waiting for helpers",
    12: "still working, or a limit of yours was reached and work is left",
    13: "limited: usage limit or outage, retry_at says until when",
    14: "blocked: a person is needed",
    15: "the probe, or a required proof, failed for good",
    16: "interrupted: background work was killed with the session",
    17: "refuted: the project's own checks fail on what was committed",
    20: "breaker open",
    130: "Ctrl-C",
}


class GuardError(Exception):
    """An error with a sentence on what happened, and a hint on what to do next."""

    exit_code: ClassVar[int] = 3

    def __init_subclass__(cls, exit_code: int | None = None) -> None:
        cls.exit_code = cls.exit_code if exit_code is None else exit_code

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.tells_of_snapshot = False
        """Whether the message or the hint says where the work tree was saved, or why it could not be."""


class ReaderGone(Exception):
    """The reader of guard's output closed the pipe, as `head` does; click would exit with code 1."""


class Refused(GuardError, exit_code=1):
    """A negative answer to the request, given as an exit code."""


class WrongUsage(GuardError, exit_code=2):
    """The command line or an argument is wrong."""


class RepositoryProblem(GuardError, exit_code=4):
    """The repository or git cannot answer."""


class ConfigProblem(GuardError, exit_code=4):
    """A configuration file or variable is wrong."""


class StateProblem(GuardError, exit_code=5):
    """The state is unreadable, was tampered with, or comes from a newer guard."""


class StoreUnavailable(GuardError, exit_code=6):
    """The store or its lock was not available in time; nothing was recorded."""


class ServerLost(StoreUnavailable):
    """The server of the store does not answer; what was sent last may be recorded or not."""


class Interrupted(GuardError, exit_code=130):
    """Ctrl-C, or a signal that means the same, ended a command; the hint says what is safe."""


class BreakerOpen(GuardError, exit_code=20):
    """The breaker is open, so no iteration may begin."""
