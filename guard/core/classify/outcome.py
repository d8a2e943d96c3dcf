"""The outcomes of a session, their meaning and status, and the report of `guard classify`."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Instant, Line, Report
from guard.core.base.text import escape, fit_line
from guard.core.cost.usage import Dollars, SessionUsage
from guard.core.iteration.facts import Status
from guard.core.tool_calls.agent_loop import LoopFound

Outcome = Literal[
    "ok",
    "limited",
    "transient",
    "auth",
    "context",
    "turn_limit",
    "budget",
    "denied",
    "question",
    "crash",
    "interrupted",
    "unknown",
]

MEANINGS: dict[Outcome, str] = {
    "ok": "the session ended by itself, and nothing says that it failed",
    "limited": "a usage or rate limit; retry_at says until when, if the output did",
    "transient": "an overloaded or unreachable service: the same again may work soon",
    "auth": "not logged in, a refused key, or no credit left: only a person can fix it",
    "context": "the conversation no longer fits into the model",
    "turn_limit": "the number of turns that was allowed is used up",
    "budget": "the money or time that was allowed is used up",
    "denied": "the session could not work because its tools were denied",
    "question": "the session ended with a question to a person",
    "crash": "it failed or was killed, for no reason that has a name here",
    "interrupted": "background work was killed with the session, or left unfinished by it",
    "unknown": "the output cannot be read, and nothing else tells",
}

_STATUSES: dict[Outcome, Status] = {
    "auth": "blocked",
    "question": "blocked",
    "denied": "blocked",
    "limited": "limited",
    "transient": "limited",
    "turn_limit": "working",
    "budget": "working",
    "context": "working",
    "interrupted": "interrupted",
}

MOST_NAMES = 20
_NAME_LENGTH = 160
_LINE_LENGTH = 300

Names = Annotated[tuple[Line, ...], Field(max_length=MOST_NAMES)]
ExitCode = Annotated[int, Field(ge=-(2**31), le=2**31)]


class Classification(Frozen):
    """What the output and the exit status of one session mean."""

    outcome: Outcome
    reason: Line
    """A short word that scripts can key on."""
    retry_at: Instant | None
    """When a limit ends, as the output says it, to the second or the minute: a loop adds its own margin."""
    session: Line | None
    """The id by which the session can be resumed."""
    killed: Names
    """Background work that was killed with the session, or that it left unfinished."""
    exit_code: ExitCode | None
    """Negative: the number of the signal that ended the process."""
    fingerprint: Line | None
    """The same for the same error: its text without numbers, paths and ids."""
    claim: Line | None
    """How the agent's last own message begins."""
    cost_usd: Dollars | None
    """As the agent CLI names it; it may include what a resumed session cost before."""
    denied_tools: Names
    words: Line | None = None
    """What the outcome rests on, in the words of the agent or its program: the question, the refusal, the error."""
    usage: SessionUsage | None = None
    """What the session used, as far as the output tells."""
    loop: LoopFound | None = None
    """What the agent repeated most, without getting on; null if it did not go round in circles."""


def status_of(outcome: Outcome) -> Status | None:
    """Return the status that follows from the outcome alone; None if the check has to look further."""
    return _STATUSES.get(outcome)


def shorten_line(text: str, length: int = _LINE_LENGTH) -> str:
    """Return the beginning of a text from outside as one line without control characters."""
    return fit_line(escape(" ".join(text[: 4 * length].split())), length)


def distinct_names(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(shorten_line(text, _NAME_LENGTH) for text in texts))[:MOST_NAMES]


class ClassifyReport(Classification, Report):
    """What an agent's output and exit status mean."""

    schema_: Literal["guard/classify/1"] = Field("guard/classify/1", alias="schema")
    status: Status | None
    """The verdict that follows from the outcome alone; null where a check has to look further."""
    format: Line | None
    """Which agent's events were recognised; null for plain text."""
    skipped: Count
    """How many lines were too long or could not be read."""
