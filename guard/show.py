"""Gather what the log and the kept output know of one iteration."""

from collections.abc import Iterator

from guard.context.invocation import Invocation
from guard.core.check.events import CheckMade
from guard.core.iteration.events import RunStarted, SessionSeen
from guard.core.log.adoption import WorktreeAdopted
from guard.core.rescue.events import RescueMade
from guard.core.show.report import ShowReport, show_report
from guard.core.show.transcript import read_transcript
from guard.errors import Refused
from guard.iteration.kept_output import KeptOutput

_MOST_PROMPT_BYTES = 64 * 1024


class _Found:
    """The newest check of an iteration, and what the log has around it."""

    def __init__(self, guard: Invocation, number: int | None, run: str | None) -> None:
        self.rescues: dict[tuple[str, int], RescueMade] = {}
        self.agents: dict[tuple[str, int], str] = {}
        self.commands: dict[str, tuple[str, ...]] = {}
        key = guard.worktree_key_if_any
        checks: dict[str | None, CheckMade] = {}
        for event, _, _ in guard.store.entries():
            match event:
                case CheckMade() if number in (None, event.iteration) and run in (None, event.run):
                    checks[event.worktree] = checks[None] = event
                case WorktreeAdopted() if event.before in checks:
                    checks[event.worktree] = checks[event.before]
                case RescueMade():
                    self.rescues[event.run, event.iteration] = event
                case SessionSeen() if event.agent:
                    self.agents[event.run, event.iteration] = event.agent
                case RunStarted():
                    self.commands[event.run] = event.command
        self.check = checks.get(key)


def show_iteration(guard: Invocation, number: int | None, run: str | None) -> ShowReport:
    """Return the newest iteration, or the one of this number, of the newest run that has one, or of this run."""
    found = _Found(guard, number, run)
    check = found.check
    if check is None:
        which = "an iteration" if number is None else f"iteration {number}"
        raise Refused(
            f"the log has no check of {which}{f' of run {run}' if run else ''}",
            "`guard log --type check_made` lists the checks",
        )
    place = check.run, check.iteration
    return show_check(
        guard,
        check,
        found.rescues.get(place),
        command=found.commands.get(check.run, ()),
        agent=found.agents.get(place),
    )


def show_check(
    guard: Invocation,
    check: CheckMade,
    rescue: RescueMade | None,
    *,
    command: tuple[str, ...],
    agent: str | None,
) -> ShowReport:
    """Return the iteration of this check, with what is kept of its prompt and its output."""
    kept = KeptOutput.named(guard, check.run, check.iteration)
    prompt = b"".join(kept.chunks("prompt"))[:_MOST_PROMPT_BYTES].decode(errors="replace")
    return show_report(
        check,
        rescue,
        command=command,
        agent=agent,
        prompt=prompt or None,
        transcript=read_transcript(kept.chunks("stdout")),
    )


def raw_output(guard: Invocation, report: ShowReport) -> Iterator[bytes]:
    """Yield what the agent of the iteration printed, as it was."""
    assert report.run is not None
    assert report.iteration is not None
    yield from KeptOutput.named(guard, report.run, report.iteration).chunks("stdout")
