"""Claims of completion: what costs what, layer by layer, and that every line of the score is explained."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.claims.completion_validation import CompletionValidation
from guard.core.claims.evidence import ClaimEvidence, TestRun, WorkSinceBaseline
from guard.core.claims.runner_settings import RunnerSettings
from guard.core.claims.settings import (
    ClaimsSettings,
    Requirement,
    parse_requirements,
)
from guard.core.claims.substance import Substance
from guard.core.claims.validate import explain_score, is_believed, needs_person, validate

BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = ClaimsSettings()
HONEST = "Added retries to src/client.py and verified them with a script against a slow server."
REVIEWED = "Reviewed src/client.py as asked and documented 3 findings, each with its line."
RUN = TestRun("pytest", BEGAN + timedelta(minutes=4), passed=True)


def changes(*files: str, commits: int = 1) -> WorkSinceBaseline:
    return WorkSinceBaseline(frozenset(files), commits)


def evidence(**given: Any) -> ClaimEvidence:
    """An agent that has nothing to hide, but for what is given."""
    made = ClaimEvidence(
        agent_type="builder",
        message=HONEST,
        spawned_at=BEGAN,
        at=BEGAN + timedelta(minutes=5),
        updates=3,
        working_updates=2,
        findings=0,
        changes=changes("src/client.py"),
        unmeasured=None,
        tests=(RUN,),
    )
    return replace(made, **given)


def judged(settings: ClaimsSettings = SETTINGS, **given: Any) -> CompletionValidation:
    return validate(evidence(**given), settings)


def test_an_honest_claim_costs_nothing() -> None:
    result = judged()
    assert (result.confidence, result.warnings, result.blocking_issues) == (1, (), ())
    assert result.validated_at == BEGAN + timedelta(minutes=5)
    assert explain_score(result) == [" 1.00  start", " 1.00  confidence"]


def test_the_example_of_the_seed() -> None:
    message = "Investigation complete. Analyzed 15 files, found 8 patterns, documented 5 findings."
    result = judged(agent_type="investigator", message=message, updates=2, findings=5)
    assert result.confidence == 0.85
    assert result.warnings == ("Only 2 progress updates - expected at least 3",)
    assert result.blocking_issues == ()
    assert result.evidence_summary.type_specific.findings_ok is True
    assert result.evidence_summary.progress_pattern.speed == "reasonable"
    assert explain_score(result) == [
        " 1.00  start",
        "-0.15  progress pattern: Only 2 progress updates - expected at least 3",
        " 0.85  confidence",
    ]


WARNED: dict[str, tuple[dict[str, Any], float, str]] = {
    "git could not be asked": (
        {"changes": None, "unmeasured": "the baseline is gone"},
        0.95,
        "Changes could not be measured: the baseline is gone",
    ),
    "nothing is recorded": (
        {
            "agent_type": "planner",
            "changes": changes(commits=0),
            "tests": (),
            "message": "Verified the plan, and compared it with the 3 that were there.",
        },
        0.45,
        "Nothing is recorded: no changed file, no commit, no finding, no test run",
    ),
    "a fixer without a test run": (
        {"agent_type": "fixer", "tests": ()},
        0.65,
        "Only 0 recorded test runs - expected of type fixer: at least 1",
    ),
    "a finding only told": (
        {
            "agent_type": "investigator",
            "message": "Found the root cause: a race at line 40 of src/client.py.",
        },
        0.65,
        "Only 0 recorded findings - expected of type investigator: at least 1",
    ),
    "a finding that a changed report may hold": (
        {
            "agent_type": "investigator",
            "message": "Found the root cause of the crash and wrote it to docs/crash.md.",
            "changes": changes("docs/crash.md"),
        },
        0.9,
        "Only 0 recorded findings - expected of type investigator: at least 1; docs/crash.md may hold some",
    ),
    "no finding at all": (
        {
            "agent_type": "reviewer",
            "message": "Reviewed and checked src/client.py as asked, and that is all.",
        },
        0.65,
        "Only 0 recorded findings - expected of type reviewer: at least 1",
    ),
    "a short message": (
        {"message": "Fixed `a`"},
        0.8,
        "The message has only 9 characters - expected at least 40",
    ),
    "no word of evidence": (
        {"message": "The task is complete: src/client.py is as it is to be."},
        0.85,
        "No word of evidence in the message, such as created, fixed or verified",
    ),
    "nothing concrete": (
        {"message": "Implemented what was asked for and verified the whole of it."},
        0.8,
        "The message names nothing: no file, no number, no command",
    ),
    "a hedge": (
        {"message": HONEST + " It should work."},
        0.85,
        "The message is not sure: should work",
    ),
    "something open": (
        {"message": HONEST + " TODO: caching"},
        0.8,
        "The message says that something is open: TODO",
    ),
    "work left": (
        {"message": HONEST + " Mostly done."},
        0.65,
        "The message says that work is left: mostly done",
    ),
    "a boast": ({"message": HONEST + " Flawless."}, 0.8, "The message boasts: perfect"),
    "a file that does not exist": (
        {"message": HONEST + " See docs/retries.md."},
        0.8,
        "Names what does not exist: docs/retries.md",
    ),
    "files that do not exist": (
        {"message": HONEST + " See docs/a.md, docs/b.md and docs/c.md."},
        0.65,
        "Names what does not exist: docs/a.md, docs/b.md and 1 more",
    ),
    "a few files too many": (
        {"message": HONEST + " Changed 3 files.", "changes": changes("src/client.py", "a.py")},
        0.8,
        "Claims 3 changed files, and git has 2",
    ),
    "more commits than there are": (
        {"message": HONEST + " Landed 3 commits.", "changes": changes("src/client.py", commits=2)},
        0.8,
        "Claims 3 commits, and git has 2 since it began",
    ),
    "tests that are gone, as told": (
        {
            "message": HONEST + " Removed the obsolete tests of the old client.",
            "changes": replace(changes("src/client.py"), substance=Substance(tests_removed=2)),
        },
        0.8,
        "The changes have 2 tests removed",
    ),
    "a change of what steers the tests": (
        {
            "changes": replace(
                changes("src/client.py"), substance=Substance(steering=RunnerSettings(("tox.ini",)))
            ),
        },
        0.9,
        "Changes what steers the tests: tox.ini",
    ),
    "tests that are left out, as told": (
        {
            "message": HONEST + " The obsolete tests of the old client are left out.",
            "changes": replace(
                changes("src/client.py"),
                substance=Substance(steering=RunnerSettings((), ("tox.ini",))),
            ),
        },
        0.8,
        "Tests are left out, or their failures passed over, by tox.ini",
    ),
    "a function without a body among others": (
        {"changes": replace(changes("src/client.py"), substance=Substance(functions=3, stubs=1))},
        0.8,
        "New functions without a body: 1 of 3",
    ),
    "a question beside work": (
        {"message": HONEST + " Should I use PostgreSQL or SQLite?", "asks": True},
        0.65,
        "The message asks a person",
    ),
    "work, and something that could not be done": (
        {"message": HONEST + " I was unable to run the linter."},
        0.8,
        "The message says that the agent could not do it",
    ),
    "far more commits than there are": (
        {"message": HONEST + " Landed 3 commits."},
        0.65,
        "Claims 3 commits, and git has 1 since it began",
    ),
    "tests without a trace": (
        {"message": HONEST + " All tests pass.", "tests": ()},
        0.65,
        "Claims a run of tests, and none is recorded",
    ),
    "one update": (
        {"updates": 1, "working_updates": 1},
        0.85,
        "Only 1 progress update - expected at least 3",
    ),
    "never at work": ({"working_updates": 0}, 0.95, "No update said that it was at work"),
    "fast": (
        {"at": BEGAN + timedelta(seconds=30)},
        0.85,
        "Took only 30.0 s - expected at least 60 s",
    ),
    "implausibly fast": (
        {"at": BEGAN + timedelta(seconds=2)},
        0.65,
        "Took only 2.0 s - expected at least 60 s",
    ),
    "nobody claimed anything": (
        {"silent": True, "message": ""},
        0.75,
        "The agent ended without a claim that its work is complete",
    ),
}


@pytest.mark.parametrize(("given", "confidence", "why"), WARNED.values(), ids=WARNED)
def test_a_warning_costs(given: dict[str, Any], confidence: float, why: str) -> None:
    result = judged(**given)
    assert result.warnings == (why,)
    assert (result.confidence, result.blocking_issues) == (confidence, ())


BLOCKED: dict[str, tuple[dict[str, Any], str]] = {
    "a builder without a file": (
        {
            "message": "Verified that the retries of the client are as they should have been.",
            "changes": changes(),
        },
        "Only 0 modified files - expected of type builder: at least 1",
    ),
    "a file that no diff has": (
        {"message": HONEST + " Created src/pool.py."},
        "Claims to have changed src/pool.py, which no diff has",
    ),
    "far too many files": (
        {"message": HONEST + " Modified 7 files."},
        "Claims 7 changed files, and git has 1",
    ),
    "a commit that is none": (
        {"message": HONEST + " Committed.", "changes": changes("src/client.py", commits=0)},
        "Claims a commit, and git has none since it began",
    ),
    "tests that no tool call ran": (
        {"message": HONEST + " 42 passed.", "tests": (), "calls": 3},
        "Claims a run of tests, and none is recorded",
    ),
    "blanks alone": (
        {"changes": replace(changes("src/client.py"), substance=Substance(only_blanks=True))},
        "Only blanks were changed, or empty files made",
    ),
    "tests that are gone, silently": (
        {"changes": replace(changes("src/client.py"), substance=Substance(tests_removed=2))},
        "The changes have 2 tests removed, and the message is silent",
    ),
    "tests that are skipped, silently": (
        {"changes": replace(changes("src/client.py"), substance=Substance(tests_skipped=1))},
        "The changes have 1 test skipped, and the message is silent",
    ),
    "tests that are left out, silently": (
        {
            "changes": replace(
                changes("src/client.py"),
                substance=Substance(steering=RunnerSettings((), ("a", "b", "c"))),
            ),
        },
        "Tests are left out, or their failures passed over, by a, b and 1 more, and the message is silent",
    ),
    "functions without a body": (
        {"changes": replace(changes("src/client.py"), substance=Substance(functions=3, stubs=2))},
        "New functions without a body: 2 of 3",
    ),
    "a question, and nothing done": (
        {"message": "Should I use PostgreSQL or SQLite?", "changes": changes(commits=0)},
        "The message asks a person, and nothing is done",
    ),
    "the agent could not, and did nothing": (
        {"message": "I was unable to find the file that was named.", "changes": changes(commits=0)},
        "The message says that the agent could not do it, and nothing is done",
    ),
    "tests that failed": (
        {
            "message": HONEST + " The suite is green.",
            "tests": (RUN, TestRun("pytest", BEGAN + timedelta(minutes=5), passed=False)),
        },
        "Claims that tests pass, and the last recorded run failed",
    ),
}


@pytest.mark.parametrize(("given", "why"), BLOCKED.values(), ids=BLOCKED)
def test_a_blocking_issue_leaves_less_than_half(given: dict[str, Any], why: str) -> None:
    result = judged(**given)
    assert why in result.blocking_issues
    assert result.confidence < 0.5
    assert not is_believed(result)


FINE: dict[str, dict[str, Any]] = {
    "an unknown type": {"agent_type": "gardener"},
    "a type in capitals": {"agent_type": "Builder"},
    "nobody could look for tests": {
        "message": HONEST + " All tests pass.",
        "tests": None,
        "agent_type": "fixer",
    },
    "tool calls instead of reports": {"updates": 0, "working_updates": 0, "calls": 3},
    "an offer after the work": {"message": HONEST + " Would you like me to open a PR as well?"},
    "blanks, as told": {
        "message": "Reformatted src/client.py with the formatter of the project.",
        "changes": replace(changes("src/client.py"), substance=Substance(only_blanks=True)),
        "findings": 1,
    },
    "a run that does not tell": {
        "message": HONEST + " All tests pass.",
        "tests": (replace(RUN, passed=None),),
    },
    "a run that failed, honestly": {
        "message": HONEST + " 41 passed, 1 failed.",
        "tests": (replace(RUN, passed=False),),
    },
    "a run that failed before one that passed": {
        "message": HONEST + " All tests pass.",
        "tests": (RUN, replace(RUN, passed=False, at=BEGAN)),
    },
    "fewer files than there are": {
        "message": HONEST + " Changed 1 file.",
        "changes": changes("src/client.py", "a", "b"),
    },
    "as many findings as are recorded": {
        "agent_type": "reviewer",
        "message": REVIEWED,
        "findings": 3,
    },
    "a file that git ignores": {
        "message": HONEST + " Generated docs/api.html.",
        "ignored": frozenset(["docs/api.html"]),
    },
    "a file outside the work tree": {
        "message": HONEST + " Wrote /tmp/report.md.",
        "root": "/home/me/project",
    },
    "a file named that exists": {
        "message": HONEST + " See docs/a.md.",
        "existing": frozenset(["docs/a.md"]),
    },
    "a clock that ran backwards": {"at": BEGAN - timedelta(hours=1)},
}


@pytest.mark.parametrize("given", FINE.values(), ids=FINE)
def test_nobody_is_accused_falsely(given: dict[str, Any]) -> None:
    result = judged(**given)
    assert (result.warnings, result.blocking_issues) == ((), ())


SAYS_NOTHING = "Investigation complete. Analyzed 15 files and looked at all of them."
TELLS = {
    "the example of the seed": "Investigation complete. Analyzed 15 files, found 8 patterns, documented 5 findings.",
    "a cause": "Found the root cause: a race at line 40 of src/client.py, because a lock is missing.",
    "a number": "Investigation complete. Analyzed 15 files, found 8 issues in them.",
}


@pytest.mark.parametrize("message", TELLS.values(), ids=TELLS)
def test_to_tell_of_findings_never_costs_less_than_to_say_nothing(message: str) -> None:
    given: dict[str, Any] = {
        "agent_type": "investigator",
        "changes": changes(commits=0),
        "tests": (),
    }
    silent, told = judged(message=SAYS_NOTHING, **given), judged(message=message, **given)
    assert (silent.confidence, silent.blocking_issues) == (0.45, ())
    assert told.confidence <= silent.confidence


def test_findings_that_do_not_exist_are_doubted_where_they_are_required() -> None:
    given: dict[str, Any] = {
        "agent_type": "investigator",
        "message": TELLS["the example of the seed"],
    }
    nothing = judged(changes=changes(commits=0), tests=(), **given)
    written = judged(changes=changes("report.md"), **given)
    assert (nothing.confidence, written.confidence) == (0.45, 0.9)


def test_what_could_not_be_measured_is_null_and_accuses_nobody() -> None:
    message = (
        HONEST + " Created src/pool.py, changed 9 files and committed everything. See docs/none.md."
    )
    result = judged(message=message, changes=None, unmeasured="not a repository", tests=None)
    found = result.evidence_summary
    assert (result.confidence, len(result.score())) == (0.45, 2)
    assert found.workspace_evidence.modified_files_count is None
    assert found.workspace_evidence.commits_count is None
    assert found.workspace_evidence.test_runs_count is None
    assert found.workspace_evidence.unmeasured == "not a repository"
    assert found.type_specific.files_ok is None
    assert found.message_validation.claimed_files == ("src/client.py", "src/pool.py")


def test_an_absolute_path_in_the_work_tree_is_looked_for() -> None:
    root = "/home/me/project"
    assert judged(message=f"{HONEST} Fixed {root}/src/client.py", root=root).blocking_issues == ()
    assert judged(message=f"{HONEST} Fixed {root}/src/x.py", root=root).blocking_issues != ()


def test_a_path_with_a_drive_is_looked_for_by_its_last_parts() -> None:
    message = f"{HONEST} Fixed the loop in C:\\repo\\src\\pool.py"
    given: dict[str, Any] = {"message": message, "root": "/mnt/c/repo"}
    there = frozenset(["src/pool.py"])
    assert judged(existing=there, **given).blocking_issues == (
        "Claims to have changed C:/repo/src/pool.py, which no diff has",
    )
    both = changes("src/client.py", "src/pool.py")
    assert judged(existing=there, changes=both, **given).blocking_issues == ()
    assert judged(existing=there, ignored=there, **given).blocking_issues == ()
    assert judged(**given).blocking_issues == ()


def test_many_false_files_are_counted() -> None:
    claimed = ", ".join(f"src/made{number}.py" for number in range(60))
    result = judged(message=f"Created {claimed}")
    assert result.blocking_issues[-1] == "Claims to have changed 57 more files that no diff has"
    assert len(result.blocking_issues) == 4
    assert len(result.evidence_summary.message_validation.unsupported_files) == 50
    assert explain_score(result)[-1] == " 0.00  confidence (the sum is -1.20)"


def test_one_second_for_every_changed_file_is_implausible_within_the_minute() -> None:
    many = changes("src/client.py", *(f"{number}.py" for number in range(40)))
    half = BEGAN + timedelta(seconds=30)
    assert judged(at=half).evidence_summary.progress_pattern.speed == "fast"
    assert judged(at=half, changes=many).evidence_summary.progress_pattern.speed == "implausible"


KNOBS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "min_message_length": ({"min_message_length": 200}, {}),
    "min_updates": ({"min_updates": 4}, {}),
    "min_updates of 0": ({"min_updates": 0}, {"updates": 0}),
    "min_seconds": ({"min_seconds": 301}, {}),
    "min_seconds of 0": ({"min_seconds": 0}, {"at": BEGAN}),
    "requirements": ({"requirements": "builder: findings=1"}, {}),
    "requirements of a new type": (
        {"requirements": "gardener: files=2 tests=1"},
        {"agent_type": "gardener"},
    ),
    "requirements that ask for less": (
        {"requirements": "builder: files=0"},
        {"changes": changes(), "message": "Verified " * 9},
    ),
    "evidence_words": (
        {"evidence_words": "shipped, sent"},
        {"message": "Shipped the whole thing to where it belongs, on time."},
    ),
    "suspicious_phrases": ({"suspicious_phrases": "trust me, slow server"}, {}),
}


@pytest.mark.parametrize(("knobs", "given"), KNOBS.values(), ids=KNOBS)
def test_a_knob_changes_the_result(knobs: dict[str, Any], given: dict[str, Any]) -> None:
    turned = ClaimsSettings.model_validate(knobs)
    assert judged(turned, **given).confidence != judged(**given).confidence


def test_strict_lets_blocking_issues_refuse() -> None:
    false = judged(message=HONEST + " Created src/pool.py.")
    claims = ("Claims to have changed src/pool.py, which no diff has",)
    assert false.blocking_issues == claims
    assert false.is_refused(strict=True)
    assert not false.is_refused(strict=False)
    assert not judged(updates=0).is_refused(strict=True)


NEEDS: dict[str, tuple[dict[str, Any], bool]] = {
    "a question": ({"message": "Is it production or staging?"}, True),
    "unable": ({"message": "I couldn't get access to the database."}, True),
    "unable, and git could not be asked": ({"message": "I am stuck.", "changes": None}, True),
    "a claim": ({}, False),
    "a question beside work": ({"message": "Is it so?", "changes": changes("a.py")}, False),
    "a question beside a finding": ({"message": "Is it so?", "findings": 1}, False),
    "an empty question of an agent that is gone": ({"message": "Is it?", "silent": True}, False),
}


@pytest.mark.parametrize(("given", "needs"), NEEDS.values(), ids=NEEDS)
def test_a_person_is_needed_where_nothing_is_done(given: dict[str, Any], needs: bool) -> None:
    assert needs_person(evidence(**{"changes": changes(commits=0), **given})) is needs


@pytest.mark.parametrize("unmeasured", [False, True])
def test_without_evidence_no_wording_brings_a_claim_to_half(unmeasured: bool) -> None:
    work: dict[str, Any] = {"changes": None if unmeasured else changes(commits=0), "tests": ()}
    found = judged(agent_type="agent", message=HONEST.replace("src/client.py", "it"), **work)
    assert found.confidence < 0.5


REQUIREMENTS: dict[str, tuple[str, dict[str, Requirement]]] = {
    "nothing": ("", {}),
    "one": ("reviewer: findings=1", {"reviewer": Requirement(findings=1)}),
    "two": (
        "reviewer:findings=1 ; Migrator: files=2  tests=10;",
        {"reviewer": Requirement(findings=1), "migrator": Requirement(files=2, tests=10)},
    ),
}


@pytest.mark.parametrize(("text", "parsed"), REQUIREMENTS.values(), ids=REQUIREMENTS)
def test_requirements_are_read(text: str, parsed: dict[str, Requirement]) -> None:
    assert parse_requirements(text) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "reviewer",
        "reviewer:",
        "reviewer: findings",
        "reviewer: findings=-1",
        "reviewer: stars=1",
        "a: files=1, b: files=1",
        ": files=1",
        "a: files=1000",
        "a: files=1 files=2",
        "a: files=1; A: tests=1",
        ";",
        "a b: files=1",
    ],
)
def test_requirements_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"requirements"):
        parse_requirements(text)


moments = st.datetimes(timezones=st.just(UTC), max_value=datetime(9999, 1, 1))  # noqa: DTZ001
counts = st.integers(0, 10**6)
names = st.text(max_size=30) | st.sampled_from(["src/a.py", "README.md", "docs/\udcff.md"])
pieces = st.sampled_from(
    [
        "Created ",
        "src/a.py",
        "not ",
        "tests pass",
        "committed ",
        "7 files ",
        "TODO",
        "```\n",
        "- ",
        "\n",
        "`",
        "perfect",
        ", ",
    ]
)
messages = st.text(max_size=300) | st.lists(pieces | names, max_size=40).map("".join)
runs = st.builds(TestRun, st.just("pytest"), moments, st.sampled_from([True, False, None]))
anything = st.builds(
    ClaimEvidence,
    agent_type=names | st.sampled_from(["builder", "fixer", "investigator", "tester"]),
    message=messages,
    spawned_at=moments,
    at=moments,
    updates=counts,
    working_updates=counts,
    findings=counts,
    changes=st.none() | st.builds(WorkSinceBaseline, st.frozensets(names, max_size=5), counts),
    unmeasured=st.none() | st.text(max_size=2000),
    existing=st.frozensets(names, max_size=3),
    tests=st.none() | st.lists(runs, max_size=3).map(tuple),
    silent=st.booleans(),
)


@given(anything)
def test_any_claim_is_judged_and_the_lines_add_up(found: ClaimEvidence) -> None:
    result = validate(found, SETTINGS)
    total = 1 + sum(line.points for line in result.score())
    assert result.confidence == round(min(1, max(0, total)), 2)
    assert sorted(line.why for line in result.score()) == sorted(
        (*result.warnings, *result.blocking_issues)
    )
    assert len(set(result.warnings + result.blocking_issues)) == len(result.score())
    assert not result.blocking_issues or result.confidence < 0.5
    assert CompletionValidation.model_validate_json(result.model_dump_json()) == result
    assert len(explain_score(result)) == len(result.score()) + 2
