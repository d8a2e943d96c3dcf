"""Make text from outside safe for a terminal, for JSON and for one line, and tell which text may be an id."""

import json
import re

from guard.core.base.first_use import late_pattern

_CONTROL = "\\x00-\\x1f\\x7f-\\x9f"
_INVISIBLE = "\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\U000e0000-\\U000e0fff"
_HARMFUL = late_pattern(f"[{_CONTROL}{_INVISIBLE}\\ud800-\\udfff]")
_HARMFUL_IN_JSON = late_pattern(f"[\\x7f-\\x9f{_INVISIBLE}]")
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"
_ID = late_pattern(ID_PATTERN)
RESERVED_IDS = frozenset({"registry"})
"""Names of guard's own entries in a workspace that an id could equal, because they have no dot."""


def escape(text: str) -> str:
    """Escape control characters, bidirectional marks and lone surrogates, so that a terminal obeys none of them."""
    return _HARMFUL.sub(_escape_character, text)


def _escape_character(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def harmless_json(text: str) -> str:
    """Escape characters that JSON allows and a terminal would obey."""
    return _HARMFUL_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def utf8_text(text: object) -> str:
    """Escape lone surrogates: they stand for bytes of file names that are not UTF-8, and JSON cannot hold them."""
    return str(text).encode(errors="backslashreplace").decode()


def shorten(text: str, most: int) -> str:
    """Shorten a long text to its beginning and a digest of the whole, so that different texts stay different."""
    if len(text) <= most:
        return text
    from hashlib import sha256

    return f"{text[:most]}… {sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


LONGEST_LINE = 512


def fit_line(text: str, most: int = LONGEST_LINE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def is_id(text: str) -> bool:
    """Tell whether the text is safe in a path and in a ref name."""
    return _ID.fullmatch(text) is not None and text.casefold() not in RESERVED_IDS


def duration(seconds: float) -> str:
    """Return a length of time as people say it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"
