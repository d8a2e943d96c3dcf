"""Every figure of a report adds up with the log: each is counted again from the raw records and from git."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.support import commit, git, run

Record = dict[str, Any]


def records(*types: str) -> list[Record]:
    events: list[Record] = run("log", "--format", "json").json["events"]
    return [event for event in events if event["type"] in types or not types]


def place(record: Record) -> tuple[str, int]:
    return record["run"], record["iteration"]


def newest_checks() -> dict[tuple[str, int], Record]:
    return {place(record): record for record in records("check_made")}


def seconds(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def test_the_figures_are_those_of_the_raw_records_and_of_git(night: Path) -> None:
    report, checks = run("report", "--format", "json").json, newest_checks()
    assert list(validator("report").iter_errors(report)) == []
    head, iterations = report["headline"], report["iterations"]
    begun = {place(record): record for record in records("iteration_started")}
    ended = {place(record): record for record in records("iteration_ended")}
    rescued = [oid for record in records("rescue_made") for oid in record["commits"]]
    costs = [check["usage"]["cost_usd"] for check in checks.values()]

    assert [(each["run"], each["number"]) for each in iterations] == list(begun)
    assert report["verdicts"] == Counter(check["status"] for check in checks.values())
    assert head["iterations"] == sum(report["verdicts"].values()) + head["open"] == len(begun) == 7
    assert head["commits"] == sum(check["new_commits"] for check in checks.values()) == 3
    assert head["rescued"] == len(rescued) == sum(each["rescued"] for each in iterations) == 1
    assert head["runs"] == len({run_id for run_id, _ in begun}) == len(report["runs"])
    assert head["cost_usd"] == pytest.approx(sum(cost for cost in costs if cost is not None))
    assert report["usage"]["cost_usd"] == head["cost_usd"]
    for each in iterations:
        key = each["run"], each["number"]
        assert each["status"] == checks[key]["status"]
        assert each["commits"] == checks[key]["new_commits"]
        assert each["usage"] == checks[key]["usage"]
        assert each["proof"] == checks[key]["proof"]
        assert each["seconds"] == pytest.approx(seconds(begun[key]["at"], ended[key]["at"]))
    listed = [
        line["oid"] for check in checks.values() for line in check["looks"][-1]["work"]["commits"]
    ]
    assert [each["oid"] for each in report["commits"]] == list(dict.fromkeys([*listed, *rescued]))
    assert len(report["commits"]) + report["commits_omitted"] == head["commits"] + head["rescued"]
    proofs = [(each["head"], each["result"]) for each in report["proofs"]]
    assert proofs == [(record["head"], record["result"]) for record in records("proof_made")]
    kept = {held["path"] for record in records("rescue_made") for held in record["held_back"]}
    assert {each["path"] for each in report["held_back"]} == kept == {"keys.py"}
    for each in report["commits"]:
        counts = [
            line.split("\t")
            for line in git(night, "show", "--numstat", "--format=", each["oid"]).splitlines()
        ]
        assert each["diff"]["files"] == len(counts)
        assert each["diff"]["insertions"] == sum(int(added) for added, _, _ in counts)
        assert each["diff"]["deletions"] == sum(int(gone) for _, gone, _ in counts)


def test_the_hours_are_the_time_of_the_runs_each_moment_once(night: Path) -> None:
    report = run("report", "--format", "json").json
    total = 0.0
    for run_id in {each["run"] for each in report["iterations"]}:
        mine = [each for each in report["iterations"] if each["run"] == run_id]
        ends = [record["at"] for record in records("run_ended") if record["run"] == run_id]
        total += seconds(mine[0]["at"], max(each["ended_at"] for each in mine))
        assert not ends or ends[0] >= mine[-1]["ended_at"]
    hours = {each["kind"]: each["seconds"] for each in report["hours"]}
    assert sum(hours.values()) == pytest.approx(total, abs=0.01)
    assert report["headline"]["seconds"] == pytest.approx(total, abs=0.01)
    took = {each["number"]: each["seconds"] for each in report["iterations"][:4]}
    assert hours["rework"] == pytest.approx(took[3], abs=0.01)
    assert {"work", "rework", "hangs", "person", "limits"} <= set(hours)


def test_the_queue_says_what_to_look_at_first_and_how_to_take_it_back(night: Path) -> None:
    queue = run("report", "--format", "json").json["review"]
    assert [item["kind"] for item in queue] == ["commit", "rescue", "commit", "commit"]
    assert [item["title"][:9] for item in queue] == [
        "feat: bre",
        "feat: add",
        "feat: add",
        "fix: repa",
    ]
    assert queue[0]["look_first"][1:] == ["1 test file removed"]
    assert queue[0]["diff"]["tests"]["names"] == ["- tests/test_old.py"]
    assert queue[2]["diff"]["tests"]["added"] == 1
    words = queue[1]["undo"].split()
    assert words[:2] == ["git", "revert"]
    git(night, *words[1:2], "--no-edit", *words[2:])
    assert not (night / "left.py").exists()


def test_the_needs_are_those_that_are_still_open(night: Path) -> None:
    needs = run("report", "--format", "json").json["needs_you"]
    assert [need["kind"] for need in needs] == ["question", "held_back"]
    assert needs[0]["command"].startswith("claude --resume ")
    words = needs[1]["command"].replace("DIR", str(night.parent / "back")).split()
    assert run(*words[1:]).code == 0
    assert (night.parent / "back" / "keys.py").exists()


def test_a_range_is_a_run_or_a_time(night: Path) -> None:
    runs = list(dict.fromkeys(record["run"] for record in records("run_started")))
    first = run("report", "--run", runs[0], "--format", "json").json
    assert first["range"]["run"] == runs[0]
    assert {each["run"] for each in first["iterations"]} == {runs[0]}
    assert run("report", "--since", "0s", "--format", "json").json["iterations"] == []
    assert len(run("report", "--since", "1d", "--format", "json").json["iterations"]) == 7
    both = run("report", "--since", "1d", "--run", runs[0])
    assert (both.code, "exclude each other" in both.err) == (2, True)
    missing = run("report", "--run", "nobody")
    assert (missing.code, "the log has no run nobody" in missing.err) == (1, True)


def test_without_a_range_it_is_the_newest_run_or_the_last_day_if_that_is_more(night: Path) -> None:
    runs = [record["run"] for record in records("run_started")]
    today = run("report", "--format", "json").json
    assert len(today["runs"]) == len(runs)
    later = {"GUARD_NOW": datetime(2126, 1, 1, tzinfo=UTC).isoformat()}
    found = run("report", "--format", "json", env=later).json
    assert [each["run"] for each in found["runs"]] == [runs[-1]]


def test_without_any_run_there_is_nothing_and_that_is_said(repository: Path) -> None:
    commit(repository)
    done = run("report")
    assert done.code == 0
    assert "Nothing needs you now." in done.out
    assert "0 iterations in 0 runs; 0 new commits, 0 rescued" in done.out
