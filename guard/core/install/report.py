"""The reports of `guard install` and `guard uninstall`."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Report
from guard.core.hooks.events import HookAgent


class InstallReport(Report):
    """Guard's hooks were added to an agent's settings, or removed."""

    schema_: Literal["guard/install/1"] = Field("guard/install/1", alias="schema")
    action: Literal["install", "uninstall"]
    agent: HookAgent
    scope: Literal["project", "local", "user", "plugin"]
    paths: tuple[str, ...]
    """The files, with all links followed."""
    changed: bool
    """Whether a file was changed, or would be."""
    dry_run: bool
    diff: str
    """All changes as a unified diff."""
    events: tuple[str, ...]
    """The events for which the files have hooks of guard's; for an `uninstall`, had."""
    command: str | None
    """The command by which the hooks call guard; None for an `uninstall`."""
    notes: tuple[str, ...]
    """What the user has to do or know before the hooks are called."""


HookName = Literal["pre-commit", "prepare-commit-msg", "post-commit", "post-rewrite", "pre-push"]


GitHookStep = Literal["install", "upgrade", "unchanged", "remove", "restore", "absent", "left"]


class GitHookLine(Frozen):
    """What was done about one hook, or would be done."""

    hook: HookName
    step: GitHookStep
    chained: bool
    """Whether a foreign hook is, or was, kept beside it and called first."""
    detail: str


class GitHooksReport(Report):
    """Guard's scripts were added to git's hooks, or removed."""

    schema_: Literal["guard/git-hooks/1"] = Field("guard/git-hooks/1", alias="schema")
    action: Literal["install", "uninstall"]
    folder: str
    hooks: tuple[GitHookLine, ...]
    changed: bool
    """Whether a file was changed, or would be."""
    dry_run: bool
    program: str | None
    """The program that the scripts try before they look on the search path; None for an `uninstall`."""
    notes: tuple[str, ...]
