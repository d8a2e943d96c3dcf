"""Turn the name of a task into an id that is safe in a path and in a ref name."""

from hashlib import sha256

from guard.core.base.first_use import late_pattern
from guard.core.base.text import is_id

_OTHER = late_pattern(r"[^A-Za-z0-9_-]+")
_MOST = 100
_DIGEST = 10


def make_id(name: str) -> str:
    """Return the id for a name, such as `1-1` for `1.1`; it depends on the name alone.

    A name that would lose letters, is too long or is reserved gets a digest, so that two names never share an id.
    """
    if len(name) <= _MOST and name[-1:] not in ("-", "_") and is_id(name):
        return name
    plain = _OTHER.sub("-", name).strip("-_")
    if len(plain) <= _MOST and is_id(plain) and (name.isascii() or not _loses_letters(name)):
        return plain
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{plain[:_MOST].rstrip('-_') or 'task'}-{digest}"


def _loses_letters(name: str) -> bool:
    return any(sign.isalnum() and not sign.isascii() for sign in name)


def normalize_name(name: str) -> str:
    """Return the name without emphasis around it and with single spaces."""
    return " ".join(name.strip(" \t*`").split())
