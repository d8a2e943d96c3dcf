"""Write names of files and refs, which are bytes, as text for JSON."""

from typing import Annotated

from pydantic import StringConstraints

from guard.core.base.first_use import late_pattern
from guard.core.base.text import escape, fit_line

Spelled = Annotated[str, StringConstraints(max_length=16384)]
"""A spelled name; the longest path on Linux has 4096 bytes, and each is spelled with at most four characters."""

_ESCAPE = late_pattern(rb"\\(?:\\|x([0-9a-f]{2}))")


# A spelling stands for exactly one name: a backslash is doubled, and bytes that are not UTF-8 become `\xNN`.
def spell(name: bytes) -> str:
    return name.replace(b"\\", b"\\\\").decode(errors="backslashreplace")


def unspell(text: str) -> bytes:
    return _ESCAPE.sub(
        lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\", text.encode()
    )


def path_line(path: bytes) -> str:
    return fit_line(escape(spell(path)))
