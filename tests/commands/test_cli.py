"""The group: help, usage, the error boundary, and what the environment changes."""

import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

import guard.commands
from guard import __version__
from guard.agents import registry
from guard.cli import COMMANDS, GROUPS
from guard.errors import EXIT_CODES
from guard.store.file_store import FileStore
from tests.support import NOW, TIME_LIMIT, Result, commit, git, run, write
from tests.support.events import MOMENT
from tests.support.sessions import ending

HEAVY = ("pydantic", "pydantic_core", "git", "jsonschema", "requests", "rich", "guard.store")


def python(script: str, *words: str) -> Result:
    """Run a script of Python with these words as its arguments."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def started(*words: str | Path) -> subprocess.Popen[bytes]:
    """A guard that runs, with pipes for its output."""
    return subprocess.Popen(
        [sys.executable, "-m", "guard", *(os.fspath(word) for word in words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def test_help_has_every_exit_code_and_every_command_in_one_group() -> None:
    result = run("--help")
    assert (result.code, result.err) == (0, "")
    codes = result.out.rpartition("explains them):\n")[2]
    assert [int(code) for code in re.findall(r"\d+", codes)] == list(EXIT_CODES)
    shown = {
        title: tuple(re.findall(r"^  (\w+) ", rows, re.M))
        for title, rows in re.findall(r"^(\w+):\n((?:  .*\n)+)", result.out, re.M)
    }
    assert {title: shown[title] for title in GROUPS} == GROUPS
    assert sorted(name for names in GROUPS.values() for name in names) == list(COMMANDS)
    assert [line for line in result.out.splitlines() if len(line) > 80] == []


def test_the_topic_of_exit_codes_has_the_whole_table() -> None:
    result = run("help", "exit-codes")
    assert (result.code, result.err) == (0, "")
    table = [line.strip().split("  ") for line in result.out.splitlines()[2:]]
    assert table == [[str(code), meaning] for code, meaning in EXIT_CODES.items()]
    assert list(EXIT_CODES) == [0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17, 20, 130]


@pytest.mark.parametrize("words", [[], ["check"], ["agent", "spawn"]], ids=" ".join)
def test_help_of_a_command_is_the_same_by_both_ways(words: list[str]) -> None:
    assert run("help", *words).out == run(*words, "--help").out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["chekc"], "no such command 'chekc'; did you mean `guard check`?"),
        (["reprot", "--html", "x"], "no such command 'reprot'; did you mean `guard report`?"),
        (["help", "exit-code"], "did you mean `guard help exit-codes`?"),
        (["help", "agent", "spwan"], "did you mean `guard help agent spawn`?"),
    ],
)
def test_a_command_that_is_misspelt_is_recognised(words: list[str], meant: str) -> None:
    result = run(*words)
    assert (result.code, result.out) == (2, "")
    assert meant in result.err


@pytest.mark.parametrize("word", ["--help", "-h", "--version"])
def test_help_and_version_load_nothing_heavy(word: str) -> None:
    script = """if True:
        import atexit, json, sys
        from guard import cli
        heavy, sys.argv[1:] = sys.argv[2:], sys.argv[1:2]
        loaded = lambda: [name for name in heavy if name in sys.modules]
        atexit.register(lambda: print(json.dumps(loaded()), file=sys.stderr))
        cli.main()
    """
    result = python(script, word, *HEAVY)
    assert (result.code, json.loads(result.err)) == (0, [])


def test_version() -> None:
    assert run("--version").out == f"guard, version {__version__}\n"


def test_every_module_of_commands_is_a_command_and_none_else() -> None:
    modules = {module.name for module in pkgutil.iter_modules(guard.commands.__path__)}
    assert modules - {"options"} == set(COMMANDS)
    assert list(COMMANDS) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_help_line_is_the_commands_own(name: str) -> None:
    command = import_module(f"guard.commands.{name}").command
    assert command.name == name
    assert command.help.partition("\n")[0] == COMMANDS[name]


def leaves(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for child in command.commands.values():
            yield from leaves(child)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    for command in leaves(import_module(f"guard.commands.{name}").command):
        options = [param for param in command.params if isinstance(param, click.Option)]
        assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (["nope"], "guard"),
        (["--nope"], "guard"),
        (["log", "--nope"], "guard log"),
        (["log", "-n", "-1"], "guard log"),
        (["where", "--format", "xml"], "guard where"),
        (["agent", "nope"], "guard agent"),
        (["agent", "update", "--task", "T1"], "guard agent update"),
        (["--repo", "nowhere", "where"], "guard"),
        (["help", "nope"], "guard"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_a_sentence_and_a_hint(words: list[str], about: str) -> None:
    result = run(*words)
    assert (result.code, result.out) == (2, "")
    first, hint = result.err.splitlines()
    assert first.startswith("guard: ")
    assert hint == f"hint: `{about} --help` shows the usage"


@pytest.mark.parametrize("words", [[], ["agent"]], ids=["guard", "guard agent"])
def test_without_a_command_the_help_is_shown_line_by_line(words: list[str]) -> None:
    result = run(*words)
    assert result.code == 2
    assert "\\x0a" not in result.err
    assert "Usage: guard" in result.out + result.err


BROKEN = """if True:
    import sys, types, click
    from guard import cli, errors
    error = sys.argv.pop(1)
    module = types.ModuleType("guard.commands.broken")
    @click.command("broken")
    def command():
        raise eval(error)
    module.command = command
    sys.modules[module.__name__] = module
    cli.COMMANDS["broken"] = "Break."
    cli.main()
"""
"""Guard with one more command, which raises what the first argument says."""


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        ("errors.Refused('no', 'ask')", 1, "guard: no\nhint: ask\n"),
        ("errors.WrongUsage('no', 'ask')", 2, "guard: no\nhint: ask\n"),
        ("errors.ConfigProblem('no')", 4, "guard: no\n"),
        ("errors.RepositoryProblem('no')", 4, "guard: no\n"),
        ("errors.StateProblem('two\\nlines')", 5, "guard: two\\x0alines\n"),
        ("errors.StoreUnavailable('no')", 6, "guard: no\n"),
        ("click.ClickException('no')", 2, "guard: no\n"),
        ("KeyboardInterrupt()", 130, "\nguard: interrupted\n"),
    ],
)
def test_an_error_is_its_exit_code_and_its_sentence(raised: str, code: int, said: str) -> None:
    result = python(BROKEN, raised, "broken")
    assert (result.code, result.out, result.err) == (code, "", said)


def test_an_error_of_the_system_names_the_file() -> None:
    result = python(BROKEN, "OSError(28, 'No space left on device', 'some/file')", "broken")
    assert (result.code, result.out) == (6, "")
    assert result.err.startswith("guard: some/file: No space left on device\nhint: ")


@pytest.mark.parametrize("verbose", [False, True], ids=["plain", "-v"])
def test_a_bug_is_exit_3_and_one_line_with_the_traceback_only_on_demand(verbose: bool) -> None:
    words = ["-v", "broken"] if verbose else ["broken"]
    result = python(BROKEN, "RuntimeError('two\\nlines \\x1b[31m')", *words)
    assert (result.code, result.out) == (3, "")
    *before, line, hint = result.err.splitlines()
    assert line.startswith("guard: a bug in guard: RuntimeError: two\\x0alines \\x1b[31m (")
    assert hint.startswith("hint: run the command again with -v")
    assert bool(before) == ("Traceback" in result.err) == verbose
    assert "\x1b" not in result.err


def with_agents(workspace: Path, number: int, message: str = "") -> FileStore:
    store = FileStore(workspace)
    for count in range(number):
        registry.spawn(store, MOMENT, task_id="T1", agent_id=f"a{count}", message=message)
    return store


def test_a_reader_that_leaves_is_no_trouble(workspace: Path) -> None:
    with_agents(workspace, 60, "x" * 5000)
    with ending(started("--workspace", workspace, "log")) as process:
        assert process.stdout
        assert process.stderr
        assert b"segment_opened" in process.stdout.readline()
        process.stdout.close()
        assert (process.wait(TIME_LIMIT), process.stderr.read()) == (0, b"")


def test_ctrl_c_ends_following_with_130(workspace: Path) -> None:
    with_agents(workspace, 1)
    with ending(started("--workspace", workspace, "log", "--follow")) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(TIME_LIMIT) == 130
        assert process.stderr.read().strip() == b"guard: interrupted"


def test_guard_now_is_the_time_of_what_is_recorded(workspace: Path) -> None:
    words = ["agent", "spawn", "--task", "T1", "--agent", "a1", "--format", "json"]
    result = run("--workspace", workspace, *words, env={"GUARD_NOW": NOW})
    assert result.json["agent"]["spawned_at"] == NOW


@pytest.mark.parametrize("now", ["yesterday", "2026-02-31", "0001-01-01T00:00:00+05:00"])
def test_a_guard_now_that_is_no_time_is_wrong_usage(now: str) -> None:
    result = run("schema", env={"GUARD_NOW": now})
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"guard: GUARD_NOW is '{now}'")


def test_variables_of_git_do_not_mislead(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    misleading = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_COMMON_DIR": str(other / ".git"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Somebody Else",
    }
    commit(repository)
    assert run("where", env=misleading).out == run("where").out
    checks = run("doctor", "--format", "json", env=misleading).json["checks"]
    assert [c["found"] for c in checks if c["name"] == "identity"] == [
        "Test Author <author@example.com>"
    ]


def test_quiet_silences_warnings_and_not_errors(repository: Path) -> None:
    write(repository / "guard.toml", 'workspace = "/elsewhere"\n')
    assert "workspace is ignored" in run("where").err
    assert run("-q", "where").err == ""
    assert run("-q", "schema", "nope").err.startswith("guard: there is no schema")
