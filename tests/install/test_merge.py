"""Guard's hooks in the text of a settings file: there once, and gone without a trace."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.hooks.event_kinds import KINDS
from guard.install.agents import AGENT_CLIS, AgentCli
from guard.install.merge import (
    add_hooks,
    covered_events,
    foreign_calls,
    own_hooks,
    read_origin,
    remove_hooks,
)
from tests.install.test_jsonc import VALUES

SETTINGS = [host for name, host in AGENT_CLIS.items() if name != "opencode"]
CLAUDE, COPILOT = AGENT_CLIS["claude"], AGENT_CLIS["copilot"]
OTHERS = {"type": "command", "command": "notify-send done"}

EXISTING = {
    "an empty object": "{}",
    "an empty object and a newline": "{}\n",
    "an empty object over two lines": "{\n}\n",
    "an empty object with blanks": "{  }",
    "nothing": "",
    "blanks": " \n\n",
    "a byte order mark alone": "\ufeff",
    "one key": '{\n  "model": "opus"\n}\n',
    "no newline at the end": '{\n  "model": "opus"\n}',
    "four blanks": '{\n    "env": {\n        "A": "1"\n    }\n}\n',
    "tabs": '{\n\t"env": {\n\t\t"A": "1"\n\t}\n}\n',
    "lines of Windows": '{\r\n  "a": 1,\r\n  "hooks": {}\r\n}\r\n',
    "a byte order mark": '\ufeff{\n  "a": 1\n}\n',
    "one line": '{"a": 1, "b": [2]}',
    "one line without blanks": '{"a":1,"hooks":{"Stop":[]}}',
    "odd layout": '{ "a" :1\n,"b":\n2 }',
    "other alphabets": '{\n  "grüße": "你好 🙂",\n  "e": "\\u00e9\\/"\n}\n',
    "numbers as they are written": '{\n  "a": 1.10, "b": 1e5, "c": -0\n}\n',
    "unknown keys, deep": '{\n  "x": {"y": {"z": [1, {"w": null}]}},\n  "hooks": {"Unknown": 7}\n}\n',
    "empty hooks": '{\n  "hooks": {}\n}\n',
    "empty hooks over lines": '{\n  "hooks": {\n  }\n}\n',
    "an empty event": '{\n  "hooks": {\n    "Stop": []\n  }\n}\n',
    "an empty event with blanks": '{\n  "hooks": {"Stop": [ ]}\n}\n',
    "another hook for the same event": json.dumps(
        {"hooks": {"Stop": [{"hooks": [OTHERS]}]}}, indent=2
    ),
    "other hooks for the same event on one line": json.dumps(
        {"a": 1, "hooks": {"Stop": [{"hooks": [OTHERS]}], "Else": [{"hooks": []}]}}
    ),
    "a comment behind the last value": '{\n  "a": 1 // why\n}\n',
    "a comment behind the last comma": '{\n  "a": 1, // why\n}\n',
    "a comment before the end": '{\n  "a": 1\n  // "b": 2\n}\n',
    "only a comment": "{\n  // nothing yet\n}\n",
    "only a comment on one line": "{ /* nothing yet */ }",
    "comments in empty hooks": '{\n  "hooks": {\n    // none\n    "Stop": [ /* none */ ]\n  }\n}\n',
    "comments all over": '// head\n{ // a\n  "a": /* b */ 1, // c\n  /* d */\n} // tail\n',
    "trailing commas": '{\n  "a": [1, 2,],\n  "hooks": {"Stop": [],},\n}\n',
}

REFUSED = {
    "broken": ("{", "line 1: the text ends too early"),
    "a list": ("[]", "it should be an object"),
    "a text": ('"hooks"', "it should be an object"),
    "hooks is a list": ('{"hooks": []}', '"hooks" should be an object'),
    "hooks is null": ('{"hooks": null}', '"hooks" should be an object'),
    "an event is an object": ('{"hooks": {"Stop": {}}}', '"hooks.Stop" should be a list'),
    "hooks twice": ('{"hooks": {}, "hooks": {}}', 'the key "hooks" stands twice'),
    "an unknown key twice": ('{"a": {"b": 1, "b": 2}}', 'the key "b" stands twice'),
}


def names(host: AgentCli) -> str:
    return host.agent


def strict(text: str) -> Any:
    return json.loads(text.removeprefix("\ufeff"))


@pytest.mark.parametrize("text", EXISTING.values(), ids=EXISTING)
def test_in_and_out_again_leaves_the_same_bytes(text: str) -> None:
    done = add_hooks(text, CLAUDE, "guard")
    assert set(own_hooks(done, CLAUDE)) == set(CLAUDE.events)
    assert add_hooks(done, CLAUDE, "guard") == done
    assert remove_hooks(done, CLAUDE, read_origin(text, CLAUDE)) == text


@pytest.mark.parametrize("text", EXISTING.values(), ids=EXISTING)
def test_in_and_out_again_for_a_file_that_has_to_hold_more(text: str) -> None:
    try:
        done = add_hooks(text, COPILOT, "guard")
    except ValueError:
        text = text.replace("{", '{"version": 1, ', 1)
        done = add_hooks(text, COPILOT, "guard")
    assert remove_hooks(done, COPILOT, read_origin(text, COPILOT)) == text


COMMENTED = {
    "behind a comma": ('{"hooks":{"Stop":[%s], // mine\n "SessionEnd": [%s] }}', "SessionEnd"),
    "with a comma behind": (
        '{"hooks":{"Stop":[%s], // mine\n "SessionEnd": [%s], }}',
        "SessionEnd",
    ),
    "of Windows": ('{"hooks":{"Stop":[%s], // mine\r\n "SessionEnd": [%s] }}', "SessionEnd"),
    "in a list": ('{"hooks":{"Stop":[%s, // mine\n%s]}}', "Stop"),
    "behind a bracket": ('{"a": [%s], "hooks": { // mine\n "Stop": [%s] }}', "Stop"),
    "and another": ('{"a": [%s], // mine\n"hooks":{"Stop":[ // yours\n%s]} /* ours */ }', "Stop"),
}


@pytest.mark.parametrize(("text", "event"), COMMENTED.values(), ids=COMMENTED)
def test_a_comment_to_the_end_of_its_line_swallows_nothing(text: str, event: str) -> None:
    theirs = json.dumps({"hooks": [OTHERS]})
    whole = text % (theirs, json.dumps(CLAUDE.item(event, "guard")))
    done = remove_hooks(whole, CLAUDE, None)
    assert done is not None
    assert own_hooks(done, CLAUDE) == {}
    assert theirs in done
    assert done.count("//") == whole.count("//")


@pytest.mark.parametrize("text", EXISTING.values(), ids=EXISTING)
def test_a_replaced_hook_leaves_no_trace_either(text: str) -> None:
    old = add_hooks(text, CLAUDE, "/old/bin/guard")
    done = add_hooks(old, CLAUDE, "guard")
    assert "/old/bin" not in done
    assert remove_hooks(done, CLAUDE, read_origin(text, CLAUDE)) == text


@pytest.mark.parametrize("host", SETTINGS, ids=names)
def test_without_a_file_there_is_none_afterwards(host: AgentCli) -> None:
    done = add_hooks(None, host, "guard")
    assert strict(done) == {**host.skeleton, "hooks": host.hooks("guard")}
    assert remove_hooks(done, host, read_origin(None, host)) is None
    assert remove_hooks(done, host, None) is None


def test_a_file_of_which_nothing_is_known_is_kept_if_it_has_anything_else() -> None:
    done = add_hooks('{\n  "a": 1,\n  "hooks": {}\n}\n', CLAUDE, "guard")
    assert remove_hooks(done, CLAUDE, None) == '{\n  "a": 1\n}\n'
    commented = add_hooks("// mine\n{}\n", CLAUDE, "guard")
    assert remove_hooks(commented, CLAUDE, None) == "// mine\n{}\n"


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        add_hooks(text, CLAUDE, "guard")
    assert problem in str(caught.value)
    with pytest.raises(ValueError) as caught:
        remove_hooks(text, CLAUDE, None)
    assert problem in str(caught.value)


def test_a_version_that_is_not_known_is_refused() -> None:
    for text in ('{"version": 2, "hooks": {}}', '{"hooks": {}}', '{"version": "1"}'):
        with pytest.raises(ValueError, match='"version": 1'):
            add_hooks(text, COPILOT, "guard")
    assert strict(add_hooks("{}", COPILOT, "guard"))["version"] == 1
    done = add_hooks("{ }\n", COPILOT, "guard")
    assert remove_hooks(done, COPILOT, read_origin("{ }\n", COPILOT)) == "{ }\n"


OURS = {
    "by name": "guard hook claude Stop",
    "by its other name": "completion-guard hook claude Stop",
    "by path": "/opt/venv/bin/guard hook claude Stop",
    "by a path with blanks": "'/opt/my tools/guard' hook claude Stop",
    "as a module": "python3 -m guard hook claude Stop",
    "through another program": "uvx --from completion-guard guard hook claude Stop",
    "by a mark": "/opt/wrapper.sh hook claude Stop # completion-guard",
}
NOT_OURS = {
    "another program": "vibe hook claude Stop",
    "another program at the end of a path": "/opt/guard/run hook claude Stop",
    "another agent": "guard hook codex Stop",
    "another command": "guard check",
    "guard further ahead": "guard | other hook claude Stop",
    "broken quotes": "guard 'hook claude Stop",
    "nothing": "",
}


@pytest.mark.parametrize("line", OURS.values(), ids=OURS)
def test_what_is_guards_is_replaced_and_removed(line: str) -> None:
    old = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line, "timeout": 5}]}]}}
    done = strict(add_hooks(json.dumps(old), CLAUDE, "guard"))
    assert done["hooks"] == CLAUDE.hooks("guard")
    assert remove_hooks(json.dumps(old), CLAUDE, None) is None


@pytest.mark.parametrize("line", NOT_OURS.values(), ids=NOT_OURS)
def test_what_is_not_guards_stays(line: str) -> None:
    old = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}}
    text = json.dumps(old)
    done = strict(add_hooks(text, CLAUDE, "guard"))
    assert done["hooks"]["Stop"][0] == old["hooks"]["Stop"][0]
    assert remove_hooks(text, CLAUDE, None) == text


COMBINED = {
    "one after the other": "notify-send done; guard hook claude Stop",
    "if the first did well": "prettier --write . && guard hook claude Stop",
    "a pipe": "tee /tmp/log | /opt/bin/guard hook claude Stop",
    "in the background": "notify-send done & guard hook claude Stop || true",
    "two lines": "notify-send done\nguard hook claude Stop",
    "what another prints": "$(which env) guard hook claude Stop",
    "what another prints, in the old way": "`which env` guard hook claude Stop",
    "a redirection ahead": "</tmp/in guard hook claude Stop",
    "a redirection behind": "guard hook claude Stop 2>/dev/null",
    "something behind": "guard hook claude Stop; notify-send done",
    "a comment": "guard hook claude Stop # by me",
    "a shell of its own": "bash -lc 'cd /x && guard -q hook claude Stop'",
}


@pytest.mark.parametrize("line", COMBINED.values(), ids=COMBINED)
def test_a_line_that_does_more_is_the_users(line: str) -> None:
    theirs = {"hooks": [{"type": "command", "command": line}]}
    text = json.dumps({"hooks": {"Stop": [theirs]}})
    done = add_hooks(text, CLAUDE, "guard")
    assert strict(done)["hooks"] == {**CLAUDE.hooks("guard"), "Stop": [theirs]}
    assert add_hooks(done, CLAUDE, "guard") == done
    assert list(foreign_calls(done, CLAUDE)) == [("Stop", line, ("Stop",))]
    assert covered_events(done, CLAUDE) == {"Stop"}
    assert remove_hooks(text, CLAUDE, None) == text
    assert remove_hooks(done, CLAUDE, None) == text


@pytest.mark.parametrize(
    ("event", "item"),
    [
        ("PostToolUse", {"matcher": "Bash", "hooks": ["x; guard hook claude PostToolUse"]}),
        ("Stop", {"hooks": ["x; guard hook claude SessionEnd"]}),
        ("Stop", {"hooks": ["echo 'guard hook claude Stop' # guard hook claude Stop"]}),
    ],
)
def test_a_line_that_is_not_called_for_all_of_an_event_is_not_enough(
    event: str, item: dict[str, Any]
) -> None:
    hooks = [{"type": "command", "command": line} for line in item["hooks"]]
    theirs = {**item, "hooks": hooks}
    done = strict(add_hooks(json.dumps({"hooks": {event: [theirs]}}), CLAUDE, "guard"))
    assert done["hooks"][event] == [theirs, CLAUDE.item(event, "guard")]


@pytest.mark.parametrize(
    "line", ["A='x;y' guard hook claude Stop", '"/a|b/guard" hook claude Stop']
)
def test_quoted_operators_are_none(line: str) -> None:
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}})
    assert remove_hooks(text, CLAUDE, None) is None


def test_hooks_of_events_that_are_no_longer_wanted_go() -> None:
    ours = {"type": "command", "command": "guard hook claude Notification"}
    text = json.dumps({"hooks": {"Notification": [{"hooks": [ours, OTHERS]}, {"hooks": [ours]}]}})
    done = strict(add_hooks(text, CLAUDE, "guard"))
    assert done["hooks"]["Notification"] == [{"hooks": [OTHERS]}]


def test_what_others_have_keeps_its_place() -> None:
    old = CLAUDE.item("Stop", "/old/guard")
    theirs = {"matcher": "*", "hooks": [OTHERS]}
    text = json.dumps({"hooks": {"Stop": [old, theirs, old]}}, indent=4)
    done = strict(add_hooks(text, CLAUDE, "guard"))
    assert done["hooks"]["Stop"] == [CLAUDE.item("Stop", "guard"), theirs]


def test_a_hook_among_those_of_others_moves_to_a_group_of_its_own() -> None:
    ours = CLAUDE.handler("PreToolUse", "guard")
    text = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [OTHERS, ours]}]}})
    done = strict(add_hooks(text, CLAUDE, "guard"))
    assert done["hooks"]["PreToolUse"] == [
        {"matcher": "Bash", "hooks": [OTHERS]},
        CLAUDE.item("PreToolUse", "guard"),
    ]
    assert strict(remove_hooks(text, CLAUDE, None) or "") == {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [OTHERS]}]}
    }


def test_the_layout_of_the_file_is_kept() -> None:
    text = '{\n\t"a": 1\n}\n'
    assert add_hooks(text, CLAUDE, "guard").startswith(
        '{\n\t"a": 1,\n\t"hooks": {\n\t\t"SessionStart": [\n\t\t\t{\n'
    )
    assert '\n        "Stop": [' in add_hooks('{\n    "a": 1\n}', CLAUDE, "guard")
    assert "\n" not in add_hooks('{"a":1}', CLAUDE, "guard")
    windows = add_hooks('{\r\n  "a": 1\r\n}\r\n', CLAUDE, "guard")
    assert windows.count("\n") == windows.count("\r\n")


def test_a_comment_stays_with_what_it_is_about() -> None:
    done = add_hooks('{\n  "a": 1 // why\n}\n', CLAUDE, "guard")
    assert done.startswith('{\n  "a": 1, // why\n  "hooks": {\n')


@pytest.mark.parametrize("host", AGENT_CLIS.values(), ids=names)
def test_every_event_is_one_that_guard_understands(host: AgentCli) -> None:
    assert set(host.events) <= set(KINDS[host.agent])
    assert "stopping" in {KINDS[host.agent][event] for event in host.events}


@pytest.mark.parametrize(
    ("agent", "stop", "other", "answered", "observed"),
    [
        ("claude", "Stop", "PostToolUse", 60, 10),
        ("codex", "Stop", "SessionEnd", 60, 3),
        ("gemini", "AfterAgent", "AfterTool", 60_000, 10_000),
        ("qwen", "Stop", "SessionEnd", 60_000, 10_000),
        ("copilot", "agentStop", "postToolUse", 60, 10),
    ],
)
def test_each_program_gets_times_in_its_own_unit(
    agent: str, stop: str, other: str, answered: int, observed: int
) -> None:
    host = AGENT_CLIS[agent]
    assert host.handler(stop, "guard")[host.timeout_key] == answered
    assert host.handler(other, "guard")[host.timeout_key] == observed


OBJECTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)
COMMANDS = st.sampled_from([*OURS.values(), *NOT_OURS.values()]) | st.text(max_size=12)
HANDLERS = st.fixed_dictionaries({}, optional={"type": st.just("command"), "command": COMMANDS})
GROUPS = (
    st.fixed_dictionaries(
        {"hooks": st.lists(HANDLERS | VALUES, max_size=3)},
        optional={"matcher": st.text(max_size=4)},
    )
    | VALUES
)
HOOKS = st.dictionaries(
    st.sampled_from([*CLAUDE.events[:4], "Stop"]), st.lists(GROUPS, max_size=3), max_size=3
)
FILES = st.builds(
    lambda rest, hooks: {**rest, **({} if hooks is None else {"hooks": hooks})},
    OBJECTS.map(lambda found: {key: value for key, value in found.items() if key != "hooks"}),
    st.none() | HOOKS,
)


def without_ours(data: dict[str, Any]) -> dict[str, Any]:
    """The same settings with every hook of guard's taken out, and the groups that had nothing else."""
    left: dict[str, Any] = {}
    for event, items in data.get("hooks", {}).items():
        left[event] = []
        for item in items:
            hooks = item.get("hooks") if isinstance(item, dict) else None
            if not isinstance(hooks, list) or not any(map(CLAUDE.is_ours, hooks)):
                left[event].append(item)
            elif not all(map(CLAUDE.is_ours, hooks)):
                kept = [hook for hook in hooks if not CLAUDE.is_ours(hook)]
                left[event].append({**item, "hooks": kept})
    return {**data, **({"hooks": left} if "hooks" in data else {})}


@given(FILES, st.sampled_from([None, 0, 2, 4, "\t"]), st.booleans())
def test_any_settings_keep_everything_else(
    data: dict[str, Any], indent: Any, ascii_only: bool
) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    done = add_hooks(text, CLAUDE, "guard")
    assert add_hooks(done, CLAUDE, "guard") == done
    found, expected = strict(done), without_ours(data)
    assert [key for key in found if key in expected] == list(expected)
    for event, item in CLAUDE.hooks("guard").items():
        assert found["hooks"][event].count(item[0]) == 1
        found["hooks"][event].remove(item[0])
        if event not in expected.get("hooks", {}):
            assert found["hooks"].pop(event) == []
    if not expected.get("hooks"):
        found["hooks"] = expected.get("hooks")
        if found["hooks"] is None:
            del found["hooks"]
    assert found == expected


@given(FILES, st.sampled_from([None, 0, 2, 4, "\t"]), st.sampled_from(["\n", "\r\n"]))
def test_any_settings_without_hooks_of_guards_come_back_byte_for_byte(
    data: dict[str, Any], indent: Any, newline: str
) -> None:
    text = json.dumps(without_ours(data), indent=indent).replace("\n", newline)
    done = add_hooks(text, CLAUDE, "guard")
    assert remove_hooks(done, CLAUDE, read_origin(text, CLAUDE)) == text
