"""Read the events of `codex exec --json`."""

import re

from guard.core.base.agent_json import Event, part_of, text_of
from guard.core.classify.base import Format, StderrEnd, StreamEnd
from guard.core.classify.errors import ReportedError, make_error
from guard.core.classify.plain import error_lines
from guard.core.cost.meters import CodexMeter
from guard.core.gate.codex import CodexStream
from guard.core.gate.members import StreamTeam

_GAVE_UP = 1
_NOTICE = "Reading additional input from stdin"
_TOKENS = re.compile(rb"tokens used\r?\n[\d,.]+\s*\Z")
_ERROR = b"\nERROR: "


# An `error` event is a notice (`Reconnecting...`) and an item of type `error` a warning; only the end of a turn decides. When
# the main turn ends, Codex kills the subagents and terminals that still run.
class CodexFormat(Format):
    name = "codex"
    meter_class = CodexMeter
    wanted = None
    deciding = ("turn.completed", "turn.failed")
    opening = "thread.started"
    announced = re.compile(rb"^session id: ([A-Za-z0-9_-]{1,128})\r?\n", re.MULTILINE)

    def __init__(self) -> None:
        super().__init__()
        self._notice = ""
        self.team: StreamTeam = StreamTeam(CodexStream())

    @staticmethod
    def is_recognised(event: Event) -> bool:
        kind = text_of(event.get("type"))
        return (kind == "thread.started" and "thread_id" in event) or kind.startswith(
            ("turn.started", "turn.completed", "turn.failed", "item.started", "item.completed")
        )

    @staticmethod
    def own_errors(errors: StderrEnd) -> list[str]:
        if not errors.announced:
            return [line for line in error_lines(errors.data) if not line.startswith(_NOTICE)]
        return _closing_error(errors.data) if errors.exit_code == _GAVE_UP else []

    def take(self, event: Event) -> None:
        kind = event.get("type")
        item = part_of(event, "item")
        if item.get("type") != "agent_message":
            self.team.take(event)
        match kind:
            case "item.completed":
                if item.get("type") == "agent_message":
                    self._message = text_of(item.get("text"))
            case "item.started":
                pass
            case "thread.started":
                self.remember_session(event.get("thread_id"))
            case "turn.started":
                self._is_over, self._trouble = False, None
            case "turn.completed":
                self._is_over, self._trouble = True, None
            case "turn.failed":
                self._is_over = True
                self._trouble = make_error(
                    _message_in(event) or self._notice, otherwise="turn_failed"
                )
            case "error":
                self._notice = _message_in(event)

    def ending(self) -> StreamEnd:
        return StreamEnd(
            finished=self._is_over,
            trouble=self._trouble or self._cut_off_error(),
            message=self._message,
            killed=self.team.lost_helpers,
        )

    def _cut_off_error(self) -> ReportedError | None:
        # The last notice explains a turn that never ended, if its meaning is known.
        found = make_error(self._notice) if self._notice and not self._is_over else None
        return found if found and found.outcome != "crash" else None


def _message_in(event: Event) -> str:
    return text_of(event.get("message")) or text_of(part_of(event, "error").get("message"))


def _closing_error(data: bytes) -> list[str]:
    # Without `--json` the prompt, the commands and their output go to standard error, below a head that names the session.
    # Nothing marks where a command's output ends, so only the line with which Codex gives up counts as its own: `ERROR: ...`,
    # mostly twice, at the very end of a run that was not killed. An error of several lines counts only if it is there twice.
    text = b"\n" + _TOKENS.sub(b"", data).strip()
    before, mark, error = text.rpartition(_ERROR)
    if not mark or (b"\n" in error and not before.endswith(mark + error)):
        return []
    return error_lines((mark + error).strip().split(b"\n")[0])
