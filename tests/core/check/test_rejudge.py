"""Judgements made again: a document, and the looks of a past check under other settings."""

import json
from datetime import timedelta
from typing import Any

import pytest

from guard.core.check.events import CheckMade
from guard.core.check.evidence import Evidence, Policy
from guard.core.check.judge import RULES
from guard.core.check.rejudge import apply_settings, explain, read_evidence, replay_check
from tests.support.events import MOMENT
from tests.support.evidence import COMMITTED, LEFT, answered, failed, living, look, rescue, said

SHORT = b'{"at": "2026-01-31T12:00:00Z", "work": {}, "uncommitted": {}}'


def made(*looks: Evidence, policy: Policy | None = None, **different: Any) -> CheckMade:
    """A check as the log has it."""
    plain: dict[str, Any] = {
        "at": MOMENT,
        "id": "c-1",
        "run": "r-1",
        "worktree": "w-1",
        "iteration": 1,
        "status": "timeout",
        "reason": "no_commits",
        "detail": "",
        "complete": False,
        "new_commits": 0,
        "uncommitted": 0,
        "rescued": False,
        "rescued_commits": 0,
        "probes": 0,
        "probe_cost_usd": None,
        "alive": 0,
        "retry_at": None,
        "elapsed_seconds": 1.0,
        "left": (),
        "policy": (policy or Policy()).model_dump(mode="json"),
        "looks": tuple(one.model_dump(mode="json") for one in looks),
    }
    return CheckMade(**{**plain, **different})


def rounds(*answers: str) -> list[Evidence]:
    """The looks of a check in which every round had one probe, and a ref moved after each."""
    probes = tuple(answered(one) for one in answers)  # type: ignore[arg-type]
    return [
        look(
            round=number,
            probed=asked,
            probes=probes[: number - (not asked)],
            changed_since_probe=asked,
        )
        for number in range(1, len(probes) + 1)
        for asked in (False, True)
    ]


def test_a_short_document_is_one_look_with_nothing_in_it() -> None:
    found = read_evidence(SHORT)
    assert (found.round, found.can_ask, found.living, found.work.new_commits) == (1, False, (), 0)


def test_every_field_of_a_document_is_read() -> None:
    whole = look(
        work=COMMITTED,
        output=said("limited", retry_at=MOMENT),
        living=(living("member", 3),),
        probes=(answered("waiting", tasks_pending=("1",)), failed("timeout")),
        probed=True,
        open_tasks=2,
    )
    assert read_evidence(whole.model_dump_json().encode()) == whole


BAD = {
    "not JSON": (b"{", "Expecting property name"),
    "not UTF-8": (b"\xff", "can't decode"),
    "not an object": (b"[]", "Input should be an object"),
    "no time": (b'{"work": {}, "uncommitted": {}}', "at: Field required"),
    "a number in quotes": (SHORT.replace(b"}}", b'}, "round": "2"}'), "round: Input should be"),
    "a key twice": (SHORT.replace(b'"work": {}', b'"work": {}, "work": {}'), "stands twice"),
    "a key that nobody knows": (
        SHORT.replace(b"{}", b'{"commits": 1}', 1), "work.commits: Input should be a valid"),
    "nested without end": (b"[" * 100_000, "nested more than"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "problem"), BAD.values(), ids=BAD)
def test_a_document_that_is_none_is_refused_in_one_line(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        read_evidence(data)
    assert "\n" not in str(refused.value)


SETTINGS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "a number": (["max_probes=3"], {"max_probes": 3}),
    "by its name in the config": (["completion_check.max_probes=3"], {"max_probes": 3}),
    "a fraction": (["probe_interval_seconds=0.5"], {"probe_interval_seconds": 0.5}),
    "a switch": (["wait=false"], {"wait": False}),
    "several": (["wait=false", "probe=no"], {"wait": False, "probe": False}),
    "one twice: the last": (["max_probes=3", "max_probes=4"], {"max_probes": 4}),
    "none": ([], {}),
}


@pytest.mark.parametrize(("told", "expected"), SETTINGS.values(), ids=SETTINGS)
def test_settings(told: list[str], expected: dict[str, Any]) -> None:
    before = Policy(max_wait_seconds=60)
    assert apply_settings(before, told) == before.model_copy(update=expected)


WRONG = {
    "max_probes": "is not NAME=VALUE",
    "max_prober=3": "is not NAME=VALUE with a name of max_probes",
    "max_probes=": "max_probes: Input should be a valid integer",
    "max_probes=0": "max_probes: Input should be greater than or equal to 1",
    "max_wait_seconds=nan": "max_wait_seconds: Input should be a finite number",
    "wait=perhaps": "wait: Input should be a valid boolean",
}


@pytest.mark.parametrize("told", WRONG)
def test_a_setting_that_is_none_is_named(told: str) -> None:
    with pytest.raises(ValueError, match=WRONG[told]):
        apply_settings(Policy(), [told])


def test_a_verdict_is_explained() -> None:
    retry_at = MOMENT + timedelta(hours=1)
    found = explain(look(work=COMMITTED, output=said("limited", retry_at=retry_at)), Policy())
    assert (found.decision, found.status, found.reason) == ("verdict", "complete", "commits")
    assert (found.retry_at, found.seconds) == (retry_at, 0)
    assert found.trail == ("helpers killed with the session", "new commits")
    assert (found.look, found.looks, found.recorded_status) == (1, 1, None)


def test_a_step_is_explained() -> None:
    found = explain(look(living=(living(),)), Policy(max_wait_seconds=60))
    assert (found.decision, found.status, found.reason, found.seconds) == ("wait", None, None, 60)
    assert found.trail[-1] == "something is at work"
    assert found.policy == Policy(max_wait_seconds=60)


REPLAYS: dict[str, tuple[CheckMade, list[str], tuple[str, str | None, int]]] = {
    "as it was: the same verdict, at the last look": (
        made(*rounds(*["working"] * 5)), [], ("verdict", "no_commits", 10)),
    "fewer probes: an earlier look decides": (
        made(*rounds(*["working"] * 5)), ["max_probes=3"], ("verdict", "no_commits", 6)),
    "more probes: the evidence ends before the verdict": (
        made(*rounds(*["working"] * 5)), ["max_probes=9"], ("wait", None, 10)),
    "no wait: the first answer decides": (
        made(*rounds(*["working"] * 5)), ["wait=false"], ("verdict", "no_commits", 2)),
    "no probe: the first look decides": (
        made(*rounds("working", "complete")), ["probe=false"], ("verdict", "no_commits", 1)),
    "the policy of that time holds where nothing else is said": (
        made(*rounds(*["working"] * 5), policy=Policy(max_probes=2)), [],
        ("verdict", "no_commits", 4)),
    "a longer window: what was idle is at work": (
        made(look(living=(living(idle=300),), can_ask=False, round=5)),
        ["progress_window_seconds=600"], ("wait", None, 1)),
    "the final rescue settles the reason": (
        made(look(probed=True, probes=(answered("working"),), uncommitted=LEFT),
             look(probed=True, probes=(answered("working"),), rescue=rescue())),
        [], ("verdict", "rescued", 1)),
    "without a final rescue the work is uncommitted": (
        made(look(probed=True, probes=(answered("working"),), uncommitted=LEFT),
             look(probed=True, probes=(answered("working"),), rescue=rescue())),
        ["final_rescue_attempt=false"], ("verdict", "uncommitted", 1)),
}  # fmt: skip


@pytest.mark.parametrize(("check", "told", "expected"), REPLAYS.values(), ids=REPLAYS)
def test_a_past_check_under_other_settings(
    check: CheckMade, told: list[str], expected: tuple[str, str | None, int]
) -> None:
    found = replay_check(check, told)
    assert (found.decision, found.reason, found.look) == expected
    assert found.looks == len(check.looks)
    assert (found.recorded_status, found.recorded_reason) == ("timeout", "no_commits")
    assert set(found.trail) <= {name for name, _ in RULES}


def test_a_check_without_evidence_cannot_be_replayed() -> None:
    with pytest.raises(ValueError, match="kept no evidence"):
        replay_check(made(), [])


def test_looks_that_this_version_cannot_read_are_a_problem_in_one_line() -> None:
    old = made(look()).model_copy(update={"looks": ({"at": "2026-01-31T12:00:00Z", "commits": 1},)})
    with pytest.raises(ValueError, match="Field required") as refused:
        replay_check(old, [])
    assert "\n" not in str(refused.value)


def test_a_report_is_a_document() -> None:
    text = explain(look(), Policy()).model_dump_json()
    assert json.loads(text)["schema"] == "guard/judge/1"
