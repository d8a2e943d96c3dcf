"""Names of files and refs as text: they are bytes, and JSON has none.

A spelling stands for exactly one name: a backslash is doubled, and bytes that are no UTF-8 are spelled `\\xNN`.
"""

import re
from typing import Annotated

from pydantic import StringConstraints

from guard.core.base.text import fit_line, visible

Spelled = Annotated[str, StringConstraints(max_length=16384)]
"""A name in its spelling; the longest path that Linux takes has 4096 bytes, each at most four characters here."""

_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")


def spell(name: bytes) -> str:
    """The name as text."""
    return name.replace(b"\\", b"\\\\").decode(errors="backslashreplace")


def unspell(text: str) -> bytes:
    """The name that has this spelling."""
    return _ESCAPE.sub(
        lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\", text.encode()
    )


def path_line(path: bytes) -> str:
    """A path for people, in one line of bounded length."""
    return fit_line(visible(spell(path)))
