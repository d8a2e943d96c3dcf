"""Read Codex's `exec --json`: items that begin and end, the states of its agents, and turns.

When the main turn ends, Codex silently kills the agents and terminals that still run. So a command or agent that has not ended
by then is a helper that will be killed; a command that ends within its turn is none.
"""

from collections.abc import Iterator

from guard.core.base.agent_json import Event, count_in, member_in, name_in, part_of, text_of
from guard.core.gate.reader import NOTHING, LineMeaning, StreamReader, TurnUsage
from guard.core.team.change import Alive, Change, Joined, LeftBecause, MemberLeft

_COMMANDS = ("command_execution", "mcp_tool_call")
_ENDS: dict[object, LeftBecause] = {
    "completed": "ended",
    "not_found": "ended",
    "errored": "failed",
    "failed": "failed",
    "shutdown": "shutdown",
    "interrupted": "shutdown",
}
_OF_AGENTS = frozenset(["tool", "agents_states"])
"""An item that is about agents has one of these."""
_MOST = 10_000
_LONGEST = 1000


class CodexStream(StreamReader):
    name = "codex"
    words = (
        *(b'"thread.started"', b'"turn.started"', b'"turn.completed"', b'"turn.failed"'),
        *(b'"agents_states"', b'"spawn_agent"', b'"command_execution"', b'"mcp_tool_call"'),
    )
    ending = (b'"turn.completed"', b'"turn.failed"')
    beginning = (b'"turn.started"',)
    kills_helpers = True

    def __init__(self) -> None:
        super().__init__()
        self._commands: dict[str, str] = {}
        """Commands that have begun in this turn and not ended, by id."""
        self._agents: set[str] = set()

    def read(self, event: Event) -> LineMeaning:
        match event.get("type"):
            case "item.started" | "item.completed":
                pass
            case "thread.started":
                self.note_session(event.get("thread_id"))
                return NOTHING
            case "turn.started":
                return LineMeaning(begins_turn=True)
            case "turn.completed" | "turn.failed":
                usage = TurnUsage(count_in(part_of(event, "usage").get("input_tokens")))
                return LineMeaning(tuple(self._outliving_commands()), end_of_turn=True, usage=usage)
        # Until an item has completed, it may be at work.
        done = event.get("type") == "item.completed"
        changes = tuple(self._item(part_of(event, "item"), done=done))
        return LineMeaning(changes) if changes else NOTHING

    def _item(self, item: Event, *, done: bool) -> Iterator[Change]:
        item_id = member_in(item.get("id"))
        if item.get("type") in _COMMANDS and item_id:
            yield from self._command(item_id, item, done=done)
        if _OF_AGENTS.isdisjoint(item):
            return
        spawns = item.get("tool") == "spawn_agent"
        if spawns and item_id and not done:
            yield Joined(item_id, "subagent", name_in(item.get("prompt")))
        changes = [*self._states(item), *(self._spawned_agents(item) if spawns else ())]
        yield from changes
        if spawns and item_id and done and item.get("status") == "failed":
            yield MemberLeft(item_id, "spawn_failed")
        elif spawns and item_id and changes:
            yield MemberLeft(item_id, "ended")

    def _command(self, item_id: str, item: Event, *, done: bool) -> Iterator[Change]:
        if not done and len(self._commands) < _MOST:
            self._commands[item_id] = text_of(item.get("command") or item.get("tool"))[:_LONGEST]
        elif done and self._commands.pop(item_id, None) is None:
            yield MemberLeft(item_id, "failed" if item.get("status") == "failed" else "ended")

    def _outliving_commands(self) -> Iterator[Change]:
        for item_id, command in self._commands.items():
            yield Joined(item_id, "background_shell", name_in(command))
        self._commands = {}

    def _states(self, item: Event) -> Iterator[Change]:
        # An agent with an unknown status counts: it may be at work.
        for name, state in part_of(item, "agents_states").items():
            agent, status = member_in(name), part_of({"state": state}, "state").get("status")
            because = _ENDS.get(status) if isinstance(status, str) else None
            if agent and because:
                self._agents.discard(agent)
                yield MemberLeft(agent, because)
            elif agent:
                yield from self._note_agent(agent, item)

    def _spawned_agents(self, item: Event) -> Iterator[Change]:
        # A spawn may return its agents without their states.
        threads, states = item.get("receiver_thread_ids"), part_of(item, "agents_states")
        for thread in threads if isinstance(threads, list) else ():
            agent = member_in(thread)
            if agent and agent not in states:
                yield from self._note_agent(agent, item)

    def _note_agent(self, agent: str, item: Event) -> Iterator[Change]:
        if agent in self._agents:
            yield Alive(agent)
            return
        if len(self._agents) < _MOST:
            self._agents.add(agent)
        yield Joined(agent, "subagent", name_in(item.get("prompt")))
