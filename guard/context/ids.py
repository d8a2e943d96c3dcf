"""Make ids for events, runs and baselines, and check ids from users and agents."""

import os
from collections.abc import Callable
from typing import Any

from guard.core.base.text import is_id
from guard.errors import WrongUsage


def new_id() -> str:
    return os.urandom(8).hex()


def check_id(what: str, text: str) -> str:
    """Return the text if it is safe in a path; otherwise raise WrongUsage with the rule."""
    if is_id(text):
        return text
    shown = text if len(text) <= 40 else text[:40] + "…"
    raise WrongUsage(
        f"{shown!r} cannot be {what}",
        "use 1 to 128 letters, digits, hyphens and underscores, the first a letter or a digit; "
        "the name `registry` is reserved",
    )


def id_callback(what: str) -> Callable[[Any, Any, str | None], str | None]:
    def check(_context: Any, _parameter: Any, value: str | None) -> str | None:
        return None if value is None else check_id(what, value)

    return check
