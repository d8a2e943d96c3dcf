"""What to run, how to judge what it leaves, and whether it can be started at all."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from guard.core.base.agent_json import AgentCli
from guard.core.cost.budget import Allowance
from guard.core.run.settings import ShowMode
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
    shown_prompt: bytes | None = None
    """The prompt that is kept for `guard show`, where it is one word of the command."""
    to_stderr: bool = False
    """Whether the agent's output goes to stderr, because stdout is for a document."""
    show: ShowMode | None = None
    """How the agent's output is shown; None for text on a terminal, and byte for byte elsewhere."""
    new_run: bool = False
    max_seconds: float | None = None
    """How long the agent may run, if less than the settings say."""
    allowance: Allowance | None = None
    """What the agent may use, if the user has a budget."""
    goes_on: bool = False
    """Whether this goes on with earlier iterations: one of them that was waited for is then what is reported."""
    in_loop: bool = False
    """Whether this guard goes on after the iteration."""
    notifies: bool = True
    """Whether a person is told what the user wants to be told."""
    task: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    """The kind of agent in the registries; None for the name of its CLI."""


PLACEHOLDER = "{prompt}"
"""The word of a command that is replaced by the prompt."""
MOST_PROMPT_BYTES = 4 * 1024 * 1024


def with_prompt(order: RunOrder, prompt: bytes) -> RunOrder:
    """Return the order with this prompt: in the place of `{prompt}` if the command has it, else on stdin."""
    if PLACEHOLDER not in order.argv:
        return replace(order, prompt=prompt)
    words = tuple(os.fsdecode(prompt) if word == PLACEHOLDER else word for word in order.argv)
    return replace(order, argv=words, command=order.command or order.argv, shown_prompt=prompt)


def read_prompt(file: Path) -> bytes:
    try:
        with open(file, "rb") as opened:
            data = opened.read(MOST_PROMPT_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"{file}: {error.strerror}", "check --prompt-file") from None
    if len(data) > MOST_PROMPT_BYTES:
        raise WrongUsage(
            f"{file} is larger than {MOST_PROMPT_BYTES} bytes", "shorten the prompt file"
        )
    return data


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
