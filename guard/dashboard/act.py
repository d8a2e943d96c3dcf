"""What a person can do from the dashboard: trip and reset a breaker, stop a run, answer a question."""

import signal
from pathlib import Path

from guard import breaker
from guard.context.ids import new_id
from guard.context.invalid_fields import refuse_invalid_fields
from guard.context.invocation import Invocation
from guard.context.lease import is_here, is_running
from guard.coordinator.record import record, reject_invalid
from guard.core.check.events import QuestionAnswered
from guard.core.check.last_check import LAST_CHECK
from guard.core.coordinator import decide_agents
from guard.core.iteration.facts import Process
from guard.core.iteration.run import RUN
from guard.dashboard.workspace import ShownWorkspace
from guard.errors import Refused, WrongUsage
from guard.landing import settle_landing
from guard.rollback import settle_unrecorded
from guard.system.process_table import send_signal

REASON = "dashboard"
"""Why a breaker was tripped or reset, in the log."""


def change_breaker(shown: ShownWorkspace, what: str, worktree: str) -> None:
    """Trip or reset the breaker of a work tree of this machine, or reset the one of the plan."""
    guard, places = shown.guard, shown.locate()
    of_plan = worktree == places.plan
    if what == "reset":
        breaker.reset(guard if of_plan else _at(shown, worktree), REASON, of_plan=of_plan)
    elif what == "trip" and not of_plan:
        breaker.trip(_at(shown, worktree), REASON)
    else:
        raise WrongUsage("a breaker can be tripped or reset; that of a plan can be reset")


def _at(shown: ShownWorkspace, worktree: str) -> Invocation:
    guard, places = shown.guard, shown.locate()
    if worktree == places.here:
        return guard
    path = places.paths.get(worktree)
    if path is None:
        raise Refused("this machine does not have that work tree", "act where it is")
    return Invocation(
        repo=Path(path),
        workspace_option=guard.workspace.name,
        config_file=guard.config_file,
        clock=guard.clock,
        output=guard.output,
        environ=guard.environ,
    )


def running(shown: ShownWorkspace) -> dict[str, Process]:
    """Return the runs with an iteration under way on this machine, each with the guard that watches over it."""
    found: dict[str, Process] = {}
    for view in shown.guard.store.views(RUN).values():
        opened = view.open_iteration
        watch = opened.supervisor if opened is not None else None
        if watch is not None and is_here(watch) and is_running(watch, shown.guard.store):
            found[view.run] = watch
    return found


def stop_run(shown: ShownWorkspace, run: str) -> None:
    """Have the guard that watches over the run end its agent, as a signal of the user does; the work is kept."""
    watch = running(shown).get(run)
    if watch is None:
        raise Refused(
            f"run {run} has no iteration under way on this machine",
            "stop it where it runs; between two iterations, trip the breaker",
        )
    if not send_signal(watch.pid, watch.start, signal.SIGTERM):
        raise Refused(f"the guard of run {run} (pid {watch.pid}) has ended, or is another user's")


def answer_question(shown: ShownWorkspace, question: str, text: str) -> None:
    """Answer an open question of the plan."""
    if not text.strip():
        raise WrongUsage("the answer is empty")
    guard = shown.guard
    settle_unrecorded(guard)
    settle_landing(guard)
    request = decide_agents.answer_question(question_id=question, response=text.strip())
    with reject_invalid():
        record(guard, request)


def answer_iteration(shown: ShownWorkspace, run: str, number: int, text: str) -> None:
    """Answer the question that an iteration of this machine ended with; the loop's next prompt has the answer."""
    answer = text.strip()
    if not answer:
        raise WrongUsage("the answer is empty")
    asked = shown.find_question(run, number)
    if asked is None:
        raise Refused("the question is not open any more", "load the page again")
    guard, (facts, question) = shown.guard, asked
    with refuse_invalid_fields("the answer is too long"), guard.writable_store.change() as change:
        last = change.view(LAST_CHECK, facts.worktree)
        if last is None or (last.run, last.iteration) != (run, number):
            raise Refused("another iteration has been judged since", "load the page again")
        change.append(
            QuestionAnswered(
                at=guard.clock.now(),
                id=new_id(),
                run=run,
                iteration=number,
                worktree=facts.worktree,
                question=question,
                answer=answer,
            )
        )
