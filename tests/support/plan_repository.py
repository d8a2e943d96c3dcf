"""A plan in a real repository, with tasks that agents have done and auditors have passed."""

import os
from pathlib import Path

from guard.context.invocation import Invocation
from guard.coordinator.record import find_state, record
from guard.core.coordinator.decide import load_plan
from guard.core.coordinator.decide_agents import dispatch_agent
from guard.core.coordinator.decide_tasks import dispatch_developer, pass_audit, submit_for_audit
from guard.core.coordinator.state import Coordinator
from guard.core.plan.model import PlanTask
from tests.support import commit


class Planned:
    """Tasks A, B (needs A), C (needs B) and D, which needs nothing."""

    def __init__(self, root: Path, workspace: Path) -> None:
        self.root, self.workspace = root, workspace
        commit(root, "base.txt")
        names = {"A": (), "B": ("A",), "C": ("B",), "D": ()}
        tasks = [
            PlanTask(
                id=f"{name}-1",
                name=f"{name}.1",
                title=f"Do {name}",
                depends=tuple(f"{one}-1" for one in needs),
            )
            for name, needs in names.items()
        ]
        record(self.guard, load_plan(plan_file="plan.md", tasks=tuple(tasks)))

    @property
    def guard(self) -> Invocation:
        return Invocation(
            repo=self.root, workspace_option=os.fspath(self.workspace), environ=os.environ
        )

    @property
    def state(self) -> Coordinator:
        found = find_state(self.guard)
        assert found is not None
        return found

    def dispatch(self, task: str) -> None:
        record(self.guard, dispatch_developer(task_id=task, agent_id=f"dev-{task}"))

    def complete(self, task: str, *texts: str) -> None:
        """One commit for each text, in a file of the task's own."""
        self.dispatch(task)
        for number, text in enumerate(texts or (f"{task}\n",)):
            commit(self.root, f"{task}-{number}.txt", text)
        record(self.guard, submit_for_audit(task_id=task))
        record(self.guard, dispatch_agent(task_id=task, agent_id=f"audit-{task}"))
        record(
            self.guard, pass_audit(task_id=task, agent_id=f"audit-{task}", evidence_summary="green")
        )

    def events(self) -> list[str]:
        return [entry.event.type for entry in self.guard.store.entries()]
