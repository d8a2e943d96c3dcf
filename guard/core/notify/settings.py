"""The settings of notices."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import USERS, Section
from guard.core.prove.settings import Globs

_MOST_SECONDS = 300


class NotifySettings(Section):
    """Where `guard run`, `guard loop` and `guard plan run` send notices; nowhere, unless one of the ways is set."""

    command: Annotated[str | None, Field(min_length=1, json_schema_extra=USERS)] = None
    """A command, run by `sh -c`, that gets each notice as one JSON document (`guard/notice/1`) on its stdin."""
    url: Annotated[str | None, Field(min_length=1, max_length=2048, json_schema_extra=USERS)] = None
    """Where each notice is posted: a topic of ntfy, a webhook of Slack, or any webhook that takes JSON."""
    format: Annotated[Literal["auto", "json", "ntfy", "slack"], Field(json_schema_extra=USERS)] = (
        "auto"
    )
    """What is posted to `notify.url`: by default what the host takes, if it is one of ntfy or Slack, else JSON."""
    services: Annotated[Globs, Field(max_length=20, json_schema_extra=USERS)] = ()
    """URLs of apprise, which sends to mail, phones and chats; `pip install 'completion-guard[notify]'` installs it."""
    timeout_seconds: Annotated[float, Field(gt=0, le=_MOST_SECONDS, json_schema_extra=USERS)] = 10
    """How long guard waits for a notice to be sent, at most; then it goes on."""
    limit_minutes: Annotated[float, Field(ge=0, le=100000, json_schema_extra=USERS)] = 60
    """How long a usage limit or an outage must last for a notice."""

    @property
    def is_set(self) -> bool:
        return bool(self.command or self.url or self.services)
