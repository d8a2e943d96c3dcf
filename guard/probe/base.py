"""The description of an agent's CLI for probes: how to call it, and where the answer is in its output."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from guard.core.base.agent_json import Event
from guard.core.base.json_text import loads
from guard.core.probe.answer import BadAnswer, ProbeFailure, answer_schema, probe_question

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
"""Claude Code, Codex and Copilot take a title as well, and would find another session by it."""


@dataclass(frozen=True)
class Topic:
    """A question about something else than the session's state; the answer is taken as it is."""

    prompt: str
    schema: Mapping[str, object]


@dataclass(frozen=True)
class ProbeQuestion:
    """Which session to ask, and under which limits."""

    agent: str
    cwd: Path
    """The work tree."""
    time_limit: float
    environ: Mapping[str, str]
    now: datetime
    session: str | None = None
    command: str | None = None
    """For the agent `command`: what to run, split as a shell would, without a shell."""
    model: str | None = None
    topic: Topic | None = None


@dataclass(frozen=True)
class ProbeCall:
    """One attempt to ask the question."""

    question: ProbeQuestion
    program: str
    nonce: str
    scratch: Path
    """A private folder that is gone afterwards."""
    environ: Mapping[str, str]

    @cached_property
    def text(self) -> str:
        topic = self.question.topic
        return topic.prompt if topic else probe_question(self.nonce)

    @cached_property
    def schema(self) -> dict[str, object]:
        topic = self.question.topic
        return dict(topic.schema) if topic else answer_schema(self.nonce)

    @property
    def session(self) -> str:
        """Return the session's id, for CLIs that need one."""
        assert self.question.session is not None
        return self.question.session

    def model(self, option: str, default: str | None = None) -> list[str]:
        """Return the arguments that choose the model, if one is to be chosen."""
        model = self.question.model or default
        return [option, model] if model else []

    def home(self, variable: str, folder: str) -> Path:
        """Return the folder of a CLI: the one that a variable names, or one in the user's home."""
        named = self.environ.get(variable)
        return Path(named) if named else Path(self.environ.get("HOME", "/nonexistent"), folder)


@dataclass(frozen=True)
class Call:
    argv: list[str]
    cwd: Path
    environ: Mapping[str, str]
    stdin: bytes | None = None


@dataclass(frozen=True)
class ProbeOutput:
    """The text that holds the answer, if the program reports a success, and what it cost."""

    text: bytes | None
    tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class Cli:
    """One agent's CLI."""

    program: Callable[[ProbeQuestion], str]
    """The name of the program, or its path."""
    call: Callable[[ProbeCall], Call]
    read: Callable[[bytes], ProbeOutput]
    sessions: re.Pattern[str] = UUID
    """What its session ids look like: nothing else becomes an argument."""
    needs_session: bool = True
    whole_may_omit_nonce: bool = False


def fixed_program(program: str) -> Callable[[ProbeQuestion], str]:
    return lambda _question: program


class CannotAsk(Exception):
    """The question cannot be asked at all."""

    def __init__(self, failure: ProbeFailure, detail: str) -> None:
        super().__init__(detail)
        self.failure = failure
        self.detail = detail


def read_events(output: bytes) -> list[Event]:
    """Return the objects in an output: one document, a list of them, or one to a line.

    Lines that are no objects are noise; a line that begins like an object has to be whole.
    """
    try:
        whole = loads(output)
    except ValueError:
        return [_event(line) for line in output.splitlines() if line.lstrip()[:1] == b"{"]
    documents = whole if isinstance(whole, list) else [whole]
    return [event for event in documents if isinstance(event, dict)]


def _event(line: bytes) -> Event:
    try:
        event: Event = loads(line)
    except ValueError as error:
        raise BadAnswer(f"a line of the output cannot be read: {error}") from None
    return event


def last_event(found: Iterable[Event], kind: str) -> Event:
    return next((event for event in reversed(list(found)) if event.get("type") == kind), {})


def read_result(result: Event, structured: str, tokens: int | None) -> ProbeOutput:
    """Read the `result` event of Claude Code or Qwen Code; `structured` is its field with the answer as an object."""
    if result.get("subtype") != "success" or result.get("is_error") is not False:
        return ProbeOutput(None, tokens)
    answer = result.get(structured)
    text = json.dumps(answer) if answer is not None else result.get("result")
    return ProbeOutput(encode_text(text), tokens)


def encode_text(value: object) -> bytes | None:
    return value.encode() if isinstance(value, str) else None


def sum_counts(*values: object) -> int | None:
    """Return the sum of the values that are counts; None if none is."""
    counts = [value for value in values if type(value) is int and value >= 0]
    return min(sum(counts), 2**53) if counts else None


def sum_dollars(values: Iterable[object]) -> float | None:
    amounts = [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e9
    ]
    return sum(amounts) if amounts else None
