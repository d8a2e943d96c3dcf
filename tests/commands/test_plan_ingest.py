"""`guard plan ingest`: what agents print, and what the coordinator makes of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard.context.invocation import Invocation
from guard.schemas.validate import validator
from tests.commands.test_plan import call
from tests.support import commit, write


def ingested(root: Path, agent: str, text: str, *words: str) -> tuple[int, dict[str, Any]]:
    write(root / "said.txt", text)
    code, out = call("plan", "ingest", "said.txt", "--agent", agent, *words, "--format", "json")
    document: dict[str, Any] = json.loads(out)
    assert list(validator("plan-ingest").iter_errors(document)) == []
    return code, document


def heard(root: Path, agent: str, text: str, *words: str) -> list[tuple[str, str]]:
    _, document = ingested(root, agent, text, *words)
    return [(one["kind"], one["outcome"]) for one in document["signals"]]


def state() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("plan", "show", "--format", "json")[1])
    return found


def test_a_developer_and_its_auditor_speak_for_themselves(planned_project: Path) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    assert heard(planned_project, "dev-1", "CHECKPOINT: the reader is there\n") == [
        ("checkpoint", "recorded")
    ]
    assert state()["in_progress_tasks"][0]["last_checkpoint"] == "the reader is there"
    assert heard(planned_project, "dev-1", "All green.\n\nREADY FOR AUDIT: 1.1\n") == [
        ("ready_for_audit", "recorded")
    ]
    assert state()["pending_audit"] == ["1-1"]
    assert heard(planned_project, "dev-1", "AUDIT PASS: 1.1\n") == [("audit_pass", "refused")]
    report = "AUDIT FAIL: 1.1\nReason: AssertionError: assert 1 == 2\n"
    assert heard(planned_project, "aud-1", report) == [("audit_fail", "recorded")]
    assert list(state()["failure_patterns"]) == ["test_failures"]
    assert heard(planned_project, "dev-1", "READY FOR AUDIT\n") == [("ready_for_audit", "recorded")]
    assert heard(planned_project, "aud-1", "AUDIT PASS: 1.1\n") == [("audit_pass", "refused")]
    commit(planned_project, "reader.py")
    report = "AUDIT PASS: 1.1\nEvidence: 12 tests pass\n"
    assert heard(planned_project, "aud-1", report) == [("audit_pass", "recorded")]
    assert state()["completed_tasks"] == ["1-1"]


QUOTED = {
    "in a fence": "```\nREADY FOR AUDIT: 1.1\n```\n",
    "in a quotation": "> READY FOR AUDIT: 1.1\n",
    "indented": "    READY FOR AUDIT: 1.1\n",
    "in a sentence": "I will say READY FOR AUDIT: 1.1 when it is done.\n",
    "in code": "Print `READY FOR AUDIT: 1.1` at the end.\n",
}


@pytest.mark.parametrize("text", QUOTED.values(), ids=QUOTED)
def test_quoted_text_is_no_signal(planned_project: Path, text: str) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    code, document = ingested(planned_project, "dev-1", text)
    assert (code, document["signals"]) == (0, [])
    assert state()["pending_audit"] == []


def test_of_an_event_stream_the_last_message_counts(planned_project: Path) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    tool = {"type": "tool_result", "content": "READY FOR AUDIT: 1.1"}
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s1", "tools": []},
        {"type": "user", "session_id": "s1", "message": {"role": "user", "content": [tool]}},
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "session_id": "s1",
            "result": "CHECKPOINT: half of it\n",
        },
    ]
    stream = "".join(json.dumps(line) + "\n" for line in lines)
    assert heard(planned_project, "dev-1", stream) == [("checkpoint", "recorded")]


def test_one_that_is_refused_does_not_stop_the_next(planned_project: Path) -> None:
    assert call("plan", "dispatch", "2", "--agent", "dev-1")[0] == 0
    text = "READY FOR AUDIT: 1.1\n\nREADY FOR AUDIT: 9.9\n\nREADY FOR AUDIT: 2\n"
    code, document = ingested(planned_project, "dev-1", text)
    assert (code, document["refused"]) == (1, 2)
    assert [one["outcome"] for one in document["signals"]] == ["refused", "refused", "recorded"]
    assert "the plan has no task 9.9" in document["signals"][1]["detail"]
    assert state()["pending_audit"] == ["2"]


def test_supporting_agents_end_by_what_they_print(planned_project: Path) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    asked = ("plan", "delegate", "db-expert", "--from", "dev-1", "Write the migration")
    assert call(*asked)[0] == 0
    text = "AGENT COMPLETE\nConfidence: HIGH\nSummary: the migration is in db/7.sql\n"
    assert heard(planned_project, "db-expert", text) == [("agent_complete", "recorded")]
    assert state()["supporting_agent_stats"]["db-expert"]["completions"] == 1
    assert heard(planned_project, "db-expert", text) == [("agent_complete", "refused")]
    assert call(*asked)[0] == 0
    (run_id,) = state()["active_supporting_agents"]
    assert heard(planned_project, run_id, "OUT_OF_SCOPE: not about databases\n") == [
        ("out_of_scope", "recorded")
    ]
    assert state()["supporting_agent_stats"]["db-expert"]["out_of_scope"] == 1


def test_a_question_waits_for_a_person(planned_project: Path) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    text = "SEEKING DIVINE CLARIFICATION\nContext: the old client\nQuestion: Which format?\n"
    assert heard(planned_project, "dev-1", text) == [("seeking_clarification", "recorded")]
    (question,) = state()["pending_divine_questions"]
    assert question["question"] == "Which format?\n\nContext: the old client"


def test_the_same_id_once_more_changes_nothing(planned_project: Path) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    text, once = "CHECKPOINT: half of it\n", ("--event-id", "turn-7")
    assert heard(planned_project, "dev-1", text, *once) == [("checkpoint", "recorded")]
    assert heard(planned_project, "dev-1", text, *once) == [("checkpoint", "repeated")]


def test_no_agent_can_roll_back(planned_project: Path) -> None:
    text = "ROLLBACK REQUIRED: 1.1\nReason: it broke\n"
    assert heard(planned_project, "dev-1", text) == [("rollback_required", "refused")]


def test_a_rollback_that_an_agent_requires_is_recorded_and_a_person_is_asked(
    planned_project: Path,
) -> None:
    for words in (
        ("dispatch", "1.1", "--agent", "dev-1"),
        ("ready", "1.1"),
        (
            "audit",
            "1.1",
            "--agent",
            "aud",
            "--verdict",
            "pass",
            "--message",
            "12 tests pass",
            "--no-commits",
        ),
        ("dispatch", "2", "--agent", "dev-2"),
    ):
        assert call("plan", *words)[0] == 0
    text = "ROLLBACK REQUIRED: 1.1\nReason: it broke\nCommit: abc123\nFiles: a.py, b.py\n"
    for times in (1, 2):
        assert heard(planned_project, "dev-2", text) == [("rollback_required", "for_a_person")]
        events = [entry.event for entry in Invocation().store.entries()]
        required = [event for event in events if event.type == "rollback_required"]
        assert len(required) == times
    assert required[0].model_dump(include={"task_id", "agent_id", "reason", "commit", "files"}) == {
        "task_id": "1-1",
        "agent_id": "dev-2",
        "reason": "it broke",
        "commit": "abc123",
        "files": ("a.py", "b.py"),
    }
    (question,) = state()["pending_divine_questions"]
    assert (question["about"], question["task_id"]) == ("rollback", "1-1")
    assert question["question"] == (
        "dev-2 wants task 1.1 to be rolled back (`guard rollback 1.1`): it broke"
    )
    assert call("plan", "answer", question["question_id"], "It is rolled back")[0] == 0
    assert state()["active_agents"]["dev-2"]["status"] == "working"


def test_the_ids_of_its_signals_are_nobody_elses(planned_project: Path) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    own = ("plan", "checkpoint", "by hand", "--agent", "dev-1", "--event-id", "turn-1")
    assert call(*own)[0] == 0
    text = "CHECKPOINT: half of it\n"
    assert heard(planned_project, "dev-1", text, "--event-id", "turn") == [
        ("checkpoint", "recorded")
    ]


def test_a_retry_is_known_by_its_id_though_the_state_has_gone_on(planned_project: Path) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    asked = ("plan", "delegate", "db-expert", "--from", "dev-1", "Write the migration")
    assert call(*asked)[0] == 0
    (run_id,) = state()["active_supporting_agents"]
    texts = {
        "db-expert": ("AGENT COMPLETE: it is written\n", "agent_complete"),
        "dev-1": ("READY FOR AUDIT\n", "ready_for_audit"),
    }
    for agent, (text, kind) in texts.items():
        once = ("--event-id", f"turn-{agent}")
        assert heard(planned_project, agent, text, *once) == [(kind, "recorded")]
        assert heard(planned_project, agent, text, *once) == [(kind, "repeated")]
    done = ("--event-id", "turn-db-expert")
    assert heard(planned_project, run_id, texts["db-expert"][0], *done) == [
        ("agent_complete", "repeated")
    ]
    assert heard(planned_project, "db-expert", "AGENT COMPLETE: other\n", *done) == [
        ("agent_complete", "refused")
    ]
    assert heard(planned_project, "dev-2", "READY FOR AUDIT\n", "--event-id", "turn-dev-1") == [
        ("ready_for_audit", "refused")
    ]
    assert state()["pending_audit"] == ["1-1"]
    assert state()["supporting_agent_stats"]["db-expert"]["completions"] == 1


def test_a_question_without_end_is_cut_and_the_rest_is_heard(planned_project: Path) -> None:
    assert call("plan", "dispatch", "1.1", "--agent", "dev-1")[0] == 0
    many = "".join(f"- {'why ' * 1000}\n" for _ in range(50))
    text = f"SEEKING DIVINE CLARIFICATION\nQuestion:\n{many}\n\nCHECKPOINT: half of it\n"
    assert heard(planned_project, "dev-1", text) == [
        ("seeking_clarification", "recorded"),
        ("checkpoint", "recorded"),
    ]
    (question,) = state()["pending_divine_questions"]
    assert len(question["question"]) == 65536
