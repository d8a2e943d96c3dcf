"""Whether a message is about work that was done, or about what was looked at: short forms mean the former only there."""

import re

from guard.core.claims.vocabulary import CHANGED, word_set

_LOOKED = re.compile(
    r"(?<!for )(?<!to )\b(?:review(?:ed|ing)?|audit(?:ed|ing)?|analy[sz](?:ed|is|ing)|investigat(?:ed|ion|ing)"
    r"|inspect(?:ed|ion)|examined|findings?|profiled|bisect(?:ed|ion)?|compared|history|upstream)\b"
)
_COMPLETE = CHANGED - word_set("documented documenting") | word_set("done complete ready works")


def tells_of_work(message: str) -> bool:
    """Whether something is said to be done, and nothing to have only been looked at."""
    text = message.lower()
    return _LOOKED.search(text) is None and any(
        word.strip("\"'`*_.,;:!()") in _COMPLETE for word in text.split()
    )
