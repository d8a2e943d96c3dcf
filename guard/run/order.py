"""What to run, how to judge what it leaves, and whether it can be started at all."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from guard.core.check.settings import AgentCli
from guard.errors import WrongUsage
from guard.iteration.current import CheckTerms
from guard.system.programs import find_as_shell

AGENT_PROGRAMS = frozenset(get_args(AgentCli)) - {"command"}


@dataclass(frozen=True)
class RunOrder:
    argv: tuple[str, ...]
    terms: CheckTerms
    command: tuple[str, ...] | None = None
    """What the run is known by, where the words differ from iteration to iteration."""
    prompt: bytes | None = None
    """What the agent gets on its stdin; None to leave it guard's own."""
    to_stderr: bool = False
    """Whether the agent's output goes to stderr, because stdout is for a document."""
    new_run: bool = False
    max_seconds: float | None = None
    """How long the agent may run, if less than the settings say."""
    goes_on: bool = False
    """Whether this goes on with earlier iterations: one of them that was waited for is then what is reported."""
    in_loop: bool = False
    """Whether this guard goes on after the iteration."""
    task: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    """The kind of agent in the registries; None for the name of its CLI."""


def agent_of_command(argv: Sequence[str]) -> str | None:
    """Return the agent that a command names, if guard knows it."""
    name = os.path.basename(argv[0])
    return name if name in AGENT_PROGRAMS else None


def check_program(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse a command that cannot be started, before anything is recorded."""
    if find_as_shell(argv[0], environ) is None:
        raise WrongUsage(
            f"there is no program {argv[0]!r}", "check its name, and whether it is on PATH"
        )


def current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise WrongUsage(
            "the current folder does not exist any more", "start guard from another one"
        ) from None
