"""`guard doctor` on the agents' hooks: installed, trusted, called; one line for each scope."""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import Result, run, tool_folder, write


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH: git, guard, and what a test puts there."""
    folder = tool_folder(tmp_path / "tools")
    (folder / "guard").symlink_to(Path(sys.executable).parent / "guard")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def looked(env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    result = run("doctor", "--format", "json", env=env)
    assert result.code == 0
    return [check for check in result.json["checks"] if check["name"].endswith(" hooks")][1:]


def only(env: dict[str, str] | None = None) -> tuple[str, str, str | None]:
    (found,) = looked(env)
    return found["state"], found["found"], found["hint"]


def installed(*words: str | Path) -> Path:
    result = run("install", *words, "--format", "json")
    assert result.code == 0
    return Path(result.json["paths"][0])


def called(agent: str, event: str) -> Result:
    document = json.dumps({"session_id": "s1", "cwd": os.getcwd()})
    return run("hook", agent, event, stdin=document)


def test_an_agent_that_is_not_here_is_not_mentioned(repository: Path, tools: Path) -> None:
    assert looked() == []
    write(tools / "gemini", "#!/bin/sh\n").chmod(0o755)
    assert only() == ("ok", "not installed", "guard install gemini")


def test_installed_and_called(repository: Path) -> None:
    installed("claude")
    state, found, hint = only()
    assert (state, found) == ("warning", "local: installed, 11 events; never called here")
    assert hint == "start a session here, and look again"
    for event in ("SessionStart", "PostToolUse", "Stop"):
        assert called("claude", event).code == 0
    state, found, hint = only()
    assert (state, hint) == ("ok", None)
    assert found.startswith("local: installed, 11 events; last called ")
    assert found.endswith(" s ago")
    installed("claude", "--user")
    assert [check["found"].partition(":")[0] for check in looked()] == ["local", "user"]


@pytest.mark.parametrize(
    ("seconds", "told"), [(200, "3 min"), (7300, "2 h"), (90_000, "1 d"), (-500, "0 s")]
)
def test_how_long_ago(seconds: int, told: str, repository: Path) -> None:
    installed("claude")
    called("claude", "PostToolUse")
    now = datetime.now(UTC) + timedelta(seconds=seconds + 0.5)
    found = looked({"GUARD_NOW": now.isoformat().replace("+00:00", "Z")})[0]["found"]
    assert found.endswith(f"last called {told} ago")


def silent() -> tuple[str, str, str | None]:
    found = looked()[1]
    return found["state"], found["found"], found["hint"]


def test_hooks_that_are_due_and_never_called_are_named(repository: Path) -> None:
    installed("claude")
    called("claude", "PostToolUse")
    assert silent() == ("ok", "SessionStart and Stop were never called here", None)
    called("claude", "SessionStart")
    assert silent() == ("ok", "Stop was never called here", None)
    called("claude", "SessionEnd")
    state, found, hint = silent()
    assert (state, found) == ("warning", "Stop was never called here")
    assert hint is not None
    called("claude", "Stop")
    assert len(looked()) == 1


def test_a_second_session_shows_that_the_first_stopped_unheard(repository: Path) -> None:
    installed("gemini")
    called("gemini", "SessionStart")
    called("gemini", "SessionStart")
    assert silent()[:2] == ("warning", "AfterAgent was never called here")


def faulty() -> list[dict[str, Any]]:
    checks = run("doctor", "--format", "json").json["checks"]
    return [check for check in checks if check["name"] == "hook faults"]


def test_faults_of_the_last_day_are_shown(repository: Path, home: Path) -> None:
    assert faulty() == []
    log = home / "state/guard/hooks.log"
    write(log, "2020-01-01T00:00:00Z pid 1: long ago\nno moment\n")
    assert faulty() == []
    called("claude", "Unheard")
    called("claude", "Unheard\x1b[31m" + "x" * 500)
    (found,) = faulty()
    assert (found["state"], found["hint"]) == ("warning", f"look into {log}")
    assert found["found"].startswith("2 lines in the last day; 20")
    assert "guard hook claude Unheard" in found["found"]
    assert len(found["found"]) < 300
    log.unlink()
    log.mkdir()
    assert faulty() == []


def test_events_that_are_missing(repository: Path) -> None:
    path = installed("claude")
    settings = json.loads(path.read_text())
    del settings["hooks"]["Stop"], settings["hooks"]["SessionEnd"]
    write(path, json.dumps(settings))
    state, found, hint = only()
    assert (state, hint) == ("warning", "guard install claude")
    assert found.startswith("local: missing: Stop, SessionEnd; ")


def test_hooks_of_another_version(repository: Path, home: Path) -> None:
    path = installed("claude", "--user")
    write(path, path.read_text().replace('"timeout": 60', '"timeout": 5'))
    state, found, hint = only()
    assert (state, hint) == ("warning", "guard install claude --user")
    assert found.startswith("user: of another version of guard; ")
    path = installed("opencode")
    write(path, path.read_text() + "\n")
    assert looked()[1]["found"].startswith("project: of another version of guard; ")


@pytest.mark.parametrize("program", ["/nowhere/guard", "nowhere-guard/guard", "env A=1 nowhere"])
def test_a_program_that_is_not_there(program: str, repository: Path) -> None:
    installed("claude", "--command", program)
    state, found, hint = only()
    assert (state, hint) == ("warning", "guard install claude")
    assert found.startswith(f"local: they call {program}, which is not there; ")


def test_hooks_that_are_switched_off(repository: Path) -> None:
    path = installed("claude")
    write(path, '{"disableAllHooks": true,' + path.read_text().lstrip("{"))
    assert only()[1].startswith("local: switched off; ")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}', "\0", '{"a": 1, "a": 2}'],
)
def test_a_file_that_cannot_be_read_is_a_warning(text: str, repository: Path) -> None:
    path = write(repository / ".claude" / "settings.json", text)
    state, found, hint = only()
    assert (state, hint) == ("warning", "fix the file")
    assert found.startswith(f"project: {path}: ")


def test_settings_without_guards_hooks_say_nothing(repository: Path) -> None:
    write(repository / ".claude" / "settings.json", '{"hooks": {"Stop": [1, {"hooks": 2}]}}')
    write(repository / ".codex" / "hooks.json", "")
    assert looked() == []


def codex_keys(path: Path) -> list[str]:
    labels = {
        "SessionStart": "session_start",
        "UserPromptSubmit": "user_prompt_submit",
        "PostToolUse": "post_tool_use",
        "SubagentStart": "subagent_start",
        "SubagentStop": "subagent_stop",
        "Stop": "stop",
        "SessionEnd": "session_end",
    }
    return [f"{path}:{labels[event]}:0:0" for event in json.loads(path.read_text())["hooks"]]


# What Codex 0.166.0 itself reckons for `guard hook codex EVENT`.
CODEX_HASHES = {
    "post_tool_use": "5526fbd92a5479c4827e41bf00bb5716af38c6393f32735424e0b8499fdeb1fd",
    "session_start": "84bb25ca9460d5bd136cc10c997665c77d0c419f3d8a077a1bb606e84fbea720",
    "session_end": "be59e0a9d61995d79239b98e0fbf2b724dea1d5e4bd6c4eed95704df167cdc34",
    "user_prompt_submit": "ad23a0caf6e1127f66c3f1869eace96b1a4770844b11bdccf6ea7b273bc90186",
    "subagent_start": "c50c69b85a7ed613d826ff0db434af02e7a50943abeebf72e8d4edd4fffe1148",
    "subagent_stop": "8236cb3cae536b93354558f554e61fcb9f9b709acbc3bc366ef8713f397e448e",
    "stop": "d2f1095da7cfaf0143ff4aa9af1d04973f3c136e291a9591dea53863c5b2c5d4",
}


def codex_config(home: Path, repository: Path, states: dict[str, str], level: str) -> None:
    lines = [f'[projects."{repository}"]', f'trust_level = "{level}"']
    for key, digest in states.items():
        lines += [f'[hooks.state."{key}"]', f'trusted_hash = "sha256:{digest}"']
    write(home / ".codex" / "config.toml", "\n".join(lines) + "\n")


def test_codex_knows_what_was_approved(repository: Path, home: Path) -> None:
    path = installed("codex")
    assert "project not trusted; " in only()[1]
    codex_config(home, repository, {}, "trusted")
    state, found, hint = only()
    assert (state, "; not trusted; " in found) == ("warning", True)
    assert hint == "open `codex` here and approve them in `/hooks`"
    known = {key: CODEX_HASHES[key.split(":")[1]] for key in codex_keys(path)}
    codex_config(home, repository, known, "trusted")
    assert "; trusted; never called here" in only()[1]
    codex_config(home, repository, {**known, f"{path}:stop:0:0": "0" * 64}, "trusted")
    assert "; changed since they were approved; " in only()[1]
    codex_config(home, repository, known, "untrusted")
    assert "; project not trusted; " in only()[1]
    codex_config(home, repository, known, "trusted")
    config = home / ".codex" / "config.toml"
    text = config.read_text()
    write(config, text + "enabled = false\n")
    assert "; switched off in Codex; " in only()[1]
    write(config, "[features]\nhooks = false\n" + text)
    assert "; hooks are switched off; " in only()[1]
    write(config, "not toml")
    assert "; project not trusted; " in only()[1]


def test_codex_asks_no_trust_in_a_project_for_hooks_of_the_user(
    repository: Path, home: Path
) -> None:
    path = installed("codex", "--user", "--command", "guard")
    known = {key: CODEX_HASHES[key.split(":")[1]] for key in codex_keys(path)}
    codex_config(home, repository, known, "untrusted")
    assert only()[1].startswith("user: installed, 7 events; trusted; ")


def test_gemini_and_its_trusted_folders(repository: Path, home: Path, tmp_path: Path) -> None:
    installed("gemini")
    assert "; folder not trusted; " in only()[1]
    assert "; trusted by GEMINI" in only({"GEMINI_CLI_TRUST_WORKSPACE": "true"})[1]
    rules = home / ".gemini" / "trustedFolders.json"
    for known, told in (
        ({str(repository): "TRUST_FOLDER"}, "; trusted; "),
        ({str(repository / "x"): "TRUST_PARENT"}, "; trusted; "),
        ({str(tmp_path): "TRUST_FOLDER"}, "; trusted; "),
        (
            {str(tmp_path): "TRUST_FOLDER", str(repository): "DO_NOT_TRUST"},
            "; folder not trusted; ",
        ),
        ({str(tmp_path / "other"): "TRUST_FOLDER"}, "; folder not trusted; "),
        ([], "; folder not trusted; "),
    ):
        write(rules, "// by gemini\n" + json.dumps(known))
        assert told in only()[1], known
    write(home / ".gemini" / "settings.json", '{"security": {"folderTrust": {"enabled": false}}}')
    assert "; trusted: folder trust is switched off; " in only()[1]
    assert "; folder not trusted; " in only({"GEMINI_CLI_TRUST_WORKSPACE": "false"})[1]


def test_qwen_asks_only_where_folder_trust_is_on(repository: Path, home: Path) -> None:
    installed("qwen")
    assert only()[1] == "project: installed, 7 events; never called here"
    write(home / ".qwen" / "settings.json", '{"security": {"folderTrust": {"enabled": true}}}')
    assert "; folder not trusted; " in only()[1]
    write(home / ".qwen" / "trustedFolders.json", json.dumps({str(repository): "TRUST_FOLDER"}))
    assert "; trusted; " in only()[1]


@pytest.mark.parametrize("name", ["trusted_folders", "trustedFolders"])
def test_copilot_and_its_trusted_folders(name: str, repository: Path, home: Path) -> None:
    installed("copilot")
    assert "; folder not trusted; " in only()[1]
    write(home / ".copilot" / "config.json", json.dumps({name: [7, str(repository)]}))
    assert "; trusted; " in only()[1]


def test_hooks_of_a_user_without_a_repository(tmp_path: Path, home: Path) -> None:
    installed("claude", "--user")
    result = run("doctor", "--format", "json", cwd=tmp_path)
    (found,) = [check for check in result.json["checks"] if check["name"] == "claude hooks"]
    assert found["found"].startswith("user: installed, 11 events; ")
