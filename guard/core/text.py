"""Text from outside, made harmless for a terminal."""

_BIDI_AND_INVISIBLE = {
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xFEFF,
}


def visible(text: str) -> str:
    """The same text with control characters, escapes, bidirectional marks and lone surrogates spelled out."""
    return "".join(_spelled(character) for character in text)


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"\\x{code:02x}"
    if code in _BIDI_AND_INVISIBLE or 0xD800 <= code < 0xE000:
        return f"\\u{code:04x}"
    return character


def plural(count: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
