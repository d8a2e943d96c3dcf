"""The recipes and the workflows of the docs: executed where that can be done, valid where not."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from guard.errors import EXIT_CODES
from tests.support import ROOT, commit, git, write
from tests.support.npm import CLAUDE_AND_CODEX
from tests.support.sessions import script, until
from tests.support.workflows import definition

EXAMPLES = ROOT / "examples"
QUICK = "--no-probe --max-probes 1 --probe-interval 0"


@pytest.fixture
def project(repository: Path, tmp_path: Path) -> Path:
    """A repository with two open tasks, and an agent that does one of them at a time."""
    write(repository / "tasks.md", "- [ ] one\n- [ ] two\n")
    commit(repository, "first.txt")
    script(
        tmp_path / "agent",
        "sed -i '0,/\\[ \\]/s//[x]/' tasks.md && git add tasks.md && git commit -q -m \"feat: $1\"",
    )
    return repository


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Where `guard` is a command."""
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": place, "GUARD_OPTIONS": QUICK}


def executed(
    words: Sequence[str | Path], project: Path, environ: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, cwd=project, env=environ, capture_output=True, text=True, timeout=180, check=False
    )


def test_the_loop_in_bash(project: Path, environ: dict[str, str], tmp_path: Path) -> None:
    done = executed([EXAMPLES / "loop.sh", tmp_path / "agent", "a b"], project, environ)
    assert done.returncode == 0, done.stderr
    assert (project / "tasks.md").read_text() == "- [x] one\n- [x] two\n"
    assert done.stdout.count("complete: commits") == 2


DOCKER = """#!/bin/sh
# Takes the options of `docker run`, checks the mounts, and runs the command in the folder that is named.
echo "$*" >>"$HOME/docker.log"
while [ "$1" != guard-agent ]; do
    [ "$1" != --workdir ] || folder=$2
    [ "$1" != --volume ] || [ -d "${2%%:*}" ] || exit 125
    shift
done
shift
cd "$folder" && exec "$@"
"""


@pytest.mark.parametrize("linked", [False, True], ids=["work tree", "linked work tree"])
def test_the_agent_in_a_container(
    linked: bool, project: Path, environ: dict[str, str], tmp_path: Path, home: Path
) -> None:
    """Only the options can be tried here: what runs is the agent itself, where the container would run it."""
    docker = write(tmp_path / "programs" / "docker", DOCKER)
    docker.chmod(0o755)
    environ["PATH"] = f"{docker.parent}{os.pathsep}{environ['PATH']}"
    folder = project
    if linked:
        folder = tmp_path / "linked"
        git(project, "add", "-A")
        git(project, "commit", "-qm", "Add the tasks")
        git(project, "worktree", "add", "-q", str(folder), "-b", "other")
    agent = EXAMPLES / "container" / "agent.sh"
    told = ("guard", "run", "--no-probe", "--no-wait", "--")
    words: list[str | Path] = [*told, agent, tmp_path / "agent", "one"]
    done = executed(words, folder, environ)
    assert done.returncode == 0, done.stderr
    assert "complete: commits (1 new commit)" in done.stdout
    (line,) = (home / "docker.log").read_text().splitlines()
    assert f"--volume {folder}:{folder} " in line
    assert (f"--volume {project}/.git:{project}/.git" in line) == linked
    assert "--cap-drop ALL" in line


def test_the_container_has_the_agent_that_is_tried_here_and_not_guard() -> None:
    text = (EXAMPLES / "container" / "Dockerfile").read_text()
    (package, version), *_ = CLAUDE_AND_CODEX.pins.items()
    assert f"ARG AGENT={package}@{version}\n" in text
    assert "completion-guard" not in text
    settings = json.loads((EXAMPLES / "container" / "devcontainer.json").read_text())
    assert (EXAMPLES / "container" / settings["build"]["dockerfile"]).is_file()


def test_the_loop_in_bash_ends_when_the_breaker_opens(
    project: Path, environ: dict[str, str]
) -> None:
    done = executed([EXAMPLES / "loop.sh", "true"], project, environ)
    assert done.returncode == 20
    assert done.stdout.count("stalled: no_commits") == 3


def test_the_runner_in_python(project: Path, environ: dict[str, str], tmp_path: Path) -> None:
    words: list[str | Path] = [
        sys.executable,
        EXAMPLES / "runner.py",
        "5",
        tmp_path / "agent",
        "a b",
    ]
    done = executed(words, project, environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2: complete: commits, 1 new commits"


def test_the_session_of_tmux(project: Path, environ: dict[str, str], tmp_path: Path) -> None:
    server = f"-S {tmp_path}/tmux.sock"
    report = tmp_path / "report.json"
    told = {**environ, "TMUX_OPTIONS": server, "REPORT": str(report)}
    tmux = ["tmux", *server.split()]
    try:
        done = executed(
            [EXAMPLES / "tmux.sh", "login", tmp_path / "agent", "it's a 'b'"], project, told
        )
        assert done.returncode == 0, done.stderr
        assert executed([*tmux, "wait-for", "ended-login"], project, told).returncode == 0
        until(report.is_file, 90)
    finally:
        executed([*tmux, "kill-server"], project, told)
    assert json.loads(report.read_text())["status"] == "complete"
    log = executed(["git", "log", "-1", "--format=%s"], project, told).stdout
    assert log == "feat: it's a 'b'\n"


def unit() -> dict[str, str]:
    lines = (EXAMPLES / "guard-agent.service").read_text().splitlines()
    pairs = (line.partition("=") for line in lines if not line.startswith(("#", "[")) and line)
    return {key: value for key, _, value in pairs}


def test_the_unit_of_systemd_runs_what_it_says(
    project: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    write(project / "prompt.md", "Do the next task.\n")
    words = unit()["ExecStart"].split()
    program = words.index("--") + 1
    argv = [*words[: program - 1], *QUICK.split(), "--", str(tmp_path / "agent"), "x"]
    done = executed([*argv], project, environ)
    assert done.returncode == 0, done.stderr
    assert "[ ]" not in (project / "tasks.md").read_text()


def test_the_unit_of_systemd_is_valid(tmp_path: Path) -> None:
    codes = {*unit()["SuccessExitStatus"].split(), *unit()["RestartPreventExitStatus"].split()}
    assert codes <= set(map(str, EXIT_CODES))
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        copy = shutil.copy(EXAMPLES / "guard-agent.service", tmp_path)
        words = [analyze, "verify", "--user", copy]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert "guard-agent.service" not in done.stderr, done.stderr


PAGE = (ROOT / "docs" / "guide" / "github.md").read_text()
WORKFLOWS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_docs_show_five_workflows() -> None:
    names = [yaml.safe_load(text)["name"] for text in WORKFLOWS]
    assert names == ["agent", "loop", "nightly", "fleet", "proven"]


def test_every_workflow_is_valid_and_safe(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    files = [write(folder / f"w{n}.yml", text) for n, text in enumerate(WORKFLOWS)]
    for words in (
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, files)],
        ["zizmor", "--offline", "--no-progress", *map(str, files)],
    ):
        program = Path(sys.executable).with_name(words[0])
        done = subprocess.run([program, *words[1:]], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text", WORKFLOWS)
def test_every_workflow_names_inputs_and_outputs_that_there_are(text: str) -> None:
    action, used = definition(), 0
    for job in yaml.safe_load(text)["jobs"].values():
        for step in job["steps"]:
            if "/completion-guard@" in step.get("uses", ""):
                used += 1
                assert set(step["with"]) <= set(action["inputs"])
    assert used
    assert set(re.findall(r"steps\.guard\.outputs\.([\w-]+)", text)) <= set(action["outputs"])


def test_every_input_and_output_that_the_page_explains_exists() -> None:
    action = definition()
    inputs, _, outputs = PAGE.partition("## Inputs")[2].partition("## Outputs")
    named = re.findall(r"^\| `([\w-]+)`", inputs, re.MULTILINE)
    assert set(named) <= set(action["inputs"])
    table = "\n".join(re.findall(r"^\| (`[^|]+) \|", outputs, re.MULTILINE))
    assert set(re.findall(r"`([\w-]+)`", table)) == set(action["outputs"])
