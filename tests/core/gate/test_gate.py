"""The gate on the agents' real streams, and the cases of a team that is active, inactive, or becomes so."""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from guard.core.gate import AGENTS, stream_reader
from guard.core.gate.gate import Gate, LetGo, StreamHeld, StreamOutcome
from guard.core.gate.members import Members
from guard.core.team.change import Alive, Change, Joined, MemberLeft, Running
from tests.streams import SESSION, init, jsonl, result, says, stream, system
from tests.support import ROOT

Line = dict[str, Any]
TEAM = f"session:{SESSION}"


class Passed(NamedTuple):
    """What came out of a gate."""

    out: bytes
    ended: StreamOutcome
    told: list[StreamHeld | LetGo]
    changes: list[Change]

    @property
    def ends(self) -> list[Line]:
        """The lines that stand where turns ended."""
        starts = (b'{"type":"complete"', b'{"type":"usage_update"')
        return [json.loads(line) for line in self.out.splitlines() if line.startswith(starts)]

    @property
    def types(self) -> list[str]:
        return [line["type"] for line in self.ends]


def passed(agent: str, *pieces: bytes | Line, **options: Any) -> Passed:
    """All of a stream through a gate, a second for each piece."""
    told: list[StreamHeld | LetGo] = []
    changes: list[Change] = []
    gate = Gate(stream_reader(agent), tell=told.append, on_change=changes.extend, **options)
    out = b""
    for now, piece in enumerate(pieces):
        out += gate.feed(piece if isinstance(piece, bytes) else jsonl(piece), now)
    rest, ended = gate.end(len(pieces))
    return Passed(out + rest, ended, told, changes)


def begun(task: str = "t1", **fields: Any) -> Line:
    about = {"task_id": task, "description": f"job {task}", "is_backgrounded": True}
    return system("task_started", **{**about, "task_type": "local_bash", **fields})


def notified(task: str = "t1", status: str = "completed", **fields: Any) -> Line:
    return system("task_notification", task_id=task, status=status, **fields)


def called(call: str = "toolu_1", tool: str = "Agent", **wish: Any) -> Line:
    block = {"type": "tool_use", "id": call, "name": tool, "input": wish}
    event = says("")
    return {**event, "message": {**event["message"], "content": [block]}}


def returned(call: str = "toolu_1", **fields: Any) -> Line:
    block = {"type": "tool_result", "tool_use_id": call, "content": "x", "is_error": False}
    message = {"role": "user", "content": [{**block, **fields.pop("block", {})}]}
    return {"type": "user", "message": message, "session_id": SESSION, **fields}


def thread() -> Line:
    return {"type": "thread.started", "thread_id": SESSION}


def item(kind: str, one: str, state: str, **fields: Any) -> Line:
    return {"type": f"item.{state}", "item": {"id": one, "type": kind, **fields}}


def spawn(state: str, *agents: str, status: str = "running", one: str = "item_1") -> Line:
    ends = {"started": "in_progress", "completed": "completed"}[state]
    return item(
        "collab_tool_call",
        one,
        state,
        tool="spawn_agent",
        prompt="do a part",
        receiver_thread_ids=list(agents),
        agents_states={agent: {"status": status, "message": None} for agent in agents},
        status=ends,
    )


def waited(agent: str, status: str = "completed") -> Line:
    states = {agent: {"status": status, "message": None}}
    return item("collab_tool_call", "item_9", "completed", tool="wait", agents_states=states)


def turn(tokens: int = 40) -> Line:
    return {"type": "turn.completed", "usage": {"input_tokens": tokens, "output_tokens": 5}}


class Story(NamedTuple):
    """How one agent's program tells the same things."""

    agent: str
    start: Line
    spawns: tuple[Line, ...]
    ends: Line
    goes_on: Line
    over: Callable[[], Line]
    failed_spawn: tuple[Line, ...]


STORIES = [
    Story(
        "claude",
        init(),
        (called(run_in_background=True), begun(tool_use_id="toolu_1"), returned()),
        notified(),
        says("I heard of it"),
        result,
        (called(team_name="builders"), returned(block={"is_error": True})),
    ),
    Story(
        "codex",
        thread(),
        (spawn("started"), spawn("completed", "a1", status="pending_init")),
        waited("a1"),
        {"type": "turn.started"},
        turn,
        (
            spawn("started"),
            item("collab_tool_call", "item_1", "completed", tool="spawn_agent", status="failed"),
        ),
    ),
]
each_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.agent)


@each_story
def test_does_not_emit_complete_event_when_team_is_active(story: Story) -> None:
    found = passed(story.agent, story.start, *story.spawns, story.over())
    assert "complete" not in found.types
    assert b'"result"' not in found.out.replace(b'"tool_result"', b"")
    assert b"turn.completed" not in found.out


@each_story
def test_emits_usage_update_instead_of_complete_when_team_is_active(story: Story) -> None:
    found = passed(story.agent, story.start, *story.spawns, story.over())
    tokens = 10 if story.agent == "claude" else 40
    usage = {"inputTokens": tokens, "contextWindow": None}
    assert found.ends == [{"type": "usage_update", "usage": usage}]
    assert found.told == [StreamHeld(TEAM, 1)]
    assert (found.ended.team, found.ended.exit_code) == (
        TEAM,
        11 if story.agent == "claude" else 16,
    )


@each_story
def test_emits_complete_event_normally_when_no_team_is_active(story: Story) -> None:
    over = story.over()
    found = passed(story.agent, story.start, over)
    usage = {"inputTokens": 10 if story.agent == "claude" else 40, "contextWindow": None}
    assert found.ends == [{"type": "complete", "usage": usage, "source": over}]
    assert (found.ended, found.told) == (StreamOutcome(("completed",)), [])
    assert found.ended.exit_code == 0


@each_story
def test_emits_complete_when_team_exists_but_has_zero_teammates(story: Story) -> None:
    found = passed(story.agent, story.start, story.over(), team="builders")
    assert found.types == ["complete"]
    others = passed(story.agent, story.start, story.over(), also_holds=lambda: ("builders", 0))
    assert others.types == ["complete"]


@each_story
def test_transitions_from_usage_update_to_complete_when_team_becomes_inactive(story: Story) -> None:
    lines = (*story.spawns, story.over(), story.ends, story.goes_on, story.over())
    found = passed(story.agent, story.start, *lines)
    assert found.types == ["usage_update", "complete"]
    assert found.told == [StreamHeld(TEAM, 1), LetGo(TEAM, 0, "ended")]
    assert found.ended.exit_code == 0


@each_story
def test_a_failed_spawn_leaves_nobody_who_counts(story: Story) -> None:
    before, *_ = story.failed_spawn
    assert passed(story.agent, story.start, before, story.over()).types == ["usage_update"]
    found = passed(story.agent, story.start, *story.failed_spawn, story.over())
    assert found.types == ["complete"]
    assert [c.because for c in found.changes if isinstance(c, MemberLeft)] == ["spawn_failed"]


@each_story
def test_a_helper_counts_before_its_spawn_returns(story: Story) -> None:
    found = passed(story.agent, story.start, story.spawns[0], story.over())
    assert found.types == ["usage_update"]


@each_story
def test_completes_when_all_have_shut_down_and_not_before(story: Story) -> None:
    if story.agent == "claude":
        two = (begun("t1"), begun("t2"))
        first, second = notified("t1"), notified("t2", "failed")
    else:
        two = (spawn("completed", "a1"), spawn("completed", "a2", one="item_2"))
        first, second = waited("a1", "shutdown"), waited("a2", "errored")
    some = passed(story.agent, story.start, *two, first, story.over())
    assert (some.types, some.told) == (["usage_update"], [StreamHeld(TEAM, 1)])
    assert passed(story.agent, story.start, *two, first, second, story.over()).types == ["complete"]


@each_story
def test_clearing_the_team_lets_the_next_end_through(story: Story) -> None:
    gate = Gate(stream_reader(story.agent))
    gate.feed(jsonl(story.start, *story.spawns), 0)
    assert b"usage_update" in gate.feed(jsonl(story.over()), 1)
    gate.clear()
    assert b'"complete"' in gate.feed(jsonl(story.over()), 2)


def test_the_first_name_is_kept() -> None:
    first = passed("claude", init(), begun("t1", team_name="builders"), begun("t2"), result())
    assert first.told == [StreamHeld("builders", 2)]
    later = passed("claude", init(), begun("t1"), begun("t2", team_name="builders"), result())
    assert later.told == [StreamHeld(TEAM, 2)]
    given = passed("claude", init(), begun("t1", team_name="late"), result(), team="early")
    assert given.told == [StreamHeld("early", 1)]


def test_usage_is_of_one_turn() -> None:
    def step(reason: str) -> Line:
        part = {"reason": reason, "tokens": {"input": 10, "cache": {"read": 3, "write": 2}}}
        return {"type": "step_finish", "sessionID": "s1", "part": part}

    found = passed("opencode", step("tool-calls"), step("stop"), step("stop"))
    assert [line["usage"]["inputTokens"] for line in found.ends] == [30, 15]


def test_usage_that_was_told_before_the_end_of_a_turn_is_forgotten_after_it() -> None:
    told = {"type": "session.usage_info", "data": {"currentTokens": 70, "tokenLimit": 900}}
    end = {"type": "result", "sessionId": SESSION, "exitCode": 0}
    found = passed("copilot", told, end, end)
    assert [line["usage"]["inputTokens"] for line in found.ends] == [70, 0]
    assert [line["usage"]["contextWindow"] for line in found.ends] == [900, None]


def test_tokens_from_a_cache_and_the_context_window_of_the_main_model() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300}
    models = {"small": {"contextWindow": 900}, "main": {"contextWindow": 200}}
    end = result(usage=usage, modelUsage=models)
    found = passed("claude", init(model="main"), end)
    assert found.ends[0]["usage"] == {"inputTokens": 321, "contextWindow": 200}
    assert passed("claude", init(), end).ends[0]["usage"]["contextWindow"] == 900


STREAMS: dict[str, tuple[list[str], list[str]]] = {
    "claude-ok": ([], ["complete"]),
    "claude-usage-limit": ([], ["complete"]),
    "claude-subagent": ([], ["complete"]),
    "claude-background": (["build the site"], ["usage_update", "complete"]),
    "codex-ok": ([], ["complete"]),
    "codex-helper": (["do a part"], ["complete"]),
    "gemini-ok": ([], ["complete"]),
    "qwen-ok": ([], ["complete"]),
    "opencode-ok": ([], ["complete"]),
    "copilot-ok": ([], ["complete"]),
}


def joined(changes: list[Change]) -> list[str]:
    """What those who joined are about, each once."""
    members: list[Joined] = []
    for change in changes:
        members += change.members if isinstance(change, Running) else ()
        members += [change] if isinstance(change, Joined) else []
    return list(dict.fromkeys(member.description for member in members))


@pytest.mark.parametrize("name", STREAMS)
def test_every_recorded_stream_is_understood(name: str) -> None:
    members, types = STREAMS[name]
    data = stream(name)
    found = passed(name.partition("-")[0], data)
    assert joined(found.changes) == members
    assert found.types == types
    assert (found.ended.reasons, found.ended.exit_code) == (("completed",), 0)
    assert found.ended.unreadable == 0


@pytest.mark.parametrize("name", STREAMS)
def test_all_other_lines_pass_byte_for_byte_and_in_order(name: str) -> None:
    before = stream(name).splitlines(keepends=True)
    after = passed(name.partition("-")[0], stream(name)).out.splitlines(keepends=True)
    assert len(before) == len(after)
    changed = [number for number, line in enumerate(before) if line != after[number]]
    assert len(changed) == len(STREAMS[name][1])
    for number in changed:
        line = json.loads(after[number])
        assert line.get("source", json.loads(before[number])) == json.loads(before[number])


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_not_understood_passes(agent: str) -> None:
    strange = (
        b"\n\r\n  \n\xff\xfe\x00\n[]\n{}\nnull\n"
        b'npm warn "result" "turn.completed" "step_finish"\n'
        b'{"type":"result"\n{"type":"unknown","a":[1,2]}\r\n'
        b'{"type":["result"],"b":"result"}\n{"type":"system","subtype":"task_started"}\n'
        b'{"type":"turn.completed","type":"turn.completed"}\nlone\rreturn "result"\nno newline'
    )
    found = passed(agent, strange)
    assert found.out == strange
    assert found.ended.reasons == ("stream_cut",)


def test_lines_that_could_not_be_read_are_counted() -> None:
    found = passed("claude", b'{"type":"result"\nnpm "result"\n', result())
    assert (found.ended.unreadable, found.types) == (1, ["complete"])


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b""], ids=["LF", "CRLF", "none"])
def test_a_line_that_is_replaced_keeps_its_end(newline: bytes) -> None:
    line = jsonl(result()).strip()
    assert passed("claude", b"\xef\xbb\xbf" + line + newline).out == (
        b'{"type":"complete","usage":{"inputTokens":10,"contextWindow":null},"source":'
        + line
        + b"}"
        + newline
    )


def test_the_source_is_valid_even_if_the_line_was_not_utf_8() -> None:
    line = jsonl(result("TEXT")).replace(b"TEXT", b"\xff\\ud83d")
    found = passed("claude", line)
    assert found.types == ["complete"]
    assert found.ends[0]["source"]["result"].startswith("�")


def test_a_line_in_pieces_is_one_line() -> None:
    data = stream("claude-background")
    pieces = [data[n : n + 7] for n in range(0, len(data), 7)]
    assert passed("claude", *pieces).out == passed("claude", data).out


def test_too_long_a_line_passes_in_pieces_and_is_not_read() -> None:
    long = jsonl(result("x" * 500))
    assert passed("claude", long, longest_line=300).out == long
    pieces = (long[:200], long[200:320], long[320:340], long[340:] + jsonl(result()))
    gate = Gate(stream_reader("claude"), longest_line=300)
    outs = [gate.feed(piece, 0) for piece in pieces]
    assert [len(out) for out in outs[:3]] == [0, 320, 20]
    assert b"".join(outs).startswith(long)
    assert b"".join(outs)[len(long) :].startswith(b'{"type":"complete"')
    assert gate.end(0)[1].unreadable == 1


def test_the_end_of_too_long_a_line_is_not_taken_for_a_line() -> None:
    gate = Gate(stream_reader("claude"), longest_line=400)
    pieces = (b"x" * 401, jsonl(result()))
    assert b"".join(gate.feed(piece, 0) for piece in pieces) == b"".join(pieces)


def test_nothing_is_let_go_in_the_middle_of_a_line() -> None:
    gate = Gate(stream_reader("claude"), max_hold_seconds=100, longest_line=400)
    gate.feed(jsonl(begun(), result()), 0)
    assert gate.feed(b"x" * 401, 1) == b"x" * 401
    assert gate.tick(100) == b""
    assert gate.feed(b"x\n", 101) == b"x\n"
    assert gate.tick(102).startswith(b'{"type":"complete"')


def test_a_line_passes_as_soon_as_it_is_whole() -> None:
    gate = Gate(stream_reader("claude"))
    first, second = jsonl(says("one")), jsonl(result())
    assert gate.feed(first + second[:20], 0) == first
    assert gate.feed(second[20:], 0).startswith(b'{"type":"complete"')


class Row(NamedTuple):
    """Lines of one agent, and what the gate says of them."""

    agent: str
    lines: tuple[Line, ...]
    types: list[str]
    reasons: tuple[str, ...]
    code: int
    killed: tuple[str, ...] = ()


KILLED = system("task_updated", task_id="t1", patch={"status": "killed"})
NAMED = {"receiver_thread_ids": ["a1"], "agents_states": {}}
LISTED = [{"task_id": "t1", "task_type": "local_bash", "description": "job t1"}]
ENDINGS = {
    "nothing at all": Row("claude", (), [], ("stream_cut",), 16),
    "cut in the first turn": Row("claude", (init(), says("hm")), [], ("stream_cut",), 16),
    "cut in a later turn": Row(
        "claude", (result(), says("more")), ["complete"], ("stream_cut",), 16
    ),
    "a subagent's words are no turn": Row(
        "claude",
        (result(), says("x", parent_tool_use_id="toolu_1")),
        ["complete"],
        ("completed",),
        0,
    ),
    "helpers may live": Row("claude", (begun(), result()), ["usage_update"], ("held",), 11),
    "helpers have ended, and the agent has not heard of it": Row(
        "claude", (begun(), result(), notified()), ["usage_update"], ("stream_cut",), 16
    ),
    "killed after the turn, as older versions do": Row(
        "claude",
        (init(), begun(), result(), KILLED, notified(status="stopped")),
        ["usage_update"],
        ("helpers_killed", "stream_cut"),
        16,
        ("job t1",),
    ),
    "killed, its beginning was lost": Row(
        "claude",
        (result(), notified("t7", "stopped")),
        ["complete"],
        ("helpers_killed",),
        16,
        ("t7",),
    ),
    "stopped by the agent itself": Row(
        "claude", (begun(), notified(status="stopped"), result()), ["complete"], ("completed",), 0
    ),
    "a list says who runs": Row(
        "claude",
        (system("background_tasks_changed", tasks=LISTED), result()),
        ["usage_update"],
        ("held",),
        11,
    ),
    "a list says that nobody runs": Row(
        "claude",
        (begun(), begun("t2"), system("background_tasks_changed", tasks=[]), result()),
        ["complete"],
        ("completed",),
        0,
    ),
    "a list that is not understood ends nobody": Row(
        "claude",
        (begun(), system("background_tasks_changed", tasks=[{"tusk_id": "t1"}]), result()),
        ["usage_update"],
        ("held",),
        11,
    ),
    "a list that was made before a helper began": Row(
        "claude",
        (called(), system("background_tasks_changed", tasks=[]), result()),
        ["usage_update"],
        ("held",),
        11,
    ),
    "a list that was made after it had ended": Row(
        "claude",
        (
            called(tool="Bash", run_in_background=True),
            returned(),
            system("background_tasks_changed", tasks=[]),
            result(),
        ),
        ["complete"],
        ("completed",),
        0,
    ),
    "sent to the background later": Row(
        "claude",
        (
            begun(is_backgrounded=False),
            system("task_updated", task_id="t1", patch={"is_backgrounded": True}),
            result(),
        ),
        ["usage_update"],
        ("held",),
        11,
    ),
    "in the foreground": Row(
        "claude", (begun(is_backgrounded=False), result()), ["complete"], ("completed",), 0
    ),
    "an idle teammate is not an ended one": Row(
        "claude",
        (
            begun(task_type="in_process_teammate"),
            system("task_updated", task_id="t1", patch={"status": "idle"}),
            result(),
        ),
        ["usage_update"],
        ("held",),
        11,
    ),
    "only what the call returned tells of it": Row(
        "claude",
        (
            called(),
            returned(
                tool_use_result={"isAsync": True, "agentId": "a1", "status": "async_launched"}
            ),
            result(),
        ),
        ["usage_update"],
        ("held",),
        11,
    ),
    "asked for the background, and no id was told": Row(
        "claude",
        (called(tool="Bash", run_in_background=True), returned(), result()),
        ["usage_update"],
        ("held",),
        11,
    ),
    "ended under the id of its call": Row(
        "claude",
        (
            called(tool="Bash", run_in_background=True),
            returned(),
            notified("t1", tool_use_id="toolu_1"),
            result(),
        ),
        ["complete"],
        ("completed",),
        0,
    ),
    "a call that waits for its subagent": Row(
        "claude",
        (called(run_in_background=False), returned(), result()),
        ["complete"],
        ("completed",),
        0,
    ),
    "Codex kills what it did not wait for": Row(
        "codex",
        (thread(), spawn("started"), spawn("completed", "a1"), turn()),
        ["usage_update"],
        ("helpers_killed",),
        16,
        ("do a part",),
    ),
    "Codex kills a terminal that outlives the turn": Row(
        "codex",
        (item("command_execution", "i1", "started", command="make watch"), turn()),
        ["usage_update"],
        ("helpers_killed",),
        16,
        ("make watch",),
    ),
    "a command that ended in its turn": Row(
        "codex",
        (
            item("command_execution", "i1", "started", command="make"),
            item("command_execution", "i1", "completed", command="make"),
            turn(),
        ),
        ["complete"],
        ("completed",),
        0,
    ),
    "a failed turn is the end of one": Row(
        "codex", ({"type": "turn.failed", "error": {}},), ["complete"], ("completed",), 0
    ),
    "an agent that runs again": Row(
        "codex",
        (spawn("completed", "a1"), waited("a1"), waited("a1", "running"), turn()),
        ["usage_update"],
        ("helpers_killed",),
        16,
        ("a1",),
    ),
    "a status that is not known ends nobody": Row(
        "codex",
        (spawn("completed", "a1"), waited("a1", "sleeping"), turn()),
        ["usage_update"],
        ("helpers_killed",),
        16,
        ("do a part",),
    ),
    "an agent whose first status is not known": Row(
        "codex",
        (spawn("completed", "a1", status="dreaming"), turn()),
        ["usage_update"],
        ("helpers_killed",),
        16,
        ("do a part",),
    ),
    "an agent whose spawn was lost, and whose status is not known": Row(
        "codex",
        (waited("a1", "sleeping"), turn()),
        ["usage_update"],
        ("helpers_killed",),
        16,
        ("a1",),
    ),
    "an agent that is known by its id alone": Row(
        "codex",
        ({**spawn("completed"), "item": {**spawn("completed")["item"], **NAMED}}, turn()),
        ["usage_update"],
        ("helpers_killed",),
        16,
        ("do a part",),
    ),
    "a spawn that returned nobody's id": Row(
        "codex",
        (spawn("started"), spawn("completed"), turn()),
        ["usage_update"],
        ("helpers_killed",),
        16,
        ("do a part",),
    ),
    "an error of OpenCode ends no turn": Row(
        "opencode", ({"type": "error", "sessionID": "s1"},), [], ("stream_cut",), 16
    ),
    "a subagent's session of OpenCode": Row(
        "opencode",
        (
            {"type": "step_start", "sessionID": "s1"},
            {"type": "step_finish", "sessionID": "s2", "part": {"reason": "stop"}},
        ),
        [],
        ("stream_cut",),
        16,
    ),
    "a subagent of Copilot": Row(
        "copilot",
        (
            {"type": "subagent.started", "data": {"toolCallId": "c1", "agentDisplayName": "Ex"}},
            {"type": "result", "sessionId": SESSION, "exitCode": 0},
        ),
        ["usage_update"],
        ("held",),
        11,
    ),
    "a subagent of Copilot that failed": Row(
        "copilot",
        (
            {"type": "subagent.started", "data": {"toolCallId": "c1"}},
            {"type": "subagent.failed", "data": {"toolCallId": "c1"}},
            {"type": "result", "sessionId": SESSION, "exitCode": 0},
        ),
        ["complete"],
        ("completed",),
        0,
    ),
    "Qwen's tasks are as Claude's": Row(
        "qwen",
        (system("task_started", task_id="a1", subagent_type="x"), result()),
        ["usage_update"],
        ("held",),
        11,
    ),
}


@pytest.mark.parametrize("row", ENDINGS.values(), ids=ENDINGS)
def test_what_the_end_of_a_stream_means(row: Row) -> None:
    found = passed(row.agent, *row.lines)
    assert (found.types, found.ended.reasons) == (row.types, row.reasons)
    assert (found.ended.exit_code, found.ended.killed) == (row.code, row.killed)


def test_a_late_end_of_an_earlier_run_changes_nothing() -> None:
    again = (begun(run_id="r1"), notified(run_id="r1"), begun(run_id="r2"))
    late = notified(run_id="r1")
    assert passed("claude", *again, late, result()).types == ["usage_update"]
    assert passed("claude", *again, late, notified(run_id="r2"), result()).types == ["complete"]


def test_an_end_is_told_once_and_that_of_work_in_the_foreground_never() -> None:
    assert passed("claude", begun(), KILLED, notified(status="stopped")).changes[1:] == [
        MemberLeft("t1", "killed")
    ]
    assert passed("claude", begun(is_backgrounded=False), KILLED).changes == []


def test_only_the_life_that_is_meant_ends() -> None:
    members = Members()
    for change in (Joined("a", "subagent"), MemberLeft("a", "killed"), Joined("a", "subagent")):
        members.apply(change, "s1")
    members.apply(MemberLeft("a", "ended", incarnation=1), "s1")
    assert members.holder == ("session:s1", 1)
    members.apply(MemberLeft("a", "ended", incarnation=2), "s1")
    assert (members.count, members.killed_names) == (0, ("a",))


def test_somebody_is_killed_once() -> None:
    members = Members()
    for change in (
        Joined("a", "subagent", "work"),
        MemberLeft("a", "killed"),
        MemberLeft("a", "killed"),
    ):
        members.apply(change, "s1")
    assert members.killed_names == ("work",)


def test_signs_of_life_are_passed_on() -> None:
    progress = system("task_progress", task_id="t1")
    idle = system("task_updated", task_id="t1", patch={"status": "idle"})
    changes = passed("claude", begun(), progress, idle).changes
    assert changes[1:] == [Alive("t1"), Alive("t1", idle=True)]
    assert passed("claude", begun(is_backgrounded=False), progress).changes == []


def test_others_hold_and_let_go() -> None:
    others: list[tuple[str, int] | None] = [("builders", 2)]
    gate = Gate(stream_reader("claude"), also_holds=lambda: others[-1])
    assert b"usage_update" in gate.feed(jsonl(result()), 0)
    assert gate.end(1)[1] == StreamOutcome(("held",), "builders", 2)
    others.append(None)
    assert b'"complete"' in gate.feed(jsonl(result()), 2)


def test_what_only_others_held_goes_out_at_the_end_if_they_have_ended() -> None:
    others: list[tuple[str, int] | None] = [("builders", 2)]
    told: list[StreamHeld | LetGo] = []
    gate = Gate(stream_reader("claude"), also_holds=lambda: others[-1], tell=told.append)
    out = gate.feed(jsonl(result()) + b"no newline", 0)
    others.append(None)
    rest, ended = gate.end(1)
    assert rest.startswith(b'no newline\n{"type":"complete"')
    assert out.count(b"\n") == 1
    assert (ended.exit_code, told[-1]) == (0, LetGo("builders", 0, "ended"))


def test_members_known_from_elsewhere_only_count_beside_those_of_the_stream() -> None:
    found = passed("claude", begun(), result(), also_holds=lambda: ("t", 1))
    assert found.told == [StreamHeld("session:" + SESSION, 2)]


def test_a_hold_has_a_limit_and_says_so() -> None:
    told: list[StreamHeld | LetGo] = []
    gate = Gate(stream_reader("claude"), max_hold_seconds=100, tell=told.append)
    gate.feed(jsonl(begun(), result("first")), 1000)
    assert gate.deadline == 1100
    assert gate.tick(1099) == b""
    late = gate.tick(1100)
    assert json.loads(late)["source"]["result"] == "first"
    assert told == [StreamHeld(TEAM, 1), LetGo(TEAM, 1, "hold_limit")]
    assert gate.tick(5000) == b""
    assert gate.end(5000)[1] == StreamOutcome(("hold_limit",))


def test_the_limit_counts_from_the_first_hold_and_anew_for_a_new_one() -> None:
    gate = Gate(stream_reader("claude"), max_hold_seconds=100)
    gate.feed(jsonl(begun(), result()), 0)
    gate.feed(jsonl(says("more"), result()), 60)
    assert gate.deadline == 100
    gate.feed(jsonl(notified(), begun("t2"), says("x"), result()), 90)
    assert gate.deadline == 190


def test_while_the_agent_itself_works_nothing_is_let_go() -> None:
    gate = Gate(stream_reader("claude"), max_hold_seconds=100)
    gate.feed(jsonl(begun(), result(), says("more")), 0)
    assert (gate.deadline, gate.tick(500)) == (None, b"")
    out = gate.feed(jsonl(result("second")), 500)
    assert json.loads(out)["source"]["result"] == "second"


def test_those_who_were_given_up_hold_no_more_and_new_ones_do() -> None:
    gate = Gate(stream_reader("claude"), max_hold_seconds=100, also_holds=lambda: ("b", 1))
    gate.feed(jsonl(begun(), result()), 0)
    assert b'"complete"' in gate.tick(100)
    assert b'"complete"' in gate.feed(jsonl(result()), 101)
    assert b"usage_update" in gate.feed(jsonl(begun("t2"), result()), 102)


def test_a_crowd_too_large_to_be_told_apart_holds_until_a_list_comes() -> None:
    crowd = jsonl(*(begun(f"t{n}") for n in range(10_001)))
    ends = jsonl(*(notified(f"t{n}") for n in range(10_001)))
    assert passed("claude", crowd, ends, result()).types == ["usage_update"]
    nobody = system("background_tasks_changed", tasks=[])
    assert passed("claude", crowd, ends, nobody, result()).types == ["complete"]


def test_the_page_traces_requirements_to_tests_that_exist() -> None:
    page = (ROOT / "docs" / "guide" / "gate.md").read_text()
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) >= 9
    assert [name for name in named if name not in globals()] == []
    assert all(f"REQ-00{number}" in page for number in (1, 2, 3))
