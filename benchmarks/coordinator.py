"""The coordinator: a long log of its events folded, and what one tick costs with a large plan."""

from collections.abc import Iterator
from functools import partial
from time import process_time

from benchmarks.history import MOMENT, append
from benchmarks.measure import Row, at_most, paired, progress, scratch
from benchmarks.replay import parse, replay
from guard.core.coordinator.decide import decide, load_plan
from guard.core.coordinator.decide_agents import crash_agent, dispatch_agent, record_checkpoint
from guard.core.coordinator.decide_tasks import dispatch_developer, fail_audit, submit_for_audit
from guard.core.coordinator.requests import DecisionTerms, Refusal, Request
from guard.core.coordinator.settings import CoordinatorSettings
from guard.core.coordinator.state import Coordinator, empty_state, fold_onto
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.coordinator.tick import tick
from guard.core.plan.model import Plan, PlanTask

EVENTS = 100_000
TASKS = 10_000
_CHECKPOINTS = 6
_TOGETHER = 10
"""More events than most commands of the coordinator record at once."""


def rows(events: int = EVENTS, tasks: int = TASKS, rounds: int = 3) -> Iterator[Row]:
    progress(f"writing a log of {events:,} events of the coordinator ...")
    with scratch() as folder:
        append(folder / "log", list(_history(events)), _TOGETHER)
        json, fold = paired(rounds, partial(parse, folder / "log"), partial(replay, folder / "log"))
    detail = f"{fold / events * 1e6:.1f} µs an event beside {json / events * 1e6:.1f} µs"
    yield at_most(f"{events:,} events of the coordinator beside json.loads", 3, fold / json, detail)
    seconds = _ticking(tasks)
    detail = f"{seconds:.2f} s of CPU time"
    yield at_most(
        f"a plan of {tasks:,} tasks loaded, ordered and ticked, beside a second",
        0.5,
        seconds,
        detail,
    )


def _history(events: int) -> Iterator[CoordinatorEvent]:
    """One developer after the other works on a task, fails its audit, and is lost."""
    plan = Plan(tasks=tuple(_task(number) for number in range(50)))
    state, loaded = _asked(empty_state(), load_plan(plan_file="plan.md", tasks=plan.tasks))
    yield from loaded
    state, cycle = _asked(state, *_cycle())
    for number in range(events):
        yield cycle[number % len(cycle)].model_copy(update={"id": f"event-{number}"})


def _cycle() -> Iterator[Request]:
    yield dispatch_developer(task_id="T0", agent_id="dev")
    for number in range(_CHECKPOINTS):
        yield record_checkpoint(agent_id="dev", checkpoint=f"step {number} is done")
    yield submit_for_audit(task_id="T0", agent_id="dev")
    yield dispatch_agent(task_id="T0", agent_id="auditor")
    yield fail_audit(task_id="T0", agent_id="auditor")
    yield crash_agent(agent_id="dev")


def _asked(state: Coordinator, *asked: Request) -> tuple[Coordinator, list[CoordinatorEvent]]:
    found: list[CoordinatorEvent] = []
    for number, request in enumerate(asked):
        decided = decide(
            state,
            request,
            DecisionTerms(
                MOMENT, f"{request.kind.events[0].__name__}-{number}", CoordinatorSettings(), None
            ),
        )
        assert not isinstance(decided, Refusal), decided
        found += decided
        state = fold_onto(state, *decided)
    return state, found


def _task(number: int) -> PlanTask:
    depends = (f"T{number // 2}",) if number % 3 == 1 else ()
    return PlanTask(id=f"T{number}", name=f"T{number}", title="One of many", depends=depends)


def _ticking(tasks: int) -> float:
    plan = Plan(tasks=tuple(_task(number) for number in range(tasks)))
    request = load_plan(plan_file="plan.md", tasks=plan.tasks)
    begun = process_time()
    state, _ = _asked(empty_state(), request)
    found = tick(
        state, DecisionTerms(MOMENT, "tick", CoordinatorSettings(), None), lambda _agent: False
    )
    assert len(found) == CoordinatorSettings().active_developers
    return process_time() - begun
