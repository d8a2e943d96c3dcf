"""Tell from the journal of a session's hooks what the agent repeats, by the rules that hold for event streams."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from guard.core.base.agent_json import number_in, part_of, text_of, word_in
from guard.core.tool_calls.agent_loop import LoopFound
from guard.core.tool_calls.loops import LoopFinder
from guard.core.tool_calls.read import end_hook_call

_MOST_SEEN = 50


class SessionLoops:
    """Reads the journal of one session, entry by entry."""

    def __init__(self) -> None:
        self._helpers: set[str] = set()
        self._finder = LoopFinder(lambda: bool(self._helpers))
        self._agent: object = None
        self._seen: deque[tuple[str, object]] = deque(maxlen=_MOST_SEEN)
        """The newest calls, by their ids: a hook that is installed twice tells of each call twice."""

    @property
    def current(self) -> LoopFound | None:
        return self._finder.current

    @property
    def worst(self) -> LoopFound | None:
        return self._finder.worst

    def clear(self) -> None:
        self._finder.clear()

    def take(self, entry: Mapping[str, Any]) -> None:
        # Copilot CLI calls the hooks of Claude Code, too: what they tell is the same once more.
        self._agent = self._agent or entry.get("agent")
        if entry.get("agent") != self._agent:
            return
        lane = word_in(entry.get("lane"))
        match entry.get("what"):
            case "began":
                self._finder.clear()
            case "helper_started":
                self._helpers.add(lane)
            case "helper_ended":
                self._helpers.discard(lane)
            case "message":
                self._finder.take_message(text_of(entry.get("text")), lane)
            case "call":
                self._take_call(entry, lane)

    def _take_call(self, entry: Mapping[str, Any], lane: str) -> None:
        ended, at = end_hook_call(entry, lane), number_in(entry.get("moment"))
        if ended is None or at is None or self._is_known(entry, ended.name):
            return
        self._finder.take_call(ended, at, in_background=entry.get("in_background") is True)

    def _is_known(self, entry: Mapping[str, Any], name: str) -> bool:
        known = name, part_of(entry, "tool_input").get("hash")
        if not name or known in self._seen:
            return bool(name)
        self._seen.append(known)
        return False
