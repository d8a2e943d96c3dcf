"""Read Copilot CLI's `--output-format json`: one result ends it; it reports subagents, but no shells in the background.

`session.background_tasks_changed` has no content, so it says nothing. The size of the context stands beside a tool's result.
"""

from collections.abc import Iterator

from guard.core.base.agent_json import Event, count_in, member_in, name_in, part_of
from guard.core.gate.reader import NOTHING, LineMeaning, StreamReader, TurnUsage
from guard.core.team.change import Change, Joined, MemberLeft


class CopilotStream(StreamReader):
    name = "copilot"
    words = (
        *(b'"result"', b'"session.start"', b'"session.resume"', b'"session.usage_info"'),
        *(b'"subagent.started"', b'"subagent.completed"', b'"subagent.failed"'),
    )
    ending = (b'"result"',)
    beginning = (b'"assistant.turn_start"',)

    def __init__(self) -> None:
        super().__init__()
        self._usage = TurnUsage()
        """The newest numbers of this turn."""

    def read(self, event: Event) -> LineMeaning:
        data = part_of(event, "data")
        match event.get("type"):
            case "session.start" | "session.resume":
                self.note_session(data.get("sessionId"))
            case "session.usage_info":
                self._take_usage(data.get("currentTokens"), data.get("tokenLimit"))
            case "tool.execution_complete":
                metrics = part_of(data, "toolTelemetry", "metrics")
                self._take_usage(
                    metrics.get("context_current_tokens"), metrics.get("context_token_limit")
                )
            case "assistant.turn_start":
                return LineMeaning(begins_turn=True)
            case "subagent.started" | "subagent.completed" | "subagent.failed" as kind:
                return LineMeaning(tuple(_change(kind, event, data)))
            case "result":
                self.note_session(event.get("sessionId"))
                usage, self._usage = self._usage, TurnUsage()
                return LineMeaning(end_of_turn=True, usage=usage)
        return NOTHING

    def _take_usage(self, tokens: object, window: object) -> None:
        self._usage = TurnUsage(
            count_in(tokens) or self._usage.input_tokens,
            count_in(window) or self._usage.context_window,
        )


def _change(kind: str, event: Event, data: Event) -> Iterator[Change]:
    member = member_in(data.get("toolCallId")) or member_in(event.get("agentId"))
    if member is None:
        return
    if kind == "subagent.started":
        yield Joined(member, "subagent", name_in(data.get("agentDisplayName")))
    else:
        yield MemberLeft(member, "failed" if kind == "subagent.failed" else "ended")
