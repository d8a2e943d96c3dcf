"""What an agent's CLI has to know to be asked: how it is called, and where in its output the answer stands."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from guard.core.probe.answer import ProbeFailure, answer_schema, question

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
"""Claude Code, Codex and Copilot take a title as well, and would find somebody else's session by it."""


@dataclass(frozen=True)
class Topic:
    """Something else to ask about than the session's state; the answer is taken as it is."""

    prompt: str
    schema: Mapping[str, object]


@dataclass(frozen=True)
class ProbeQuestion:
    """Whom to ask, and under which limits."""

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
    """One attempt to put the question."""

    question: ProbeQuestion
    program: str
    nonce: str
    scratch: Path
    """A private folder that is gone afterwards."""
    environ: Mapping[str, str]

    @cached_property
    def text(self) -> str:
        """The prompt."""
        topic = self.question.topic
        return topic.prompt if topic else question(self.nonce)

    @cached_property
    def schema(self) -> dict[str, object]:
        """What the answer must look like."""
        topic = self.question.topic
        return dict(topic.schema) if topic else answer_schema(self.nonce)

    @property
    def session(self) -> str:
        """The session's id, which was found to be one."""
        assert self.question.session is not None
        return self.question.session

    def model(self, option: str, default: str | None = None) -> list[str]:
        """The words that choose the model, if one is to be chosen."""
        model = self.question.model or default
        return [option, model] if model else []

    def home(self, variable: str, folder: str) -> Path:
        """Where a CLI keeps its things: where a variable says, or in a folder of the home."""
        told = self.environ.get(variable)
        return Path(told) if told else Path(self.environ.get("HOME", "/nonexistent"), folder)


@dataclass(frozen=True)
class Call:
    """A program to run, and how."""

    argv: list[str]
    cwd: Path
    environ: Mapping[str, str]
    stdin: bytes | None = None


@dataclass(frozen=True)
class ProbeOutput:
    """What an output amounts to: the words in which the answer is to be found, if it was a success, and what they cost."""

    text: bytes | None
    tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class Cli:
    """One agent's CLI."""

    program: Callable[[ProbeQuestion], str]
    """The name of the program, or its path."""
    call: Callable[[ProbeCall], Call]
    said: Callable[[bytes], ProbeOutput]
    sessions: re.Pattern[str] = UUID
    """What its session ids look like: nothing else becomes an argument."""
    needs_session: bool = True
    whole_may_omit_nonce: bool = False


def named(program: str) -> Callable[[ProbeQuestion], str]:
    """A program that is always the same."""
    return lambda _question: program


class CannotAsk(Exception):
    """The question cannot be put at all."""

    def __init__(self, failure: ProbeFailure, detail: str) -> None:
        super().__init__(detail)
        self.failure = failure
        self.detail = detail
