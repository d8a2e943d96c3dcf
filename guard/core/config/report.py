"""The report of `guard init`."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Report, Text
from guard.core.config.proposal import ProjectFinding
from guard.core.prove.propose import CommandProposal

InitAction = Literal["written", "kept", "would_write", "declined", "restarted"]


class ProofProposal(CommandProposal):
    """A proposal for `[prove]`, and the files that could have it; guard writes it to none of them."""

    user_file: str
    """The user's own file: it holds for all of the user's repositories."""
    project_file: str
    """The project's file: there it needs `guard trust`."""


class InitReport(Report):
    """What `guard init` did, or would do."""

    schema_: Literal["guard/init/1"] = Field("guard/init/1", alias="schema")
    file: str
    action: InitAction
    """`declined` if the user was asked and said no; `restarted` for a new log in place of one that is gone."""
    content: str | None = None
    """The proposed file; None where there is one already."""
    found: tuple[ProjectFinding, ...] = ()
    next: tuple[Text, ...] = ()
    """What to type next, the most useful first."""
    proof: ProofProposal | None = None
    """None if a command is named already, or nothing in the project shows one."""
