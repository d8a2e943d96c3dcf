"""A scripted model on loopback that the real agent CLIs talk to.

A script belongs to a marker, a piece of the prompt that starts it. The step to play is the number of turns that the
assistant has taken since the last prompt with a marker, so nothing is remembered between requests: resumed, forked and
probed sessions, and helpers with prompts of their own, all find their place by what they send.
"""

import threading
from collections.abc import Callable, Iterable

from tests.support.model.replies import Document, Reply, call, fail, hang, refuse, say

__all__ = ["Model", "Reply", "Step", "call", "fail", "hang", "in_turn", "refuse", "say"]

Step = Reply | Callable[[str], Reply]


class Model:
    """The scripts, and what was asked; a step may be made from the prompt that holds the marker."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Document] = []
        self.unscripted: list[str] = []
        self.stopped = threading.Event()
        self._scripts: dict[str, tuple[Step, ...]] = {}

    def script(self, marker: str, *steps: Step) -> None:
        """Play these steps when a prompt has the marker."""
        self._scripts[marker] = steps

    def reply(self, turns: Iterable[tuple[str, str]]) -> Reply:
        """The next step of the script that the newest marked prompt started."""
        steps: tuple[Step, ...] = ()
        prompt, position = "", 0
        for role, text in turns:
            if role == "assistant":
                position += 1
            elif marked := self._marked(text):
                steps, prompt, position = marked, text, 0
        if position >= len(steps):
            self.unscripted.append(f"step {position} after {prompt!r}")
            return refuse(400, "invalid_request_error", "the script has no such step")
        return _played(steps[position], prompt)

    def _marked(self, text: str) -> tuple[Step, ...]:
        """The script of the marker that stands last: reminders of the CLI's own come before the prompt."""
        marker = max(self._scripts, key=text.rfind, default="")
        return self._scripts[marker] if marker in text and marker else ()


def in_turn(*steps: Step) -> Step:
    """One step that plays another of these each time it is asked for: what a request gets that is made again."""
    left = iter(steps)
    return lambda prompt: _played(next(left), prompt)


def _played(step: Step, prompt: str) -> Reply:
    return step if isinstance(step, Reply) else step(prompt)
