"""Make ids for events, runs and baselines, and check ids that people and agents give."""

import os
from collections.abc import Callable
from typing import Any

from guard.core.base.fields import is_id
from guard.errors import WrongUsage


def new_id() -> str:
    return os.urandom(8).hex()


def check_id(what: str, text: str) -> str:
    """Return the text if it may become part of a path; raise WrongUsage, with the rule, otherwise."""
    if is_id(text):
        return text
    shown = text if len(text) <= 40 else text[:40] + "…"
    raise WrongUsage(
        f"{shown!r} cannot be {what}",
        "use 1 to 128 letters, digits, hyphens and underscores, the first a letter or a digit; "
        "the name `registry` is reserved",
    )


def id_callback(what: str) -> Callable[[Any, Any, str | None], str | None]:
    """Return a click callback that checks an id before the command runs."""

    def check(_context: Any, _parameter: Any, value: str | None) -> str | None:
        return None if value is None else check_id(what, value)

    return check
