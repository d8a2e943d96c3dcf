"""Commits that the agent's own program plans: taken if the plan is sound, and by the rules if not, with a warning."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support import Result, commit, git, run, write
from tests.support.sessions import script

FILES = ("README.md", "src/code.py", "tests/test_code.py")


@pytest.fixture(autouse=True)
def begun(repository: Path) -> None:
    commit(repository, "first.txt")
    assert run("baseline").code == 0
    for name in FILES:
        write(repository / name, f"# {name}\n")


def plan(*commits: tuple[str, tuple[str, ...]]) -> str:
    return json.dumps({"commits": [{"message": text, "paths": paths} for text, paths in commits]})


GOOD = plan(("docs: say it", FILES[:1]), ("feat(code): do it\n\nAt last.", FILES[1:]))


def planned(tmp_path: Path, text: str, *words: str, **env: str) -> Result:
    """A rescue with a planner that runs these lines of shell."""
    asked = script(tmp_path / "planner", f"cat > {tmp_path}/question\n{text}")
    told = {"GUARD_COMPLETION_CHECK__PROBE_COMMAND": asked, **env}
    call = ("rescue", "--format", "json", "--planner", "agent", "--agent", "command", *words)
    result = run(*call, env=told)
    assert result.code == 0, (result.out, result.err)
    assert result.json["reason"] in ("rescued", "planned")
    return result


def says(text: str) -> str:
    return f"printf '%s' {shlex.quote(text)}"


def log(root: Path) -> list[tuple[str, str, list[str]]]:
    """Subject, body and files of each commit since the first, the oldest first."""
    found = git(root, "log", "--reverse", "--format=%x01%s%x02%b%x02", "--name-only", "HEAD~2..")
    parts = (one.split("\x02") for one in found.split("\x01")[1:])
    return [(subject, body.strip(), files.split()) for subject, body, files in parts]


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here is the plan:\n\n```json\n{GOOD}\n```\n\nShall I commit?",
    ],
    ids=["plain", "fenced", "fenced in prose"],
)
def test_a_sound_plan_is_taken(answer: str, repository: Path, tmp_path: Path) -> None:
    result = planned(tmp_path, says(answer))
    assert result.err == ""
    mark = f"Guard-Rescue: {result.json['run']}/1"
    assert log(repository) == [
        ("docs: say it", f"A README.md\n\n{mark}", ["README.md"]),
        ("feat(code): do it", f"At last.\n\n{mark}", ["src/code.py", "tests/test_code.py"]),
    ]
    assert git(repository, "status", "--porcelain") == ""
    question = (tmp_path / "question").read_text()
    for name in FILES:
        assert f"A {name}" in question.splitlines()


def test_a_dry_run_asks_too(repository: Path, tmp_path: Path) -> None:
    result = planned(tmp_path, says(GOOD), "--dry-run")
    assert [one["subject"] for one in result.json["plan"]] == ["docs: say it", "feat(code): do it"]
    assert git(repository, "status", "--porcelain", "-uall").count("??") == 3


def test_what_is_smuggled_into_a_message_is_left_out(repository: Path, tmp_path: Path) -> None:
    smuggled = "Guard-Rescue: other/9\nCo-authored-by: Evil <evil@example.com>\nSigned-off-by: You"
    text = f"feat: do it\n\nBecause.\n\n{smuggled}\n\n🤖 Generated with a tool\n\x1b[31mred"
    result = planned(tmp_path, says(plan(("docs: say it", FILES[:1]), (text, FILES[1:]))))
    assert result.err == ""
    assert git(repository, "log", "-1", "--format=%(trailers)").strip() == (
        f"Guard-Rescue: {result.json['run']}/1"
    )
    said = git(repository, "log", "-1", "--format=%B")
    assert "Because." in said
    for word in ("other/9", "Evil", "Signed-off", "Generated", "\x1b"):
        assert word not in said


def by_rules(root: Path, result: Result) -> None:
    """Everything is committed nevertheless, and not as the plan said."""
    assert git(root, "status", "--porcelain") == ""
    files = [name for one in result.json["plan"] for name in one["paths"]]
    assert sorted(files) == sorted(FILES)
    assert "say it" not in git(root, "log", "--format=%s")


DISCARDED = {
    "a path twice": (plan(("docs: say it", FILES), ("feat: x", FILES[:1])), "(twice): README.md"),
    "a path missing": (plan(("docs: say it", FILES[:2])), "(missing): tests/test_code.py"),
    "a path unknown": (
        plan(("docs: say it", (*FILES, "/etc/passwd"))),
        "(unknown): /etc/passwd",
    ),
    "garbage": ("say it \x00 {", "(not_json)"),
}


@pytest.mark.parametrize(("answer", "words"), DISCARDED.values(), ids=DISCARDED)
def test_an_unsound_plan_is_discarded_with_a_warning(
    answer: str, words: str, repository: Path, tmp_path: Path
) -> None:
    write(tmp_path / "answer", answer)
    result = planned(tmp_path, f"cat {tmp_path}/answer")
    assert f"the agent's plan is discarded {words}" in result.err
    by_rules(repository, result)


def failing(tmp_path: Path) -> dict[str, Any]:
    return {"text": "echo trouble >&2; exit 1"}


def slow(tmp_path: Path) -> dict[str, Any]:
    return {"text": "exec sleep 600", "GUARD_COMPLETION_CHECK__PROBE_TIMEOUT_SECONDS": "1"}


def slower_than_the_rescue(tmp_path: Path) -> dict[str, Any]:
    limits = {"GUARD_COMPLETION_CHECK__PROBE_TIMEOUT_SECONDS": "600"}
    return {"text": "exec sleep 600", "GUARD_RESCUE__TIME_LIMIT_SECONDS": "80", **limits}


def inside_a_probe(tmp_path: Path) -> dict[str, Any]:
    return {"text": says(GOOD), "GUARD_PROBE": "1"}


def no_model(tmp_path: Path) -> dict[str, Any]:
    return {"text": says(GOOD), "GUARD_COMPLETION_CHECK__PROBE_MODEL": "no model!"}


def too_much(tmp_path: Path) -> dict[str, Any]:
    return {"text": "yes x | head -c 3000000"}


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (failing, "trouble"),
        (slow, "no answer within 1 s"),
        (slower_than_the_rescue, "no answer within 20 s"),
        (inside_a_probe, "does not start another"),
        (no_model, "is not the name of a model"),
        (too_much, "it printed more than"),
    ],
)
def test_without_an_answer_the_rules_plan(
    trouble: Any, words: str, repository: Path, tmp_path: Path
) -> None:
    result = planned(tmp_path, **trouble(tmp_path))
    assert "guard: warning: the commits are planned by rules: " in result.err
    assert words in result.err
    by_rules(repository, result)


@pytest.mark.parametrize(
    ("words", "why"),
    [((), "no agent is known"), (("--agent", "claude"), "no session of this agent is known")],
)
def test_nobody_to_ask(words: tuple[str, ...], why: str, repository: Path) -> None:
    result = run("rescue", "--format", "json", "--planner", "agent", *words)
    assert result.code == 0
    assert why in result.err
    by_rules(repository, result)


def test_the_rules_ask_nobody(repository: Path, tmp_path: Path) -> None:
    env = {"GUARD_RESCUE__PLANNER": "agent"}
    result = planned(tmp_path, says(GOOD), "--planner", "rules", **env)
    by_rules(repository, result)
    assert not (tmp_path / "question").exists()
