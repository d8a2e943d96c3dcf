"""Text from outside, made harmless for GitHub: for the lines that a runner obeys, its output files, and its pages."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from itertools import takewhile
from typing import Any

from guard.core.base.text import valid, visible
from guard.core.rescue.secrets import find_secrets

_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
MOST_IN_A_PIECE = 300


def command(name: str, message: str, **properties: str | int) -> str:
    """A line that a runner obeys; neither the message nor a property can begin another one."""
    told = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name}{' ' if told else ''}{told}::{_data(message)}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def stop_commands(token: str) -> str:
    """The line after which a runner obeys nothing that is printed, until it meets the token again."""
    return f"::stop-commands::{token}"


def resume_commands(token: str) -> str:
    """The line that ends it; on a line of its own, whatever stands before it."""
    return f"\n::{token}::"


def output_file(values: Mapping[str, str], delimiter: str) -> str:
    """The outputs of a step in their order: the last one of a name counts, so what decides belongs at the end."""
    if any(delimiter in text for text in values.values()):
        raise ValueError("the delimiter stands in a value")
    return "".join(
        f"{name}<<{delimiter}\n{valid(text)}\n{delimiter}\n" for name, text in values.items()
    )


def piece(text: str, most: int = MOST_IN_A_PIECE) -> str:
    """The text as code on a page: nothing in it is a tag, a link, a mention, a picture or markup of any kind.

    Punctuation as character references is never markup in markdown, and GitHub looks for mentions and links outside of code
    only.
    """
    shown = visible(text)
    if len(shown) > most:
        shown = f"{shown[:most]}…"
    return f"<code>{_PUNCTUATION.sub(_referenced, shown) or ' '}</code>"


def _referenced(found: "re.Match[str]") -> str:
    return f"&#{ord(found[0])};"


def block(text: str) -> str:
    """A command to copy, as a block of code."""
    lines = "\n".join(visible(line) for line in text.splitlines() or [""])
    return f"<pre><code>{escape(lines)}</code></pre>"


def fit_lines(lines: list[str], most_bytes: int, more: str) -> str:
    """As many whole lines as fit, and a last one that says so if some do not."""
    room = most_bytes - len(more.encode()) - 1
    left = [room]

    def fits(line: str) -> bool:
        left[0] -= len(line.encode()) + 1
        return left[0] >= 0

    kept = list(takewhile(fits, lines))
    return "\n".join(kept if len(kept) == len(lines) else [*kept, more]) + "\n"


REDACTED = "[redacted]"
_LEAST = 12
"""A shorter value is too common a word to be taken out everywhere."""
_SECRET_NAME = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY|CREDENTIALS?)$", re.I
)
_OWN = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
"""Ids of git and moments are no secrets, and a document is not valid without them."""


def known_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables whose names say that they are secret, the longest first."""
    found = {text for name, text in environ.items() if _SECRET_NAME.search(name)}
    return tuple(sorted((text for text in found if len(text) >= _LEAST), key=len, reverse=True))


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text without secrets."""
    for value in known:
        text = text.replace(value, REDACTED)
    data = text.encode(errors="surrogatepass")
    for secret in {found.value for found in find_secrets(data)}:
        data = data.replace(secret, REDACTED.encode())
    return data.decode(errors="surrogatepass")


def redact_document(document: Any, known: tuple[str, ...]) -> Any:
    """A document of plain values with each text in it redacted; its keys are ours."""
    if isinstance(document, str):
        return document if _OWN.fullmatch(document) else redact(document, known)
    if isinstance(document, dict):
        return {key: redact_document(value, known) for key, value in document.items()}
    if isinstance(document, list):
        return [redact_document(value, known) for value in document]
    return document
