"""`guard install` and `guard uninstall`: what they write, what they leave alone, and what they refuse."""

import errno
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guard.errors import ConfigProblem
from guard.install.agents import AGENT_CLIS
from guard.install.settings_file import replace_text
from guard.schemas.validate import validator
from tests.support import ROOT, TIME_LIMIT, Result, git, run, tool_folder, write

PROJECT = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "copilot": ".github/hooks/guard.json",
    "opencode": ".opencode/plugin/guard.js",
}
USER = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "copilot": ".copilot/hooks/guard.json",
    "opencode": ".config/opencode/plugin/guard.js",
}
MOVED = {
    "claude": ("CLAUDE_CONFIG_DIR", "settings.json"),
    "codex": ("CODEX_HOME", "hooks.json"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/settings.json"),
    "qwen": ("QWEN_HOME", "settings.json"),
    "copilot": ("COPILOT_HOME", "hooks/guard.json"),
    "opencode": ("XDG_CONFIG_HOME", "opencode/plugin/guard.js"),
}


@pytest.fixture(autouse=True)
def no_guard_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The search path of the tests: git and a shell, in a folder to which a test may add."""
    folder = tool_folder(tmp_path / "tools")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    return folder


def report(result: Result) -> Any:
    assert (result.code, result.err) == (0, "")
    assert list(validator("install").iter_errors(result.json)) == []
    return result.json


def install(*words: str | Path, env: dict[str, str] | None = None) -> Any:
    return report(run("install", *words, "--format", "json", env=env))


def uninstall(*words: str | Path, env: dict[str, str] | None = None) -> Any:
    return report(run("uninstall", *words, "--format", "json", env=env))


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but git's and guard's own."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in found
        if not {".git", "state"} & set(path.relative_to(folder).parts)
    }


def folders(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"state"}


@pytest.mark.parametrize("agent", AGENT_CLIS)
def test_in_and_out_for_a_project(agent: str, repository: Path) -> None:
    path = repository / PROJECT[agent]
    done = install(agent, "--project")
    assert (done["paths"], done["changed"], done["scope"]) == ([str(path)], True, "project")
    assert set(done["events"]) == set(AGENT_CLIS[agent].events)
    assert "+++ " + str(path) in done["diff"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    written = path.read_bytes()
    again = install(agent, "--project")
    assert (again["changed"], again["diff"], path.read_bytes()) == (False, "", written)
    gone = uninstall(agent)
    assert (gone["changed"], set(gone["events"])) == (True, set(AGENT_CLIS[agent].events))
    assert folders(repository) == {".git"}
    assert uninstall(agent)["changed"] is False


@pytest.mark.parametrize("agent", AGENT_CLIS)
def test_in_and_out_for_a_user(agent: str, repository: Path, home: Path, tmp_path: Path) -> None:
    assert install(agent, "--user")["paths"] == [str(home / USER[agent])]
    assert folders(repository) == {".git"}
    uninstall(agent, "--user")
    assert folders(home) == set()
    variable, name = MOVED[agent]
    moved = {variable: str(tmp_path / "moved")}
    assert install(agent, "--user", env=moved)["paths"] == [str(tmp_path / "moved" / name)]
    uninstall(agent, "--user", env=moved)
    assert not (tmp_path / "moved").exists()


def test_a_user_needs_no_repository(tmp_path: Path) -> None:
    assert run("install", "codex", "--user", cwd=tmp_path).code == 0
    refused = run("install", "codex", cwd=tmp_path)
    assert (refused.code, refused.out) == (4, "")


def test_a_dry_run_shows_the_difference_and_writes_nothing(repository: Path, home: Path) -> None:
    write(repository / ".claude" / "settings.local.json", '{\n\t"model": "opus"\n}\n')
    before = (tree(repository), tree(home), folders(home))
    shown = run("install", "claude", "--dry-run")
    assert shown.code == 0
    assert '+    "hooks": {' in shown.out.splitlines()
    assert (
        f"{repository}/.claude/settings.local.json: would be written (SessionStart, " in shown.out
    )
    assert install("codex", "--dry-run")["changed"] is True
    assert (tree(repository), tree(home), folders(home)) == before
    install("claude")
    with_hooks = tree(repository)
    assert uninstall("claude", "--dry-run")["changed"] is True
    assert tree(repository) == with_hooks


def test_the_text_says_what_is_to_be_done(repository: Path) -> None:
    lines = run("install", "codex").out.splitlines()
    assert lines[0].startswith(f"{repository}/.codex/hooks.json: written (SessionStart, ")
    assert lines[-1] == "`guard uninstall codex` takes it back; `--diff` shows every line"
    assert len(lines) < 10
    assert run("uninstall", "codex", "--diff").out.startswith("--- ")
    assert run("install", "codex", "--diff").out.startswith("--- /dev/null")
    assert any("approve them in `/hooks`" in line for line in lines if line.startswith("note: "))
    assert "nothing to change" in run("install", "codex").out
    assert "trust" in run("install", "gemini").out
    assert "trust" in run("install", "copilot").out
    removed = run("uninstall", "codex").out.splitlines()[-1]
    assert removed.startswith(f"{repository}/.codex/hooks.json: removed from it (SessionStart, ")


def commands(path: Path) -> list[str]:
    hooks = json.loads(path.read_text())["hooks"].values()
    return [handler["command"] for items in hooks for item in items for handler in item["hooks"]]


def console_script(folder: Path, name: str = "guard") -> Path:
    """The program of this very installation, reached through a link."""
    link = folder / name
    link.symlink_to(Path(sys.executable).parent / name)
    return link


def test_a_project_names_guard_by_its_name_if_that_leads_here(
    repository: Path, no_guard_on_path: Path
) -> None:
    own = str(Path(sys.executable).parent / "guard")
    done = install("claude", "--project")
    assert done["command"] == own
    assert any("on this machine only" in note for note in done["notes"])
    link = console_script(no_guard_on_path)
    done = install("claude", "--project")
    assert (done["command"], done["changed"]) == ("guard", True)
    assert not any("on this machine only" in note for note in done["notes"])
    assert install("claude", "--user")["command"] == str(link)
    link.unlink()
    write(link, "#!/bin/sh\n# Another program of this name.\n").chmod(0o755)
    assert install("claude", "--project")["command"] == own
    console_script(no_guard_on_path, "completion-guard")
    assert install("claude", "--project")["command"] == "completion-guard"


@pytest.mark.parametrize(
    ("told", "line"),
    {
        "a path with blanks": ("'/opt/my tools/guard'", "'/opt/my tools/guard' hook claude Stop"),
        "a module": ("python3 -m guard", "python3 -m guard hook claude Stop"),
        "a wrapper": ("/opt/run", "/opt/run hook claude Stop # completion-guard"),
    }.values(),
)
def test_a_command_of_ones_own(told: str, line: str, repository: Path) -> None:
    done = install("claude", "--command", told)
    assert done["command"] == told
    path = repository / ".claude" / "settings.local.json"
    assert line in commands(path)
    assert install("claude", "--command", told)["changed"] is False
    install("claude")
    assert line not in commands(path)
    install("claude", "--command", told)
    uninstall("claude")
    assert folders(repository) == {".git"}


def test_a_line_of_the_users_that_calls_guard_is_named_and_stays(repository: Path) -> None:
    line = "notify-send done; guard hook claude Stop"
    theirs = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}}
    path = write(repository / ".claude" / "settings.local.json", json.dumps(theirs))
    note = f"Stop: `{line}` also calls guard; it stays"
    assert note in install("claude")["notes"]
    assert [one for one in commands(path) if one.endswith("claude Stop")] == [line]
    assert uninstall("claude")["notes"] == [note]
    assert json.loads(path.read_text()) == theirs


def test_a_file_of_comments_alone_is_one_again(repository: Path) -> None:
    for agent in ("copilot", "codex"):
        path = write(repository / PROJECT[agent], "{\n  // nothing yet\n}\n")
        install(agent)
        assert "version" in path.read_text() or agent == "codex"
        uninstall(agent)
        assert path.read_text() == "{\n  // nothing yet\n}\n"


def test_a_command_with_operators_is_known_by_its_mark(repository: Path) -> None:
    install("claude", "--command", "cd /opt && guard --repo /gone")
    line = "cd /opt && guard --repo /gone hook claude Stop # completion-guard"
    assert line in commands(repository / ".claude" / "settings.local.json")
    assert install("claude")["notes"] == install("claude", "--dry-run")["notes"]
    assert uninstall("claude")["notes"] == []
    assert folders(repository) == {".git"}


@pytest.mark.parametrize("told", ["", "  ", "guard '", "guard\nrm", "guard \x1b[2J"])
def test_a_command_that_is_none_is_wrong_usage(told: str, repository: Path) -> None:
    result = run("install", "claude", "--command", told)
    assert (result.code, result.out) == (2, "")
    assert folders(repository) == {".git"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["svn"],
            "'svn' is not one of 'claude', 'codex', 'gemini', 'qwen', 'copilot', 'opencode', 'git'",
        ),
        ([], "Missing argument"),
        (["claude", "--user", "--project"], "--user and --project exclude each other"),
        (["claude", "--local", "--plugin", "p"], "--local and --plugin exclude each other"),
        (["codex", "--local"], "--local is for claude only"),
        (["gemini", "--plugin", "p"], "--plugin is for claude only"),
    ],
)
def test_wrong_usage(words: list[str], said: str, repository: Path) -> None:
    for verb in ("install", "uninstall"):
        result = run(verb, *words)
        assert (result.code, result.out) == (2, "")
        assert said in result.err
    assert folders(repository) == {".git"}


def test_local_settings(repository: Path) -> None:
    done = install("claude", "--local")
    assert done["paths"] == [str(repository / ".claude" / "settings.local.json")]
    assert Path(done["command"]).is_absolute()
    uninstall("claude", "--local")
    assert folders(repository) == {".git"}


EXISTING = {
    "an empty object": b"{}",
    "comments": b'// mine\n{\n  "a": 1, // one\n}\n',
    "other hooks": b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}\n',
    "empty hooks": b'{\n\t"hooks": {"Stop": [ ] }\n}',
    "lines of Windows": b'\xef\xbb\xbf{\r\n    "\xc3\xa9": "\xf0\x9f\x99\x82"\r\n}\r\n',
    "nothing": b"",
}


@pytest.mark.parametrize("data", EXISTING.values(), ids=EXISTING)
def test_a_file_that_was_there_comes_back_byte_for_byte(data: bytes, repository: Path) -> None:
    path = write(repository / ".claude" / "settings.local.json", data)
    path.chmod(0o600)
    install("claude", "--command", "/old/guard")
    install("claude")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    uninstall("claude")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (data, 0o600)
    assert folders(path.parent) == {"settings.local.json"}


def test_without_a_memory_what_is_empty_goes(repository: Path, home: Path) -> None:
    path = write(repository / ".claude" / "settings.local.json", '{"a": 1, "hooks": {}}')
    install("claude")
    shutil.rmtree(home / "state")
    uninstall("claude")
    assert path.read_text() == '{"a": 1}'
    write(path, "{}")
    install("claude")
    for kept in (home / "state").rglob("*.json"):
        kept.write_bytes(b'{"schema": "guard/installed/1", "folders": ["/"]}')
    uninstall("claude")
    assert not path.exists()


REFUSED = {
    "broken": b'{"a": ',
    "a list": b"[]",
    "hooks is a text": b'{"hooks": "none"}',
    "a key twice": b'{"a": 1, "a": 2}',
    "no text": b'{"a": "\xff"}',
    "too large": b"{}" + b" " * (1 << 20),
    "deep": b"[" * 5000,
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_a_file_that_does_not_fit_is_left_alone(data: bytes, repository: Path, home: Path) -> None:
    path = write(repository / ".claude" / "settings.local.json", data)
    for verb in ("install", "uninstall"):
        result = run(verb, "claude")
        assert result.code == 4
        assert result.err.startswith(f"guard: {path}")
        assert "\nhint: " in result.err
        assert run(verb, "claude", "--format", "json").out == ""
    assert tree(repository) == {".claude/settings.local.json": data}
    assert folders(home) == set()


def test_what_would_be_put_into_a_file_that_does_not_fit_is_shown(repository: Path) -> None:
    write(repository / ".claude" / "settings.local.json", "{")
    first, _, snippet = run("install", "claude").out.partition("\n")
    assert first == "What would be put into it:"
    assert set(json.loads(snippet)["hooks"]) == set(AGENT_CLIS["claude"].events)


@pytest.mark.parametrize("kind", ["a folder", "a pipe"])
def test_what_is_no_file_is_refused(kind: str, repository: Path) -> None:
    path = repository / ".codex" / "hooks.json"
    path.parent.mkdir()
    path.mkdir() if kind == "a folder" else os.mkfifo(path)
    result = run("install", "codex")
    assert (result.code, result.out) == (4, "")
    assert str(path) in result.err


def test_a_file_of_the_same_name_that_is_not_guards(repository: Path) -> None:
    path = write(repository / ".opencode" / "plugin" / "guard.js", "export const Mine = 1;\n")
    assert run("install", "opencode").code == 4
    assert uninstall("opencode")["changed"] is False
    assert path.read_text() == "export const Mine = 1;\n"


def test_links_of_a_user_are_followed(repository: Path, home: Path, tmp_path: Path) -> None:
    target = write(tmp_path / "dotfiles" / "claude.json", '{"a": 1}')
    (home / ".claude").mkdir()
    link = home / ".claude" / "settings.json"
    link.symlink_to(target)
    assert install("claude", "--user")["paths"] == [str(target)]
    assert link.is_symlink()
    assert "hooks" in json.loads(target.read_text())
    uninstall("claude", "--user")
    assert (link.is_symlink(), target.read_text()) == (True, '{"a": 1}')


@pytest.mark.parametrize("which", ["the file", "its folder", "a dangling one"])
def test_links_out_of_a_project_are_refused(which: str, repository: Path, tmp_path: Path) -> None:
    target = write(tmp_path / "outside" / "settings.json", "{}")
    folder = repository / ".claude"
    if which == "its folder":
        folder.symlink_to(target.parent)
    else:
        folder.mkdir()
        (folder / "settings.local.json").symlink_to(
            target if which == "the file" else tmp_path / "nowhere.json"
        )
    for verb in ("install", "uninstall"):
        result = run(verb, "claude")
        assert (result.code, result.out) == (4, "")
        assert "is not in the repository" in result.err
    assert target.read_text() == "{}"
    assert not (tmp_path / "nowhere.json").exists()


def test_links_within_a_project_are_followed(repository: Path) -> None:
    target = write(repository / "shared" / "claude.json", "{}")
    (repository / ".claude").mkdir()
    (repository / ".claude" / "settings.local.json").symlink_to("../shared/claude.json")
    install("claude")
    assert "hooks" in json.loads(target.read_text())
    uninstall("claude")
    assert target.read_text() == "{}"


def test_a_read_only_file_is_refused(repository: Path) -> None:
    path = write(repository / ".claude" / "settings.local.json", "{}")
    path.chmod(0o444)
    result = run("install", "claude")
    assert (result.code, result.out) == (4, "")
    assert f"{path} is read-only" in result.err
    assert path.read_text() == "{}"


def as_a_user(*words: str) -> Result:
    """As root too, without the right to write where a user may not."""
    command = [sys.executable, "-m", "guard", *words]
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv", path="/usr/bin:/bin")
        assert setpriv
        command = [setpriv, "--bounding-set", "-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def test_a_folder_that_cannot_be_written_is_refused(repository: Path) -> None:
    path = write(repository / ".claude" / "settings.local.json", "{}")
    path.parent.chmod(0o555)
    existing = as_a_user("install", "claude")
    path.parent.chmod(0o755)
    repository.chmod(0o555)
    new = as_a_user("install", "codex")
    repository.chmod(0o755)
    for result, named in ((existing, path), (new, repository / ".codex")):
        assert (result.code, result.out) == (4, "")
        assert str(named) in result.err
    assert tree(repository) == {".claude/settings.local.json": b"{}"}


def test_the_plugin_folder_is_what_ships(
    repository: Path, tmp_path: Path, no_guard_on_path: Path
) -> None:
    console_script(no_guard_on_path)
    done = install("claude", "--plugin", tmp_path / "plugin")
    assert len(done["paths"]) == 2
    assert tree(tmp_path / "plugin") == tree(ROOT / "hooks" / "claude-plugin")
    assert install("claude", "--plugin", tmp_path / "plugin")["changed"] is False
    install("claude", "--plugin", tmp_path / "plugin", "--command", "/opt/guard")
    uninstall("claude", "--plugin", tmp_path / "plugin")
    assert not (tmp_path / "plugin").exists()


def test_somebody_elses_plugin_is_left_alone(repository: Path, tmp_path: Path) -> None:
    write(tmp_path / "plugin" / "hooks" / "hooks.json", '{"hooks": {}}')
    before = tree(tmp_path / "plugin")
    assert run("install", "claude", "--plugin", tmp_path / "plugin").code == 4
    assert uninstall("claude", "--plugin", tmp_path / "plugin")["changed"] is False
    assert tree(tmp_path / "plugin") == before


def test_two_at_once_leave_one_of_each(repository: Path) -> None:
    write(repository / ".claude" / "settings.local.json", '{\n  "a": 1\n}\n')
    words = [sys.executable, "-m", "guard", "install", "claude", "--command"]
    running = [
        subprocess.Popen([*words, f"/opt/{number}/guard"], stdout=subprocess.DEVNULL)
        for number in range(4)
    ]
    assert [process.wait(TIME_LIMIT) for process in running] == [0, 0, 0, 0]
    path = repository / ".claude" / "settings.local.json"
    found = [shlex.split(line)[0] for line in commands(path)]
    assert len(found) == len(AGENT_CLIS["claude"].events)
    assert len(set(found)) == 1
    assert folders(path.parent) == {"settings.local.json"}
    uninstall("claude")
    assert path.read_text() == '{\n  "a": 1\n}\n'


def test_a_name_that_is_no_text_is_spelled_out(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    git(folder, "init", "-q")
    result = run("install", "codex", "--format", "json", cwd=folder)
    assert (result.code, result.err) == (0, "")
    assert (folder / ".codex" / "hooks.json").exists()


def test_escapes_in_a_file_do_not_reach_the_terminal(repository: Path) -> None:
    write(repository / ".claude" / "settings.local.json", '{\n  "a": "\u202e\x7f\u009b31m"\n}\n')
    shown = run("install", "claude", "--dry-run").out
    assert "\\u202e" in shown
    assert not {"\u202e", "\x7f", "\u009b"} & set(shown)


def test_a_full_disk_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ConfigProblem) as caught:
        replace_text(path, None, "{}")
    assert caught.value.hint == "make room on its disk"
    assert list(tmp_path.glob(".settings*")) == []
