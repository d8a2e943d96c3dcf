"""Run iterations until the work is done, a limit is reached, or the user is needed; `core.run.loop` decides."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from guard.check.taskfile import count_open_boxes
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.check.report import CheckReport
from guard.core.iteration.events import RunEnded
from guard.core.iteration.run import RUN
from guard.core.run.loop import (
    LoopLimits,
    Next,
    after_iteration,
    before_iteration,
    count_iterations,
)
from guard.core.run.report import LoopReport
from guard.errors import BreakerOpen, GuardError, StoreUnavailable, WrongUsage
from guard.run.order import RunOrder
from guard.run.run import StoppedByPerson, is_still_open, run_iteration
from guard.snapshots.last_resort import save_before_abort
from guard.system.signals import interrupt_on_termination

_MOST_PROMPT_BYTES = 4 * 1024 * 1024
_PLACEHOLDER = "{prompt}"
_TICK_SECONDS = 0.5
INTERRUPTED = 130


@dataclass(frozen=True)
class LoopPlan:
    """What to run again and again, and until when."""

    order: RunOrder
    limits: LoopLimits
    prompt_file: Path | None = None
    tasks: Path | None = None


class Loop:
    """A loop while it runs."""

    def __init__(
        self, guard: Invocation, plan: LoopPlan, tell: Callable[[CheckReport], None]
    ) -> None:
        self._guard = guard
        self._plan = plan
        self._tell = tell
        self._begun = time.monotonic()
        self._reports: list[CheckReport] = []
        self._limited = 0
        self._code = 0

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
            with save_before_abort(self._guard):
                self._end_run(end.ends)
        report = LoopReport(
            reason=end.ends,
            exit_code=end.code,
            iterations=tuple(self._reports),
            elapsed_seconds=round(self._elapsed_seconds(), 3),
        )
        return report, fault

    def _iterate_until_end(self) -> Next:
        end = self._find_end()
        while end is None:
            step = self._iterate()
            end = step if step.ends is not None else self._find_end()
            if end is None:
                self._sleep(step.seconds)
                end = self._find_end()
        return end

    def _elapsed_seconds(self) -> float:
        return time.monotonic() - self._begun

    def _find_end(self) -> Next | None:
        left = self._open_tasks()
        is_open = bool(self._reports) and is_still_open(self._guard, self._reports[-1])
        done = count_iterations(self._reports, is_open)
        unsaved = bool(self._reports) and self._reports[-1].uncommitted.has_any
        return before_iteration(
            self._plan.limits, done, self._elapsed_seconds(), left, self._code, unsaved
        )

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
        order = replace(
            self._with_prompt(),
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
        return step

    def _time_left(self) -> float | None:
        limit = self._plan.limits.max_seconds
        return None if limit is None else max(0.0, limit - self._elapsed_seconds())

    def _keep(self, report: CheckReport) -> None:
        self._reports.append(report)
        self._tell(report)

    def _with_prompt(self) -> RunOrder:
        """Return the order of the next iteration, with the prompt that its file holds now."""
        order, file = self._plan.order, self._plan.prompt_file
        if file is None:
            return order
        data = _read(file)
        if _PLACEHOLDER not in order.argv:
            return replace(order, prompt=data)
        words = tuple(os.fsdecode(data) if word == _PLACEHOLDER else word for word in order.argv)
        return replace(order, argv=words, command=order.argv)

    def _sleep(self, seconds: float) -> None:
        left, live = self._time_left(), self._guard.output.live()
        if left is not None:
            seconds = min(seconds, left)
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                live.say(f"the next iteration begins in {left / 60:.1f} min")
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


def _read(file: Path) -> bytes:
    try:
        with open(file, "rb") as opened:
            data = opened.read(_MOST_PROMPT_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"{file}: {error.strerror}", "check --prompt-file") from None
    if len(data) > _MOST_PROMPT_BYTES:
        raise WrongUsage(
            f"{file} is larger than {_MOST_PROMPT_BYTES} bytes", "shorten the prompt file"
        )
    return data
