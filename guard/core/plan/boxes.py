"""Tick or clear the box of one task in the plan's text, and change nothing else in it."""

from guard.core.base.first_use import late_pattern
from guard.core.plan.from_markdown import task_lines

_BOX = late_pattern(r"^(\s*(?:>\s*)*(?:(?:[-*+]|\d{1,9}[.)])\s+)*\[)([ \txX])(\])")
_LINE = late_pattern(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def tick_task(data: bytes, name: str) -> bytes:
    """Return the text with the task's box ticked; as it is, if it has no open box of that name."""
    return _mark(data, name, "x")


def clear_task(data: bytes, name: str) -> bytes:
    """Return the text with the task's box open; as it is, if it has no ticked box of that name."""
    return _mark(data, name, " ")


def _mark(data: bytes, name: str, sign: str) -> bytes:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    number = task_lines(text).get(name)
    if number is None:
        return data
    lines = [line for line in _LINE.findall(text) if line]
    found = _BOX.match(lines[number - 1]) if number <= len(lines) else None
    if found is None or (found[2] in "xX") == (sign == "x"):
        return data
    line = lines[number - 1]
    lines[number - 1] = f"{line[: found.end(1)]}{sign}{line[found.start(3) :]}"
    return "".join(lines).encode()
