"""A helper of Claude Code counts once, from the call that starts it to its end."""

from typing import Any

import pytest

from guard.core.gate import stream_reader
from guard.core.gate.members import Members
from tests.core.gate.test_gate import Line, begun, called, notified, passed, returned
from tests.streams import result, system

MATE = {"team_name": "crew", "name": "ana", "description": "dig"}
SPAWNED = {"status": "teammate_spawned", "teammate_id": "ana@crew", "name": "ana"}
AGENT: dict[str, Any] = {"task_type": "local_agent", "description": "dig"}


def listed(*tasks: dict[str, Any]) -> Line:
    return system("background_tasks_changed", tasks=list(tasks))


def counts(*lines: Line) -> list[int]:
    """How many members count after each line."""
    reader, members, found = stream_reader("claude"), Members(), []
    for line in lines:
        for change in reader.read(line).changes:
            members.apply(change, None)
        found.append(members.count)
    return found


@pytest.mark.parametrize("tool", ["Task", "Agent"])
@pytest.mark.parametrize(
    "told",
    [
        SPAWNED,
        {"status": "teammate_spawned", "agent_id": "ana@crew", "team_name": "crew"},
        {"status": "teammate_spawned", "agentId": "a1"},
        {"status": "teammate_spawned"},
        None,
        "Spawned successfully.",
    ],
)
@pytest.mark.parametrize(
    "background", [{}, {"run_in_background": True}, {"run_in_background": False}]
)
def test_a_teammate_holds_when_its_call_has_returned(
    tool: str, told: object, background: dict[str, Any]
) -> None:
    lines = [called(tool=tool, **MATE, **background), returned(tool_use_result=told), result()]
    found = passed("claude", *lines)
    assert (found.types, found.ended.reasons) == (["usage_update"], ("held",))
    assert (found.ended.team, found.ended.count) == ("crew", 1)


def test_a_teammate_holds_though_the_line_with_its_call_was_lost() -> None:
    told = {**SPAWNED, "team_name": "crew"}
    found = passed("claude", returned(tool_use_result=told), result())
    assert (found.types, found.ended.team, found.ended.count) == (["usage_update"], "crew", 1)
    failed = returned(block={"is_error": True}, tool_use_result=told)
    assert passed("claude", failed, result()).types == ["complete"]
    ended = [returned(tool_use_result=told), notified("ana@crew"), result()]
    assert passed("claude", *ended).types == ["complete"]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([notified("ana@crew")], id="its own id"),
        pytest.param([notified("t9", tool_use_id="toolu_1")], id="its call"),
        pytest.param([begun("t9", tool_use_id="toolu_1"), notified("t9")], id="its task"),
        pytest.param([begun("t9", task_type="in_process_teammate"), listed()], id="a list"),
        pytest.param([called("toolu_2", "TeamDelete"), returned("toolu_2")], id="no team any more"),
    ],
)
def test_a_teammate_ends_by(end: list[Line]) -> None:
    found = passed("claude", called(**MATE), returned(tool_use_result=SPAWNED), *end, result())
    assert found.types == ["complete"]


def test_a_teammate_in_a_terminal_of_its_own_is_in_no_list() -> None:
    shell = {"task_id": "b1", "task_type": "local_bash", "description": "build"}
    lines = [called(**MATE), returned(tool_use_result=SPAWNED), listed(shell), listed(), result()]
    assert passed("claude", *lines).types == ["usage_update"]
    assert counts(*lines) == [1, 1, 2, 1, 1]


def test_a_call_that_asked_for_a_teammate_may_end_as_a_subagent() -> None:
    done = returned(tool_use_result={"status": "completed", "content": []})
    assert passed("claude", called(**MATE), done, result()).types == ["complete"]
    failed = returned(block={"is_error": True})
    assert passed("claude", called(**MATE), failed, result()).types == ["complete"]
    kept = [called("toolu_2", "TeamDelete"), returned("toolu_2", block={"is_error": True})]
    spawned = (called(**MATE), returned(tool_use_result=SPAWNED))
    assert passed("claude", *spawned, *kept, result()).types == ["usage_update"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [called(**AGENT), listed({"task_id": "a1", **AGENT}), begun("a1", **AGENT)],
            [1, 1, 1],
            id="the list comes before the task",
        ),
        pytest.param(
            [called(**AGENT), begun("a1", **AGENT), returned()],
            [1, 1, 1],
            id="the task does not name its call",
        ),
        pytest.param(
            [called(), listed({"task_id": "a1", **AGENT}), begun("a1", tool_use_id="toolu_1")],
            [1, 1, 1],
            id="the call has no description",
        ),
        pytest.param(
            [
                called(**AGENT),
                called("toolu_2", **AGENT),
                listed({"task_id": "a1", **AGENT}),
                listed({"task_id": "a1", **AGENT}, {"task_id": "a2", **AGENT}),
            ],
            [1, 2, 2, 2],
            id="two calls in the same words",
        ),
        pytest.param(
            [called(**AGENT), listed({"task_id": "a9", **AGENT, "description": "another"})],
            [1, 2],
            id="another helper",
        ),
        pytest.param(
            [called(**AGENT), listed({"task_id": "b1", "task_type": "local_bash"})],
            [1, 2],
            id="a shell",
        ),
        pytest.param(
            [called(**MATE), begun("t9", task_type="in_process_teammate", description="ana: dig")],
            [1, 1],
            id="a teammate in other words",
        ),
        pytest.param(
            [
                called(**MATE),
                listed({"task_id": "ana@crew", "task_type": "in_process_teammate"}),
                returned(tool_use_result=SPAWNED),
                begun("ana@crew", tool_use_id="toolu_1"),
            ],
            [1, 1, 1, 1],
            id="a teammate whose task has its id",
        ),
    ],
)
def test_a_helper_counts_once(lines: list[Line], expected: list[int]) -> None:
    assert counts(*lines) == expected
