"""Read and write JSON by the interpreter's own scanner: importing `json` costs more than all else that an observing hook does.

Hooks use only small whole numbers, such as exit codes, and the scanner refuses very long ones: each other number is read as 0.
"""

_MOST_DIGITS = 9
_SPACE = " \t\n\r"
_FAULTS = (ValueError, RecursionError, MemoryError, SystemError)
"""The scanner raises the last where `json`, whose error it wants to raise, was never imported."""


def _zero(_written: str) -> int:
    return 0


def _small(written: str) -> int:
    return int(written) if len(written) <= _MOST_DIGITS else 0


class _Context:
    """The attributes that the scanner asks for."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = _zero
    parse_int = _small
    parse_constant = _zero


def parse(text: str) -> object:
    """Return the value in a JSON text; None if it is not JSON."""
    try:
        return _scan(text.strip(_SPACE))
    except _FAULTS:
        return None


def _scan(text: str) -> object:
    try:
        from _json import make_scanner

        scan = make_scanner(_Context)  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError):
        # Another interpreter, or a later one whose scanner asks for more.
        import json

        return json.loads(
            text, strict=False, parse_float=_zero, parse_int=_small, parse_constant=_zero
        )
    try:
        value, end = scan(text, 0)
    except StopIteration:
        return None
    return value if end == len(text) else None


def render(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quote(value)
        case dict():
            return (
                f"{{{','.join([f'{_quote(key)}:{render(item)}' for key, item in value.items()])}}}"
            )
        case list():
            return f"[{','.join([render(item) for item in value])}]"
        case _:
            return repr(value)


def _quote(text: str) -> str:
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)
