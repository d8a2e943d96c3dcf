"""`guard plan` and `guard event`: what is told, recorded, refused and recovered."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from guard.agents import registry as agents
from guard.cli import guard
from guard.context.invocation import Invocation
from guard.coordinator.plan import claim_task, preview_task
from guard.coordinator.record import require_state
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.coordinator.state import COORDINATOR
from guard.errors import GuardError
from guard.schemas.validate import validator
from guard.store import Store
from tests.support import commit, run, write
from tests.support.events import MOMENT

PLAN = {
    "tasks": [
        {"id": "1.1", "title": "Read the plan"},
        {"id": "1.2", "title": "Write the migration", "depends": ["1.1"]},
        {"id": "2", "title": "Something else", "priority": 9},
    ],
    "supporting_agents": [
        {
            "agent_id": "db-expert",
            "agent_type": "domain_expert",
            "name": "Database Expert",
            "keyword_triggers": ["migration"],
            "request_types": ["task"],
        }
    ],
}


@pytest.fixture
def project(repository: Path, kept_in: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GUARD_WORKSPACE", kept_in)
    commit(repository, "first.txt")
    write(repository / "plan.json", json.dumps(PLAN))
    return repository


def call(*words: str, at: str = "2026-01-31T12:00:00Z") -> tuple[int, str]:
    """A call in this process: its exit code, and what it printed or why it refused."""
    done = CliRunner(env={"GUARD_NOW": at}).invoke(guard, words)
    if isinstance(done.exception, GuardError):
        return done.exception.exit_code, done.exception.message
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout


def told(kind: str, *words: str, at: str = "2026-01-31T12:00:00Z") -> dict[str, Any]:
    code, out = call(*words, "--format", "json", at=at)
    assert code == 0, out
    document: dict[str, Any] = json.loads(out)
    assert list(validator(kind).iter_errors(document)) == []
    return document


def events(*words: str, at: str = "2026-01-31T12:00:00Z") -> list[str]:
    return [one["type"] for one in told("plan-change", *words, at=at)["events"]]


def state() -> dict[str, Any]:
    return told("coordinator", "plan", "show")


def types(store: Store) -> list[str]:
    return [entry.event.type for entry in store.entries()]


def test_a_plan_from_its_file_to_its_end(project: Path) -> None:
    assert call("plan", "show") == (1, "no plan is loaded")
    assert events("plan", "load", "plan.json") == ["plan_loaded"]
    nearest = told("plan-next", "plan", "next")
    assert (nearest["task"]["id"], nearest["task"]["name"]) == ("1-1", "1.1")
    for name in ("1.1", "1-2", "2"):
        assert events("plan", "dispatch", name, "--agent", f"dev-{name[0]}") == [
            "developer_dispatched"
        ]
        head = commit(project, f"{name}.py")
        assert events("plan", "ready", name) == ["developer_ready_for_audit"]
        done = events(
            "plan",
            "audit",
            name,
            "--agent",
            "aud",
            "--verdict",
            "pass",
            "--message",
            "green",
            "--no-commits",
        )
        assert done[:2] == ["task_complete", "task_commit_recorded"]
        kept = state()["task_commits"][name.replace(".", "-")]
        assert (kept["commit_sha"], kept["branch"]) == (head, "main")
        assert kept["files_modified"] == [f"{name}.py"]
    assert done[2:] == ["plan_complete"]
    assert told("plan-next", "plan", "next")["task"] is None
    assert call("plan", "next")[1] == "the plan is complete\n"
    assert call("plan", "show")[1].startswith("plan.json: 3 of 3 tasks complete; the plan is")


def test_a_dispatch_registers_the_agent_and_a_pass_ends_it(project: Path) -> None:
    call("plan", "load", "plan.json")
    call("plan", "dispatch", "1.1", "--agent", "dev")
    store = Invocation().store

    def registered() -> tuple[str, int]:
        registry = store.view(AGENT_REGISTRY, "1-1")
        assert registry is not None
        agent = registry.agent("dev")
        assert agent is not None
        assert agent.agent_type == "developer"
        return agent.status, agent.incarnation

    assert registered() == ("deployed", 1)
    (spawn,) = [e for e in store.entries() if e.event.type == "developer_dispatched"]
    assert spawn.more > 0, "recorded in one with the registries"
    call("plan", "ready", "1.1")
    assert registered() == ("deployed", 1)
    call(
        "plan",
        "audit",
        "1.1",
        "--agent",
        "aud",
        "--verdict",
        "pass",
        "--message",
        "green",
        "--no-commits",
    )
    assert registered() == ("completed", 1)
    assert store.verify().ok


def test_the_same_id_again_does_nothing_and_with_other_content_is_refused(project: Path) -> None:
    call("plan", "load", "plan.json")
    words = ("plan", "dispatch", "1.1", "--agent", "dev", "--event-id", "first")
    assert events(*words) == ["developer_dispatched"]
    before = state()
    again = told("plan-change", *words, at="2026-01-31T13:00:00Z")
    assert (again["recorded_as"], again["events"]) == ("repeated", [])
    assert state() == before
    code, why = call("plan", "dispatch", "2", "--agent", "dev", "--event-id", "first")
    assert (code, why) == (1, "the id first was used for another developer_dispatched")
    assert call("plan", "ready", "1.1", "--event-id", "first")[0] == 1
    assert state() == before


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("dispatch", "1.2", "--agent", "x"), 1, "task 1.2 waits for 1.1"),
        (("dispatch", "9", "--agent", "x"), 1, "the plan has no task 9"),
        (
            (
                "audit",
                "2",
                "--agent",
                "x",
                "--verdict",
                "pass",
                "--message",
                "green",
                "--no-commits",
            ),
            1,
            "task 2 is available: no audit is pending",
        ),
        (("load", "nowhere.md"), 2, "nowhere.md cannot be read: No such file or directory"),
        (("load", "first.txt"), 1, None),
        (("dispatch", "2", "--agent", "../x"), 2, None),
        (("checkpoint", "--agent", "x", "y"), 1, "agent x is not at work"),
        (("answer", "q", "y"), 1, "no question q is open"),
        (("ask", " "), 1, "the question is empty"),
        (("ask", "x" * 65537), 2, None),
        (("ask", "no \udcff UTF-8"), 2, None),
        (("checkpoint", "--agent", "x", "y" * 513), 2, None),
        (("audit", "2", "--agent", "x", "--verdict", "fail", "--message", "y" * 65537), 2, None),
        (("delegate", "db-expert", "--from", "x", "y" * 513), 2, None),
        (("support", "run", "failed", "--message", "y" * 513), 2, None),
        (("lost", "--agent", "x", "--reason", "y" * 513), 2, None),
        (("remediate", "--agent", "x", "--issue", "no \udcff UTF-8"), 2, None),
        (("usage",), 4, "coordinator.usage_command is not set"),
        (
            ("expand", "2", "--agent", "x", "--confidence", "LOW"),
            2,
            "--confidence LOW needs a question",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused(
    project: Path, words: tuple[str, ...], code: int, why: str | None
) -> None:
    call("plan", "load", "plan.json")
    before = state()
    found = call("plan", *words)
    assert found[0] == code
    assert why is None or found[1] == why
    assert state() == before


def test_an_unfinished_audit_an_analyst_and_help_by_their_commands(project: Path) -> None:
    call("plan", "load", "plan.json")
    assert events("plan", "assess", "--expand", "1.1") == ["task_quality_assessment"]
    assert events("plan", "analyst", "1.1", "--agent", "ba") == ["business_analyst_dispatched"]
    words = ("plan", "expand", "1.1", "--agent", "ba")
    asked = told("plan-change", *words, "--confidence", "LOW", "--question", "What for?")
    (question,) = [one["question_id"] for one in asked["events"]]
    assert asked["held_up_by"] == "open_questions"
    assert "business_analyst_dispatched" in events("plan", "answer", question, "For tests")
    write(project / "spec.json", '{"steps": [1, 2]}')
    assert events(*words, "--specification", "spec.json") == ["task_expanded"]
    assert state()["expanded_tasks"] == {"1-1": {"steps": [1, 2]}}
    call("plan", "dispatch", "1.1", "--agent", "dev")
    delegated = told("plan-change", "plan", "delegate", "db-expert", "--from", "dev", "help")
    run_id = delegated["events"][0]["run_id"]
    assert events("plan", "support", run_id, "done", "--message", "use an index") == [
        "supporting_agent_complete"
    ]
    call("plan", "checkpoint", "--agent", "dev", "half")
    call("plan", "ready", "1.1")
    assert events("plan", "dispatch", "1.1", "--agent", "aud", "--auditor") == ["agent_dispatched"]
    verdict = ("plan", "audit", "1.1", "--agent", "aud", "--verdict")
    assert events(*verdict, "blocked", "--message", "red") == [
        "auditor_blocked",
        "infrastructure_blocked",
    ]
    assert events("plan", "remediate", "--agent", "fix") == ["remediation_dispatched"]
    assert events("plan", "done", "--agent", "fix") == ["agent_complete"]
    assert events("plan", "health", "--agent", "h", "--verdict", "unhealthy") == [
        "health_audit_fail"
    ]
    assert events("plan", "health", "--agent", "h", "--verdict", "healthy") == [
        "health_audit_pass",
        "infrastructure_restored",
    ]
    assert events(*verdict, "fail", "--message", "a test fails") == [
        "auditor_fail",
        "failure_pattern_recorded",
    ]
    assert state()["in_progress_tasks"][0]["last_checkpoint"] == "half"


def test_what_a_tick_sends_out_is_in_the_outbox_until_it_is_taken(project: Path) -> None:
    call("plan", "load", "plan.json")
    assert events("plan", "tick") == ["developer_dispatched"] * 2
    items = told("plan-outbox", "plan", "outbox")["items"]
    assert [(one["kind"], one["task_id"]) for one in items] == [("start", "1-1"), ("start", "2")]
    one = told("plan-outbox", "plan", "outbox", "--take", "--agent", items[0]["agent_id"])
    assert len(one["items"]) == 1
    assert len(told("plan-outbox", "plan", "outbox", "--take")["items"]) == 1
    assert call("plan", "outbox")[1] == "the outbox is empty\n"
    later = "2026-01-31T12:16:00Z"
    assert events("plan", "tick", "--no-fill", at=later) == ["agent_timeout"] * 2
    registry = Invocation().store.view(AGENT_REGISTRY, "2")
    assert registry is not None
    assert [agent.status for agent in registry.agents] == ["failed"]


def test_items_are_acknowledged_one_by_one_and_name_the_life_of_their_agent(project: Path) -> None:
    call("plan", "load", "plan.json")
    call("plan", "tick")
    first, second = told("plan-outbox", "plan", "outbox")["items"]
    assert (first["incarnation"], second["incarnation"]) == (1, 1)
    taken = told("plan-outbox", "plan", "outbox", "--ack", second["item_id"])
    assert (taken["taken"], taken["items"]) == (True, [second])
    assert told("plan-outbox", "plan", "outbox")["items"] == [first]
    again = told("plan-outbox", "plan", "outbox", "--ack", second["item_id"])
    assert (again["items"], told("plan-outbox", "plan", "outbox")["items"]) == ([], [first])
    code, why = call("plan", "outbox", "--ack", "item-9")
    assert (code, why) == (1, "the outbox does not have item-9")
    call("plan", "lost", "--agent", first["agent_id"])
    assert told("plan-outbox", "plan", "outbox")["items"] == [], "nothing is left to start"


def test_an_agent_that_is_provably_at_work_gets_more_time(project: Path) -> None:
    call("plan", "load", "plan.json")
    call("plan", "dispatch", "2", "--agent", "dev")
    words = ("agent", "update", "--task", "2", "--agent", "dev", "--status", "working")
    call(*words, "--message", "wrote the parser", at="2026-01-31T12:14:00Z")
    assert events("plan", "tick", "--no-fill", at="2026-01-31T12:14:10Z") == ["agent_started"]
    call(*words, "--message", "wrote the printer", at="2026-01-31T12:28:00Z")
    later = "2026-01-31T12:29:30Z"
    assert events("plan", "tick", "--no-fill", at=later) == ["agent_timeout_extended"]


@pytest.mark.files
@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_the_state_comes_back_from_the_log_and_that_is_logged(project: Path, harm: str) -> None:
    call("plan", "load", "plan.json")
    call("plan", "dispatch", "2", "--agent", "dev")
    before, path = state(), Invocation().workspace.path / COORDINATOR.file
    assert "no event came after it" in call("plan", "show", "--explain")[1]
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b'"dev"', b'"god"', 1))
    assert state() == before
    assert "folded from the log alone, 2 events" in call("plan", "show", "--explain")[1]
    assert events("plan", "checkpoint", "--agent", "dev", "half") == ["developer_checkpoint"]
    logged = [entry.event for entry in Invocation().store.entries()]
    needed, again = (
        one for one in logged if one.type in ("state_recovery_needed", "state_reconstructed")
    )
    assert needed.model_dump()["reason"] == f"state_file_{harm}"
    assert again.model_dump()["events_replayed"] == 2
    assert path.is_file()
    call("plan", "checkpoint", "--agent", "dev", "more")
    assert types(Invocation().store).count("state_reconstructed") == 1


@pytest.mark.files
@pytest.mark.parametrize("name", ["state.json.tmp", ".state.json.tmp"])
def test_half_of_a_state_file_is_removed_and_that_is_logged(project: Path, name: str) -> None:
    call("plan", "load", "plan.json")
    half = Invocation().workspace.path / name
    half.write_text("{")
    assert state()["plan_file"] == "plan.json"
    assert half.exists(), "reading changes nothing"
    assert events("plan", "dispatch", "2", "--agent", "dev") == ["developer_dispatched"]
    assert not half.exists()
    logged = [entry.event for entry in Invocation().store.entries()]
    (needed,) = (event for event in logged if event.type == "state_recovery_needed")
    assert needed.model_dump()["reason"] == "temp_file_exists"
    assert "state_reconstructed" not in types(Invocation().store)


def test_a_checkpoint_is_asked_of_all_developers_and_their_reports_are_taken(project: Path) -> None:
    call("plan", "load", "plan.json")
    assert call("plan", "checkpoint", "--all") == (1, "no developer is at work")
    call("plan", "dispatch", "2", "--agent", "dev")
    call("plan", "dispatch", "1.1", "--agent", "other")
    words = ("--task", "2", "--agent", "dev", "--status", "working", "--message", "the parser")
    call("agent", "update", *words)
    once = ("plan", "checkpoint", "--all", "--event-id", "c1")
    assert [kind for kind in events(*once) if kind != "agent_started"] == [
        "checkpoint_requested",
        "developer_checkpoint",
    ]
    assert told("plan-change", *once)["recorded_as"] == "repeated"
    far = {work["task_id"]: work["last_checkpoint"] for work in state()["in_progress_tasks"]}
    assert far == {"2": "the parser", "1-1": None}
    items = told("plan-outbox", "plan", "outbox")["items"]
    assert [(item["kind"], item["agent_id"]) for item in items] == [("checkpoint", "other")]
    call("plan", "checkpoint", "--agent", "other", "half")
    assert told("plan-outbox", "plan", "outbox")["items"] == []


def test_titles_of_less_than_three_words_are_too_vague_for_an_assessment_by_guard(
    project: Path,
) -> None:
    write(
        project / "vague.md",
        "- [ ] A: Write the parser\n- [ ] B: Polish\n- [ ] C: Do it (depends: A)\n",
    )
    call("plan", "load", "vague.md")
    assert events("plan", "assess", "--auto") == ["task_quality_assessment"]
    assert state()["task_quality_assessed"]
    assert list(state()["pending_expansions"]) == ["B", "C"]
    assert state()["available_tasks"] == ["A"]


def test_the_help_shows_the_verbs_that_people_use_first(project: Path) -> None:
    first, _, later = call("plan", "--help")[1].partition("For orchestrators:")
    assert "  rollback " in first
    for verb in ("load", "show", "land", "answer", "prompt"):
        assert f"  {verb} " in first
    for verb in ("dispatch", "ready", "tick", "outbox", "ingest", "usage"):
        assert f"  {verb} " in later
        assert f"  {verb} " not in first.partition("Commands:")[2]


def test_the_state_is_shown_in_words_without_names_of_events(project: Path) -> None:
    call("plan", "load", "plan.json")
    call("plan", "dispatch", "2", "--agent", "dev")
    call("plan", "ready", "2")
    call("plan", "dispatch", "2", "--agent", "aud", "--auditor")
    shown = call("plan", "show")[1]
    assert "  2  waits for its audit  dev" in shown
    assert "  2  is being audited by  aud" in shown
    assert "_" not in shown


@pytest.mark.files
def test_a_state_of_a_newer_guard_is_refused_and_left_alone(project: Path) -> None:
    from hashlib import sha256

    call("plan", "load", "plan.json")
    path = Invocation().workspace.path / COORDINATOR.file
    body = path.read_bytes().replace(b"guard/coordinator/3", b"guard/coordinator/9")
    body, _, _ = body.rpartition(b',\n  "hash"')
    path.write_bytes(b'%s,\n  "hash": "%s"\n}\n' % (body, sha256(body).hexdigest().encode()))
    newer = path.read_bytes()
    code, why = call("plan", "dispatch", "2", "--agent", "dev")
    assert code == 5
    assert "a newer guard wrote it" in why
    assert path.read_bytes() == newer


def test_usage_is_asked_of_its_command(project: Path, tmp_path: Path) -> None:
    call("plan", "load", "plan.json")
    said = write(tmp_path / "said.json", '{"utilisation": 85, "resets_at": "2026-02-01T00:00:00Z"}')
    environ = {"GUARD_COORDINATOR__USAGE_COMMAND": f"cat {said}"}
    done = run("plan", "usage", "--format", "json", env=environ)
    assert done.code == 0, done.err
    found = state()
    assert (found["session_utilisation"], found["session_remaining"]) == (85, 15)
    assert found["session_resets_at"] == "2026-02-01T00:00:00Z"
    said.write_text('{"utilisation": 185}')
    assert run("plan", "usage", env=environ).code == 1
    assert events("plan", "usage", "--utilisation", "10") == ["usage_checked"]


def test_every_request_can_be_made_as_an_event(project: Path) -> None:
    call("plan", "load", "plan.json")
    assert events("event", "developer_dispatched", "task_id=1.1", "agent_id=dev") == [
        "developer_dispatched"
    ]
    assert events("event", "developer_checkpoint", "agent_id=dev", "checkpoint=a=b c") == [
        "developer_checkpoint"
    ]
    assert events("event", "compaction", "tokens_remaining_percent=9") == ["compaction"]
    assert events("event", "session_resumed") == ["session_resumed"]
    assert events("event", "task_quality_assessment", "needs_expansion=2") == [
        "task_quality_assessment"
    ]
    words = ("event", "failure_pattern_recorded", "task_id=2", "failure_type=type_errors")
    assert events(*words, "--event-id", "f1") == ["failure_pattern_recorded"]
    assert told("plan-change", *words, "--event-id", "f1")["recorded_as"] == "repeated"
    assert state()["failure_patterns"]["type_errors"]["count"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("plan_loaded",),
        ("task_rolled_back", "task_id=2"),
        ("developer_dispatched",),
        ("developer_dispatched", "task_id=2", "agent_id=a b"),
        ("developer_dispatched", "task_id=2", "task_id=2"),
        ("developer_dispatched", "task_id=2", "agent_id=a", "mood=good"),
        ("compaction", "tokens_remaining_percent=101"),
        ("compaction", "tokens_remaining_percent"),
        ("task_expanded", "task_id=2", "agent_id=a", "specification={"),
        ("outbox_taken", "items=[1"),
        ("session_resumed", "\x1b[31m=1"),
        ("agent_seeks_guidance", "question=" + "x" * 70_000),
    ],
    ids=lambda words: " ".join(words)[:50].encode("unicode_escape").decode(),
)
def test_an_event_that_makes_no_sense_is_wrong_usage(project: Path, words: tuple[str, ...]) -> None:
    call("plan", "load", "plan.json")
    before = state()
    assert call("event", *words)[0] == 2
    assert state() == before


def test_a_task_is_previewed_and_claimed_for_an_agent(project: Path) -> None:
    assert preview_task(Invocation()) is None
    call("plan", "load", "plan.json")
    own = Invocation(repo=project)
    agent = agents.spawn(own.writable_store, MOMENT, task_id="old", agent_id="dev").agent
    found = preview_task(own)
    assert found is not None
    assert found.id == "1-1"
    assert claim_task(own, agent) == found
    assert require_state(own).active_developers == {"dev": "1-1"}
    assert claim_task(own, agent) is None, "it has something to do"
    other = agent.model_copy(update={"agent_id": "dev-2"})
    call("plan", "ask", "Which?")
    assert claim_task(own, other) is None, "while a person is asked nothing new begins"


def test_supporting_agents_are_suggested_by_the_words_of_a_task(project: Path) -> None:
    call("plan", "load", "plan.json")
    for word in ("dispatch", "ready"):
        call("plan", word, "1.1", *(["--agent", "dev"] if word == "dispatch" else []))
    call(
        "plan",
        "audit",
        "1.1",
        "--agent",
        "aud",
        "--verdict",
        "pass",
        "--message",
        "green",
        "--no-commits",
    )
    call("plan", "dispatch", "2", "--agent", "dev")
    nearest = told("plan-next", "plan", "next")
    assert (nearest["task"]["id"], nearest["suggested_agents"]) == ("1-2", ["db-expert"])


def test_a_plan_is_drawn_and_its_knobs_hold(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_COORDINATOR__PLAN_FILE", "plan.json")
    monkeypatch.setenv("GUARD_COORDINATOR__ACTIVE_DEVELOPERS", "1")
    monkeypatch.setenv("GUARD_COORDINATOR__AGENT_TIMEOUT_MINUTES", "1")
    assert events("plan", "load") == ["plan_loaded"]
    assert "1.1: Read the plan (available)" in told("plan-graph", "plan", "graph")["text"]
    assert "digraph" in told("plan-graph", "plan", "graph", "--as", "dot")["text"]
    assert events("plan", "tick") == ["developer_dispatched"]
    call("plan", "outbox", "--take")
    assert events("plan", "tick", "--no-fill", at="2026-01-31T12:01:00Z") == ["agent_timeout"]


@pytest.mark.parametrize("used", ["first-2", "first-3"])
def test_ids_that_a_script_numbers_like_guard_take_nothing_away(used: str, project: Path) -> None:
    """What follows from one request has ids of its own, that nobody else gives."""
    call("plan", "load", "plan.json")
    call("event", "session_resumed", "--event-id", used)
    call("plan", "dispatch", "1.1", "--agent", "dev")
    commit(project, "work.py")
    call("plan", "ready", "1.1")
    call(
        "plan",
        "audit",
        "1.1",
        "--agent",
        "aud",
        "--verdict",
        "pass",
        "--message",
        "green",
        "--no-commits",
        "--event-id",
        "first",
    )
    assert list(state()["task_commits"]) == ["1-1"]


@pytest.mark.parametrize(
    "words",
    [
        ("supporting_agent_out_of_scope", "run_id={run}", "suggested=a lawyer", "guidance=no"),
        ("failure_pattern_recorded", "failure_type=odd", "task_id=2", f"cause={'long ' * 90}"),
        ("task_quality_assessment", "needs_expansion=2,2"),
    ],
    ids=lambda words: words[0],
)
def test_a_retry_under_the_same_id_changes_nothing(words: tuple[str, ...], project: Path) -> None:
    call("plan", "load", "plan.json")
    call("plan", "dispatch", "1.1", "--agent", "dev")
    call("plan", "delegate", "db-expert", "--from", "dev", "--task", "1.1", "Help")
    run_id = next(iter(state()["active_supporting_agents"]))
    once = [*(word.format(run=run_id) for word in words), "--event-id", "once"]
    assert told("plan-change", "event", *once)["recorded_as"] == "recorded"
    before = state()
    assert told("plan-change", "event", *once)["recorded_as"] == "repeated"
    assert state() == before


def test_boxes_that_are_ticked_complete_nothing_and_the_user_is_told(repository: Path) -> None:
    write(repository / "plan.md", "- [x] 1.1: Done, they say\n- [ ] 2: Open (depends: 1.1)\n")
    done = run("plan", "load", "plan.md", cwd=repository)
    assert "ticked in the plan, but are complete only after an audit: 1.1" in done.err
    assert run("plan", "next", cwd=repository).out == "1.1: Done, they say\n"
    for words in (("dispatch", "1.1", "--agent", "dev"), ("ready", "1.1")):
        run("plan", *words, cwd=repository)
    run(
        "plan",
        "audit",
        "1.1",
        "--agent",
        "aud",
        "--verdict",
        "pass",
        "--message",
        "green",
        "--no-commits",
        cwd=repository,
    )
    assert "audit" not in run("plan", "load", "plan.md", cwd=repository).err


def test_a_person_reads_tasks_as_the_plan_spells_them(project: Path) -> None:
    call("plan", "load", "plan.json")
    call("plan", "dispatch", "1.1", "--agent", "dev")
    call("plan", "delegate", "db-expert", "--from", "dev", "--task", "1.1", "Design an index")
    call("plan", "ready", "1.1")
    call("plan", "audit", "1.1", "--agent", "aud", "--verdict", "fail")
    lines = call("plan", "show")[1].splitlines()
    assert lines[1] == "  1.1  at work  dev  (1 failed audit)"
    assert lines[2] == "  db-expert  helps dev  db-expert-run-2: Design an index"
    assert lines[3:5] == ["next: 2", "blocked: 1.2 waits for 1.1"]


def test_changes_and_the_outbox_are_told_in_the_spelling_of_the_plan(project: Path) -> None:
    call("plan", "load", "plan.json")
    first = call("plan", "dispatch", "1-1", "--agent", "dev")[1].splitlines()[0]
    assert first == "developer_dispatched  task 1.1  agent dev"
    call("plan", "ready", "1-1")
    call("plan", "tick")
    assert (
        call("plan", "outbox")[1].splitlines()[0]
        == "item-1  start  auditor-2  task 1.1: Read the plan"
    )
    assert told("plan-outbox", "plan", "outbox")["items"][0]["task_id"] == "1-1"
    line = call("event", "auditor_fail", "task_id=1-1", "agent_id=auditor-2", "reason=red")[1]
    assert line.startswith("auditor_fail  task 1.1  agent auditor-2\n")


@pytest.mark.parametrize(
    ("at", "age"),
    [
        ("2026-01-31T12:00:59Z", "0 min"),
        ("2026-01-31T12:59:00Z", "59 min"),
        ("2026-01-31T14:05:00Z", "2 h 5 min"),
        ("2026-02-01T13:00:00Z", "1 day 1 h"),
        ("2026-01-30T12:00:00Z", "0 min"),
    ],
)
def test_a_person_sees_for_how_long_nobody_has_emptied_the_outbox(
    at: str, age: str, project: Path
) -> None:
    call("plan", "load", "plan.json")
    first = told("plan-change", "plan", "tick")
    assert (first["outbox"], first["outbox_oldest_at"]) == (2, "2026-01-31T12:00:00Z")
    call("plan", "ask", "--agent", "developer-1", "Which?")
    call("plan", "answer", "question-3", "This", at="2026-01-31T12:00:30Z")
    shown = call("plan", "show", at=at)[1].splitlines()
    assert shown[-1] == f"3 items in the outbox, the oldest for {age}"
    call("plan", "outbox", "--take")
    assert "outbox" not in call("plan", "show")[1]
    later = told("plan-change", "plan", "checkpoint", "--agent", "developer-1", "half")
    assert (later["outbox"], later["outbox_oldest_at"]) == (0, None)
