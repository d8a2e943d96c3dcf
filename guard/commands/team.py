"""`guard team`."""

from typing import Any, get_args

import click

from guard import team as teams
from guard.commands.options import DAY_SECONDS, Seconds, choice_option, incarnation_option
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.team.change import Alive, Joined, Kind, LeftBecause, MemberLeft
from guard.core.team.report import team_report, team_text, team_text_of_member, whole_text
from guard.hooks.ingest import ingest_hooks

_BECAUSE = tuple(
    reason
    for reason in get_args(LeftBecause)
    if reason not in ("cleared", "lease_expired", "named")
)
"""The reasons that a user may give; only guard itself sets the others."""


class _Name(click.ParamType):  # type: ignore[type-arg]
    """A name that is not empty."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("the value must not be empty", param, ctx)
        return str(value)


_session = click.option(
    "--session",
    type=_Name(),
    metavar="ID",
    help="The agent's session; by default that of the open iteration in the work tree.",
)
_member = click.option(
    "--member",
    required=True,
    type=_Name(),
    metavar="ID",
    help="The agent's own name for its helper.",
)
_incarnation = incarnation_option(
    "The member's incarnation, as `spawn` printed it; by default the newest."
)


@click.group("team")
def command() -> None:
    """Count an agent's helpers; guard holds back a completion while any of them counts."""


@command.command("spawn")
@click.option(
    "--team", type=_Name(), metavar="NAME", help="The name of the team; by default `session:ID`."
)
@_member
@choice_option("--kind", among=get_args(Kind), default="teammate", text="The kind of helper.")
@click.option(
    "--description", default="", metavar="TEXT", help="The work that the helper is to do."
)
@click.option(
    "--lease",
    type=Seconds(least=0.001, most=7 * DAY_SECONDS),
    metavar="S",
    help="Seconds that the helper counts after its last sign of life; by default `team.lease_seconds`.",
)
@_session
@prints_report
def spawn(
    guard: Invocation, /, lease: float | None, session: str | None, form: str, **given: Any
) -> None:
    """Count a helper, before it is started.

    Call this first, then start the helper; `guard team leave --because spawn_failed` takes it back. Spawning a
    member again begins a new incarnation, whose number is printed.
    """
    report = teams.spawn_member(guard, Joined(**given, told_by="command"), session, lease)
    guard.output.document(report, form, team_text_of_member)


@command.command("leave")
@_member
@choice_option(
    "--because", among=_BECAUSE, default="ended", text="Why the helper counts no longer."
)
@_incarnation
@_session
@prints_report
def leave(guard: Invocation, /, session: str | None, form: str, **given: Any) -> None:
    """Stop counting a helper.

    A late report, after the helper's end or of an earlier incarnation, changes nothing. Exit code 1 if the team has
    no such member.
    """
    report = teams.report_member(guard, MemberLeft(**given), session)
    guard.output.document(report, form, team_text_of_member)


@command.command("alive")
@_member
@click.option("--idle", is_flag=True, help="The helper is alive but idle; it still counts.")
@_incarnation
@_session
@prints_report
def alive(guard: Invocation, /, session: str | None, form: str, **given: Any) -> None:
    """Record a sign of life of a helper, which renews its lease.

    Exit code 1 if the team has no such member.
    """
    report = teams.report_member(guard, Alive(**given), session)
    guard.output.document(report, form, team_text_of_member)


@command.command("clear")
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log.")
@_session
@prints_report
def clear(guard: Invocation, reason: str, session: str | None, form: str) -> None:
    """Stop counting all helpers, and forget the team's name."""
    scope, state = teams.clear_session(guard, session, reason)
    guard.output.document(team_report(scope, state, "cleared"), form, team_text)


@command.command("show")
@click.option("--all", "everything", is_flag=True, help="Also show helpers that left.")
@_session
@prints_report
def show(guard: Invocation, everything: bool, session: str | None, form: str) -> None:
    """Show the team of a session: its name, who counts, and whether guard holds back a completion."""
    ingest_hooks(guard)
    scope, state = teams.team_of(guard, session)
    guard.output.document(team_report(scope, state), form, whole_text if everything else team_text)
