"""Run iterations until the work is done, a limit is reached, or the user is needed; `core.run.loop` decides."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from guard.check.taskfile import count_open_boxes
from guard.context.account import account_seconds
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.check.answer import ANSWER
from guard.core.check.last_check import LAST_CHECK
from guard.core.check.report import CheckReport
from guard.core.cost.budget import NO_BUDGET, CostBudget, budget_report
from guard.core.iteration.events import RunEnded
from guard.core.iteration.run import RUN
from guard.core.prove.report import EXIT_OF_PROOF, ProofReport, feedback
from guard.core.run.loop import (
    End,
    LoopLimits,
    Next,
    after_iteration,
    before_iteration,
    count_iterations,
    count_spending,
)
from guard.core.run.report import LoopReport
from guard.errors import BreakerOpen, GuardError, ServerLost, StoreUnavailable, WrongUsage
from guard.run.order import RunOrder, read_prompt, with_prompt
from guard.run.run import StoppedByPerson, is_still_open, run_iteration, tell_of_verdict
from guard.snapshots.last_resort import save_before_abort
from guard.system.signals import interrupt_on_termination

_FEEDBACK = "{feedback}"
_TICK_SECONDS = 0.5
_CUT_OFF = ("limited", "error", "interrupted")
"""After these the next iteration gets the same answer: the session had no time to use it."""
_SERVER_SECONDS = 5.0
_ACCOUNT_SECONDS = 60.0
INTERRUPTED = 130
UNVERIFIABLE = 15


@dataclass(frozen=True)
class LoopPlan:
    """What to run again and again, and until when."""

    order: RunOrder
    limits: LoopLimits
    prompt_file: Path | None = None
    tasks: Path | None = None
    budget: CostBudget = NO_BUDGET


class Loop:
    """A loop while it runs."""

    def __init__(
        self,
        guard: Invocation,
        plan: LoopPlan,
        tell: Callable[[CheckReport], None],
        keep: Callable[[LoopReport], None] = lambda _report: None,
    ) -> None:
        self._guard = guard
        self._plan = plan
        self._tell = tell
        self._write = keep
        """Writes the report of the loop, as far as it has come."""
        self._limited_since: datetime | None = None
        self._begun = self._due = time.monotonic()
        """When the loop began, and when its next iteration may begin."""
        self._reports: list[CheckReport] = []
        self._limited = 0
        self._code = 0
        self._is_refuted = False
        self._feedback = ""
        """What the next prompt says of work that was refuted."""
        self._answer = ""
        """What the next prompt says of a question that a person has answered."""
        self._end_proof: ProofReport | None = None
        """What the checks for the end of a loop said the last time."""
        self._refuted_ends = 0
        self._is_warned = False

    def run(self) -> tuple[LoopReport, GuardError | OSError | None]:
        """Run to the end; the report, and the error that the loop could not go on after, if there was one."""
        fault = None
        try:
            with interrupt_on_termination(), save_before_abort(self._guard):
                end = self._iterate_until_end()
        except KeyboardInterrupt:
            end = Next("stopped", INTERRUPTED)
        except (GuardError, OSError) as error:
            if not self._reports:
                raise
            code = error.exit_code if isinstance(error, GuardError) else StoreUnavailable.exit_code
            end, fault = Next("fault", code), error
        assert end.ends is not None
        if fault is None:
            try:
                with save_before_abort(self._guard):
                    self._end_run(end.ends)
            except ServerLost as error:
                self._guard.output.warn(f"the end of the run is not recorded: {error.message}")
        if fault is None and end.ends not in ("stopped", "breaker_open", "blocked"):
            self._notify_of_end(end.ends)
        return self._report(end.ends, end.code), fault

    def _report(self, end: End | None, code: int) -> LoopReport:
        spending = count_spending(self._reports)
        return LoopReport(
            reason=end or "running",
            ended=end,
            exit_code=code,
            iterations=tuple(self._reports),
            proof=self._end_proof,
            usage=spending.usage,
            budget=budget_report(self._plan.budget, spending),
            elapsed_seconds=round(self._elapsed_seconds(), 3),
        )

    @property
    def _notifies(self) -> bool:
        return self._plan.order.notifies and self._guard.config.settings.notify.is_set

    def _notify_of_end(self, reason: str) -> None:
        done = {(report.run, report.iteration): report for report in self._reports}
        if not done or not self._notifies:
            return
        from guard.notify import notice_of_end, send_notice

        commits = sum(report.new_commits for report in done.values())
        run = self._reports[-1].run
        send_notice(self._guard, notice_of_end(run, reason, len(done), commits))

    def _notify(self, report: CheckReport) -> None:
        if not self._notifies:
            return
        if report.status != "limited":
            self._limited_since = None
        elif self._limited_since is None:
            self._limited_since = self._guard.clock.now()
        tell_of_verdict(self._guard, report, self._limited_since)
        spent = budget_report(self._plan.budget, count_spending(self._reports))
        if spent is None:
            return
        from guard.notify import notice_of_budget, send_notice

        for name in spent.nearly_used_up:
            notice = notice_of_budget(report.run, name, spent.detail, run=report.run)
            send_notice(self._guard, notice)

    def _iterate_until_end(self) -> Next:
        while True:
            try:
                return self._iterate_with_server()
            except ServerLost as error:
                if not self._reports:
                    raise
                self._wait_for_server(error)

    def _iterate_with_server(self) -> Next:
        self._rest()
        end = self._prove_end(self._find_end())
        while end is None:
            if self._has_waited_for_account():
                end = self._prove_end(self._find_end())
                continue
            step = self._iterate()
            self._due = time.monotonic() + step.seconds
            end = self._prove_end(step if step.ends is not None else self._find_end())
            if end is None:
                self._rest()
                end = self._prove_end(self._find_end())
        return end

    def _prove_end(self, end: Next | None) -> Next | None:
        """Run the checks for the end of a loop before it ends well; return None if it has to go on."""
        if end is None or end.code != 0:
            return end
        terms = self._plan.order.terms
        settings = self._guard.settings(None, terms.flags)
        names = tuple(each.name for each in settings.prove.check if each.when == "end")
        if not names or not terms.prove or (self._reports and not self._reports[-1].complete):
            return end
        from guard.prove.prove import prove
        from guard.prove.work import ProveTerms

        asked = ProveTerms(settings=settings.prove, only=names, moment="end")
        self._end_proof = prove(self._guard, asked)
        is_required = settings.prove.required or self._end_proof.reason == "hangs"
        if self._end_proof.result == "unverifiable":
            return replace(end, code=UNVERIFIABLE) if is_required else end
        if self._end_proof.result != "refuted":
            return end
        self._feedback = feedback(self._end_proof)
        self._refuted_ends += 1
        refuted = replace(end, code=EXIT_OF_PROOF["refuted"])
        limit = settings.breaker.refuted_limit
        if end.ends not in ("tasks_done", "nothing_to_do") or self._refuted_ends >= limit:
            return refuted
        limits, done = self._plan.limits, self._count_done()
        return before_iteration(limits, done, self._elapsed_seconds(), None, refuted.code)

    def _count_done(self) -> int:
        is_open = bool(self._reports) and is_still_open(self._guard, self._reports[-1])
        return count_iterations(self._reports, is_open)

    def _elapsed_seconds(self) -> float:
        return time.monotonic() - self._begun

    def _find_end(self) -> Next | None:
        left = self._open_tasks()
        last = self._reports[-1] if self._reports else None
        return before_iteration(
            self._plan.limits,
            self._count_done(),
            self._elapsed_seconds(),
            left,
            self._code,
            unsaved=last is not None and last.uncommitted.has_any,
            unproven=self._is_unproven(last),
            budget=self._plan.budget.find_end(count_spending(self._reports)),
        )

    def _is_unproven(self, last: CheckReport | None) -> bool:
        if last is not None and (
            (last.status, last.reason) == ("error", "unverifiable") or self._is_refuted
        ):
            return True
        terms = self._plan.order.terms
        settings = self._guard.settings(None, terms.flags)
        if not (terms.prove and settings.prove.checks_at("iteration")):
            return False
        if last is not None and not settings.prove.required:
            return False
        from guard.prove.prove import needs_proof

        return needs_proof(self._guard, settings)

    def _open_tasks(self) -> int | None:
        file = self._plan.tasks
        left = count_open_boxes(file) if file is not None else None
        if file is not None and left is None:
            if not self._reports:
                raise WrongUsage(
                    f"{file} has no boxes that guard can read",
                    "--until-tasks-done needs a markdown file with `- [ ]` boxes",
                )
            self._guard.output.warn(
                f"{file} has no boxes that guard can read any more: the loop does not end by it"
            )
        return left

    def _iterate(self) -> Next:
        begun = bool(self._reports)
        budget = self._plan.budget
        order = replace(
            self._with_prompt(),
            allowance=budget.allow(count_spending(self._reports)) if budget.is_set else None,
            new_run=not begun,
            goes_on=begun,
            in_loop=True,
            max_seconds=self._time_left(),
        )
        try:
            report = run_iteration(self._guard, order)
        except StoppedByPerson as stop:
            self._keep(stop.report)
            return Next("stopped", INTERRUPTED)
        except BreakerOpen as error:
            self._guard.output.warn(error.message)
            return Next("breaker_open", BreakerOpen.exit_code)
        self._keep(report)
        self._limited = self._limited + 1 if report.status == "limited" else 0
        now = self._guard.clock.now()
        step = after_iteration(report, now, self._limited, self._plan.tasks is not None)
        self._code = step.code
        self._write(self._report(None, step.code))
        self._notify(report)
        return step

    def _wait_for_server(self, lost: ServerLost) -> None:
        """Wait until the server answers again; raise if it stays away for too long."""
        guard = self._guard
        seconds = guard.users_config.settings.fleet.wait_seconds
        left = self._time_left()
        until = time.monotonic() + (seconds if left is None else min(seconds, left))
        guard.output.warn(f"{lost.message}; the loop waits for the server for {seconds:.0f} s")
        while time.monotonic() < until:
            time.sleep(min(_SERVER_SECONDS, max(0.0, until - time.monotonic())))
            with suppress(ServerLost):
                guard.store.view(RUN, guard.worktree_key)
                return
        raise lost

    def _time_left(self) -> float | None:
        limit = self._plan.limits.max_seconds
        return None if limit is None else max(0.0, limit - self._elapsed_seconds())

    def _keep(self, report: CheckReport) -> None:
        self._reports.append(report)
        if report.status not in _CUT_OFF:
            self._answer = ""
        if report.status in ("complete", "refuted"):
            self._is_refuted = report.status == "refuted"
            shown = report.proof if self._is_refuted else None
            self._feedback = feedback(shown) if shown is not None else ""
        self._tell(report)
        self._warn_of_unknown_cost(report)

    def _warn_of_unknown_cost(self, report: CheckReport) -> None:
        if self._is_warned or report.status == "limited":
            return
        budget, usage, why = self._plan.budget, report.usage, ""
        if budget.limits_cost and usage.cost_usd is None:
            why = "what it costs: guard cannot hold it to a budget in dollars"
            if usage.input_tokens is not None:
                why += "; name prices in cost.prices, or set --max-tokens"
        elif budget.max_tokens and usage.input_tokens is None:
            why = "how many tokens it uses: guard cannot hold it to --max-tokens"
        if why:
            self._is_warned = True
            self._guard.output.warn(f"the agent does not tell {why}")

    def _with_prompt(self) -> RunOrder:
        """Return the order of the next iteration: the prompt that its file holds now, and what happened before."""
        order, file = self._plan.order, self._plan.prompt_file
        self._take_answer(has_place=file is not None or any(_FEEDBACK in w for w in order.argv))
        words = tuple(word.replace(_FEEDBACK, self._before()) for word in order.argv)
        if words != order.argv:
            order = replace(order, argv=words, command=order.argv)
        if file is None:
            return order
        return with_prompt(order, self._add_feedback(read_prompt(file)))

    def _take_answer(self, *, has_place: bool) -> None:
        store, key = self._guard.store, self._guard.worktree_key
        known = store.view(ANSWER, key)
        if known is None or not known.is_news(store.view(LAST_CHECK, key)):
            return
        self._answer = known.for_prompt()
        if not has_place:
            self._guard.output.warn(
                "the answer to the last question is in no prompt: the loop has no --prompt-file, and its command no {feedback}"
            )

    def _before(self) -> str:
        return "\n\n".join(part for part in (self._answer, self._feedback) if part)

    def _add_feedback(self, prompt: bytes) -> bytes:
        added, place = self._before().encode(errors="replace"), _FEEDBACK.encode()
        if place in prompt:
            return prompt.replace(place, added)
        return b"%s\n\n%s\n" % (prompt.rstrip(b"\n"), added) if added else prompt

    def _has_waited_for_account(self) -> bool:
        """Tell whether the account is at its limit, after a sleep of a minute at most."""
        left = account_seconds(self._guard)
        if left <= 0:
            return False
        account = self._guard.users_config.settings.fleet.account
        self._guard.output.warn(
            f"account {account} is at its usage limit: the loop pauses until the reset"
        )
        self._sleep(min(left, _ACCOUNT_SECONDS))
        return True

    def _rest(self) -> None:
        """Sleep until the next iteration may begin."""
        self._sleep(max(0.0, self._due - time.monotonic()))

    def _sleep(self, seconds: float) -> None:
        left, live = self._time_left(), self._guard.output.live()
        if left is not None:
            seconds = min(seconds, left)
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                wait = f"{left / 60:.1f} min" if left >= 60 else f"{left:.0f} s"
                # What stands behind the semicolon changes without a new line where there is no terminal.
                live.say(f"waits for the next iteration; {wait} left")
                time.sleep(min(_TICK_SECONDS, left))
        finally:
            live.clear()

    def _end_run(self, reason: str) -> None:
        guard = self._guard
        with guard.writable_store.change() as change:
            run = change.view(RUN, guard.worktree_key)
            if run is None or run.ended_at is not None or not self._reports:
                return
            if run.run != self._reports[-1].run or run.open_iteration is not None:
                return
            change.append(
                RunEnded(
                    at=guard.clock.now(),
                    id=new_id(),
                    run=run.run,
                    worktree=guard.worktree_key,
                    reason=reason,
                )
            )
