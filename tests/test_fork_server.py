"""The process that `run` calls guard in is like one that was started."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import fork_client, prepared_server, run
from tests.support.sessions import script, until

CALLS = {
    "help": ("--help",),
    "the help of a command": ("check", "--help"),
    "no such command": ("nonsense",),
    "a negative verdict": ("check", "--no-probe", "--no-wait"),
    "a result": ("where",),
    "a document": ("config", "--format", "json"),
    "a hook": ("hook", "claude", "Stop"),
}


@pytest.mark.parametrize("words", CALLS.values(), ids=CALLS)
def test_it_says_and_returns_the_same(words: tuple[str, ...], repository: Path) -> None:
    assert run(*words) == run(*words, fresh=True)


def test_it_has_the_folder_the_environment_and_the_input(repository: Path, tmp_path: Path) -> None:
    agent = script(tmp_path / "agent", 'cat; pwd; echo "$SAID"; exit 3').strip("'")
    words = ("run", "--no-probe", "--no-wait", "--", agent)
    result = run(*words, cwd=repository, env={"SAID": "é"}, stdin="text\n")
    assert result.out.startswith(f"text\n{repository}\né\n")


BUILT = """
from pydantic import BaseModel
def below(model):
    for one in model.__subclasses__():
        yield one
        yield from below(one)
own = [one for one in below(BaseModel) if one.__module__.startswith("guard.")]
print(len(own) > 100, [one.__name__ for one in own if not one.__pydantic_complete__])
"""


def test_its_models_are_built_before_it_forks(repository: Path) -> None:
    assert run(script=BUILT).out == "True []\n"


def test_input_and_output_larger_than_a_pipe(repository: Path) -> None:
    text = "x" * 1_000_000
    result = run("run", "--no-probe", "--no-wait", "--", "cat", stdin=text)
    assert result.out.startswith(text)


def test_many_at_once_each_get_their_own_answer(repository: Path) -> None:
    names = ["check", "log", "run", "where"] * 4
    with ThreadPoolExecutor(16) as at_once:
        results = at_once.map(lambda name: run(name, "--help"), names)
        assert [re.findall("(\\w+) \\[", result.out)[0] for result in results] == names


def test_one_that_takes_too_long_is_killed(repository: Path, tmp_path: Path) -> None:
    server = fork_client.Prepared()
    # It ends with guard, so that nothing is left behind.
    agent = f"echo $PPID > {tmp_path}/pid; while kill -0 $PPID; do sleep 0.1; done"
    words = ["run", "--no-probe", "--", "sh", "-c", agent]
    for limit in (10, 60):  # On a busy machine the agent may not be up by the first of these.
        with pytest.raises(subprocess.TimeoutExpired):
            server.call(words, os.environ, cwd=None, stdin=None, timeout=limit)
        if (tmp_path / "pid").exists():
            break
    server.end()
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        ([], {"PYTHONUTF8": "0"}),
        ([], {"LC_ALL": "C"}),
        ([], {"COVERAGE_PROCESS_START": "x"}),
        (["a\0b"], {}),
        (["x" * 200_000], {}),
    ],
)
def test_what_only_a_start_can_show_is_started(words: list[str], environ: dict[str, str]) -> None:
    assert prepared_server().fits([], os.environ)
    assert not prepared_server().fits(words, {**os.environ, **environ})
