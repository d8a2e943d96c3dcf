"""The gate: lines in, lines out, and the end of a turn held back while a team is named and a member of it counts.

Everything else passes byte for byte. A completion that was held goes out when the agent ends a turn again and nobody counts any
more: an agent that started helpers has to hear of their ends before it is done. Only where nobody but members that the stream
knows nothing of held it back, it goes out at the end of the stream, if they have ended by then.
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
    """What the end of a stream means."""

    reasons: tuple[Reason, ...]
    """The weightiest first."""
    team: str | None = None
    """The team that held the completion back, if one did."""
    count: int = 0
    members: tuple[str, ...] = ()
    """Those of it that the stream told of, and that may live."""
    killed: tuple[str, ...] = ()
    unreadable: int = 0
    """Lines that looked as if they meant something, and were too long or broken."""

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
    """How many still counted."""
    why: Literal["ended", "hold_limit"]


@dataclass(frozen=True)
class _Completion:
    """One that is held back."""

    line: bytes
    usage: TurnUsage
    team: str
    told: bool
    """Whether a member that the stream told of held it back."""


class Gate:
    """One stream: feed it, and at its end, end it, once. Times are seconds on any clock that does not jump.

    `on_change` hears what the stream tells of helpers. `also_holds` names a team that is known from elsewhere and counts.
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
        """What it would mean if the stream ended between two turns, as it is."""
        self._unreadable = 0

    @property
    def session(self) -> str | None:
        return self._reader.session

    @property
    def deadline(self) -> float | None:
        """When `tick` has to be called, if nothing else happens."""
        return None if self._since is None or self._in_turn else self._since + self._max_hold

    def feed(self, data: bytes, now: float) -> bytes:
        """What goes out for these bytes."""
        out = [self.tick(now)]
        for piece in self._cutter.feed(data):
            out += self._passed(piece.data, now) if piece.readable else [piece.data]
        return b"".join(out)

    def tick(self, now: float) -> bytes:
        """What goes out because time has passed."""
        due = self.deadline
        if due is None or now < due or self._held is None or self._cutter.in_line:
            return b""
        return self._let_go(self._held, self._holder(), b"\n")

    def clear(self) -> None:
        """Forget the team: the next end of a turn is a completion."""
        self._members.clear()
        self._since = None

    def cut(self) -> bytes:
        """What goes out of a line that is not whole, if the stream is left before its end."""
        return self._cutter.end()

    def end(self, now: float) -> tuple[bytes, StreamOutcome]:
        """What goes out at the end of the stream, and what that end means."""
        cut = self._cutter.in_line
        rest = self._cutter.end()
        out = rest if cut else b"".join(self._passed(rest, now))
        if self._reader.kills_helpers and self._members.count:
            self._on_change(tuple(MemberLeft(one, "killed") for one in self._members.ids))
        held = self._held
        if held and not (self._in_turn or held.told or self._holder()):
            newline = b"\n" if cut or (out and not out.endswith(b"\n")) else b""
            out += newline + self._let_go(held, None, b"\n")
        return out, self._ended()

    def _ended(self) -> StreamOutcome:
        held, holder = self._held, self._holder()
        lost = self._members.names if self._reader.kills_helpers else ()
        killed = (*self._members.killed, *lost)
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

    def _passed(self, data: bytes, now: float) -> Iterator[bytes]:
        """Whole lines as they go out; only those in which a telling word stands are cut out and looked at."""
        begin = 0
        while found := self._telling().search(data, begin):
            start = max(begin, data.rfind(b"\n", begin, found.start()) + 1)
            end = data.find(b"\n", found.end()) + 1 or len(data)
            yield data[begin:start]
            yield self._line(data[start:end], now)
            begin = end
        yield data[begin:]

    def _telling(self) -> re.Pattern[bytes]:
        words = self._reader.telling
        return any_of(words if self._in_turn else (*words, *self._reader.beginning))

    def _line(self, line: bytes, now: float) -> bytes:
        event = self._event(line) if len(line) <= self._longest else None
        if event is None:
            self._unreadable += line.lstrip(_BEFORE).startswith(b"{")
            return line
        meaning = self._reader.read(event)
        if meaning.changes:
            self._take(meaning.changes)
        self._in_turn = (self._in_turn or meaning.begins_turn) and not meaning.end_of_turn
        return self._turn_ended(line, meaning.usage, now) if meaning.end_of_turn else line

    def _event(self, line: bytes) -> dict[str, Any] | None:
        """The event in a line; one that may end a turn is read strictly, as it becomes part of what goes out."""
        line = line.strip(_BEFORE + b"\n")
        if not any_of(self._reader.ending).search(line):
            try:
                event = json.loads(line.decode())
                return event if isinstance(event, dict) else None
            except (ValueError, RecursionError):
                pass
        return object_in(line)

    def _take(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            self._members.take(change, self._reader.session)
        self._on_change(changes)
        if self._held and self._held.told and not self._members.count:
            self._since = None

    def _holder(self) -> Holder | None:
        """Who holds: those that the stream told of, and with them those that are known from elsewhere only."""
        own, others = self._members.holder, self._also_holds()
        if others is None or not (others[0] and others[1] > 0):
            self._passes_others = False
        elif not self._passes_others:
            return (own[0], own[1] + others[1]) if own else others
        return own

    def _turn_ended(self, line: bytes, usage: TurnUsage | None, now: float) -> bytes:
        self._members.forget_killed()
        body = line.rstrip(b"\r\n")
        newline = line[len(body) :]
        holder, told = self._holder(), self._members.holder is not None
        before = self._held
        now_held = _Completion(body, usage or TurnUsage(), holder[0] if holder else "", told)
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
        return _dumped({"type": "usage_update", "usage": _usage(now_held.usage)}) + newline

    def _let_go(self, held: _Completion, holder: Holder | None, newline: bytes) -> bytes:
        why: Literal["ended", "hold_limit"] = "hold_limit" if holder else "ended"
        self._tell(LetGo(held.team, holder[1] if holder else 0, why))
        self._members.give_up()
        self._passes_others = holder is not None
        return self._complete(held, "hold_limit" if holder else "completed", newline)

    def _complete(self, completion: _Completion, last: Reason, newline: bytes) -> bytes:
        self._held, self._since, self._last = None, None, last
        source = completion.line.strip(_BEFORE).decode(errors="replace").encode()
        start = _dumped({"type": "complete", "usage": _usage(completion.usage)})
        return start[:-1] + b',"source":' + source + b"}" + newline


def _usage(usage: TurnUsage) -> dict[str, int | None]:
    return {"inputTokens": usage.input_tokens, "contextWindow": usage.context_window}


def _dumped(event: dict[str, object]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()
