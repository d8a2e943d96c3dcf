"""Whether a turn ended because the agent's program could not go on: at a limit, without a login, at an error.

Only the program's own words count: a sentence that it is known to print, or its error line. An agent that speaks of limits
has not hit one.
"""

import re
from typing import Literal

from guard.core.classify.errors import meaning_of
from guard.core.classify.plain import is_known
from guard.core.hooks.payload import HookCall

Failure = Literal["limited", "auth", "failed"]
_OWN_ERROR = re.compile(
    r"\[?API Error:?\s*(?:\(?[45]\d\d\b|\{|Connection (?:error|closed|refused|reset)\b|Request timed out|Overloaded\b)"
)
_DONE = ("", "end_turn", "stop", "complete", "completed")
"""How Copilot names an end that is none of this; other programs do not say."""
_OUTCOMES: dict[str, Failure] = {
    "limited": "limited",
    "transient": "limited",
    "budget": "limited",
    "turn_limit": "limited",
    "auth": "auth",
}


def failure(heard: HookCall) -> Failure | None:
    """Why the session could not go on, whatever it is asked; None if it could."""
    if heard.agent == "copilot" and heard.detail not in _DONE:
        return _meaning("", heard.detail)
    line = heard.message.strip().partition("\n")[0]
    if is_known(line) or _OWN_ERROR.match(line):
        return _meaning(line)
    return None


def _meaning(text: str, *codes: str) -> Failure:
    found = meaning_of(text, None, *codes)
    return _OUTCOMES.get(found.outcome, "failed") if found is not None else "failed"
