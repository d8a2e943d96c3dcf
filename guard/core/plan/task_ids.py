"""Turn the name of a task into an id that can be part of a path or of a ref name."""

import re
from hashlib import sha256

from guard.core.base.fields import is_id

_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_MOST = 100
_DIGEST = 10


def make_id(name: str) -> str:
    """The id for a name: `1.1` gives `1-1`. It depends on the name alone, so it is the same in every plan.

    A name that would lose letters, is too long or is reserved gets a digest, so that two names never share an id.
    """
    plain = _OTHER.sub("-", name).strip("-_")
    if len(plain) <= _MOST and is_id(plain) and (name.isascii() or not _loses_letters(name)):
        return plain
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{plain[:_MOST].rstrip('-_') or 'task'}-{digest}"


def _loses_letters(name: str) -> bool:
    return any(sign.isalnum() and not sign.isascii() for sign in name)


def normalize_name(name: str) -> str:
    """The name without emphasis around it, and with single spaces."""
    return " ".join(name.strip(" \t*`").split())
