"""What `guard install` and `guard uninstall` print."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Report
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


HookName = Literal["pre-commit", "prepare-commit-msg", "post-commit", "post-rewrite", "pre-push"]


class GitHookLine(Frozen):
    """What was done about one hook, or would be."""

    hook: HookName
    step: Literal["install", "upgrade", "unchanged", "remove", "restore", "absent", "left"]
    chained: bool
    """Whether a hook of somebody else's is, or was, kept beside it and called first."""
    detail: str


class GitHooksReport(Report):
    """Guard's scripts put among git's hooks, or taken away."""

    schema_: Literal["guard/git-hooks/1"] = Field("guard/git-hooks/1", alias="schema")
    action: Literal["install", "uninstall"]
    folder: str
    hooks: tuple[GitHookLine, ...]
    changed: bool
    """Whether something was changed, or would be."""
    dry_run: bool
    program: str | None
    """What the scripts call, before they look on the search path; None for an `uninstall`."""
    notes: tuple[str, ...]
