"""Read the events of `copilot --output-format json`; its closing line has an exit code and no text."""

import re

from guard.core.base.agent_json import Event, part_of, parts_of, status_in, text_of, word_in
from guard.core.classify.base import Format, StderrEnd, StreamEnd, type_pattern
from guard.core.classify.errors import ReportedError, make_error
from guard.core.classify.plain import error_lines
from guard.core.cost.meters import CopilotMeter
from guard.core.gate.copilot import CopilotStream
from guard.core.gate.members import StreamTeam

_MOST_TOOLS = 10_000
_MOST_DENIED = 100
_SUMMARY = re.compile(rb"^Changes +\+\d+ -\d+\r?$", re.MULTILINE)


class CopilotFormat(Format):
    name = "copilot"
    meter_class = CopilotMeter
    wanted = type_pattern(
        r"session\.(?:start|resume|error)",
        r"assistant\.(?:message|usage|turn_end)",
        r"model\.call_failure",
        r"tool\.execution_complete",
        "result",
    )
    noise = (
        b'{"type":"assistant.message_delta",',
        b'{"type":"assistant.reasoning',
        b'{"type":"assistant.streaming_delta",',
        b'{"type":"tool.execution_partial_result",',
        b'{"type":"tool.execution_progress",',
        b'{"type":"hook.',
    )
    question_tools = ("ask_user",)
    signed = re.compile(rb"^Resume +copilot --resume=([A-Za-z0-9_-]{1,128})\r?$", re.MULTILINE)

    def __init__(self) -> None:
        super().__init__()
        self._result: Event | None = None
        self._notice: ReportedError | None = None
        """Why the program retries; None after a message of the agent."""
        self._tools: dict[str, str] = {}
        self._denied: list[str] = []
        self._worked = False
        self.team: StreamTeam = StreamTeam(CopilotStream())

    @staticmethod
    def is_recognised(event: Event) -> bool:
        kind = text_of(event.get("type"))
        if kind == "result":
            return "sessionId" in event and "exitCode" in event
        return "data" in event and kind.startswith(
            ("session.", "assistant.", "user.message", "model.", "tool.")
        )

    @classmethod
    def is_opening(cls, event: Event) -> bool:
        kind = text_of(event.get("type"))
        return kind.startswith(("session.", "user.message")) and kind != "session.error"

    @staticmethod
    def own_errors(errors: StderrEnd) -> list[str]:
        # Without JSON, a summary on standard error closes the run and names the session.
        return error_lines(_SUMMARY.split(errors.data)[0])

    def take(self, event: Event) -> None:
        self.team.take(event)
        data = part_of(event, "data")
        if data.get("parentToolCallId"):
            return
        match event.get("type"):
            case "session.start" | "session.resume":
                self.remember_session(data.get("sessionId"))
            case "session.error":
                self._trouble = _trouble(data)
            case "model.call_failure" if data.get("source", "top_level") == "top_level":
                self._notice = _trouble(data)
            case "assistant.message":
                self._take_message(data)
            case "tool.execution_complete":
                self._take_tool(data)
            case "result":
                self._result = event
                self.remember_session(event.get("sessionId"))

    def _take_message(self, data: Event) -> None:
        self._result = self._trouble = self._notice = None
        self._message = text_of(data.get("content")) or self._message
        for request in parts_of(data, "toolRequests")[:_MOST_TOOLS]:
            self.note_tool(word_in(request.get("name")), part_of(request, "arguments"))
            if len(self._tools) < _MOST_TOOLS:
                self._tools[word_in(request.get("toolCallId"))] = word_in(request.get("name"))

    def _take_tool(self, data: Event) -> None:
        code = word_in(part_of(data, "error").get("code"))
        name = self._tools.pop(word_in(data.get("toolCallId")), "tool")
        if data.get("success") is not False or code not in ("denied", "rejected"):
            self._worked = True
        elif len(self._denied) < _MOST_DENIED:
            self._denied.append(name)

    def ending(self) -> StreamEnd:
        # A subagent that ran when the turn was cut off is no background work; one that outlived its turn is.
        code = (self._result or {}).get("exitCode")
        failed = isinstance(code, int) and code != 0
        notice = self._notice if failed or self._result is None else None
        waited = notice if notice and notice.outcome != "crash" else None
        return StreamEnd(
            finished=self._result is not None,
            trouble=self._trouble
            or waited
            or (ReportedError("crash", f"exit_{code}") if failed else None),
            message=self._message,
            asked=self._is_asking,
            question=self._question,
            helpless=bool(self._denied) and not self._worked,
            killed=self.team.lost_helpers if self._result else (),
            denied=tuple(self._denied),
        )


def _trouble(data: Event) -> ReportedError:
    kind = word_in(data.get("errorType"))
    return make_error(
        text_of(data.get("message")) or text_of(data.get("errorMessage")) or kind,
        status_in(data.get("statusCode")),
        kind,
        otherwise=kind,
    )
