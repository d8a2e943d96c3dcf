"""Test runs that an agent CLI's hooks report, from the hook's call to the validation of a claim."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.agent.documents import data
from tests.support import git, run, write

MESSAGE = "Implemented the parser in src/app.py and ran the tests: all 3 tests pass."
GREEN = "..." + " " * 20 + "\n3 passed in 0.10s"
NPM = "\n> demo@1.0.0 test\n> node --test\n\n# tests 3\n# pass 3\n# fail 0\n"


@pytest.fixture(autouse=True)
def project(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which an agent was spawned and has done its work."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    write(repository / "src" / "app.py", "APP = 1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Begin")
    spawn("a1")
    edit(repository, "APP = parse()\n")
    return repository


def spawn(agent: str) -> None:
    words = ("--task", "T1", "--agent", agent, "--type", "builder")
    assert run("agent", "spawn", *words).code == 0


def edit(repository: Path, text: str) -> None:
    write(repository / "src" / "app.py", text)


def use(
    command: str, output: str = GREEN, agent: str = "claude", session: str = "s1", **more: Any
) -> None:
    """The hook after a shell command, called as the agent CLI does."""
    event, fields = EVENTS[agent](command, output)
    names = {"sessionId": session} if agent == "copilot" else {"session_id": session}
    event = more.pop("event", event)
    name = event if agent != "claude" else "PostToolUse"
    told = data(agent, name, cwd=str(Path.cwd()), **{**names, **fields, **more})
    result = run("hook", agent, event, stdin=told.decode())
    assert (result.code, result.out, result.err) == (0, "", "")


def _claude(command: str, output: str) -> tuple[str, dict[str, Any]]:
    response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    return "PostToolUse", {"tool_input": {"command": command}, "tool_response": response}


def _codex(command: str, output: str) -> tuple[str, dict[str, Any]]:
    return "PostToolUse", {"tool_input": {"command": command}, "tool_response": output}


def _llm(event: str, end: str) -> Any:
    def fields(command: str, output: str) -> tuple[str, dict[str, Any]]:
        response = {"llmContent": f"Output: {output}\n{end}", "returnDisplay": output}
        return event, {"tool_input": {"command": command}, "tool_response": response}

    return fields


def _copilot(command: str, output: str) -> tuple[str, dict[str, Any]]:
    text = f"{output}\n<shellId: 0 completed with exit code 0>"
    result = {"resultType": "success", "textResultForLlm": text}
    return "postToolUse", {"toolArgs": {"command": command}, "toolResult": result}


EVENTS: dict[str, Any] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _llm("AfterTool", "Process Group PGID: 24384"),
    "qwen": _llm("PostToolUse", "Error: (none)\nExit Code: 0\nSignal: (none)"),
    "copilot": _copilot,
}


def claim(agent: str = "a1", **environ: str) -> tuple[int, bool]:
    """How many test runs guard knows of, and whether the claim of a run is contradicted."""
    words = ("--task", "T1", "--agent", agent, "--status", "completed", "--message", MESSAGE)
    result = run("agent", "update", *words, "--format", "json", env=environ)
    assert result.code == 0, result.err
    found = result.json["completion_validation"]
    count = found["evidence_summary"]["workspace_evidence"]["test_runs_count"]
    told = " ".join((*found["warnings"], *found["blocking_issues"]))
    return count, "run of tests" in told or "last recorded run failed" in told


@pytest.mark.parametrize("agent", EVENTS)
def test_a_run_that_hooks_report_counts(agent: str) -> None:
    use("npm test", NPM, agent)
    use("ls", "src", agent)
    use("cd sub && python -m pytest -p no:cacheprovider -q", GREEN, agent)
    use("git status", "clean", agent)
    assert claim() == (2, False)


def test_what_only_looks_like_a_run_does_not_count() -> None:
    for command, output in (
        ("pytest || true", GREEN),
        ("echo pytest: 3 passed", "pytest: 3 passed"),
        ("npm test", "\n> demo@1.0.0 test\n> tsc --noEmit\n\n"),
        ("mypy src && ruff check .", "Success"),
        ("pytest --collect-only", "3 tests collected"),
        ("pytest -q tests/none", "no tests ran in 0.01s"),
    ):
        use(command, output)
    assert claim() == (0, True)


def test_a_green_run_before_an_edit_does_not_count(project: Path) -> None:
    use("pytest -q")
    later = time.time() + 1
    edit(project, "APP = parse(2)\n")
    os.utime(project / "src" / "app.py", (later, later))
    assert claim() == (0, True)


def test_a_green_run_before_an_edit_that_hooks_report_does_not_count() -> None:
    use("pytest -q")
    path = {"file_path": str(Path.cwd() / "src/gone.py"), "content": "x"}
    use("", tool_name="Write", tool_input=path, tool_response={"type": "update"})
    assert claim() == (0, True)


def test_an_edited_document_leaves_the_runs() -> None:
    use("pytest -q")
    path = {"file_path": str(Path.cwd() / "README.md"), "content": "x"}
    use("", tool_name="Write", tool_input=path, tool_response={"type": "update"})
    assert claim() == (1, False)


def test_the_newest_run_decides() -> None:
    use("pytest -q")
    error = "Exit code 1\n1 failed, 2 passed in 0.10s"
    use("pytest -q", event="PostToolUseFailure", tool_response=None, error=error)
    assert claim()[1]


def test_an_exit_code_tells_of_a_failure() -> None:
    response = {"output": "boom", "exit_code": 2}
    use("make test", agent="codex", tool_response=response)
    assert claim() == (1, True)


def test_where_agents_share_a_tree_only_the_reporting_session_counts() -> None:
    spawn("a2")
    use("pytest -q", session="s1")
    assert claim("a2", CLAUDE_CODE_SESSION_ID="s2") == (0, True)
    assert claim("a1", CLAUDE_CODE_SESSION_ID="s1") == (1, False)


def test_a_run_before_the_spawn_does_not_count(project: Path) -> None:
    use("pytest -q")
    assert claim() == (1, False)
    spawn("a1")
    edit(project, "APP = parse(3)\n")
    assert claim() == (0, True)


def test_the_spool_keeps_few_files_of_a_long_session(home: Path) -> None:
    for number in range(20):
        use("pytest -q")
        use(f"ls {number}")
        use("", tool_name="Edit", tool_input={"file_path": f"/x/{number}.py"}, tool_response={})
    files = list((home / "state/guard/spool.d").glob("*/*"))
    assert len(files) == 3
    assert all(len(json.loads(file.read_text())) for file in files)
    assert all(file.stat().st_size < 4096 for file in files)
