"""The event by which a work tree's state goes on under another key."""

from typing import Literal

from guard.core.base.fields import Id, Line
from guard.core.log.events import BaseEvent


class WorktreeAdopted(BaseEvent):
    """A machine went on under a key of its own with the state that an older guard kept under a key of the path alone.

    The views are carried whole: a fold goes on from them, and depends on nothing that another key's events say.
    """

    type: Literal["worktree_adopted"] = "worktree_adopted"
    worktree: Id
    before: Id
    """The key of older guards."""
    machine: Line
    views: dict[str, str]
    """The document of each view, by the path that it has under the new key."""


ADOPTED = b'"type":"worktree_adopted"'
"""Every line of such an event has this in it."""
