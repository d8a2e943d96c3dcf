"""Make text from outside safe for a page in markdown, and fit a page into a number of bytes."""

import html
import re
from itertools import takewhile

from guard.core.base.text import escape

_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
MOST_IN_A_PIECE = 300


def piece(text: str, most: int = MOST_IN_A_PIECE) -> str:
    """Return the text as code on a page, without tags, links, mentions, pictures or other markup.

    Punctuation as character references is never markup in markdown, and GitHub looks for mentions and links only outside
    code.
    """
    shown = escape(text)
    if len(shown) > most:
        shown = f"{shown[:most]}…"
    return f"<code>{_PUNCTUATION.sub(_character_reference, shown) or ' '}</code>"


def _character_reference(found: "re.Match[str]") -> str:
    return f"&#{ord(found[0])};"


def block(text: str) -> str:
    lines = "\n".join(escape(line) for line in text.splitlines() or [""])
    # A renderer may look for tables before it looks for tags.
    shown = html.escape(lines).replace("|", "&#124;")
    return f"<pre><code>{shown}</code></pre>"


def fit_lines(lines: list[str], most_bytes: int, more: str) -> str:
    """Return as many whole lines as fit; if some do not, `more` is the last line."""
    room = most_bytes - len(more.encode()) - 1
    left = [room]

    def fits(line: str) -> bool:
        left[0] -= len(line.encode()) + 1
        return left[0] >= 0

    kept = list(takewhile(fits, lines))
    return "\n".join(kept if len(kept) == len(lines) else [*kept, more]) + "\n"
