"""Read the events of Claude Code and Qwen Code: `json` and `stream-json`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from guard.core.base.agent_json import (
    Event,
    number_in,
    part_of,
    parts_of,
    status_in,
    text_of,
    word_in,
)
from guard.core.classify.base import Format, StreamEnd, type_pattern
from guard.core.classify.errors import ErrorMeaning, ReportedError, error_meaning, make_error
from guard.core.classify.plain import is_known_failure
from guard.core.cost.meters import ClaudeMeter, QwenMeter
from guard.core.gate.claude import ClaudeStream
from guard.core.gate.members import StreamTeam
from guard.core.gate.simple_streams import QwenStream

_REFUSED = ("rejected", "denied")
_MOST_TOOLS = 10_000


# `subtype: success` proves nothing, because an API error has it too. A stream can have several results; the last one decides,
# and a result that is followed by another message of the agent is not the last. Events of subagents do not count for the
# session.
class ClaudeFormat(Format):
    name = "claude"
    meter_class = ClaudeMeter
    wanted = type_pattern("result", "assistant", "system", "rate_limit_event")
    noise = (b'{"type":"stream_event",', b'{"type":"system","subtype":"hook_')
    opening = "system"
    question_tools = ("AskUserQuestion", "ask_user_question")
    last_words = {"Execution error": ErrorMeaning("crash", "error_during_execution")}
    stream: ClassVar[type[ClaudeStream]] = ClaudeStream
    """Reads from the events which helpers the agent has."""

    def __init__(self) -> None:
        super().__init__()
        self._result: Event | None = None
        self._synthetic: ReportedError | None = None
        """The last error that the program reported as a message of the agent."""
        self._retry: ReportedError | None = None
        """Why the program retries; None after a message of the agent."""
        self._tools: set[str] = set()
        self._resets: tuple[float, ...] = ()
        self._is_refused = False
        self.team: StreamTeam = StreamTeam(self.stream())

    @staticmethod
    def is_recognised(event: Event) -> bool:
        return "qwen_code_version" not in event and _is_envelope(event)

    def take(self, event: Event) -> None:
        if event.get("parent_tool_use_id") or event.get("isSidechain"):
            return
        kind = event.get("type")
        if self.session is None or kind == "result" or event.get("subtype") == "init":
            self.remember_session(event.get("session_id"))
        if kind == "assistant":
            self._take_message(event)
            return
        self.team.take(event)
        match kind:
            case "result":
                self._result = event
            case "system" if event.get("subtype") == "api_retry":
                status = status_in(event.get("error_status"))
                self._retry = make_error("", status, event.get("error"))
            case "rate_limit_event":
                self._take_limit(part_of(event, "rate_limit_info"))

    def _take_message(self, event: Event) -> None:
        self._result = None
        message = part_of(event, "message")
        texts: list[str] = []
        has_call = False
        for block in parts_of(message, "content"):
            kind = block.get("type")
            if kind == "text":
                texts.append(text_of(block.get("text")))
            elif kind == "tool_use":
                has_call = True
                self.note_tool(word_in(block.get("name")), part_of(block, "input"))
                if len(self._tools) < _MOST_TOOLS:
                    self._tools.add(word_in(block.get("id")))
        if has_call:
            self.team.take(event)
        self.team.note_turn()
        text = "\n".join(texts)
        self._synthetic = _synthetic_error(event, message, text)
        self._retry = None
        if not self._synthetic:
            self._is_refused, self._resets = False, ()
            self._message = text or self._message

    def _take_limit(self, info: Event) -> None:
        # The main status counts: overage is normally refused while none is used. While overage is used, the main limit is
        # refused all the time and the work continues, until overage is refused as well.
        is_used = info.get("isUsingOverage") is True or info.get("overageInUse") is True
        is_paid = is_used and info.get("overageStatus") not in _REFUSED
        self._is_refused = info.get("status") in _REFUSED and not is_paid
        windows = part_of(info, "unifiedWindows").values()
        refused = [w for w in windows if isinstance(w, Mapping) and w.get("status") in _REFUSED]
        resets = [number_in(window.get("resetsAt")) for window in (info, *refused)]
        known = tuple(at for at in resets if at) or (number_in(info.get("overageResetsAt")) or 0,)
        self._resets = tuple(at for at in known if at) if self._is_refused else ()

    def ending(self) -> StreamEnd:
        result = self._result or {}
        denials = parts_of(result, "permission_denials")
        denied = {word_in(denial.get("tool_use_id")) for denial in denials}
        names = [word_in(denial.get("tool_name")) for denial in denials]
        found = self._find_trouble()
        text = "" if found else text_of(result.get("result"))
        return StreamEnd(
            finished=self._result is not None,
            trouble=found,
            message=text or self._message,
            asked=self._is_asking,
            question=self._question,
            helpless=bool(self._tools) and self._tools <= denied,
            killed=self.team.lost_helpers,
            denied=tuple(name for name in names if name and name not in self.question_tools),
            cost=number_in(result.get("total_cost_usd")),
        )

    def _find_trouble(self) -> ReportedError | None:
        result = self._result
        if result is None:
            return self._last_synthetic() or self._reason_to_wait()
        text = _error_text(result)
        failed = result.get("is_error") is True or str(result.get("subtype")).startswith("error")
        if not failed:
            return self._last_synthetic() or _disguised_limit(result, text)
        names = ("subtype", "terminal_reason", "api_error", "api_error_type")
        return make_error(
            text,
            status_in(result.get("api_error_status")),
            *(result.get(name) for name in names),
            otherwise=_word(result),
            resets=(*self._resets, *_resets_in(result)),
            delay=number_in(result.get("retry_after")),
        )

    def _last_synthetic(self) -> ReportedError | None:
        made_up = self._synthetic
        return made_up and replace(made_up, resets=(*self._resets, *made_up.resets))

    def _reason_to_wait(self) -> ReportedError | None:
        # The program was ended while it waited for the end of a limit or for the service.
        if self._is_refused:
            return ReportedError("limited", "usage_limit", resets=self._resets)
        return self._retry if self._retry and self._retry.outcome != "crash" else None


class QwenFormat(ClaudeFormat):
    name = "qwen"
    meter_class = QwenMeter
    stream = QwenStream
    exit_codes = {
        53: ErrorMeaning("turn_limit", "max_turns"),
        55: ErrorMeaning("budget", "max_wall_time"),
    }

    @staticmethod
    def is_recognised(event: Event) -> bool:
        return _is_envelope(event)


def _is_envelope(event: Event) -> bool:
    if "session_id" not in event:
        return False
    if event.get("type") == "result":
        return "is_error" in event or "subtype" in event
    return event.get("type") in ("system", "assistant", "user", "stream_event", "rate_limit_event")


def _synthetic_error(event: Event, message: Event, text: str) -> ReportedError | None:
    # The program made up this message to report an error.
    marked = event.get("is_api_error_message") or event.get("isApiErrorMessage")
    if not (marked or event.get("error") or (_is_free(message) and _is_known(text))):
        return None
    codes = (event.get("api_error"), event.get("api_error_type"), event.get("error"))
    status = status_in(event.get("api_error_status"))
    found = make_error(text, status, *codes, resets=_resets_in(event))
    return found if found.outcome != "crash" else None


def _disguised_limit(result: Event, text: str) -> ReportedError | None:
    # A limit can be reported as a success that cost nothing.
    meaning = error_meaning(text) if _is_free(result) and _is_known(text) else None
    return ReportedError(*meaning, text) if meaning else None


def _is_known(text: str) -> bool:
    # The first line is the known sentence; lines below it may say what a person can do.
    return is_known_failure(text.partition("\n")[0])


def _resets_in(event: Event) -> tuple[float, ...]:
    at = number_in(part_of(event, "api_error_params", "rate_limit_info").get("resetsAt"))
    return (at,) if at else ()


def _is_free(envelope: Event) -> bool:
    usage = part_of(envelope, "usage")
    is_unused = usage.get("input_tokens") == 0 == usage.get("output_tokens")
    return is_unused or envelope.get("model") == "<synthetic>"


def _error_text(result: Event) -> str:
    errors: Any = result.get("errors")
    listed = (
        [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
    )
    text = text_of(result.get("result")) or text_of(part_of(result, "error").get("message"))
    return text or "\n".join(listed[:10])


def _word(result: Event) -> str:
    for name in ("terminal_reason", "subtype"):
        word = word_in(result.get(name))
        if word.isidentifier() and word not in ("success", "completed"):
            return word
    return "error"
