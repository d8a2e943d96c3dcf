"""The three modes of a step: run the agent, record a baseline, or check after another step ran the agent."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from guard import breaker
from guard.check.verdict import check
from guard.context.invocation import Invocation
from guard.core.base.fields import parse_document
from guard.core.check.events import CheckMade
from guard.core.check.report import EXIT_OF, BreakerLine, CheckReport
from guard.core.github.report import Mode, StepReport, StepStatus
from guard.core.iteration.run import RUN
from guard.core.rescue.redact import known_secrets, redact_document
from guard.errors import BreakerOpen, GuardError, RepositoryProblem, StateProblem
from guard.github.environment import JobEnvironment, replace_file
from guard.iteration.begin import baseline_report, begin
from guard.run.loop import INTERRUPTED
from guard.run.order import RunOrder
from guard.run.run import StoppedByPerson, run_iteration
from guard.system.programs import find_program


@dataclass(frozen=True)
class WorkflowStep:
    """One step of the action, in one of its modes."""

    guard: Invocation
    job: JobEnvironment
    mode: Mode
    order: RunOrder
    """What to run in the mode `run`; in the others only its terms count."""

    def run(self) -> StepReport:
        """Run the step and return its report without secrets; an error becomes a report too, so that it is published."""
        try:
            self.job.folder.mkdir(parents=True, exist_ok=True)
            report = {"run": self._run, "baseline": self._begin, "check": self._check}[self.mode]()
        except BreakerOpen as stop:
            report = self._report("breaker_open", "breaker_open", stop.message, stop.exit_code)
        except GuardError as error:
            why = f"{error.message} ({error.hint})" if error.hint else error.message
            report = self._report("fault", _word(error), why, error.exit_code)
        except OSError as error:
            report = self._report("fault", "system", f"{error}", 6)
        return redact_report(report, self.job)

    def _run(self) -> StepReport:
        self._adopt()
        # The script is the user's, the shell is not: it is known by its name, but started from outside the repository.
        name, *words = self.order.argv
        program = find_program(name, self.guard.environ) or name
        order = replace(self.order, argv=(program, *words), command=self.order.argv)
        try:
            made = run_iteration(self.guard, order)
            code = EXIT_OF[made.status]
        except StoppedByPerson as stop:
            made, code = stop.report, INTERRUPTED
        return self._report_check(made, code)

    def _begin(self) -> StepReport:
        self._adopt()
        place = breaker.BreakerKey.of(self.guard)
        state = breaker.load(self.guard.store, place.worktree)
        permission = breaker.permission_now(self.guard.store, place, state)
        if not permission.allowed:
            raise BreakerOpen(f"the breaker is open: {state.reason or permission.reason}")
        begun = begin(self.guard)
        replace_file(self._begun_file, json.dumps([begun.run, begun.number]).encode())
        report = self._report("begun", "baseline", "", 0)
        made = baseline_report(begun, self.guard.worktree_key, self.guard.config.warnings)
        return report.model_copy(update={"baseline": made})

    def _check(self) -> StepReport:
        if self.order.terms.baseline is None and not self._begun_file.is_file():
            # A baseline from the cache belongs to another run.
            raise RepositoryProblem(
                "this job has recorded no baseline for this work tree",
                "put a step with `mode: baseline` before the agent's, or name a revision: `baseline`",
            )
        made = check(self.guard, self.order.terms)
        place = breaker.BreakerKey.of(self.guard)
        outcome = breaker.Outcome(made.status, made.reason, rescued=made.rescued, head=place.head())
        if self._begun_file.is_file():
            # Only once: a check may be repeated, but its iteration must not count twice.
            with self.guard.writable_store.change() as change:
                breaker.record(change, place, replace(outcome, run=made.run))
            replace_file(self._begun_file, b"")
        return self._report_check(made, EXIT_OF[made.status])

    @property
    def _begun_file(self) -> Path:
        return self.job.folder / f"begun.{self.guard.worktree_key}"

    def _adopt(self) -> None:
        # The cache is only a hint: unusable state is moved aside with a warning.
        place = self.job.state
        # What this machine remembers of another job's log says nothing about the one that the cache brings.
        self.guard.log_keeper.forget()
        if not place.is_dir():
            return
        try:
            sound = self.guard.store.verify().ok
        except (StateProblem, OSError):
            sound = False
        if not sound:
            aside = place.with_name(f"{place.name}.refused")
            self.guard.output.warn(f"the state of an earlier run is not used; it is kept: {aside}")
            place.rename(_free_path(aside))
            self.guard.forget_store()

    def _report_check(self, made: CheckReport, code: int) -> StepReport:
        report = self._report(made.status, made.reason, made.detail, code)
        return report.model_copy(
            update={
                "complete": made.complete,
                "check": made,
                "probe_cost_usd": _cost(self.guard, made),
            }
        )

    def _report(self, status: StepStatus, reason: str, detail: str, code: int) -> StepReport:
        report = StepReport.without_check(self.mode, status, reason, detail, code)
        with suppress(GuardError, OSError):
            known = {"breaker": self._breaker(), "settled": self._is_settled()}
            return report.model_copy(update=known)
        return report

    def _breaker(self) -> BreakerLine:
        found = breaker.load(self.guard.store, self.guard.worktree_key)
        line = BreakerLine.model_validate(found, from_attributes=True)
        return line if found.state == "open" else line.model_copy(update={"retry_at": None})

    def _is_settled(self) -> bool:
        run = self.guard.store.view(RUN, self.guard.worktree_key)
        opened = run.open_iteration if run is not None else None
        return opened is None or opened.supervisor is None


def _word(error: GuardError) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()


def _free_path(path: Path) -> Path:
    numbered = (path.with_name(f"{path.name}.{n}") for n in range(1, 1000))
    return path if not path.exists() else next(free for free in numbered if not free.exists())


def _cost(guard: Invocation, made: CheckReport) -> float | None:
    found: float | None = None
    for event, _, _ in guard.store.recent():
        if isinstance(event, CheckMade) and (event.run, event.iteration) == (
            made.run,
            made.iteration,
        ):
            found = event.probe_cost_usd
    return found


def redact_report(report: StepReport, job: JobEnvironment) -> StepReport:
    plain = redact_document(json.loads(report.model_dump_json()), known_secrets(job.environ))
    return parse_document(StepReport, json.dumps(plain).encode())


def shell(script: str) -> tuple[str, ...]:
    """Return the command that runs a script as GitHub does with `shell: bash`."""
    return ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
