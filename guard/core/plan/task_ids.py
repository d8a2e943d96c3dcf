"""From how a plan spells an id to an id that may be part of a path or of a ref name."""

import re
from hashlib import sha256

from guard.core.base.fields import is_id

_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_MOST = 100
_DIGEST = 10


def id_of(name: str) -> str:
    """`1.1` is `1-1`. The same name has the same id in every plan, whatever else stands there.

    A name that loses letters by it, or is too long or reserved, gets a digest of itself, so that two names stay two.
    """
    plain = _OTHER.sub("-", name).strip("-_")
    if len(plain) <= _MOST and is_id(plain) and (name.isascii() or not _loses_letters(name)):
        return plain
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{plain[:_MOST].rstrip('-_') or 'task'}-{digest}"


def _loses_letters(name: str) -> bool:
    return any(sign.isalnum() and not sign.isascii() for sign in name)


def spelled(name: str) -> str:
    """A name as it is compared: without emphasis around it, and with single spaces."""
    return " ".join(name.strip(" \t*`").split())
