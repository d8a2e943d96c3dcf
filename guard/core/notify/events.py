"""The event of a notice."""

from typing import Literal

from guard.core.base.fields import Line
from guard.core.log.events import BaseEvent


class NoticeSent(BaseEvent):
    """A notice was sent, or guard tried to: it is sent once. The id of the event is made from what the notice is about."""

    type: Literal["notice_sent"] = "notice_sent"
    kind: Line
    title: Line
