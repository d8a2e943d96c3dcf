"""Make text from outside safe for GitHub's workflow commands, output files and pages, and remove secrets."""

import html
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from guard.core.base.text import escape, utf8_text
from guard.core.rescue.secrets import find_secrets

_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
MOST_IN_A_PIECE = 300


def command(name: str, message: str, **properties: str | int) -> str:
    """Return a workflow command in which neither message nor property can begin another command."""
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name}{' ' if listed else ''}{listed}::{_data(message)}"


def _data(text: str) -> str:
    return escape(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def stop_commands(token: str) -> str:
    return f"::stop-commands::{token}"


def resume_commands(token: str) -> str:
    # The command needs its own line, and the output before it may not end with a newline.
    return f"\n::{token}::"


def output_file(values: Mapping[str, str], delimiter: str) -> str:
    """Return the outputs of a step in order; the last of a name counts, so deciding outputs come last."""
    if any(delimiter in text for text in values.values()):
        raise ValueError("a value contains the delimiter")
    return "".join(
        f"{name}<<{delimiter}\n{utf8_text(text)}\n{delimiter}\n" for name, text in values.items()
    )


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
    return f"<pre><code>{html.escape(lines)}</code></pre>"


def fit_lines(lines: list[str], most_bytes: int, more: str) -> str:
    """Return as many whole lines as fit; if some do not, `more` is the last line."""
    room = most_bytes - len(more.encode()) - 1
    left = [room]

    def fits(line: str) -> bool:
        left[0] -= len(line.encode()) + 1
        return left[0] >= 0

    kept = list(takewhile(fits, lines))
    return "\n".join(kept if len(kept) == len(lines) else [*kept, more]) + "\n"


REDACTED = "[redacted]"
_LEAST = 12
"""A shorter value may be a common word, which must not be removed everywhere."""
_SECRET_NAME = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY|CREDENTIALS?)$", re.I
)
_OWN = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
"""Ids of git and times are no secrets, and a document without them is invalid."""


def known_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables with secret-sounding names, the longest first."""
    found = {text for name, text in environ.items() if _SECRET_NAME.search(name)}
    return tuple(sorted((text for text in found if len(text) >= _LEAST), key=len, reverse=True))


def redact(text: str, known: Iterable[str] = ()) -> str:
    for value in known:
        text = text.replace(value, REDACTED)
    data = text.encode(errors="surrogatepass")
    for secret in {found.value for found in find_secrets(data)}:
        data = data.replace(secret, REDACTED.encode())
    return data.decode(errors="surrogatepass")


def redact_document(document: Any, known: tuple[str, ...]) -> Any:
    if isinstance(document, str):
        return document if _OWN.fullmatch(document) else redact(document, known)
    if isinstance(document, dict):
        return {key: redact_document(value, known) for key, value in document.items()}
    if isinstance(document, list):
        return [redact_document(value, known) for value in document]
    return document
