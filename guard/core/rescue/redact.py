"""Take secrets out of what is shown or sent."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from guard.core.rescue.secrets import find_secrets

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
    secrets = {_whole(found.value, data) for found in find_secrets(data)}
    for secret in sorted(secrets, key=len, reverse=True):
        data = data.replace(secret, REDACTED.encode())
    return data.decode(errors="surrogatepass")


def _whole(value: bytes, text: bytes) -> bytes:
    """Return all of a key, of which a rule needs to see the beginning only; where its end is missing, all that follows."""
    if b"PRIVATE KEY" not in value:
        return value
    begin = text.find(value)
    end = text.find(b"-----END", begin)
    if end < 0:
        return text[begin:]
    closing = text.find(b"-----", end + len(b"-----END"))
    return text[begin : closing + 5] if closing >= 0 else text[begin:]


def redact_patch(text: str, known: Iterable[str] = ()) -> str:
    """Return a unified diff without secrets, also those of several lines, before each of which there is a sign."""
    lines = text.split("\n")
    pieces: set[str] = set()
    for sign in "-+":
        side = "\n".join(line[1:] for line in lines if not line.startswith(sign))
        data = side.encode(errors="surrogatepass")
        for secret in find_secrets(data):
            value = _whole(secret.value, data).decode(errors="surrogatepass")
            pieces.update(value.split("\n"))
    # The last line of a key may be as short as a line of code, which stays where it is only a part of a line.
    lines = [
        line[:1] + REDACTED if line[1:].strip() and line[1:] in pieces else line for line in lines
    ]
    text = "\n".join(lines)
    for piece in sorted(pieces, key=len, reverse=True):
        if len(piece) >= _LEAST:
            text = text.replace(piece, REDACTED)
    return redact(text, known)


def redact_document(document: Any, known: tuple[str, ...]) -> Any:
    """Return a document of plain JSON without secrets."""
    seen: dict[str, str] = {}

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            # A large document says many things again and again.
            if value not in seen:
                seen[value] = value if _OWN.fullmatch(value) else redact(value, known)
            return seen[value]
        if isinstance(value, dict):
            return {key: clean(inner) for key, inner in value.items()}
        return [clean(inner) for inner in value] if isinstance(value, list) else value

    return clean(document)
