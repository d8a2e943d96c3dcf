"""Print verdicts for people."""

from guard.context.output import colour
from guard.core.base.text import escape, plural
from guard.core.check.report import CheckReport
from guard.core.check.warnings import list_warnings
from guard.core.check.words import status_word, verdict_line
from guard.core.cost.text import usage_line
from guard.core.prove.text import command_to_repeat
from guard.core.snapshots.snapshot import Snapshot

_COLOURS = {
    "complete": "ok",
    "timeout": "problem",
    "error": "problem",
    "blocked": "problem",
    "refuted": "problem",
}
_MOST_NAMES = 5
HOW_TO_PROVE = (
    "to have work proven, name the command that must succeed: --prove 'pytest -q', or prove.command"
)


def lacks_command(report: CheckReport) -> bool:
    """Tell whether new work is complete and no command was there to prove it."""
    return report.assurance == "unproven" and report.proof is None and report.new_commits > 0


def headline(report: CheckReport) -> str:
    word = status_word(report.status)
    line = verdict_line(report.status, report.reason, report.detail).removeprefix(word)
    line = colour(word, _COLOURS.get(report.status, "warning")) + line
    if report.assurance == "unproven":
        line += ", not proven"
    if report.retry_at is not None:
        line += f"; try again at {report.retry_at:%Y-%m-%d %H:%M:%S} UTC"
    return line


def verdict_text(report: CheckReport) -> str:
    """Return the verdict, what it rests on, and where the work that was left is safe."""
    lines = [headline(report)]
    lines += [f"  {fact.source}: {escape(fact.fact)}" for fact in report.evidence]
    lines += [f"  {HOW_TO_PROVE}"] if lacks_command(report) else []
    if report.proof is not None and report.proof.result != "proven":
        lines.append(f"  show it again: {command_to_repeat(report.proof)}")
    lines += [
        f"  commit {line.oid[:10]} {escape(line.subject)}" for line in report.work.commits[:5]
    ]
    used = usage_line(report.usage)
    lines += [f"  used: {used}"] if used is not None else []
    lines += _uncommitted_lines(report)
    lines += [f"  {line}" for line in list_warnings((), (), report.held_back)]
    kept = report.snapshot
    if kept is not None and (report.uncommitted.has_any or report.rescue or not kept.whole):
        lines.append(f"  safe in snapshot {kept.id}: guard restore {kept.id} --to DIR")
        lines += [f"  not in it: {escape(line)}" for line in _skipped_names(kept)]
    if report.breaker.state != "closed" or report.breaker.streak:
        lines.append(f"  breaker: {report.breaker.state}, streak {report.breaker.streak}")
    return "\n".join(lines)


def _skipped_names(kept: Snapshot) -> tuple[str, ...]:
    return () if kept.whole else kept.skipped[:_MOST_NAMES]


def _uncommitted_lines(report: CheckReport) -> list[str]:
    names = report.uncommitted.names
    if not names or (report.rescue is not None and report.rescue.commits):
        return []
    shown = ", ".join(escape(name) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return [f"  uncommitted: {shown}{more}"]


def summary_lines(report: CheckReport) -> str:
    """Return lines about an iteration of a loop: verdict, usage, and each file that was held back or has a secret."""
    parts = [f"iteration {report.iteration}", headline(report)]
    if report.rescued_commits:
        parts.append(plural(report.rescued_commits, "rescued commit"))
    used = usage_line(report.usage)
    notes = [f"used: {used}"] if used is not None else []
    return "\n".join(["  ".join(parts), *(f"  {line}" for line in (*notes, *report.warnings))])
