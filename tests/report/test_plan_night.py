"""The report of a plan that was worked off: its tasks as a graph, its agents, and one item to review for each task."""

from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.core.agents.registry import AGENT_REGISTRY
from guard.report.gather import make_report
from guard.report.page import render_page
from tests.support import git, run
from tests.support.plan_runs import TARGET, PlanRunStory

ASKS = "echo 'REQUEST DIVINE CLARIFICATION: Which colour?'\n"


@pytest.mark.long
def test_a_plan_that_was_worked_off(repository: Path) -> None:
    story = PlanRunStory(
        repository, "1.1 Make the first page", "1.2 Make the second page (depends: 1.1)"
    )
    story.report(code=0)
    report = make_report(Invocation())
    plan = report.plan
    assert plan is not None
    assert (plan.total, plan.completed, plan.landed) == (2, 2, 2)
    assert [(task.task_id, task.depends) for task in plan.tasks] == [("1-1", ()), ("1-2", ("1-1",))]
    landed = git(repository, "rev-list", "--reverse", f"main..{TARGET}").split()
    assert [task.commit for task in plan.tasks] == landed
    items = [item for item in report.review if item.kind == "task"]
    assert [(item.task_id, item.oids) for item in items] == [
        ("1-1", (landed[0],)),
        ("1-2", (landed[1],)),
    ]
    assert not [item for item in report.review if item.kind == "commit"]
    assert items[1].undo == "guard rollback 1.2"
    assert items[1].diff is not None
    assert items[1].diff.files == 2  # Guard ticks the box in the plan with it.
    lanes = {(lane.task_id, lane.agent_id): lane.status for lane in report.agents}
    known = Invocation().store.views(AGENT_REGISTRY).values()
    assert lanes == {
        (agent.task_id, agent.agent_id): agent.status for each in known for agent in each.agents
    }
    page = render_page(report)
    assert page.count('<g class="n-landed">') == 2
    assert page.count("<path d=") == 1
    git(repository, "switch", "-q", TARGET)
    assert run(*items[1].undo.split()[1:]).code == 0
    after = make_report(Invocation()).plan
    assert after is not None
    assert after.landed == 1
