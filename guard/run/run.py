"""Run one iteration: baseline, the agent as a child, the check, the breaker.

An iteration that an earlier guard left open, because it was killed or because helpers were still at work, is finished first:
it is judged by what is known of it, and nothing new begins beside something that is still alive.
"""

import os
import signal
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from datetime import datetime

from guard import breaker
from guard.check.record import Feeds
from guard.check.verdict import Observation, judge, stop
from guard.context.account import hold_account
from guard.context.invocation import Invocation
from guard.context.lease import find_process, keep_lease
from guard.core.check.report import CheckReport
from guard.core.check.words import verdict_line
from guard.core.classify import Classification, make_reader
from guard.core.hooks.event_kinds import MARK
from guard.core.iteration.run import RUN
from guard.core.run.command import limit_cost
from guard.core.run.loop import account_pause
from guard.errors import BreakerOpen, GuardError, WrongUsage
from guard.iteration.begin import begin, record_not_started
from guard.iteration.current import (
    CheckTerms,
    current_iteration,
    last_check,
    record_session,
    refuse_beside_another,
)
from guard.iteration.kept_output import KeptOutput
from guard.run.agent_watch import AgentWatch
from guard.run.child import AgentProcess, ChildExit
from guard.run.late_verdict import record_late_verdicts, record_or_keep
from guard.run.order import RunOrder, agent_of_command, check_program, current_folder
from guard.run.registry_entry import RegistryEntry, enter_registry
from guard.snapshots.last_resort import save_before_abort, saves_before_abort
from guard.snapshots.remote import push_snapshots
from guard.system.signals import interrupt_on_termination


class StoppedByPerson(Exception):
    """The user ended the iteration by a signal; it is recorded, and the next run goes on."""

    def __init__(self, report: CheckReport) -> None:
        super().__init__(report.detail)
        self.report = report


@saves_before_abort
def run_iteration(guard: Invocation, order: RunOrder) -> CheckReport:
    with interrupt_on_termination(), _lease(guard):
        record_late_verdicts(guard)
        left = finish_open_iteration(guard, order.terms, order.goes_on)
        if left is not None:
            _share_limit(guard, left)
        if left is not None and (order.goes_on or is_still_open(guard, left)):
            return left
        if left is not None:
            _warn_of_left(guard, left)
        check_program(order.argv, guard.environ)
        _ask_breaker(guard)
        try:
            report = _iterate_in_registry(guard, order)
        finally:
            guard.store.anchor()  # The agent may have deleted the log, and what remembers it too.
        _share_limit(guard, report)
        push_snapshots(guard)
    if order.notifies and not order.in_loop:
        tell_of_verdict(guard, report, None)
    return report


def _lease(guard: Invocation) -> AbstractContextManager[None]:
    return keep_lease(guard.writable_store, guard.users_config.settings.fleet.lease_seconds)


def _share_limit(guard: Invocation, report: CheckReport) -> None:
    with suppress(GuardError, OSError):  # Others who share the account find out themselves.
        hold_account(guard, account_pause(report, guard.clock.now()))


def tell_of_verdict(guard: Invocation, report: CheckReport, limited_since: datetime | None) -> None:
    """Send the notices that a verdict calls for, if the user wants notices."""
    settings = guard.config.settings.notify
    if not settings.is_set:
        return
    from guard.core.notify.notice import notices_of_verdict
    from guard.notify import send_notice

    refuted, now = 0, guard.clock.now()
    with suppress(GuardError, OSError):  # The verdict stands, whatever becomes of the state.
        refuted = breaker.load(guard.store, guard.worktree_key).refuted_streak
    found = notices_of_verdict(report, refuted, limited_since, now, settings.limit_minutes)
    for notice in found:
        send_notice(guard, notice)


def _warn_of_left(guard: Invocation, left: CheckReport) -> None:
    line = verdict_line(left.status, left.reason, left.detail)
    guard.output.warn(f"iteration {left.iteration}: {line}")
    for held in left.held_back:
        guard.output.warn(f"held back: {held.path}: {held.why}")
    if left.snapshot is not None:
        guard.output.warn(f"safe in snapshot {left.snapshot.id}: {left.snapshot.recover}")
        for skipped in () if left.snapshot.whole else left.snapshot.skipped:
            guard.output.warn(f"not in it: {skipped}")


def _iterate_in_registry(guard: Invocation, order: RunOrder) -> CheckReport:
    if order.task is None:
        return _iterate(guard, order)
    kind = order.terms.agent or agent_of_command(order.argv) or "agent"
    entry = enter_registry(
        guard,
        order.task,
        order.agent_id,
        kind,
        agent_type=order.agent_type,
        in_loop=order.in_loop,
    )
    try:
        report = _iterate(guard, order, entry)
    except StoppedByPerson as stop:
        entry.record_stop(stop.report.detail or stop.report.reason)
        raise
    except KeyboardInterrupt:
        entry.record_stop("interrupted while it judged the iteration")
        raise
    except (GuardError, OSError) as error:
        entry.record_failure(str(error))
        raise
    record_or_keep(entry, report)
    return report


def finish_open_iteration(
    guard: Invocation, terms: CheckTerms, watched: bool = False
) -> CheckReport | None:
    """Judge an iteration that was left open; None if there is none. `watched` says that this guard was there all the time."""
    run = guard.store.view(RUN, guard.worktree_key)
    opened = run.open_iteration if run is not None else None
    if opened is None or opened.supervisor is None:
        return None
    refuse_beside_another(guard, run)
    iteration = current_iteration(guard, CheckTerms())
    guard.output.warn(f"iteration {opened.number} was left unfinished; guard judges it first")
    agent, session = opened.agent or terms.agent, opened.session or terms.session
    terms = replace(terms, baseline=None, agent=agent, session=session)
    feeds: Feeds = "always" if last_check(guard, iteration) else "with_work"
    seen = Observation.afterwards(guard, iteration, alone=not watched)
    return judge(guard, iteration, terms, seen, feeds)


def is_still_open(guard: Invocation, report: CheckReport) -> bool:
    run = guard.store.view(RUN, guard.worktree_key)
    return run is not None and run.find_open(report.run, report.iteration) is not None


def _ask_breaker(guard: Invocation) -> None:
    holder = find_process(os.getpid())
    found = breaker.allow(
        guard.writable_store, breaker.BreakerKey.of(guard), holder=holder, heir=True
    )
    if found.allowed:
        return
    why = breaker.load(guard.store, guard.worktree_key).reason or found.reason
    when = f"; a trial is allowed from {found.retry_at:%Y-%m-%d %H:%M:%S} UTC on"
    raise BreakerOpen(
        f"the breaker is open: {why}{when if found.retry_at else ''}",
        "`guard breaker show` says more, `guard breaker reset` closes it",
    )


def _iterate(guard: Invocation, order: RunOrder, entry: RegistryEntry | None = None) -> CheckReport:
    agent = (
        order.terms.agent
        or guard.config.settings.completion_check.agent
        or agent_of_command(order.argv)
    )
    folder = current_folder()
    supervisor = find_process(os.getpid())
    begin(guard, supervisor, order.command or order.argv, order.new_run)
    iteration = current_iteration(guard, order.terms)
    guard.store.survey()
    marks = {MARK: iteration.mark, **guard.log_keeper.supervisor_variable(supervisor)}
    started = False
    # Without its server the run goes on, once it has begun.
    goes_on = guard.store.journal(guard.worktree_key)
    with save_before_abort(guard, whatever=lambda: started), goes_on, ExitStack() as held:
        output_files = KeptOutput.of(guard, iteration)
        kept = held.enter_context(output_files.open())
        prompt = order.prompt if order.prompt is not None else order.shown_prompt
        if prompt is not None:
            output_files.keep_prompt(prompt)
        child = AgentProcess(
            limit_cost(order.argv, order.allowance.cost_usd if order.allowance else None),
            environ={
                **guard.environ,
                **guard.run_environment(),
                **(entry.identity if entry else {}),
                **marks,
            },
            cwd=folder,
            reader=make_reader(agent),
            kept=kept,
            to_stderr=order.to_stderr,
            show=order.show,
            stdin=order.prompt,
        )
        try:
            held.enter_context(child)
        except WrongUsage as error:
            record_not_started(guard, iteration, error.message)
            raise
        started = True
        iteration = record_session(guard, iteration, agent, order.terms.session, child.process)
        if entry is not None:
            entry.record_process(child.process)
        watch = AgentWatch(guard, iteration, order, agent, child)
        ended = child.wait(watch.look)
        output = child.classify(ended.code, guard.clock.now().astimezone())
        terms = replace(order.terms, agent=agent, session=watch.close(output))
        held.close()
        guard.store.compare_survey()
        guard.store.refuse_changed_log()
        try:
            return _judge(watch, terms, output, ended)
        finally:
            child.flush()


def _judge(
    watch: AgentWatch, terms: CheckTerms, output: Classification, ended: ChildExit
) -> CheckReport:
    guard, iteration = watch.guard, watch.iteration
    seen = Observation(
        watch.processes, output, agent_seconds=watch.seconds, hooks_loop=watch.hooks_loop
    )
    if ended.stopped_by is not None:
        name = signal.Signals(ended.stopped_by).name
        raise StoppedByPerson(stop(guard, iteration, terms, seen, name))
    return judge(guard, iteration, terms, replace(seen, ended_by_guard=watch.ended), "always")
