"""Pass the lines of an event stream on, and hold the end of a turn back while a team has a member that counts.

Everything else passes byte for byte. A completion that was held goes out when the agent ends a turn again and no member counts
any more: an agent that started helpers has to learn of their ends before it is done. If only members that the stream does not
know held it back, it goes out at the end of the stream, if they have ended by then.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from guard.core.base.lines import LONGEST_LINE, object_in
from guard.core.gate.lines import Cutter
from guard.core.gate.members import Members
from guard.core.gate.reader import StreamReader, TurnUsage, any_of
from guard.core.team.change import Change, MemberLeft

Reason = Literal["completed", "hold_limit", "held", "helpers_killed", "stream_cut"]
Status = Literal["complete", "waiting", "interrupted"]
_STATUSES: dict[Reason, Status] = {
    "completed": "complete",
    "hold_limit": "complete",
    "held": "waiting",
    "helpers_killed": "interrupted",
    "stream_cut": "interrupted",
}
_EXIT_CODES: dict[Status, int] = {"complete": 0, "waiting": 11, "interrupted": 16}


@dataclass(frozen=True)
class StreamOutcome:
    """The end of a stream: its agent is done, its helpers may live, or work was cut off."""

    reasons: tuple[Reason, ...]
    """The most important first."""
    team: str | None = None
    """The team that held the completion back, if one did."""
    count: int = 0
    members: tuple[str, ...] = ()
    """The members that the stream reported, and that may live."""
    killed: tuple[str, ...] = ()
    unreadable: int = 0
    """How many lines that may have meant something were too long or broken."""

    @property
    def status(self) -> Status:
        return _STATUSES[self.reasons[0]]

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self.status]


MAX_HOLD_SECONDS = 7200.0
_BEFORE = b"\r\x00\xef\xbb\xbf \t"

Holder = tuple[str, int]
"""The name of a team, and how many of its members count."""


@dataclass(frozen=True)
class StreamHeld:
    """A completion is held back from now on."""

    team: str
    count: int


@dataclass(frozen=True)
class LetGo:
    """A completion that was held back has gone out."""

    team: str
    count: int
    """How many members still counted."""
    why: Literal["ended", "hold_limit"]


@dataclass(frozen=True)
class _Completion:
    """A completion that is held back."""

    line: bytes
    usage: TurnUsage
    team: str
    told: bool
    """Whether a member that the stream reported held it back."""


class Gate:
    """The gate of one stream: call `feed` for its bytes and `end` once at its end. Times are seconds of a steady clock.

    `on_change` is called with what the stream reports about helpers. `also_holds` returns a team that is known from elsewhere.
    """

    def __init__(
        self,
        reader: StreamReader,
        *,
        team: str | None = None,
        max_hold_seconds: float = MAX_HOLD_SECONDS,
        on_change: Callable[[tuple[Change, ...]], None] = lambda _: None,
        also_holds: Callable[[], Holder | None] = lambda: None,
        tell: Callable[[StreamHeld | LetGo], None] = lambda _: None,
        longest_line: int = LONGEST_LINE,
    ) -> None:
        self._reader = reader
        self._members = Members(team)
        self._cutter = Cutter(longest_line)
        self._longest = longest_line
        self._max_hold = max_hold_seconds
        self._on_change = on_change
        self._also_holds = also_holds
        self._tell = tell
        self._in_turn = True
        self._passes_others = False
        """Whether the members known from elsewhere have held long enough."""
        self._held: _Completion | None = None
        self._since: float | None = None
        self._last: Reason = "stream_cut"
        """The reason if the stream ended now, between two turns."""
        self._unreadable = 0

    @property
    def session(self) -> str | None:
        return self._reader.session

    @property
    def deadline(self) -> float | None:
        """Return when the caller has to call `tick`, if nothing else happens."""
        return None if self._since is None or self._in_turn else self._since + self._max_hold

    def feed(self, data: bytes, now: float) -> bytes:
        """Return the bytes that go out for these bytes."""
        out = [self.tick(now)]
        for piece in self._cutter.feed(data):
            out += self._pass_lines(piece.data, now) if piece.readable else [piece.data]
        return b"".join(out)

    def tick(self, now: float) -> bytes:
        """Return the bytes that go out because time has passed."""
        due = self.deadline
        if due is None or now < due or self._held is None or self._cutter.in_line:
            return b""
        return self._let_go(self._held, self._holder(), b"\n")

    def clear(self) -> None:
        """Forget the team, so that the next end of a turn is a completion."""
        self._members.clear()
        self._since = None

    def cut(self) -> bytes:
        """Return the bytes that go out of an unfinished line, if the stream is left before its end."""
        return self._cutter.end()

    def end(self, now: float) -> tuple[bytes, StreamOutcome]:
        """Return the bytes that go out at the end of the stream, and the outcome."""
        cut = self._cutter.in_line
        rest = self._cutter.end()
        out = rest if cut else b"".join(self._pass_lines(rest, now))
        if self._reader.kills_helpers and self._members.count:
            self._on_change(tuple(MemberLeft(member, "killed") for member in self._members.ids))
        held = self._held
        if held and not (self._in_turn or held.told or self._holder()):
            newline = b"\n" if cut or (out and not out.endswith(b"\n")) else b""
            out += newline + self._let_go(held, None, b"\n")
        return out, self._outcome()

    def _outcome(self) -> StreamOutcome:
        held, holder = self._held, self._holder()
        lost = self._members.names if self._reader.kills_helpers else ()
        killed = (*self._members.killed_names, *lost)
        alive = () if lost else self._members.names
        reasons: list[Reason] = ["helpers_killed"] if killed else []
        if self._in_turn or (held and holder is None):
            reasons.append("stream_cut")
        elif not killed:
            reasons.append("held" if held else self._last)
        team, count = holder or (held.team if held else None, 0)
        unreadable = self._unreadable + self._cutter.too_long
        return StreamOutcome(
            tuple(reasons), team, max(0, count - len(lost)), alive, killed, unreadable
        )

    def _pass_lines(self, data: bytes, now: float) -> Iterator[bytes]:
        # Only lines with one of the reader's words are cut out and read.
        begin = 0
        while found := self._pattern().search(data, begin):
            start = max(begin, data.rfind(b"\n", begin, found.start()) + 1)
            end = data.find(b"\n", found.end()) + 1 or len(data)
            yield data[begin:start]
            yield self._pass_line(data[start:end], now)
            begin = end
        yield data[begin:]

    def _pattern(self) -> re.Pattern[bytes]:
        words = self._reader.words
        return any_of(words if self._in_turn else (*words, *self._reader.beginning))

    def _pass_line(self, line: bytes, now: float) -> bytes:
        event = self._parse(line) if len(line) <= self._longest else None
        if event is None:
            self._unreadable += line.lstrip(_BEFORE).startswith(b"{")
            return line
        meaning = self._reader.read(event)
        if meaning.changes:
            self._apply(meaning.changes)
        self._in_turn = (self._in_turn or meaning.begins_turn) and not meaning.end_of_turn
        return self._end_turn(line, meaning.usage, now) if meaning.end_of_turn else line

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        # A line that may end a turn is read strictly, as it becomes part of what goes out.
        line = line.strip(_BEFORE + b"\n")
        if not any_of(self._reader.ending).search(line):
            try:
                event = json.loads(line.decode())
                return event if isinstance(event, dict) else None
            except (ValueError, RecursionError):
                pass
        return object_in(line)

    def _apply(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            self._members.apply(change, self._reader.session)
        self._on_change(changes)
        if self._held and self._held.told and not self._members.count:
            self._since = None

    def _holder(self) -> Holder | None:
        # The members that the stream reported, and with them those that are known from elsewhere only.
        own, others = self._members.holder, self._also_holds()
        if others is None or not (others[0] and others[1] > 0):
            self._passes_others = False
        elif not self._passes_others:
            return (own[0], own[1] + others[1]) if own else others
        return own

    def _end_turn(self, line: bytes, usage: TurnUsage | None, now: float) -> bytes:
        self._members.forget_killed()
        body = line.rstrip(b"\r\n")
        newline = line[len(body) :]
        holder, held_by_member = self._holder(), self._members.holder is not None
        before = self._held
        now_held = _Completion(
            body, usage or TurnUsage(), holder[0] if holder else "", held_by_member
        )
        if holder is None:
            if before:
                self._tell(LetGo(before.team, 0, "ended"))
            return self._complete(now_held, "completed", newline)
        if self._since is None:
            self._since = now
        if now >= self._since + self._max_hold:
            return self._let_go(now_held, holder, newline)
        self._held, self._last = now_held, "held"
        self._tell(StreamHeld(*holder))
        return _dump({"type": "usage_update", "usage": _usage(now_held.usage)}) + newline

    def _let_go(self, held: _Completion, holder: Holder | None, newline: bytes) -> bytes:
        why: Literal["ended", "hold_limit"] = "hold_limit" if holder else "ended"
        self._tell(LetGo(held.team, holder[1] if holder else 0, why))
        self._members.give_up()
        self._passes_others = holder is not None
        return self._complete(held, "hold_limit" if holder else "completed", newline)

    def _complete(self, completion: _Completion, last: Reason, newline: bytes) -> bytes:
        self._held, self._since, self._last = None, None, last
        source = completion.line.strip(_BEFORE).decode(errors="replace").encode()
        start = _dump({"type": "complete", "usage": _usage(completion.usage)})
        return start[:-1] + b',"source":' + source + b"}" + newline


def _usage(usage: TurnUsage) -> dict[str, int | None]:
    return {"inputTokens": usage.input_tokens, "contextWindow": usage.context_window}


def _dump(event: dict[str, object]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()
