"""The team that the events of a session tell of: in bounded memory, and with what is lost if the session is over."""

from typing import Any

import pytest

from guard.core.classify import make_reader
from guard.core.gate import AGENTS, stream_reader
from guard.core.gate.members import StreamTeam
from guard.core.team.change import Joined, MemberLeft, Running
from tests.streams import SESSION, init, jsonl, read, result, stream, system


def begun(number: int, **fields: Any) -> dict[str, Any]:
    about = {"task_id": f"t{number}", "description": f"job {number}", "task_type": "local_bash"}
    return system("task_started", is_backgrounded=True, **about, **fields)


def ended(number: int, status: str = "completed") -> dict[str, Any]:
    return system("task_notification", task_id=f"t{number}", status=status)


def team(*events: dict[str, Any], agent: str = "claude") -> StreamTeam:
    one = StreamTeam(stream_reader(agent))
    for event in events:
        one.take(event)
    return one


def test_news_are_told_once() -> None:
    one = team(init(), begun(1), ended(1))
    assert one.take_news() == (Joined("t1", "background_shell", "job 1"), MemberLeft("t1", "ended"))
    assert one.take_news() == ()


def test_news_that_nobody_asks_for_become_a_list_of_who_counts() -> None:
    one = team(*map(begun, range(2000)), *map(ended, range(1, 2000)))
    first, *later = one.take_news()
    assert isinstance(first, Running)
    assert len(later) <= 1000
    assert one.members == ("t0",)


def test_what_was_killed_before_the_agent_went_on_is_not_lost() -> None:
    one = team(begun(1), begun(2), ended(1, "stopped"))
    assert list(one.lost_helpers) == ["job 1", "job 2"]
    one.note_turn()
    assert list(one.lost_helpers) == ["job 2"]


def test_a_teammate_counts_and_is_no_lost_work() -> None:
    one = team(begun(1), {**begun(2), "task_type": "in_process_teammate"})
    assert (one.members, one.lost_helpers) == (("t1", "t2"), ("job 1",))


@pytest.mark.parametrize("agent", AGENTS)
def test_only_lines_that_may_tell_something_are_parsed_for_it(agent: str) -> None:
    one = StreamTeam(stream_reader(agent))
    assert not one.may_tell(b'{"type":"user","message":{"content":"a long output"}}')


OPEN = {
    "a call of Claude Code that has not returned": (
        "claude",
        {
            **init(),
            "type": "assistant",
            "message": {
                "content": [
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "Bash",
                        "input": {"run_in_background": True, "description": "the build"},
                    }
                ]
            },
        },
        "the build",
    ),
    "a subagent of Copilot that outlived the turn": (
        "copilot",
        {
            "type": "subagent.started",
            "data": {"toolCallId": "c1", "agentDisplayName": "Explore"},
        },
        "Explore",
    ),
}


@pytest.mark.parametrize(("agent", "event", "name"), OPEN.values(), ids=OPEN)
def test_what_is_open_at_the_end_was_killed(agent: str, event: dict[str, Any], name: str) -> None:
    if agent == "copilot":
        opening = {"type": "session.start", "data": {"sessionId": SESSION}}
        closing = {"type": "result", "sessionId": SESSION, "exitCode": 0}
    else:
        opening, closing = init(), result()
    found = read(agent, jsonl(opening, event, closing), 0)
    assert (found.outcome, found.killed) == ("interrupted", (name,))
    assert read(agent, jsonl(opening, closing), 0).outcome == "ok"


def test_a_subagent_of_copilot_that_was_cut_off_with_its_turn_is_no_background_work() -> None:
    opening = {"type": "session.start", "data": {"sessionId": SESSION}}
    started = {"type": "subagent.started", "data": {"toolCallId": "c1"}}
    assert read("copilot", jsonl(opening, started), -9).reason == "sigkill"


@pytest.mark.parametrize(
    ("name", "joined"),
    [("claude-background", True), ("codex-helper", True), ("claude-ok", False), ("qwen-ok", False)],
)
def test_the_reader_of_the_output_follows_the_team(name: str, joined: bool) -> None:
    one = make_reader(name.partition("-")[0])
    one.feed(stream(name))
    assert one.team is not None
    assert bool(one.team.take_news()) is joined
    assert (one.team.members, one.team.lost_helpers) == ((), ())


def test_plain_text_has_no_team() -> None:
    one = make_reader("claude")
    one.feed(b"The build has finished.\n")
    assert one.team is None
