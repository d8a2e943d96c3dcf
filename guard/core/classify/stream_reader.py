"""Read an agent's output while it is printed, in bounded memory, and classify it at the end."""

import re
from collections.abc import Sequence
from datetime import datetime

from guard.core.base.agent_json import Event
from guard.core.base.lines import Lines, event_in, object_in
from guard.core.base.text import is_id
from guard.core.classify.base import Format, StderrEnd, StreamEnd
from guard.core.classify.claude import ClaudeFormat, QwenFormat
from guard.core.classify.codex import CodexFormat
from guard.core.classify.combine import decide_outcome, make_classification
from guard.core.classify.copilot import CopilotFormat
from guard.core.classify.errors import ReportedError
from guard.core.classify.gemini import GeminiFormat
from guard.core.classify.opencode import OpenCodeFormat
from guard.core.classify.outcome import Classification, shorten_line
from guard.core.classify.plain import Tail, find_error
from guard.core.cost.usage import SessionUsage
from guard.core.gate.members import StreamTeam
from guard.core.tool_calls.agent_loop import LoopFound
from guard.core.tool_calls.loops import LoopFinder

_ERRORS_KEPT = 64 * 1024
_HEAD_KEPT = 16 * 1024
_TELLING = re.compile(rb'"(?:type|session_id)"\s*:')
_OBJECT = re.compile(rb"^\{", re.MULTILINE)
_MOST_DOCUMENTS = 20


# The format is that of the named agent, or the first that recognises an event. Until then, and for lines that are no events,
# the rules for plain text apply, because each of these programs can be run without JSON. If a program names a session on
# standard error, that session counts, and objects that look like events are quotations.
class OutputReader:
    """Reads the output of one session: feed it, then finish it once."""

    def __init__(self, candidates: Sequence[type[Format]], silence: ReportedError) -> None:
        self._candidates = candidates
        self._silence = silence
        """The outcome if the program prints nothing and exits with 0."""
        self._format: Format | None = None
        self._lines = Lines(documents=bool(candidates))
        self._tail = Tail()
        self._errors = bytearray()
        self._latest = 0
        """How many bytes of standard error came after the last standard output."""
        self._head = bytearray()
        self._announced: str | None = None
        self._announcer: type[Format] | None = None
        self._unreadable = 0
        self._loops = LoopFinder(self._has_helper)
        self._now: float | None = None
        """When the newest output came, if that is known."""
        self.error_text = ""
        """After `finish`: the text of the error that the program reported, if any."""
        self.last_message = ""
        """After `finish`: the agent's last message, if its events have one."""
        self._last: tuple[type[Format], Event] | None = None
        """The event in the last line, if it was not taken for the start of a stream."""
        self._is_announced = False
        """Whether a colon came before `_last`, or before the events directly before it."""

    @property
    def session(self) -> str | None:
        if self._format and self._announcer is not type(self._format):
            return self._format.session
        return self._announced

    @property
    def format(self) -> str | None:
        """Return the name of the agent whose events were recognised; None for plain text."""
        return self._format.name if self._format else None

    @property
    def team(self) -> StreamTeam | None:
        return self._format.team if self._format else None

    @property
    def usage(self) -> SessionUsage | None:
        """Return what the session has used so far; None if its output does not tell."""
        return self._format.meter.read() if self._format else None

    @property
    def loop(self) -> LoopFound | None:
        """Return what the agent repeats now, if it goes round in circles."""
        return self._loops.current

    @property
    def has_calls(self) -> bool:
        """Tell whether the output has told of a tool call."""
        return self._loops.has_calls

    def note_child_at_work(self) -> None:
        """Note that the agent waits for something: then it does not go round in circles, whatever it repeats."""
        self._loops.clear()

    @property
    def skipped(self) -> int:
        """Return how many lines were too long, or looked like events but could not be read."""
        return self._lines.passed_over + self._unreadable

    def feed(self, data: bytes, now: float | None = None) -> None:
        """Read standard output; `now` is when it came, in seconds of any clock."""
        self._now = now
        self._latest = 0 if data else self._latest
        for line in self._lines.feed(data):
            self._take(line)

    def feed_error(self, data: bytes) -> None:
        self._look_for_session(data)
        self._latest += len(data)
        self._errors += data[-_ERRORS_KEPT:]
        if len(self._errors) > 2 * _ERRORS_KEPT:
            del self._errors[:-_ERRORS_KEPT]

    def finish(self, exit_code: int | None, now: datetime) -> Classification:
        """Classify the output; a negative exit code is a signal, None is unknown, `now` is in the machine's zone."""
        for line in self._lines.end():
            self._take(line)
        if self._last and not self._is_announced:
            self._choose(*self._last)
        errors = bytes(self._errors[-_ERRORS_KEPT:])
        self._look_for_signature(errors)
        if self._format is None and self._announcer is None and exit_code != 0:
            self._take_document(errors)
        written = self._written_error(errors, exit_code)
        ending = self._format.ending() if self._format else self._plain_ending(exit_code, written)
        meaning = self._agent.exit_codes.get(exit_code) if exit_code else None
        found = decide_outcome(ending, written, exit_code, meaning)
        found = found if self._format else self._doubt(found, exit_code)
        self.error_text = shorten_line(found.text)
        self.last_message = ending.message if self._format else ""
        usage, loop = self.usage, self._loops.worst
        return make_classification(found, ending, self.session, exit_code, now, usage, loop)

    def _plain_ending(self, exit_code: int | None, written: ReportedError | None) -> StreamEnd:
        return StreamEnd(finished=exit_code == 0, trouble=written, message=self._tail.text)

    @property
    def _agent(self) -> type[Format]:
        named = self._candidates[0] if len(self._candidates) == 1 else None
        return (type(self._format) if self._format else None) or named or self._announcer or Format

    def _written_error(self, errors: bytes, exit_code: int | None) -> ReportedError | None:
        announced = self._announcer is not None
        latest = errors[-self._latest :] if self._latest else b""
        own = self._agent.own_errors(StderrEnd(errors, exit_code, announced, latest))
        found = find_error(self._tail, own, exit_code)
        agents = self._candidates if self._format is None and found is None else ()
        meanings = (agent.last_words.get(self._tail.last_line) for agent in agents)
        known_meaning = next((meaning for meaning in meanings if meaning), None)
        return ReportedError(*known_meaning, self._tail.last_line) if known_meaning else found

    def _doubt(self, found: ReportedError, exit_code: int | None) -> ReportedError:
        # Plain text alone proves nothing: guard also needs an exit code and something to read.
        if exit_code is None and found.outcome == "crash":
            return ReportedError("unknown", "no_exit_code", found.text)
        if found.outcome == "ok" and (self._unreadable or self._last):
            return ReportedError("unknown", "unreadable")
        return self._silence if found.outcome == "ok" and not self._tail.text else found

    def _look_for_session(self, data: bytes) -> None:
        if self._announced is not None or len(self._head) >= _HEAD_KEPT:
            return
        self._head += data[:_HEAD_KEPT]
        for agent in self._candidates:
            found = agent.announced and agent.announced.search(self._head)
            if found and is_id(found[1].decode()):
                self._announced, self._announcer = found[1].decode(), agent

    def _look_for_signature(self, errors: bytes) -> None:
        for agent in self._candidates if self._announced is None else ():
            found = agent.signed.findall(errors) if agent.signed else []
            if found and is_id(found[-1].decode()):
                self._announced, self._announcer = found[-1].decode(), agent

    def _take_document(self, errors: bytes) -> None:
        # Some programs end standard error with an object that reports the failure.
        errors = errors.rstrip()
        likely = [agent for agent in self._candidates if agent.fails_on_stderr]
        if not likely or not errors.endswith(b"}"):
            return
        starts = [found.start() for found in _OBJECT.finditer(errors)]
        for start in starts[-_MOST_DOCUMENTS:]:
            event = object_in(errors[start:])
            chosen = _recognise(event, likely) if event else None
            if event and chosen:
                self._choose(chosen, event)
                return

    def _choose(self, chosen: type[Format], event: Event) -> None:
        self._format = chosen()
        self._take_event(self._format, event)

    def _take_event(self, chosen: Format, event: Event) -> None:
        kind = event.get("type")
        if kind in chosen.meter.kinds:
            chosen.meter.take(event)
        chosen.take(event)
        if kind not in self._loops.unread:
            self._loops.take(event, self._now)

    def _has_helper(self) -> bool:
        return self.team is not None and bool(self.team.members)

    def _take(self, line: bytes) -> None:
        chosen = self._format
        if chosen is None or not line.startswith(b"{"):
            self._take_other(line)
        elif line.startswith(chosen.noise):
            return
        elif chosen.is_wanted(line) or self._loops.is_wanted(line, self._now):
            event = event_in(line)
            if event is not None and event.get("type") in chosen.deciding:
                event = object_in(line)
            if event is None:
                self._unreadable += 1
            else:
                self._take_event(chosen, event)

    def _take_other(self, line: bytes) -> None:
        # A line of plain text; or an event with something before it, or before the first one.
        stripped = line.lstrip(b"\r\x00\xef\xbb\xbf")
        is_object = stripped.startswith(b"{")
        if self._format is not None and is_object and stripped != line:
            self._take(stripped)
        else:
            self._take_text(stripped if is_object else b"", line)

    def _take_text(self, likely: bytes, line: bytes) -> None:
        if not line.strip() or (self._format is None and self._is_start(likely)):
            return
        for piece in line.split(b"\n"):
            self._tail.add(piece)

    def _is_start(self, line: bytes) -> bool:
        # Plain text may quote events, so not every object is an event. An event begins its line and is not in a fence. As the
        # first line of all it may be any event of the format. After other lines (noise of a shell or of a package manager) it
        # must be one that opens a stream, or the last line of all, where an agent prints its only document. After a colon,
        # which may announce a quotation as well as output, neither counts: then a good exit proves nothing.
        follows, self._last = self._last is not None, None
        if self._tail.is_fenced or not self._candidates or not _TELLING.search(line):
            return False
        event = object_in(line)
        chosen = _recognise(event, self._candidates) if event else None
        if event is None or chosen is None:
            self._unreadable += event is None
            return False
        self._is_announced = self._is_announced if follows else self._tail.is_announcing
        if self._tail.is_empty or (chosen.is_opening(event) and not self._is_announced):
            self._choose(chosen, event)
            return True
        self._unreadable += chosen.is_opening(event)
        self._last = chosen, event
        return False


def _recognise(event: Event, candidates: Sequence[type[Format]]) -> type[Format] | None:
    return next((agent for agent in candidates if agent.is_recognised(event)), None)


_FORMATS: dict[str, type[Format]] = {
    agent.name: agent
    for agent in (
        ClaudeFormat,
        QwenFormat,
        CodexFormat,
        GeminiFormat,
        OpenCodeFormat,
        CopilotFormat,
    )
}
"""In the order in which they are tried. Qwen prints Claude's events, but a field of its first event tells them apart."""


def choose_reader(agent: str | None) -> OutputReader:
    if agent == "command":
        return OutputReader((), ReportedError("ok", "completed"))
    if agent is None:
        return OutputReader(tuple(_FORMATS.values()), ReportedError("unknown", "no_output"))
    if agent not in _FORMATS:
        raise ValueError(f"{agent!r} is not an agent whose output guard reads")
    return OutputReader((_FORMATS[agent],), ReportedError("crash", "no_result"))
