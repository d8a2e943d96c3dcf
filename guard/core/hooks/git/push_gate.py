"""Decide what speaks against a push; each finding says what to do about it."""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from guard.core.base.text import plural


@dataclass(frozen=True, slots=True)
class PushState:
    """The work tree and its state at the moment of a push."""

    uncommitted: tuple[str, ...] = ()
    unverifiable: str | None = None
    """Why guard cannot tell whether all is committed; None if it can."""
    breaker_open: str | None = None
    """Why the breaker is open; None if it is closed."""
    rescues: tuple[str, ...] = ()
    """Branches with rescued work that no other branch has."""
    refused_rescue: str | None = None
    """The work that a rescue could not commit; None if there is none."""
    held_by: tuple[str, int] | None = None
    """The team that holds a completion back, and how many of its members count."""


@dataclass(frozen=True, slots=True)
class PushFinding:
    """One reason against the push, and what to do about it."""

    code: str
    found: str
    hint: str


_SHOWN = 3


def findings(state: PushState) -> Iterator[PushFinding]:
    if state.unverifiable is not None:
        hint = "have guard-check run at pre-push, where nothing is hidden"
        yield PushFinding("unverifiable", f"unverifiable: {state.unverifiable}", hint)
    elif state.uncommitted:
        count, names = len(state.uncommitted), ", ".join(state.uncommitted[:_SHOWN])
        more = " …" if count > _SHOWN else ""
        text = f"{plural(count, 'file')} not committed: {names}{more}"
        yield PushFinding("uncommitted", text, "commit it, or ignore it in .gitignore")
    if state.breaker_open is not None:
        text = f"the breaker is open: {state.breaker_open}"
        yield PushFinding("breaker", text, "guard breaker show; then guard breaker reset")
    for branch in state.rescues:
        hint = f"git merge {quote(branch)}, or delete it: git branch -D {quote(branch)}"
        yield PushFinding("rescue", f"rescued work is only on {branch}", hint)
    if state.refused_rescue is not None:
        text = f"work could not be rescued into commits: {state.refused_rescue}"
        yield PushFinding("rescue", text, "guard rescue, or guard restore latest")
    if state.held_by is not None:
        name, count = state.held_by
        text = f"a completion is held back: {plural(count, 'helper')} of {name} at work"
        yield PushFinding("held", text, "wait for them, or: guard team clear")
