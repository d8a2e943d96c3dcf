"""Secrets taken out of what is shown: those that tell by themselves what they are, and those that somebody named."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from guard.core.rescue.secrets import secrets_in

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


def redacted(text: str, known: Iterable[str] = ()) -> str:
    """The text without secrets."""
    for value in known:
        text = text.replace(value, REDACTED)
    data = text.encode(errors="surrogatepass")
    for secret in {found.value for found in secrets_in(data)}:
        data = data.replace(secret, REDACTED.encode())
    return data.decode(errors="surrogatepass")


def redacted_all(document: Any, known: tuple[str, ...]) -> Any:
    """A document of plain values with each text in it redacted; its keys are ours."""
    if isinstance(document, str):
        return document if _OWN.fullmatch(document) else redacted(document, known)
    if isinstance(document, dict):
        return {key: redacted_all(value, known) for key, value in document.items()}
    if isinstance(document, list):
        return [redacted_all(value, known) for value in document]
    return document
