"""What `guard install` and `guard uninstall` print."""

from typing import Literal

from pydantic import Field

from guard.core.base.report import Report
from guard.core.hooks.events import HookAgent


class InstallReport(Report):
    """Guard's hooks put into an agent's settings, or taken out of them."""

    schema_: Literal["guard/install/1"] = Field("guard/install/1", alias="schema")
    action: Literal["install", "uninstall"]
    agent: HookAgent
    scope: Literal["project", "local", "user", "plugin"]
    paths: tuple[str, ...]
    """The files, with all links followed."""
    changed: bool
    """Whether something was changed, or would be."""
    dry_run: bool
    diff: str
    """All changes as a unified diff."""
    events: tuple[str, ...]
    """The events that the files have hooks of guard's for; after an `uninstall`, had."""
    command: str | None
    """How the hooks call guard; None for an `uninstall`."""
    notes: tuple[str, ...]
    """What a person has to do or know before the hooks are called."""
