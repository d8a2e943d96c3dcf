"""Claims of completion from end to end: real work in a real repository, and what `guard agent update` makes of the report."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from guard.core.config.resolve import knobs
from tests.support import NOW, TIME_LIMIT, Result, commit, git, run, write
from tests.support.git_hooks import commit_without_trace

IDS = ("--task", "T1", "--agent", "a1")
NO_RUN = "Claims a run of tests, and none is recorded"
FAILED_RUN = "Claims that tests pass, and the last recorded run failed"
NO_COMMIT = "Claims a commit, and git has none since it began"


@pytest.fixture(autouse=True)
def project(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """A repository with a history, in which the test stands, and a workspace beside it."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    write(repository / ".gitignore", "build/\n*.local.json\n.pytest_cache/\n__pycache__/\n")
    write(repository / "src" / "app.py", "APP = 1\n")
    write(repository / "src" / "other.py", "OTHER = 1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Begin")
    return repository, workspace


def spawn(kind: str = "builder", *words: str, agent: str = "a1", cwd: Path | None = None) -> None:
    result = run(
        "agent", "spawn", "--task", "T1", "--agent", agent, "--type", kind, *words, cwd=cwd
    )
    assert result.code == 0, result.err


def claims(
    message: str,
    *words: str,
    agent: str = "a1",
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> Result:
    """The agent reports that it is complete."""
    ids = ("--task", "T1", "--agent", agent)
    told = ("--status", "completed", "--message", message)
    return run("agent", "update", *ids, *told, *words, cwd=cwd, env=env)


def judged(message: str, *words: str, **around: Any) -> Any:
    """What is made of the claim that it is complete."""
    result = claims(message, *words, "--format", "json", **around)
    assert result.code == 0, result.err
    assert result.json["recorded_as"] == "updated"
    return result.json["completion_validation"]


def layer(validation: Any, name: str) -> Any:
    return validation["evidence_summary"][name]


def events(workspace: Path, kind: str) -> list[Any]:
    lines = (workspace / "events.jsonl").read_bytes().splitlines()
    return [event for event in map(json.loads, lines) if event["type"] == kind]


def registered(workspace: Path, agent: str = "a1") -> Any:
    registry = json.loads((workspace / "T1" / "AGENT_REGISTRY.json").read_bytes())
    (found,) = [one for one in registry["agents"] if one["agent_id"] == agent]
    return found


def pytest_run(folder: Path, text: str) -> None:
    """A real run of real tests, as an agent would start it; how it ends is for guard to find out."""
    write(folder / "tests" / "test_tiny.py", text)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests"],
        cwd=folder,
        env=environ,
        capture_output=True,
        timeout=TIME_LIMIT,
        check=False,
    )


Work = Callable[[Path], Path | None]
"""What an agent does in its repository; the folder from which it reports, if it is another."""


def commits(root: Path) -> None:
    commit(root, "src/login.py")


def leaves_uncommitted(root: Path) -> None:
    write(root / "src" / "login.py", "LOGIN = 1\n")


def stages(root: Path) -> None:
    write(root / "src" / "app.py", "APP = 2\n")
    git(root, "add", "src/app.py")


def makes_folders(root: Path) -> None:
    write(root / "docs" / "guide" / "intro.md", "# Begin here\n")
    write(root / "docs" / "guide" / "more.md", "# More\n")


def goes_below(root: Path) -> Path:
    write(root / "src" / "login.py", "LOGIN = 1\n")
    return root / "src"


def branches(root: Path) -> None:
    git(root, "switch", "-q", "-c", "feature")
    commit(root, "src/login.py")
    git(root, "switch", "-q", "main")


def works_beside(root: Path) -> Path:
    linked = root.parent / "linked"
    git(root, "worktree", "add", "-q", "-b", "side", str(linked))
    commit(linked, "src/login.py")
    write(linked / "src" / "app.py", "APP = 2\n")
    return linked


def renames(root: Path) -> None:
    git(root, "mv", "src/app.py", "src/main.py")
    git(root, "commit", "-q", "-m", "Rename")


def renames_by_hand(root: Path) -> None:
    (root / "src" / "app.py").rename(root / "src" / "main.py")


def deletes(root: Path) -> None:
    git(root, "rm", "-q", "src/other.py")


def rewrites(root: Path) -> None:
    commit(root, "src/login.py")
    git(root, "commit", "-q", "--amend", "-m", "Add the login")


HONEST: dict[str, tuple[Work, str, list[str]]] = {
    "a commit": (
        commits,
        "Created src/login.py with the form and committed it to main.",
        ["src/login.py"],
    ),
    "a commit that was amended": (
        rewrites,
        "Created src/login.py with the form and committed it to main.",
        ["src/login.py"],
    ),
    "a new file that is not committed": (
        leaves_uncommitted,
        "Created src/login.py with the form; it is not committed yet.",
        ["src/login.py"],
    ),
    "a change that is staged": (
        stages,
        "Updated src/app.py to version 2 of the constant.",
        ["src/app.py"],
    ),
    "new folders that git does not know": (
        makes_folders,
        "Added docs/guide/intro.md and docs/guide/more.md for newcomers.",
        ["docs/guide/intro.md", "docs/guide/more.md"],
    ),
    "a name as seen from a folder below": (
        goes_below,
        "Created login.py with the form and its validation.",
        ["login.py"],
    ),
    "a commit on another branch": (
        branches,
        "Created src/login.py and committed it on the branch feature.",
        ["src/login.py"],
    ),
    "a linked work tree, reported from there": (
        works_beside,
        "Created src/login.py and committed it, then updated src/app.py.",
        ["src/login.py", "src/app.py"],
    ),
    "a rename": (
        renames,
        "Renamed src/app.py to src/main.py and committed that.",
        ["src/app.py", "src/main.py"],
    ),
    "a rename without git": (
        renames_by_hand,
        "Renamed src/app.py to src/main.py, nothing else was touched.",
        ["src/app.py", "src/main.py"],
    ),
    "a file that was deleted": (
        deletes,
        "Removed src/other.py, which nobody imports any more.",
        ["src/other.py"],
    ),
}


@pytest.mark.parametrize(("work", "message", "files"), HONEST.values(), ids=HONEST)
def test_an_honest_builder_is_believed_as_to_files(
    work: Work, message: str, files: list[str], repository: Path
) -> None:
    spawn()
    found = judged(message, cwd=work(repository))
    assert found["blocking_issues"] == []
    assert layer(found, "message_validation")["claimed_files"] == files
    assert layer(found, "message_validation")["unsupported_files"] == []
    assert layer(found, "type_specific")["files_ok"] is True
    assert "does not exist" not in " ".join(found["warnings"])


def test_an_honest_builder_who_took_its_time_is_believed_altogether(repository: Path) -> None:
    spawn()
    for step in ("reading", "writing", "cleaning up"):
        run("agent", "update", *IDS, "--status", "working", "--message", step)
    commit(repository, "src/login.py")
    later = (datetime.now(UTC) + timedelta(minutes=10)).isoformat()
    result = claims(
        "Created src/login.py with the form and committed it.", env={"GUARD_NOW": later}
    )
    assert result.out.splitlines()[1:] == ["  confidence 1.00"]


def nothing(_root: Path) -> None: ...


FALSE: dict[str, tuple[Work, str, list[str]]] = {
    "a file that was never there": (
        commits,
        "Created src/login.py and src/logout.py with the forms.",
        ["Claims to have changed src/logout.py, which no diff has"],
    ),
    "a file that is there and was not changed": (
        commits,
        "Created src/login.py and updated src/other.py to call it.",
        ["Claims to have changed src/other.py, which no diff has"],
    ),
    "a file of the same name elsewhere": (
        commits,
        "Created lib/login.py with the form and its validation.",
        ["Claims to have changed lib/login.py, which no diff has"],
    ),
    "a commit where nothing is committed": (
        leaves_uncommitted,
        "Created src/login.py with the form and committed it.",
        [NO_COMMIT],
    ),
    "ten files where there is one": (
        commits,
        "Changed 10 files for the login, src/login.py among them.",
        ["Claims 10 changed files, and git has 1"],
    ),
    "nothing at all": (
        nothing,
        "The login form was implemented as you asked for it.",
        ["Only 0 modified files - expected of type builder: at least 1"],
    ),
}


@pytest.mark.parametrize(("work", "message", "issues"), FALSE.values(), ids=FALSE)
def test_a_false_claim_is_found(
    work: Work, message: str, issues: list[str], repository: Path
) -> None:
    spawn()
    work(repository)
    result = claims(message)
    assert result.code == 0
    blocking = [line for line in result.out.splitlines() if line.startswith("  blocking: ")]
    assert blocking == [f"  blocking: {issue}" for issue in issues]


TESTED = "Fixed the constant in src/app.py; all 12 tests pass."
PASSING, FAILING = "def test_it(): assert True\n", "def test_it(): assert False\n"


def recorded(*command: str) -> Work:
    def work(_root: Path) -> None:
        result = run("agent", "test", *IDS, "--", *command)
        assert result.code in (0, 1), result.err

    return work


TESTS: dict[str, tuple[Work, list[str]]] = {
    "guard saw them pass": (recorded("true"), []),
    "guard saw them fail": (recorded("false"), [FAILED_RUN]),
    "pytest left that they passed": (lambda root: pytest_run(root, PASSING), []),
    "pytest left that they failed": (lambda root: pytest_run(root, FAILING), [FAILED_RUN]),
}


@pytest.mark.parametrize(("work", "issues"), TESTS.values(), ids=TESTS)
def test_a_claim_that_tests_pass_is_held_against_the_runs(
    work: Work, issues: list[str], repository: Path
) -> None:
    spawn("fixer")
    write(repository / "src" / "app.py", "APP = 2\n")
    work(repository)
    found = judged(TESTED)
    assert found["blocking_issues"] == issues
    assert layer(found, "type_specific")["tests_ok"] is True


def test_the_last_run_decides(repository: Path) -> None:
    spawn("fixer")
    write(repository / "src" / "app.py", "APP = 2\n")
    recorded("false")(repository)
    recorded("true")(repository)
    assert judged(TESTED)["blocking_issues"] == []


def test_a_run_before_the_agent_began_is_not_its_own(repository: Path) -> None:
    pytest_run(repository, PASSING)
    spawn("fixer")
    write(repository / "src" / "app.py", "APP = 2\n")
    found = judged(TESTED)
    assert (NO_RUN in found["warnings"], layer(found, "type_specific")["tests_ok"]) == (True, False)
    assert found["confidence"] < 0.5


def test_a_run_before_the_last_edit_is_none(repository: Path) -> None:
    spawn("fixer")
    pytest_run(repository, PASSING)
    later = datetime.now(UTC).timestamp() + 60
    os.utime(write(repository / "src" / "app.py", "APP = 2\n"), (later, later))
    assert NO_RUN in judged(TESTED)["warnings"]


def test_a_test_claim_costs_points_and_blocks_nothing_where_a_run_may_escape(
    repository: Path,
) -> None:
    spawn()
    write(repository / "src" / "app.py", "APP = 2\n")
    found = judged(TESTED)
    assert found["blocking_issues"] == []
    assert NO_RUN in found["warnings"]


@pytest.mark.parametrize("records", [True, False], ids=["recorded", "not recorded"])
def test_a_finding_satisfies_an_investigator(records: bool) -> None:
    spawn("investigator")
    if records:
        assert run("agent", "finding", *IDS, "the token is never refreshed").code == 0
    found = judged("Investigation complete, everything was analyzed and documented.")
    assert layer(found, "type_specific")["findings_ok"] is records
    missing = "Only 0 recorded findings - expected of type investigator: at least 1"
    assert (missing in found["warnings"]) is not records


def test_what_was_dirty_before_and_is_untouched_is_not_the_agents(repository: Path) -> None:
    write(repository / "src" / "app.py", "APP = 2\n")
    write(repository / "notes.md", "mine\n")
    git(repository, "rm", "-q", "--cached", "src/other.py")
    spawn()
    found = judged("Updated src/app.py, src/other.py and notes.md as you asked.")
    assert layer(found, "workspace_evidence")["modified_files"] == []
    assert found["blocking_issues"][1:] == [
        f"Claims to have changed {name}, which no diff has"
        for name in ("src/app.py", "src/other.py", "notes.md")
    ]


def test_what_was_dirty_before_and_changed_again_is_the_agents(repository: Path) -> None:
    write(repository / "src" / "app.py", "APP = 2\n")
    write(repository / "notes.md", "mine\n")
    spawn()
    write(repository / "src" / "app.py", "APP = 3\n")
    found = judged("Updated src/app.py to version 3 of the constant.")
    assert found["blocking_issues"] == []
    assert layer(found, "workspace_evidence")["modified_files"] == ["src/app.py"]


def test_without_a_repository_nothing_is_measured_and_nobody_accused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    spawn(cwd=outside)
    found = judged("Created src/login.py, changed 7 files and committed them.", cwd=outside)
    assert found["blocking_issues"] == []
    evidence = layer(found, "workspace_evidence")
    assert (evidence["modified_files_count"], evidence["commits_count"]) == (None, None)
    assert evidence["unmeasured"] == "guard did not record where the repository stood at its start"
    assert layer(found, "type_specific")["files_ok"] is None
    assert found["warnings"][0] == f"Changes could not be measured: {evidence['unmeasured']}"


def test_a_repository_that_is_gone_is_not_measured_and_nobody_accused(
    repository: Path, tmp_path: Path
) -> None:
    spawn()
    repository.rename(tmp_path / "moved")
    found = judged("Created src/login.py with the form and committed it.", cwd=tmp_path)
    assert found["blocking_issues"] == []
    assert layer(found, "workspace_evidence")["unmeasured"]


@pytest.mark.parametrize("name", ["build/app.js", "settings.local.json"])
def test_an_ignored_file_is_no_accusation(name: str, repository: Path) -> None:
    spawn()
    write(repository / name, "made\n")
    commit(repository, "src/login.py")
    found = judged(f"Created src/login.py and generated {name} from it.")
    assert layer(found, "message_validation")["claimed_files"] == ["src/login.py", name]
    assert found["blocking_issues"] == []


def test_strict_refuses_a_false_claim_and_takes_an_honest_one(
    repository: Path, workspace: Path
) -> None:
    spawn()
    false = "Created src/login.py with the form and committed it."
    result = claims(false, "--strict", "--format", "json")
    assert (result.code, result.json["recorded_as"]) == (1, "refused")
    assert result.err.splitlines()[0] == (
        "guard: the completion was refused because of the blocking issues above"
    )
    assert result.err.splitlines()[1].startswith("hint: ")
    agent = registered(workspace)
    assert (agent["status"], agent["refused_claims"], agent["updates"]) == ("deployed", 1, 0)
    assert agent["completion_validation"] == result.json["completion_validation"]
    assert agent["completion_validation"]["blocking_issues"]
    (event,) = events(workspace, "agent_claim_validated")
    assert (event["refused"], event["message"]) == (True, false)
    assert event["validation"] == agent["completion_validation"]
    assert [one["status"] for one in events(workspace, "agent_transitioned")] == ["deployed"]
    assert (result.json["active_count"], result.json["completed_count"]) == (1, 0)

    commit(repository, "src/login.py")
    assert judged(false, "--strict")["blocking_issues"] == []
    agent = registered(workspace)
    assert (agent["status"], agent["refused_claims"]) == ("completed", 1)
    assert agent["completion_validation"]["blocking_issues"] == []
    refused = [event["refused"] for event in events(workspace, "agent_claim_validated")]
    assert refused == [True, False]


def test_a_refusal_is_told_to_people_with_its_reasons() -> None:
    spawn()
    result = claims("Created src/login.py with the form and committed it.", "--strict")
    assert result.code == 1
    told, confidence, *issues = result.out.splitlines()
    assert "T1/a1: deployed (the claim of completion was refused)" in told
    assert confidence.startswith("  confidence 0.")
    assert "  blocking: Claims to have changed src/login.py, which no diff has" in issues


def test_strict_does_not_refuse_what_is_only_doubted(workspace: Path) -> None:
    spawn("agent")
    found = judged("done", "--strict")
    assert found["confidence"] < 0.5
    assert registered(workspace)["status"] == "completed"


@pytest.mark.parametrize(("strict", "status"), [("true", "deployed"), ("false", "completed")])
def test_strict_can_be_a_setting(strict: str, status: str, workspace: Path) -> None:
    spawn()
    env = {"GUARD_CLAIMS__STRICT": strict}
    result = claims("Created src/login.py with the form and committed it.", env=env)
    assert result.code == (1 if strict == "true" else 0)
    assert registered(workspace)["status"] == status


@pytest.mark.parametrize("status", ["failed", "error", "terminated", "working"])
def test_strict_is_about_completions_alone(status: str, workspace: Path) -> None:
    spawn()
    words = ("--status", status, "--message", "Created src/login.py", "--strict")
    assert run("agent", "update", *IDS, *words).code == 0
    agent = registered(workspace)
    assert (agent["status"], agent["completion_validation"]) == (status, None)


KNOBS: dict[str, tuple[str, str, str, str, bool]] = {
    "a short message is long enough": (
        "GUARD_CLAIMS__MIN_MESSAGE_LENGTH",
        "5",
        "Fixed 2 bugs",
        "warning: The message has only 12 characters - expected at least 40",
        False,
    ),
    "a long message is too short": (
        "GUARD_CLAIMS__MIN_MESSAGE_LENGTH",
        "500",
        "Fixed 2 bugs that made the form refuse every address",
        "warning: The message has only 52 characters - expected at least 500",
        True,
    ),
    "no report is expected": (
        "GUARD_CLAIMS__MIN_UPDATES",
        "0",
        "Fixed 2 bugs",
        "warning: Only 0 progress updates - expected at least 3",
        False,
    ),
    "nine reports are expected": (
        "GUARD_CLAIMS__MIN_UPDATES",
        "9",
        "Fixed 2 bugs",
        "warning: Only 0 progress updates - expected at least 9",
        True,
    ),
    "any time will do": (
        "GUARD_CLAIMS__MIN_SECONDS",
        "0",
        "Fixed 2 bugs",
        "s - expected at least 60 s",
        False,
    ),
    "an hour is expected": (
        "GUARD_CLAIMS__MIN_SECONDS",
        "3600",
        "Fixed 2 bugs",
        "s - expected at least 3600 s",
        True,
    ),
    "nothing is asked of builders": (
        "GUARD_CLAIMS__REQUIREMENTS",
        "builder: files=0",
        "Fixed 2 bugs",
        "blocking: Only 0 modified files - expected of type builder: at least 1",
        False,
    ),
    "findings are asked of builders": (
        "GUARD_CLAIMS__REQUIREMENTS",
        "builder: findings=2",
        "Fixed 2 things",
        "warning: Only 0 recorded findings - expected of type builder: at least 2",
        True,
    ),
    "a word of evidence more": (
        "GUARD_CLAIMS__EVIDENCE_WORDS",
        "deployed, shipped",
        "Shipped 2 forms",
        "warning: No word of evidence in the message, such as created, fixed or verified",
        False,
    ),
    "a suspicious phrase more": (
        "GUARD_CLAIMS__SUSPICIOUS_PHRASES",
        "no worries, it compiles",
        "Fixed 2 bugs, and it compiles",
        "warning: The message is not sure: it compiles",
        True,
    ),
}


@pytest.mark.parametrize(
    ("variable", "value", "message", "line", "appears"), KNOBS.values(), ids=KNOBS
)
def test_a_knob_changes_what_is_said(
    variable: str, value: str, message: str, line: str, appears: bool
) -> None:
    spawn(agent="a1")
    spawn(agent="a2")
    usual = claims(message, agent="a1")
    turned = claims(message, agent="a2", env={variable: value})
    assert (line in usual.out, line in turned.out) == (not appears, appears)


def test_every_knob_of_claims_is_turned_here() -> None:
    turned = {variable for variable, *_ in KNOBS.values()} | {"GUARD_CLAIMS__STRICT"}
    assert turned == {knob.variable for knob in knobs() if knob.key.startswith("claims.")}


PROJECT = """\
[claims]
min_message_length = 5
min_updates = 0
min_seconds = 0
requirements = "builder: files=0"
evidence_words = "shipped"
suspicious_phrases = "it compiles"
strict = true
"""


def test_a_project_file_cannot_turn_the_knobs_of_claims(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_NOW", NOW)
    message = "Shipped 2 forms, it compiles"
    spawn(agent="a1")
    usual = claims(message, agent="a1")
    assert (usual.code, usual.err) == (0, "")
    commit(repository, "guard.toml", PROJECT)
    spawn(agent="a2")
    told = claims(message, agent="a2")
    assert told.code == 0
    assert told.out.splitlines()[1:] == usual.out.splitlines()[1:]
    assert "blocking: " in told.out
    assert told.err.splitlines() == [
        f"guard: warning: {repository / 'guard.toml'}: {knob.key} is ignored: "
        "only the user's own config may set it, or a file that the user trusts"
        for knob in knobs()
        if knob.key.startswith("claims.")
    ]


SEEDS: dict[str, set[str]] = {
    "workspace_evidence": {"modified_files_count"},
    "type_specific": {"findings_ok"},
    "message_validation": {"evidence_keywords_found"},
    "progress_pattern": {"speed"},
}


def test_the_document_is_the_seeds_and_the_same_everywhere(
    repository: Path, workspace: Path
) -> None:
    spawn()
    commit(repository, "src/login.py")
    answered = judged("Created src/login.py with the form and verified it.")
    shown = run("agent", "show", *IDS, "--format", "json").json["agent"]["completion_validation"]
    overall = json.loads((workspace / "registry" / "GLOBAL_REGISTRY.json").read_bytes())
    assert answered == shown == registered(workspace)["completion_validation"]
    assert shown == overall["agents"][0]["completion_validation"]
    assert set(shown) == {
        "confidence",
        "warnings",
        "blocking_issues",
        "evidence_summary",
        "validated_at",
    }
    assert set(shown["evidence_summary"]) == set(SEEDS)
    for name, keys in SEEDS.items():
        assert keys <= set(shown["evidence_summary"][name])
    assert layer(shown, "workspace_evidence")["modified_files_count"] == 1
    assert layer(shown, "message_validation")["evidence_keywords_found"] == ["created", "verified"]
    assert datetime.fromisoformat(shown["validated_at"]).tzinfo is not None


@pytest.mark.parametrize("strict", ["true", "false"])
def test_the_end_of_a_vanished_agent_is_validated_too(
    strict: str, repository: Path, workspace: Path
) -> None:
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        spawn("builder", "--pid", str(process.pid))
        write(repository / "src" / "login.py", "LOGIN = 1\n")
    finally:
        process.kill()
        process.wait()
    result = run("agent", "list", "--format", "json", env={"GUARD_CLAIMS__STRICT": strict})
    assert (result.code, result.json["active"]) == (0, 0)
    agent = registered(workspace)
    assert (agent["status"], agent["detected_by"]) == ("completed", "session_gone")
    found = agent["completion_validation"]
    assert layer(found, "workspace_evidence")["modified_files"] == ["src/login.py"]
    assert layer(found, "type_specific")["files_ok"] is True
    assert found["warnings"][0] == ("The agent ended without a claim that its work is complete")
    (event,) = events(workspace, "agent_claim_validated")
    assert (event["refused"], event["validation"]) == (False, found)


def test_a_report_after_the_end_is_not_validated(workspace: Path) -> None:
    spawn()
    run("agent", "update", *IDS, "--status", "failed", "--message", "no luck")
    late = claims("Created src/login.py with the form.", "--strict", "--format", "json")
    assert (late.code, late.json["recorded_as"]) == (0, "late")
    assert late.json["completion_validation"] is None
    assert registered(workspace)["completion_validation"] is None
    assert events(workspace, "agent_claim_validated") == []


def test_a_report_after_a_completion_leaves_its_validation_alone(
    repository: Path, workspace: Path
) -> None:
    spawn()
    commit(repository, "src/login.py")
    first = judged("Created src/login.py with the form and committed it.")
    late = claims("Created src/logout.py too, and everything is perfect.", "--format", "json")
    assert (late.json["recorded_as"], late.json["completion_validation"]) == ("late", None)
    assert registered(workspace)["completion_validation"] == first
    assert len(events(workspace, "agent_claim_validated")) == 1


def test_a_report_of_an_old_incarnation_is_not_validated(workspace: Path) -> None:
    spawn()
    run("agent", "update", *IDS, "--status", "failed")
    spawn()
    words = ("--incarnation", "1", "--strict", "--format", "json")
    old = claims("Created src/login.py with the form.", *words)
    assert (old.code, old.json["recorded_as"]) == (0, "late")
    assert old.json["completion_validation"] is None
    agent = registered(workspace)
    assert (agent["incarnation"], agent["status"]) == (2, "deployed")
    assert agent["completion_validation"] is None
    assert events(workspace, "agent_claim_validated") == []


def test_a_new_incarnation_is_measured_from_its_own_beginning(repository: Path) -> None:
    spawn()
    commit(repository, "src/login.py")
    run("agent", "update", *IDS, "--status", "failed")
    spawn()
    found = judged("Created src/login.py with the form and committed it.")
    assert NO_COMMIT in found["blocking_issues"]
    assert layer(found, "workspace_evidence")["modified_files_count"] == 0


SCORED: dict[str, tuple[str, bool]] = {
    "something is left": ("Created src/login.py with the form and verified it.", True),
    "more is taken than there was": (
        "Created src/a.py, src/b.py, src/c.py and committed them; I think it should work.",
        False,
    ),
}


@pytest.mark.parametrize(("message", "left"), SCORED.values(), ids=SCORED)
def test_show_prints_the_score_line_by_line_and_the_lines_add_up(
    message: str, left: bool, repository: Path, workspace: Path
) -> None:
    spawn()
    if left:
        commit(repository, "src/login.py")
    claims(message)
    found = registered(workspace)["completion_validation"]
    lines = run("agent", "show", *IDS).out.splitlines()
    begins = lines.index("  confidence in its completion:") + 1
    points, told = zip(*(line.split(maxsplit=1) for line in lines[begins:]), strict=True)
    assert (points[0], told[0], told[-1].split()[0]) == ("1.00", "start", "confidence")
    reasons = [one.partition(": ")[2] for one in told[1:-1]]
    assert sorted(reasons) == sorted([*found["warnings"], *found["blocking_issues"]])
    total = round(sum(map(float, points[:-1])), 2)
    assert (total > 0) is left
    assert float(points[-1]) == found["confidence"] == max(0.0, total)
    assert told[-1] == ("confidence" if left else f"confidence (the sum is {total:.2f})")


def commits_nothing(root: Path) -> None:
    git(root, "commit", "-q", "--allow-empty", "-m", "Implement the login")


def reverts(root: Path) -> None:
    commit(root, "src/login.py")
    git(root, "revert", "--no-edit", "HEAD")


def pulls(root: Path) -> None:
    upstream = root.parent / "upstream"
    git(root, "clone", "-q", str(root), str(upstream))
    git(upstream, "config", "user.name", "Other")
    git(upstream, "config", "user.email", "other@example.com")
    commit(upstream, "src/login.py")
    git(root, "pull", "-q", str(upstream), "main")


def does_nothing(root: Path) -> None:
    del root


NO_WORK: dict[str, tuple[Work, str]] = {
    "an empty commit": (commits_nothing, "1 empty commit"),
    "a commit that is reverted": (reverts, "2 commits that change nothing in sum"),
    "another's commit": (pulls, "1 commit of others"),
    "nothing": (does_nothing, ""),
}


@pytest.mark.parametrize(("work", "words"), NO_WORK.values(), ids=NO_WORK)
def test_what_the_check_counts_as_nothing_is_no_evidence(
    project: tuple[Path, Path], work: Work, words: str
) -> None:
    spawn("agent")
    work(project[0])
    found = judged("Implemented the login form with 3 fields and verified each by hand.")
    assert found["confidence"] < 0.5
    (why,) = [warning for warning in found["warnings"] if warning.startswith("Nothing is recorded")]
    assert words in why
    assert layer(found, "workspace_evidence")["commits_count"] == 0


@pytest.mark.parametrize("hooked", [True, False], ids=["with the hook", "without"])
def test_git_s_hook_tells_that_a_commit_was_made_here(
    project: tuple[Path, Path], hooked: bool
) -> None:
    root = project[0]
    if hooked:
        assert run("install", "git", "--hook", "post-commit").code == 0
    spawn("agent")
    commit_without_trace(root, "src/login.py")
    found = judged("Implemented the login form with 3 fields and verified each by hand.")
    assert layer(found, "workspace_evidence")["commits_count"] == int(hooked)
    assert (found["confidence"] < 0.5) is not hooked


@pytest.mark.parametrize(
    "message", ["Should I use PostgreSQL or SQLite?", "I was unable to find the login form."]
)
@pytest.mark.parametrize("words", [(), ("--strict",)], ids=["", "strict"])
def test_who_asks_and_has_done_nothing_is_blocked(
    project: tuple[Path, Path], message: str, words: tuple[str, ...]
) -> None:
    spawn("agent")
    result = claims(message, *words, "--format", "json")
    assert (result.code, result.json["recorded_as"]) == (
        (1, "refused") if words else (0, "updated")
    )
    agent = registered(project[1])
    assert (agent["status"], agent["refused_claims"], agent["completed_at"]) == ("blocked", 1, None)
    assert result.json["active_count"] == 1
    assert result.json["completion_validation"]["confidence"] < 0.5


def test_two_agents_in_two_work_trees_do_not_share_their_work(project: tuple[Path, Path]) -> None:
    root = project[0]
    linked = root.parent / "linked"
    git(root, "worktree", "add", "-q", "-b", "side", str(linked))
    spawn("agent")
    spawn("agent", agent="a2", cwd=linked)
    commit(linked, "src/login.py")
    message = "Created src/login.py with the form and committed it."
    theirs = judged(message, agent="a2", cwd=linked)
    own = judged("Implemented the login form with 3 fields and verified each by hand.")
    assert layer(theirs, "workspace_evidence")["commits_count"] == 1
    assert layer(own, "workspace_evidence")["commits_count"] == 0
    assert own["confidence"] < 0.5


AGENT = """
import json, os, subprocess, sys
commands, claim = json.loads(sys.argv[1]), sys.argv[2]
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s1", "cwd": os.getcwd()}))
def call(number, tool, given, output):
    use = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}
    print(json.dumps({"type": "assistant", "session_id": "s1", "message": {"content": [use]}}))
    done = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": False}
    print(json.dumps({"type": "user", "session_id": "s1", "message": {"content": [done]}}), flush=True)
with open("src/login.py", "w") as file:
    file.write("LOGIN = 1\\n")
call(0, "Write", {"file_path": "src/login.py", "content": "LOGIN = 1"}, "File created")
for number, (command, output) in enumerate(commands, 1):
    call(number, "Bash", {"command": command}, output)
subprocess.run(["git", "add", "."], check=True)
subprocess.run(["git", "commit", "-q", "-m", "Add the login"], check=True)
message = "Created src/login.py and ran the tests: 12 passed."
if claim:
    words = ["agent", "update", "--task", "T1", "--agent", "a1", "--status", "completed"]
    told = subprocess.run(
        [sys.executable, "-m", "guard", *words, "--message", message, "--format", "json"],
        capture_output=True,
    )
    with open(claim, "wb") as file:
        file.write(told.stdout)
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": message, "session_id": "s1"}))
"""
RAN = ["npm test", "> app@1.0.0 test\n> vitest run\n\n12 passed"]
CALLS: dict[str, tuple[list[list[str]], bool]] = {
    "npm test": ([RAN], True),
    "pytest without its cache": ([["pytest -q -p no:cacheprovider", "12 passed in 0.1s"]], True),
    "a failure that is swallowed": ([["pytest || true", "12 passed in 0.1s"]], False),
    "an echo": ([["echo '12 passed'", "12 passed"]], False),
}


def iterate(script: Path, calls: list[list[str]], claim: str = "") -> None:
    write(script, AGENT)
    words = ("--task", "T1", "--agent-id", "a1", "--agent", "claude", "--no-probe", "--no-wait")
    argv = (sys.executable, str(script), json.dumps(calls), claim)
    result = run("run", *words, "--", *argv)
    assert result.code == 0, result.err


@pytest.mark.parametrize(("calls", "counts"), CALLS.values(), ids=CALLS)
def test_the_agent_of_a_run_is_validated_by_its_tool_calls(
    project: tuple[Path, Path], tmp_path: Path, calls: list[list[str]], counts: bool
) -> None:
    iterate(tmp_path / "agent.py", calls)
    agent = registered(project[1])
    found = agent["completion_validation"]
    assert agent["status"] == "completed"
    assert set(found) == {
        *("confidence", "warnings", "blocking_issues", "evidence_summary", "validated_at"),
    }
    assert found["blocking_issues"] == ([] if counts else [NO_RUN])
    assert layer(found, "workspace_evidence")["test_runs_count"] == int(counts)
    assert layer(found, "workspace_evidence")["modified_files"] == ["src/login.py"]


def test_a_claim_from_inside_a_run_is_held_against_its_stream(
    project: tuple[Path, Path], tmp_path: Path
) -> None:
    iterate(tmp_path / "agent.py", [["true", ""]], str(tmp_path / "told.json"))
    told = json.loads((tmp_path / "told.json").read_bytes())
    assert told["completion_validation"]["blocking_issues"] == [NO_RUN]
    assert told["agent"]["status"] == "completed"
