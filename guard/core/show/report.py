"""One iteration for people: what was asked, what came of it, and what the agent printed."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Id, Instant, Line, Oid, Report
from guard.core.base.text import escape, plural
from guard.core.check.events import CheckMade
from guard.core.check.evidence import Evidence
from guard.core.check.report import Fact, facts
from guard.core.check.words import verdict_line
from guard.core.cost.text import usage_line
from guard.core.cost.usage import UNKNOWN, Usage
from guard.core.iteration.facts import Status
from guard.core.prove.summary import ProofSummary
from guard.core.rescue.events import RescueMade
from guard.core.show.transcript import TranscriptEntry, entry_text
from guard.core.snapshots.snapshot import HeldBack
from guard.core.work.count import CommitLine

_MOST_ENTRIES = 2000
_MOST_PROMPT = 2000


class ShowReport(Report):
    """One iteration of the log, with what guard has kept of its output."""

    schema_: Literal["guard/show/1"] = Field("guard/show/1", alias="schema")
    run: Id | None
    iteration: Count | None
    at: Instant
    """When it was checked last."""
    agent: Line | None
    session: Line | None
    command: tuple[Line, ...]
    prompt: str | None
    """What the agent was given on its stdin or in place of {prompt}; null if it was part of the command."""
    status: Status
    reason: Line
    detail: Line
    words: Line | None
    """The question, the refusal or the error, in the words of the agent or its program."""
    denied_tools: tuple[Line, ...]
    evidence: tuple[Fact, ...]
    commits: tuple[CommitLine, ...]
    rescued_commits: tuple[Oid, ...]
    rescue_branch: Line | None
    snapshot: Id | None
    """The snapshot that the rescue made."""
    held_back: tuple[HeldBack, ...]
    proof: ProofSummary | None
    usage: Usage
    transcript: tuple[TranscriptEntry, ...]
    """What the agent printed; empty if guard has not kept it."""
    omitted: Count
    """How many entries at the beginning of the transcript are left out."""


def show_report(
    check: CheckMade,
    rescue: RescueMade | None,
    *,
    command: tuple[str, ...],
    agent: str | None,
    prompt: str | None,
    transcript: Iterable[TranscriptEntry],
) -> ShowReport:
    look = Evidence.model_validate(check.looks[-1], strict=False) if check.looks else None
    output, entries = look.output if look is not None else None, tuple(transcript)
    return ShowReport(
        run=check.run,
        iteration=check.iteration,
        at=check.at,
        agent=agent,
        session=output.session if output else None,
        command=command,
        prompt=prompt,
        status=check.status,
        reason=check.reason,
        detail=check.detail,
        words=output.words if output else None,
        denied_tools=output.denied_tools if output else (),
        evidence=tuple(facts(look)) if look is not None else (),
        commits=look.work.commits if look is not None else (),
        rescued_commits=rescue.commits if rescue else (),
        rescue_branch=rescue.branch if rescue else None,
        snapshot=rescue.snapshot if rescue else None,
        held_back=rescue.held_back if rescue else (),
        proof=check.proof,
        usage=check.usage or UNKNOWN,
        transcript=entries[-_MOST_ENTRIES:],
        omitted=max(0, len(entries) - _MOST_ENTRIES),
    )


def show_text(report: ShowReport) -> str:
    """Return the iteration as a person reads it: the verdict first, the output last."""
    who = f", {escape(report.agent)}" if report.agent else ""
    title = (
        f"iteration {report.iteration} of run {report.run}{who}, {report.at:%Y-%m-%d %H:%M:%S} UTC"
    )
    verdict = verdict_line(report.status, report.reason, report.detail)
    lines = [title, verdict, *_asked(report), *_came_of_it(report)]
    lines += [f"  {fact.source}: {escape(fact.fact)}" for fact in report.evidence]
    lines += ["", "prompt:", *_indented(report.prompt[:_MOST_PROMPT])] if report.prompt else []
    lines += ["", "output:"]
    if report.omitted:
        lines.append(f"… the first {plural(report.omitted, 'line')} left out")
    lines += map(entry_text, report.transcript)
    if not report.transcript:
        lines.append("guard has not kept any output of this iteration")
    return "\n".join(lines)


def _asked(report: ShowReport) -> list[str]:
    lines = [f"  command: {escape(' '.join(report.command))}"] if report.command else []
    if report.words:
        lines.append(f"  in its words: {escape(report.words)}")
    if report.denied_tools:
        lines.append(f"  denied: {escape(', '.join(report.denied_tools))}")
    return lines


def _came_of_it(report: ShowReport) -> list[str]:
    lines = [f"  commit {line.oid[:10]} {escape(line.subject)}" for line in report.commits]
    known = {line.oid for line in report.commits}
    lines += [f"  rescued {oid[:10]}" for oid in report.rescued_commits if oid not in known]
    if report.rescue_branch:
        lines.append(f"  rescued on {escape(report.rescue_branch)}")
    lines += [f"  held back: {escape(held.path)}: {escape(held.why)}" for held in report.held_back]
    if report.snapshot:
        lines.append(
            f"  safe in snapshot {report.snapshot}: guard restore {report.snapshot} --to DIR"
        )
    if report.proof is not None:
        lines.append(f"  proof: {report.proof.result}: {escape(report.proof.detail)}")
    used = usage_line(report.usage)
    return [*lines, *([f"  used: {used}"] if used is not None else [])]


def _indented(text: str) -> list[str]:
    return [f"  {escape(line)}" for line in text.splitlines()]
