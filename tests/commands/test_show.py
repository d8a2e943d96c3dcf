"""`guard show`: one iteration for people, its output as it was or readable, kept within a limit."""

import json
from pathlib import Path

import pytest

from guard.schemas.validate import validator
from tests.streams import denial, init, jsonl, result, stream, uses
from tests.support import commit, run, write
from tests.support.sessions import QUICK

AGENT = "cat {}; echo x >> work.txt; git add work.txt; git commit -q -m 'feat: add work'"
ANSI = "\x1b[31m"


@pytest.fixture
def begun(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def iterate(data: bytes, folder: Path, *, env: dict[str, str] | None = None) -> None:
    path = write(folder / "stream", data)
    words = ("--", "sh", "-c", AGENT.format(path))
    assert run("run", "--no-probe", *QUICK, *words, env=env).code in (0, 14)


def test_an_iteration_is_shown_with_all_that_is_known_of_it(begun: Path, tmp_path: Path) -> None:
    prompt = write(tmp_path / "prompt.md", f"Add the work.{ANSI}\nCommit it.\n")
    path = write(tmp_path / "stream", stream("claude-ok"))
    words = ("--max-iterations", "1", "--prompt-file", prompt, "--", "sh", "-c", AGENT.format(path))
    assert run("loop", "--no-probe", *QUICK, *words).code == 0
    shown = run("show").out
    for line in (
        "complete: commits (1 new commit)\n",
        " feat: add work\n",
        "  used: 0.00042 USD (billed); tokens: 30 in, 15 out; 3 turns; claude-opus-5-5\n",
        "  git: 1 new commit\n",
        "prompt:\n  Add the work.\\x1b[31m\n  Commit it.\n",
        "> Bash: echo hello > out.txt; cat out.txt\n    hello\n",
    ):
        assert line in shown, shown
    found = run("show", "1", "--format", "json").json
    assert list(validator("show").iter_errors(found)) == []
    assert [line["subject"] for line in found["commits"]] == ["feat: add work"]
    assert found["prompt"].startswith("Add the work.")
    assert {"tool": "Bash", "kind": "call"}.items() <= found["transcript"][1].items()


def test_a_denied_tool_and_a_question_are_shown_in_their_own_words(
    begun: Path, tmp_path: Path
) -> None:
    ask = uses("Bash", arguments={"command": "rm -rf build"})
    denied = result("May I delete build?", permission_denials=[denial("Bash")])
    path = write(tmp_path / "stream", jsonl(init(), ask, denied))
    assert run("run", "--no-probe", *QUICK, "--", "cat", path).code == 14
    shown = run("show").out
    assert "May I delete build?" in shown
    assert "  denied: Bash\n" in shown


def test_the_raw_output_is_what_the_agent_printed(begun: Path, tmp_path: Path) -> None:
    iterate(stream("codex-ok"), tmp_path)
    assert run("show", "--raw").out == stream("codex-ok").decode()


def test_iterations_are_found_by_number_and_run(begun: Path, tmp_path: Path) -> None:
    iterate(b"first\n", tmp_path)
    iterate(b"second\n", tmp_path)
    numbers = [
        (line["run"], line["iteration"])
        for line in run("log", "--format", "json").json["events"]
        if line["type"] == "check_made"
    ]
    for (run_id, number), text in zip(numbers, ("first", "second"), strict=True):
        assert run("show", str(number), "--run", run_id).out.rstrip().endswith(text)
    assert run("show").out.rstrip().endswith("second")
    missing = run("show", "99")
    assert (missing.code, "no check of iteration 99" in missing.err) == (1, True)


@pytest.mark.parametrize(("megabytes", "kept"), [("0", 2), ("0.0015", 2), ("0.0025", 3)])
def test_the_output_of_all_iterations_is_kept_within_a_limit(
    megabytes: str, kept: int, begun: Path, tmp_path: Path
) -> None:
    env = {"GUARD_RUN__KEEP_OUTPUT_MB": megabytes}
    for letter in "abc":
        iterate(letter.encode() * 999 + b"\n", tmp_path, env=env)
    folder = Path(json.loads(run("where", "--format", "json").out)["workspace"], "output.d")
    # The newest is kept in any case, and one begins beside those that were kept before it.
    assert len([*folder.glob("*.stdout")]) == kept
