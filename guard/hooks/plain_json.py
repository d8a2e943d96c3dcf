"""JSON by the interpreter's own scanner: importing `json` costs more than all else that an observing hook does.

No hook goes by a number, and a very long one would be refused: each is read as 0.
"""

_SPACE = " \t\n\r"
_FAULTS = (ValueError, RecursionError, MemoryError, SystemError)
"""The scanner raises the last where `json`, whose error it wants to raise, was never imported."""


def _zero(_written: str) -> int:
    return 0


class _Context:
    """What the scanner asks for, by these names."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = _zero
    parse_int = _zero
    parse_constant = _zero


def parse(text: str) -> object:
    """The value in the text; None if it is none."""
    try:
        return _scanned(text.strip(_SPACE))
    except _FAULTS:
        return None


def _scanned(text: str) -> object:
    try:
        from _json import make_scanner

        scan = make_scanner(_Context)  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError):
        # Another interpreter, or a later one whose scanner asks for more.
        import json

        return json.loads(
            text, strict=False, parse_float=_zero, parse_int=_zero, parse_constant=_zero
        )
    try:
        value, end = scan(text, 0)
    except StopIteration:
        return None
    return value if end == len(text) else None


def render(value: object) -> str:
    """The value as JSON, in ASCII."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case dict():
            return (
                f"{{{','.join([f'{_quoted(key)}:{render(one)}' for key, one in value.items()])}}}"
            )
        case list():
            return f"[{','.join([render(one) for one in value])}]"
        case _:
            return repr(value)


def _quoted(text: str) -> str:
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)
