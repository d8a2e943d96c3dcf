"""Read the events of `opencode run --format json`; it has no closing line, so the last step that stopped is the end."""

from guard.core.base.agent_json import Event, number_in, part_of, status_in, text_of, word_in
from guard.core.classify.base import Format, StreamEnd
from guard.core.classify.errors import ReportedError, make_error
from guard.core.cost.meters import OpenCodeMeter

_UNFINISHED = ("tool-calls", "unknown", "other")
_REJECTED = "The user rejected permission"
_MOST_DENIED = 100


class OpenCodeFormat(Format):
    name = "opencode"
    meter_class = OpenCodeMeter
    wanted = None
    opening = "step_start"
    question_tools = ("question",)

    def __init__(self) -> None:
        super().__init__()
        self._cost: float | None = None
        self._denied: list[str] = []
        self._worked = False

    @staticmethod
    def is_recognised(event: Event) -> bool:
        return "sessionID" in event and ("part" in event or event.get("type") == "error")

    def take(self, event: Event) -> None:
        if "sessionID" not in event:
            return
        if self.session is None:
            self.remember_session(event.get("sessionID"))
        part = part_of(event, "part")
        match event.get("type"):
            case "step_start":
                self._is_over, self._trouble = False, None
            case "text":
                self._message = text_of(part.get("text"))
            case "step_finish":
                self._is_over = part.get("reason") not in _UNFINISHED
                self._cost = (self._cost or 0.0) + (number_in(part.get("cost")) or 0.0)
            case "tool_use":
                self._take_tool(part)
            case "error":
                self._is_over = True
                self._trouble = _trouble(part_of(event, "error"))

    def _take_tool(self, part: Event) -> None:
        state = part_of(part, "state")
        self.note_tool(word_in(part.get("tool")), part_of(state, "input"))
        rejected = text_of(state.get("error")).startswith(_REJECTED) and not self._is_asking
        if not rejected:
            self._worked = True
        elif len(self._denied) < _MOST_DENIED:
            self._denied.append(word_in(part.get("tool")))

    def ending(self) -> StreamEnd:
        return StreamEnd(
            finished=self._is_over,
            trouble=self._trouble,
            message=self._message,
            asked=self._is_asking,
            question=self._question,
            helpless=bool(self._denied) and not self._worked,
            denied=tuple(self._denied),
            cost=self._cost,
        )


def _trouble(error: Event) -> ReportedError:
    data, name = part_of(error, "data"), word_in(error.get("name"))
    headers = part_of(data, "responseHeaders")
    after = word_in(headers.get("retry-after"))
    return make_error(
        text_of(data.get("message")) or text_of(error.get("message")) or name,
        status_in(data.get("statusCode")),
        name,
        otherwise=name,
        delay=float(after) if after.isascii() and after.isdigit() and len(after) < 9 else None,
    )
