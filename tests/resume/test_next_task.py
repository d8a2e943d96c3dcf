"""The task that a prompt names: claimed for the agent, or only shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard.activity.assess import assess_activity
from guard.activity.known_agents import KnownAgents, find_agent
from guard.agents.registry import AgentUpdate
from guard.agents.update import update_agent
from guard.cli import guard as command
from guard.coordinator.plan import load_file
from guard.coordinator.record import find_state, record
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.coordinator.decide_agents import dispatch_agent, record_checkpoint
from guard.core.coordinator.decide_tasks import dispatch_developer, fail_audit, submit_for_audit
from guard.core.coordinator.state import Coordinator
from guard.resume.monitor import resume_due
from guard.resume.send import ResumeRequest
from tests.resume.conftest import Watcher
from tests.support import write

pytestmark = pytest.mark.usefixtures("inbox")

TASKS = [{"id": "P1", "title": "Read the plan"}, {"id": "P2", "title": "Write the rest"}]


@pytest.fixture
def planned(watcher: Watcher) -> Watcher:
    file = watcher.root / "plan.json"
    write(file, json.dumps({"tasks": TASKS}))
    load_file(watcher.guard(), file, None)
    return watcher


def state(watcher: Watcher) -> Coordinator:
    found = find_state(watcher.guard())
    assert found is not None
    return found


def registrations(watcher: Watcher) -> set[tuple[str, str]]:
    views = watcher.guard().store.views(AGENT_REGISTRY)
    return {(task, one.agent_id) for task, view in views.items() for one in view.agents}


def outcomes(watcher: Watcher) -> list[tuple[str, str, str]]:
    found = resume_due(watcher.guard(), ResumeRequest(send=True))
    return [(one.task_id, one.agent_id, one.outcome) for one in found]


@pytest.mark.parametrize(
    ("wish", "setting"), [({"may_claim": False}, ""), ({}, "auto_claim_tasks = false")]
)
def test_a_task_that_may_not_be_claimed_is_shown(
    planned: Watcher, wish: dict[str, Any], setting: str
) -> None:
    write(planned.root / "guard.toml", f"[resume]\n{setting}\n")
    planned.spawn()
    report = planned.later(hours=2).send(**wish)
    assert (report.outcome, report.claimed) == ("sent", False)
    assert report.next_task is not None
    assert report.next_task.id == "P1"
    assert "not yours yet: `guard plan dispatch P1 --agent a1`" in (report.prompt or "")
    assert state(planned).active_developers == {}


def test_a_claimed_task_is_the_agents_and_makes_no_second_one(planned: Watcher) -> None:
    planned.spawn()
    later = planned.later(hours=2)
    report = later.send()
    assert (report.outcome, report.claimed) == ("sent", True)
    assert "It is yours" in (report.prompt or "")
    assert [one.developer_id for one in state(planned).in_progress_tasks] == ["a1"]
    assert registrations(planned) == {("T1", "a1")}
    assert not assess_activity(later.guard(), "a1").is_active


def test_it_keeps_its_task_and_the_budget_is_one(planned: Watcher, inbox: Path) -> None:
    planned.spawn()
    found = [outcomes(planned.later(hours=hours)) for hours in range(2, 8)]
    assert found == [[("T1", "a1", "sent")]] * 2 + [[("T1", "a1", "spent")]] * 4
    assert len(list(inbox.iterdir())) == 2
    assert [one.task_id for one in state(planned).in_progress_tasks] == ["P1"]


def test_a_prompt_that_was_only_shown_does_not_make_it_active(planned: Watcher) -> None:
    planned.spawn()
    later = planned.later(hours=2)
    assert later.send(send=False).claimed
    assert later.send().outcome == "sent"


def test_the_task_in_which_it_is_registered_comes_first(planned: Watcher) -> None:
    planned.spawn(task_id="P2")
    later = planned.later(hours=2)
    later.send(send=False)
    assert [one.task_id for one in state(planned).in_progress_tasks] == ["P2"]
    assert later.send().outcome == "sent"


def test_nothing_is_claimed_for_one_that_has_ended(planned: Watcher) -> None:
    planned.spawn()
    update_agent(planned.guard(), AgentUpdate("T1", "a1", "completed", "Done."))
    assert not planned.later(hours=2).send(send=False, check_activity=False).claimed
    assert state(planned).active_developers == {}


def test_an_auditor_is_given_no_task_to_develop(planned: Watcher) -> None:
    guard = planned.guard()
    record(guard, dispatch_developer(task_id="P1", agent_id="dev"))
    record(guard, submit_for_audit(task_id="P1", agent_id="dev"))
    record(guard, dispatch_agent(task_id="P1", agent_id="a1"))
    report = planned.later(hours=2).send()
    assert (report.outcome, report.next_task) == ("sent", None)


def test_work_at_the_claimed_task_is_seen(planned: Watcher) -> None:
    planned.spawn()
    later = planned.later(hours=2)
    assert outcomes(later) == [("T1", "a1", "sent")]
    busy = later.later(minutes=70)
    record(busy.guard(), record_checkpoint(agent_id="a1", checkpoint="The parser reads headers."))
    assert assess_activity(busy.guard(), "a1").is_active
    assert outcomes(busy.later(minutes=10)) == []


def test_a_checkpoint_that_only_acknowledges_is_none(planned: Watcher) -> None:
    planned.spawn()
    later = planned.later(hours=2)
    later.send()
    record(
        later.later(minutes=70).guard(), record_checkpoint(agent_id="a1", checkpoint="OK, resuming")
    )
    assert not assess_activity(later.later(minutes=71).guard(), "a1").is_active


def test_a_tick_sees_that_it_is_at_work(planned: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    planned.spawn()
    later = planned.later(hours=2)
    later.send()
    update = AgentUpdate("T1", "a1", "working", "It reads headers.", progress=5)
    update_agent(later.later(minutes=14).guard(), update)
    monkeypatch.setenv("GUARD_NOW", later.later(minutes=16).now.isoformat())
    words = ["--repo", str(planned.root), "--workspace", str(planned.workspace)]
    command([*words, "plan", "tick", "--no-fill"], standalone_mode=False)
    active = state(planned).active_agents["a1"]
    assert active.timeout_at > later.later(minutes=30).now


def test_an_audit_that_fails_makes_no_second_one(planned: Watcher) -> None:
    planned.spawn()
    later = planned.later(hours=2)
    later.send()
    guard = later.guard()
    record(guard, submit_for_audit(task_id="P1", agent_id="a1"))
    record(guard, dispatch_agent(task_id="P1", agent_id="aud"))
    record(guard, fail_audit(task_id="P1", agent_id="aud", reason="It reads no headers."))
    assert registrations(planned) == {("T1", "a1"), ("P1", "aud")}


def test_of_two_registrations_the_one_at_work_is_meant(planned: Watcher) -> None:
    planned.spawn()
    record(planned.guard(), dispatch_developer(task_id="P1", agent_id="a1"))
    assert planned.later(hours=2).send(send=False).task_id == "P1"


def test_who_awaits_an_audit_is_left_alone_and_prompted_for_its_next_task_only(
    planned: Watcher,
) -> None:
    record(planned.guard(), dispatch_developer(task_id="P1", agent_id="a1"))
    record(planned.guard(), submit_for_audit(task_id="P1", agent_id="a1"))
    assert outcomes(planned.later(hours=2)) == []
    record(planned.guard(), dispatch_developer(task_id="P2", agent_id="a1"))
    assert outcomes(planned.later(hours=2)) == [("P2", "a1", "sent")]


def test_a_task_that_awaits_its_audit_takes_no_work_tree(planned: Watcher) -> None:
    record(planned.guard(), dispatch_developer(task_id="P1", agent_id="a1"))
    record(planned.guard(), submit_for_audit(task_id="P1", agent_id="a1"))
    record(planned.guard(), dispatch_developer(task_id="P2", agent_id="a1"))
    known = KnownAgents(planned.guard())
    agent = find_agent(planned.guard(), "a1", "P2")
    assert known.is_only_agent(agent)
    record(planned.guard(), dispatch_agent(task_id="P1", agent_id="aud-1"))
    assert not KnownAgents(planned.guard()).is_only_agent(agent)
