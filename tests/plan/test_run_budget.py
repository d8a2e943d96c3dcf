"""`guard plan run` with a budget: no agent is started any more, what is there is audited and lands, the rest waits."""

from pathlib import Path

import pytest

import guard
from tests.streams import init, jsonl, result, says
from tests.support import TIME_LIMIT, run, write
from tests.support.plan_runs import WORK, PlanRunStory


def test_a_plan_ends_at_its_budget_and_goes_on_with_another(repository: Path) -> None:
    story = PlanRunStory(repository, "T1: one", "T2: two", "T3: three")
    used = {"claude-opus": {"inputTokens": 1000, "costUSD": 0.25}}
    path = write(
        story.scripts / "stream", jsonl(init(), result(model_usage_since_last_result=used))
    )
    story.does("work", f"{WORK}cat {path}\n")
    found = story.report("--agents", "1", "--max-cost", "0.40", code=12)
    assert (found["ended"], found["landed"]) == ("max_cost", 2)
    assert found["usage"]["cost_usd"] == pytest.approx(0.5)
    assert found["budget"]["detail"] == (
        "0.50 USD of 0.40 USD (billed); 2 iterations with new work: 0.50 USD"
    )
    assert run("breaker", "show", "--format", "json").json["streak"] == 0
    again = story.run("--agents", "1", "--max-cost", "0.40")
    assert again.code == 0, again.err
    assert "used: 0.25 USD (billed)" in again.out


def test_an_agent_of_a_plan_that_uses_up_what_is_left_is_ended(repository: Path) -> None:
    story = PlanRunStory(repository, "T1: one", "T2: two")
    path = write(story.scripts / "stream", jsonl(init(), says("I work.")))
    story.does("work", f"{WORK}cat {path}\n")
    story.does("T2.work.1", f"touch part.txt\ncat {path}\nexec sleep 600\n")
    env = {"GUARD_RUN__BUDGET_GRACE_SECONDS": "0.5"}
    done = story.run("--agents", "1", "--max-tokens", "20", "--format", "json", env=env)
    assert (done.code, done.json["ended"], done.json["landed"]) == (12, "max_tokens", 1)
    assert done.json["usage"]["input_tokens"] == 20, done.err
    assert "task T2: developer-3 ended: working, budget" in done.err
    assert run("breaker", "show", "--plan", "--format", "json").json["streak"] == 0


def told(story: PlanRunStory, usd: float) -> Path:
    used = {"claude-opus": {"inputTokens": 1000, "costUSD": usd}}
    return write(
        story.scripts / f"stream-{usd}", jsonl(init(), result(model_usage_since_last_result=used))
    )


def test_a_task_that_has_used_up_its_budget_is_left_and_the_others_go_on(repository: Path) -> None:
    story = PlanRunStory(repository, "T1: one", "T2: two", "T3: three (depends: T1)")
    more = 'echo more >> "$GUARD_TASK.txt"; git add -A; git commit -q -m "feat: more"\n'
    story.does("work", f"{more}cat {told(story, 0.25)}\n")
    audit = 'test "$GUARD_TASK" != T1'
    words = ("--agents", "1", "--max-cost-per-task", "0.40")
    found = story.report(*words, audit=audit, code=12)
    assert found["ended"] == "max_cost_per_task"
    assert "task T1: its agents have cost 0.50 USD" in found["detail"]
    assert [task["cost_usd"] for task in found["tasks"]] == [0.5, 0.25, None]
    assert (story.sessions("T1"), story.landed()) == (2, ["T2"])
    assert found["needs_you"] == []
    again = story.report(*words, audit="true", code=12)
    assert (again["ended"], again["sessions"]) == ("max_cost_per_task", 0), "it is remembered"
    env = {"GUARD_PLAN__MAX_COST_PER_TASK": "1"}
    assert story.run("--agents", "1", env=env).code == 0
    assert story.landed() == ["T2", "T1", "T3"]


def test_a_task_over_its_budget_still_lands_if_a_command_audits_it(repository: Path) -> None:
    story = PlanRunStory(repository, "T1: one")
    story.does("work", f"{WORK}cat {told(story, 0.5)}\n")
    assert story.report("--max-cost-per-task", "0.40")["ended"] == "complete"


def test_an_agent_at_work_is_ended_at_what_is_left_for_its_task(repository: Path) -> None:
    story = PlanRunStory(repository, "T1: one")
    path = write(story.scripts / "stream", jsonl(init(), says("I work.")))
    story.does("work", f"touch part.txt\ncat {path}\nexec sleep {TIME_LIMIT}\n")
    env = {
        "GUARD_RUN__BUDGET_GRACE_SECONDS": "0.5",
        "GUARD_COST__PRICES": '{"some-model": {"input": 100000, "output": 100000}}',
    }
    done = story.run("--max-cost-per-task", "0.1", "--format", "json", env=env)
    assert (done.code, done.json["ended"]) == (12, "max_cost_per_task"), done.err
    assert story.sessions("T1") == 1


def test_a_runner_in_python_has_the_same_budgets(repository: Path) -> None:
    story = PlanRunStory(repository, "T1: one", "T2: two")
    story.does("work", f"{WORK}cat {told(story, 0.5)}\n")
    command = [str(story.agent), str(story.scripts)]
    report = guard.plan_run(command, agents=1, audit="true", max_cost=0.4)
    assert (report.ended, story.landed()) == ("max_cost", ["T1"])
