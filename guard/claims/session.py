"""Read what an agent's session shows of its work: the tool calls and the last message in the output that guard kept."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from guard.context.invocation import Invocation
from guard.core.agents.agent import Agent
from guard.core.base.lines import Lines, object_in
from guard.core.iteration.run import RUN
from guard.core.tool_calls.read import ToolCall, ToolCallReader
from guard.iteration.kept_output import KeptOutput

_MOST_CALLS = 20_000
_MOST_PRINTED = 1 << 20


@dataclass(frozen=True)
class KeptSession:
    """The output of one iteration of `guard run`."""

    kept: KeptOutput
    agent: str | None = None
    """The agent CLI, if it is known."""

    @cached_property
    def calls(self) -> tuple[ToolCall, ...] | None:
        """Return the newest tool calls; None if the output has none, as that of a program without events."""
        return tuple(deque(self._read_calls(), _MOST_CALLS)) or None

    def _read_calls(self) -> Iterator[ToolCall]:
        lines, reader = Lines(), ToolCallReader()
        for data in self.kept.chunks("stdout"):
            for line in lines.feed(data):
                event = object_in(line) if reader.is_wanted(line) else None
                yield from reader.read(event) if event is not None else ()

    def last_message(self, now: datetime) -> str:
        """Return the agent's last words; empty if it said nothing."""
        reader = self.kept.read(self.agent)
        if reader is None:
            return ""
        reader.finish(0, now)
        return reader.last_message

    def last_words(self, now: datetime) -> str:
        """Return the agent's last message; of a program without events, the end of what it printed."""
        said = self.last_message(now)
        if said:
            return said
        reader = self.kept.read(self.agent)
        if reader is None or reader.format is not None:
            return ""
        data = b""
        for chunk in self.kept.chunks("stdout"):
            data = (data + chunk)[-_MOST_PRINTED:]
        return data.decode(errors="replace")


def session_of(guard: Invocation, agent: Agent) -> KeptSession | None:
    """Find the session in which an agent of `guard run` is now; None for another agent."""
    if agent.keeper_pid is None or guard.repository_if_any is None:
        return None
    run = guard.store.view(RUN, guard.worktree_key)
    opened = run.open_iteration if run is not None else None
    if run is None or opened is None or opened.supervisor is None:
        return None
    if (opened.supervisor.pid, opened.supervisor.start) != (agent.keeper_pid, agent.keeper_start):
        return None
    return KeptSession(KeptOutput.named(guard, run.run, opened.number), opened.agent)


def session_of_iteration(guard: Invocation, run: str, iteration: int) -> KeptSession:
    return KeptSession(KeptOutput.named(guard, run, iteration))
