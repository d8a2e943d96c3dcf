"""What `guard team` prints."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Line, Report
from guard.core.base.text import escape, plural
from guard.core.team.count import is_holding
from guard.core.team.state import Member, Scope, TeamState

RecordedAs = Literal["joined", "left", "alive", "late", "cleared", "nothing"]


class TeamReport(Report):
    """The team of one session after a change, or as it stands."""

    schema_: Literal["guard/team-report/1"] = Field("guard/team-report/1", alias="schema")
    worktree: str
    session: Line | None
    active_team_name: Line | None
    active_teammate_count: Count
    held: bool
    """Whether a completion is held back: a team is named and a member counts."""
    recorded_as: RecordedAs
    """What was recorded; `late` if the member had left, or another life of it counts: that changes nothing."""
    member: Member | None
    """The member that the command was about, after it."""
    incarnation: Count | None
    """Which life of it counts, or counted last."""
    members: tuple[Member, ...]


def team_report(
    scope: Scope,
    state: TeamState | None,
    recorded_as: RecordedAs = "nothing",
    member: str | None = None,
) -> TeamReport:
    named = state.member(member) if state is not None and member is not None else None
    return TeamReport(
        worktree=scope.worktree,
        session=scope.session,
        active_team_name=state.active_team_name if state else None,
        active_teammate_count=state.active_teammate_count if state else 0,
        held=is_holding(state),
        recorded_as=recorded_as,
        member=named,
        incarnation=named.incarnation if named else None,
        members=state.members if state else (),
    )


def team_text(report: TeamReport) -> str:
    if report.active_team_name is None:
        head = "no team"
    else:
        count = plural(report.active_teammate_count, "active member")
        head = f"team {report.active_team_name}: {count}"
    lines = [f"{head}; completion is {'held back' if report.held else 'not held back'}"]
    lines += [_line(member) for member in report.members if member.counts]
    return "\n".join(escape(line) for line in lines)


def team_text_of_member(report: TeamReport) -> str:
    """Return the team in one line, then the member that the command was about."""
    late = " (late: nothing changed)" if report.recorded_as == "late" else ""
    named = [escape(_line(report.member) + late)] if report.member else []
    listed = report.model_copy(update={"members": ()})
    return "\n".join([team_text(listed), *named])


def whole_text(report: TeamReport) -> str:
    """Return the team with all members, also those that left."""
    gone = [escape(_line(member)) for member in report.members if not member.counts]
    return "\n".join([team_text(report), *gone])


def _line(member: Member) -> str:
    kind = member.kind.replace("_", " ")
    line = f"  {member.member}  {kind}  {member.status}  incarnation {member.incarnation}"
    if member.counts:
        line += f"  last seen {member.seen.at:%Y-%m-%dT%H:%M:%SZ}, lease {member.lease_seconds:g} s"
    elif member.left_because is not None:
        line += f"  {member.left_because}"
        line += f": {member.left_detail}" if member.left_detail else ""
    return f"{line}  {member.description}".rstrip()
