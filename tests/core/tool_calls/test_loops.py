"""Agents that go round in circles, and agents that do not, in the event streams of all agent CLIs."""

import json
from datetime import UTC, datetime

import pytest

from guard.core.classify import make_reader
from guard.core.classify.outcome import Classification
from guard.core.tool_calls.agent_loop import LoopFound
from tests.support.scripted_streams import (
    TELLS_OF_HELPERS,
    TELLS_OF_PERSONS,
    WRITERS,
    Call,
    Later,
    Person,
    Say,
    Spawn,
    Step,
    edit,
    read,
    shell,
    write_stream,
)

NOW = datetime(2026, 11, 16, 2, tzinfo=UTC)
RED = {"output": "1 failed", "failed": True}
STATUS = shell("git status --short", "M a.py")
TESTS = shell("npm test", "1 failing", failed=True)
TODO = Call("TodoWrite", {"todos": [{"content": "try again", "status": "pending"}]})

LOOPS: dict[str, tuple[str, int, list[Step]]] = {
    "the same call with the same result": ("same_result", 4, [STATUS] * 4),
    "the same call, with a remark before each": (
        "same_result",
        5,
        [step for n in range(5) for step in (Say(f"Attempt {n}."), STATUS)],
    ),
    "the same file read again and again": ("same_result", 6, [read("a.py")] * 6),
    "the same call after useful work": (
        "same_result",
        4,
        [read("a.py"), edit("a.py"), shell("make"), *[STATUS] * 4],
    ),
    "the same call, with notes between": ("same_result", 4, [STATUS, TODO] * 4),
    "a tool of another server with a long result": (
        "same_result",
        4,
        [Call("mcp__db__query", {"sql": "select 1", "limit": 5}, "row " * 9000)] * 4,
    ),
    "green tests again and again, whose time differs": (
        "same_result",
        4,
        [shell("pytest -q", f"3 passed in 0.{n}s") for n in range(4)],
    ),
    **{
        f"green tests whose {name} differs": (
            "same_result",
            5,
            [shell(command, said.replace("#", str(n))) for n in range(1, 6)],
        )
        for name, command, said in (
            ("time by go", "go test ./...", "ok  \tproject/parse\t0.0#3s"),
            ("time by cargo", "cargo test", "test result: ok. 5 passed; finished in 0.0#s"),
            ("time by jest", "npx jest", "Tests: 3 passed\nTime:        1.2# s, estimated 2 s"),
            (
                "start by vitest",
                "npx vitest run",
                "Start at  10:22:1#\nDuration  31#ms (setup #ms)",
            ),
            ("time by mocha", "npx mocha", "  5 passing (1#ms)"),
            (
                "time by rspec",
                "rspec",
                "Finished in 0.0#1 seconds (files took 0.1# seconds to load)",
            ),
            ("time by phpunit", "phpunit", "Time: 00:00.01#, Memory: 10.00 MB\nOK (5 tests)"),
        )
    },
    "the same call fails in the same way": ("same_failure", 4, [TESTS] * 4),
    "the same call fails with other words": (
        "same_failure",
        7,
        [shell("npm test", f"error in run {n}", failed=True) for n in range(7)],
    ),
    "the same edit fails": ("same_failure", 4, [edit("a.py", failed=True)] * 4),
    "a search that finds nothing": (
        "same_result",
        5,
        [Call("Grep", {"pattern": "parse(", "path": "src"}, "No matches found")] * 5,
    ),
    "a call without output": ("same_result", 4, [shell("make -s", "")] * 4),
    "a name that reads like a wait": ("same_result", 4, [shell("cat scripts/wait.sh", "x")] * 4),
    "the same call in a long session": (
        "same_result",
        4,
        [
            *(read(f"{n}.py", "x" * n) for n in range(200)),
            *[STATUS] * 4,
            *(read(f"b{n}") for n in range(50)),
        ],
    ),
    "a large result each time": ("same_result", 9, [shell("cat log", "some line\n" * 20_000)] * 9),
    "a result of three megabytes each time": (
        "same_result",
        4,
        [shell("cat log", "some line\n" * 300_000)] * 4,
    ),
    "two calls in turn, one with a large result": (
        "two_calls",
        3,
        [shell("cat log", "some line\n" * 150_000), read("a.py")] * 3,
    ),
    "two calls in turn, one of which fails in other words": (
        "two_calls",
        4,
        [
            step
            for n in range(4)
            for step in (shell("make", f"error {n}", failed=True), read("Makefile"))
        ],
    ),
    "two calls in turn": ("two_calls", 3, [TESTS, read("a.py")] * 3),
    "two shell commands in turn": (
        "two_calls",
        4,
        [shell("ls src", "a b"), shell("cat log", "x")] * 4,
    ),
    "two calls in turn, with remarks": (
        "two_calls",
        3,
        [Say("Look."), read("a.py"), Say("Test."), TESTS] * 3,
    ),
    "the same message without a call": ("same_message", 3, [Say("I am done with the work.")] * 3),
    "a short message": ("same_message", 3, [Say("Done.")] * 3),
    "the same message in other spacing": (
        "same_message",
        4,
        [Say("I am  done with the work."), Say("I am done with the work.\n")] * 2,
    ),
    "a loop that the agent leaves in the end": (
        "same_result",
        5,
        [*[STATUS] * 5, shell("git diff", "x"), Say("I give up.")],
    ),
    "three are no loop, but four after an edit are": (
        "same_failure",
        4,
        [TESTS, TESTS, TESTS, edit("a.py"), TESTS, TESTS, TESTS, TESTS],
    ),
}

HEALTHY: dict[str, list[Step]] = {
    "three times is not four": [STATUS] * 3,
    "two turns are not three": [TESTS, read("a.py")] * 2,
    "two messages are not three": [Say("Working on it now.")] * 2,
    "each call has another input": [read(f"{n}.py") for n in range(12)],
    "each result is another": [shell("git log -1", f"commit {n}") for n in range(8)],
    "another result between": [*[STATUS] * 3, shell("git status --short", ""), *[STATUS] * 3],
    "the first result is another": [shell("git status --short", "A b.py"), *[STATUS] * 3],
    "edit and test in turn": [edit("a.py"), TESTS] * 6,
    "other edits and tests in turn": [
        step for n in range(6) for step in (edit("a.py", str(n)), TESTS)
    ],
    "edits by the shell and tests in turn": [shell("sed -i s/a/b/ a.py", ""), TESTS] * 6,
    "an edit between": [TESTS, TESTS, TESTS, edit("a.py"), TESTS, TESTS, TESTS],
    "other calls between": [
        step for n in range(6) for step in (shell("git status", "clean"), read(f"{n}.py"))
    ],
    "a shell that sleeps": [shell("sleep 5; gh run view 1", "queued")] * 8,
    "sleep and look in turn": [shell("sleep 2"), shell("cat log", "waiting")] * 6,
    "sleep and fail in turn": [shell("sleep 1"), shell("curl -f :3000", "refused", failed=True)]
    * 6,
    **{
        f"a wait by {words[0]}": [shell(" ".join(words), "queued", failed=failed)] * 6
        for failed, *words in (
            (False, "timeout", "5", "tail", "-f", "build.log"),
            (False, "until", "curl", "-sf", ":3000;", "do", "sleep", "1;", "done"),
            (True, "kubectl", "wait", "--for=condition=ready", "pod/x"),
            (False, "gh", "run", "watch", "12"),
            (False, "docker", "wait", "c1"),
            (True, "sudo", "sleep", "3"),
        )
    },
    "three calls in turn": [read("a.py"), read("b.py"), read("c.py")] * 6,
    "the same two edits and tests in turn": [
        step for n in range(6) for step in (edit("a.py", str(n % 2)), TESTS)
    ],
    "a counter in a result": [shell("ls build | wc -l", f"{n} files") for n in range(9)],
    "a long session that gets on": [
        step
        for n in range(200)
        for step in (read(f"{n % 7}.py"), edit(f"{n % 5}.py", str(n)), TESTS, Say(f"Mended {n}."))
    ],
    "a tool that waits": [Call("wait_for_job", {"id": 1}, "still running")] * 8,
    "the output of a job": [Call("BashOutput", {"bash_id": "b1"}, "")] * 8,
    "a look every ten seconds": [shell("gh run view 1", "queued"), Later(10)] * 8,
    "a failing look every ten seconds": [shell("curl :3000", "refused", failed=True), Later(10)]
    * 8,
    "the same word with calls between": [
        step for n in range(5) for step in (Say("Let me check that."), read(f"{n}.py"))
    ],
    "other messages": [Say(f"Step {n} is done.") for n in range(6)],
    "a result of three megabytes that differs in the middle": [
        shell("cat log", "a" * 1_500_000 + str(n) + "b" * 1_500_000) for n in range(5)
    ],
    "a result that grows far from both ends": [
        shell("cat log", "a" * 90_000 + str(n) + "b" * 90_000) for n in range(6)
    ],
}
WITH_PERSON: dict[str, list[Step]] = {
    "a person asks for the same again": [
        *[STATUS] * 3,
        Person("Look again."),
        *[STATUS] * 3,
        Person("And again."),
        *[STATUS] * 3,
    ],
    "a person answers each message": [Say("I am done with it."), Person("Not yet.")] * 5,
    "a person speaks between two turns": [
        *[TESTS, read("a.py")] * 2,
        Person("Try harder."),
        *[TESTS, read("a.py")] * 2,
    ],
}
WITH_HELPER: dict[str, list[Step]] = {
    "a helper is at work": [Spawn("t1"), *[STATUS] * 8, Spawn("t1", ends=True)],
    "a helper is at work while two calls take turns": [Spawn("t1"), *[TESTS, read("a.py")] * 5],
}


def play(agent: str, script: list[Step]) -> tuple[Classification, LoopFound | None]:
    reader = make_reader(agent)
    for at, line in write_stream(agent, script):
        reader.feed(line, at)
    return reader.finish(0, NOW), reader.loop


@pytest.mark.parametrize("agent", WRITERS)
@pytest.mark.parametrize("name", LOOPS)
def test_an_agent_that_goes_round_in_circles_is_named(agent: str, name: str) -> None:
    pattern, count, script = LOOPS[name]
    found = play(agent, script)[0].loop
    assert found is not None
    assert (found.pattern, found.count) == (pattern, count)


def _healthy() -> list[object]:
    cases = [(name, agent, script) for name, script in HEALTHY.items() for agent in WRITERS]
    for scripts, agents in ((WITH_PERSON, TELLS_OF_PERSONS), (WITH_HELPER, TELLS_OF_HELPERS)):
        cases += [(name, agent, script) for name, script in scripts.items() for agent in agents]
    return [pytest.param(agent, script, id=f"{name}-{agent}") for name, agent, script in cases]


@pytest.mark.parametrize(("agent", "script"), _healthy())
def test_an_agent_that_gets_on_is_not_named(agent: str, script: list[Step]) -> None:
    assert play(agent, script)[0].loop is None


@pytest.mark.parametrize("agent", [agent for agent in WRITERS if agent != "gemini"])
def test_one_message_that_says_the_same_twenty_times_is_one_message(agent: str) -> None:
    # Gemini's messages come in pieces without an end: there nothing tells one from twenty.
    assert play(agent, [Say("All tests are green. " * 20)])[0].loop is None


@pytest.mark.parametrize("agent", ["claude", "opencode", "copilot"])
def test_subagents_that_look_at_the_same_are_no_loop(agent: str) -> None:
    together = [read("README.md", helper=f"h{n}") for n in range(6)]
    assert play(agent, [*together])[0].loop is None
    alone: list[Step] = [read("README.md", helper="h1")] * 4
    assert play(agent, alone)[0].loop is not None


def test_a_loop_is_named_with_what_is_repeated() -> None:
    found = play("claude", [TESTS, read("src/a.py")] * 3)[0].loop
    assert found is not None
    assert found.call == "Bash npm test / Read src/a.py"
    assert found.calls == 6
    assert found.sentence == "the same two calls in turn, 3 times: Bash npm test / Read src/a.py"


def test_a_loop_is_current_until_something_else_happens() -> None:
    assert play("claude", [STATUS] * 4)[1] is not None
    assert play("claude", [*[STATUS] * 4, read("a.py")])[1] is None
    assert play("claude", [*[STATUS] * 4, Person("stop")])[1] is None


def test_a_child_at_work_makes_repeated_calls_a_wait() -> None:
    reader = make_reader("claude")
    for at, line in write_stream("claude", [STATUS] * 12):
        reader.feed(line, at)
        reader.note_child_at_work()
    assert reader.finish(0, NOW).loop is None


def test_control_characters_of_an_agent_do_not_reach_the_terminal() -> None:
    found = play("claude", [shell("printf '\x1b[2J'", "x")] * 4)[0].loop
    assert found is not None
    assert "\x1b" not in found.call


def test_a_result_that_is_not_read_at_first_is_compared_all_the_same() -> None:
    # The order of keys in which another version prints the same.
    def lines(outputs: list[str]) -> bytes:
        events: list[object] = [
            {"type": "system", "subtype": "init", "session_id": "s", "model": "m"}
        ]
        for number, output in enumerate(outputs):
            use = {
                "type": "tool_use",
                "id": f"t{number}",
                "name": "Bash",
                "input": {"command": "x"},
            }
            result = {"content": output, "type": "tool_result", "tool_use_id": f"t{number}"}
            events += [
                {"session_id": "s", "message": {"content": [use]}, "type": "assistant"},
                {"message": {"content": [result]}, "session_id": "s", "type": "user"},
            ]
        return b"".join(json.dumps(event).encode() + b"\n" for event in events)

    for outputs, is_loop in ((["a"] * 4, True), (["b", "a", "a", "a"], False)):
        reader = make_reader("claude")
        reader.feed(lines(outputs))
        assert (reader.finish(0, NOW).loop is not None) == is_loop


@pytest.mark.parametrize("agent", WRITERS)
def test_values_that_are_nested_deep_do_no_harm(agent: str) -> None:
    deep: object = []
    for _ in range(400):
        deep = [deep]
    found = play(agent, [Call("mcp__db__query", {"where": deep}, "row")] * 5)[0].loop
    assert found is None or found.count == 5


def test_results_come_before_the_question_what_is_repeated() -> None:
    # The last result is in no event that something else reads.
    reader = make_reader("claude")
    for at, line in write_stream("claude", [STATUS] * 4):
        if b'"type":"result"' not in line.replace(b" ", b""):
            reader.feed(line, at)
    assert reader.loop is not None
    assert reader.loop.count == 4
