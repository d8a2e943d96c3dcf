"""Read the events of Gemini CLI: `json` and `stream-json`."""

import re
from collections.abc import Mapping

from guard.core.base.agent_json import LONGEST_MESSAGE, Event, part_of, status_in, text_of, word_in
from guard.core.classify.base import Format, StderrEnd, StreamEnd
from guard.core.classify.errors import ErrorMeaning, ReportedError, error_meaning, make_error
from guard.core.classify.plain import error_lines
from guard.core.cost.meters import GeminiMeter

_GAVE_UP = "An unexpected critical error occurred"
_ATTEMPT = re.compile(r"Attempt \d+ failed with status\b")
_STATUS = re.compile(rb"^ +status: ([45]\d\d)\b", re.MULTILINE)
_HTTP = (401, 403, 429, 500, 502, 503, 504, 529)


def _exit_codes() -> dict[int, ErrorMeaning]:
    # The exit code is the HTTP status modulo 256.
    meanings = {status % 256: error_meaning("", status) for status in _HTTP}
    return {
        41: ErrorMeaning("auth", "not_logged_in"),
        53: ErrorMeaning("turn_limit", "max_turns"),
        55: ErrorMeaning("denied", "untrusted_folder"),
        **{code: meaning for code, meaning in meanings.items() if meaning},
    }


class GeminiFormat(Format):
    name = "gemini"
    meter_class = GeminiMeter
    wanted = re.compile(
        rb'"type"\s*:\s*"(?:init|message|tool_use|error|result)"|"(?:response|error)"\s*:'
    )
    deciding = ("result", None)
    opening = "init"
    question_tools = ("ask_user",)
    exit_codes = _exit_codes()
    fails_on_stderr = True

    def __init__(self) -> None:
        super().__init__()
        self._notice: ReportedError | None = None
        self._goes_on = False
        """Whether the next piece belongs to the same message."""

    @staticmethod
    def is_recognised(event: Event) -> bool:
        if event.get("type") == "init":
            return "session_id" in event and "model" in event
        return _is_document(event)

    @staticmethod
    def own_errors(errors: StderrEnd) -> list[str]:
        # Without JSON the status of a failure is in a stack trace, and the last line has no information. A failed attempt
        # does not count if output followed it.
        latest = error_lines(errors.latest)
        known = error_lines(errors.data)
        own = [line for line in known if line in latest or not _ATTEMPT.match(line)]
        statuses = _STATUS.findall(errors.data)
        if statuses and own and own[-1].startswith(_GAVE_UP):
            return [f"API Error: {statuses[-1].decode()}", *own]
        return own

    def take(self, event: Event) -> None:
        if _is_document(event):
            self._take_document(event)
            return
        match event.get("type"):
            case "init":
                self.remember_session(event.get("session_id"))
            case "message":
                self._take_message(event)
            case "tool_use":
                self._goes_on = False
                self.note_tool(word_in(event.get("tool_name")), part_of(event, "parameters"))
            case "error" if event.get("severity") == "error":
                self._notice = make_error(text_of(event.get("message")))
            case "result":
                self._is_over = True
                failed = event.get("status") == "error" or isinstance(event.get("error"), Mapping)
                self._trouble = _trouble(part_of(event, "error")) if failed else None

    def _take_document(self, event: Event) -> None:
        self.remember_session(event.get("session_id"))
        self._is_over = True
        self._message = text_of(event.get("response"))
        error = part_of(event, "error")
        self._trouble = _trouble(error) if error else None

    def _take_message(self, event: Event) -> None:
        self._is_over = False
        if event.get("role") != "assistant":
            self._goes_on = False
            return
        before = self._message if self._goes_on and event.get("delta") else ""
        self._message = (before + text_of(event.get("content")))[-LONGEST_MESSAGE:]
        self._goes_on = True
        self._notice = None

    def ending(self) -> StreamEnd:
        cut_off = None if self._is_over else self._notice
        return StreamEnd(
            finished=self._is_over,
            trouble=self._trouble or cut_off,
            message=self._message,
            asked=self._is_asking,
            question=self._question,
        )


def _is_document(event: Event) -> bool:
    # `-o json` prints one document: an answer, or on standard error an error with its type; standard output is then empty.
    if "type" in event or "session_id" not in event:
        return False
    error = part_of(event, "error")
    return ("response" in event and "stats" in event) or ("message" in error and "type" in error)


def _trouble(error: Event) -> ReportedError:
    return make_error(
        text_of(error.get("message")),
        status_in(error.get("code")),
        error.get("type"),
        error.get("code"),
    )
