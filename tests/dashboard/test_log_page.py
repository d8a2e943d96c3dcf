"""The page of the log: the state at any event, counted again from the raw records; and a check that is judged again."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support import commit, run
from tests.support.dashboards import Served, serve
from tests.support.nights import TOKEN

Record = dict[str, Any]


class Facts(HTMLParser):
    """The figures of the page, by their names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._name = ""
        self.feed(text)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("data-fact")
        if name:
            self._name, self.found[name] = name, ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "dd":
            self._name = ""

    def handle_data(self, data: str) -> None:
        if self._name:
            self.found[self._name] += data


def facts(text: str) -> dict[str, str]:
    return Facts(text).found


def counted(records: list[Record]) -> dict[str, str]:
    """The same figures, from the records alone."""
    runs = {each["run"] for each in records if each["type"] == "run_started"}
    over = {each["run"] for each in records if each["type"] == "run_ended"}
    begun = {(e["run"], e["iteration"]) for e in records if e["type"] == "iteration_started"}
    checks = {(e["run"], e["iteration"]): e for e in records if e["type"] == "check_made"}
    rescued = [oid for e in records if e["type"] == "rescue_made" for oid in e["commits"]]
    breaker = "closed"
    for each in records:
        breaker = {"breaker_opened": "open", "breaker_closed": "closed"}.get(each["type"], breaker)
    return {
        "runs": f"{len(runs)}, {len(runs - over)} not ended",
        "iterations": str(len(begun)),
        "verdicts": str(len(checks)),
        "commits": str(sum(each["new_commits"] for each in checks.values())),
        "rescued": str(len(set(rescued))),
        "breakers": breaker,
    }


def shown(text: str) -> dict[str, str]:
    found = facts(text)
    verdicts = [
        int(part.split()[0])
        for part in found["verdicts"].split(", ")
        if part != "none" and "without a verdict" not in part
    ]
    state = found["breakers"].rpartition(": ")[2].partition(" (")[0]
    return {
        "runs": found["runs"],
        "iterations": found["iterations"],
        "verdicts": str(sum(verdicts)),
        "commits": found["commits"],
        "rescued": found["rescued"],
        "breakers": "closed" if state == "none yet" else state,
    }


def test_the_state_at_any_event_is_that_of_the_records_up_to_it(night: Path) -> None:
    records: list[Record] = run("log", "--format", "json").json["events"]
    numbers = [each["seq"] for each in records]
    chosen = [*Random(4).sample(numbers, 20), numbers[0], numbers[-1]]
    with serve(night) as served:
        start = served.ask("/").headers["location"]
        for seq in chosen:
            text = served.ask(f"{start}log?at={seq}").text
            assert f'data-at="{seq}"' in text
            expected = counted([each for each in records if each["seq"] <= seq])
            assert shown(text) == expected, seq


def test_events_are_listed_up_to_the_place_and_without_secrets(served: Served) -> None:
    records = run("log", "--format", "json").json["events"]
    start = served.ask("/").headers["location"]
    for seq in (1, 7, len(records)):
        text = served.ask(f"{start}log?at={seq}").text
        listed = [int(number) for number in re.findall(r'log\?at=(\d+)">\1</a>', text)]
        assert listed == list(range(seq, max(0, seq - 40), -1))
        assert TOKEN not in text
        assert records[seq - 1]["type"].replace("_", " ") in text


def test_without_a_place_it_is_the_newest_and_the_end_follows(repository: Path) -> None:
    commit(repository)
    with serve(repository) as served:
        log = f"{served.ask('/').headers['location']}log"
        assert "The log is empty." in served.ask(log).text
        run("baseline")
        last = run("log", "--format", "json").json["events"][-1]["seq"]
        assert f'data-at="{last}"' in served.ask(log).text
        run("breaker", "trip")
        newest = run("log", "--format", "json").json["events"][-1]["seq"]
        assert newest > last
        # The slider stood at the end; then one event before it.
        assert f'data-at="{newest}"' in served.ask(f"{log}?at={last}&last={last}").text
        assert f'data-at="{last}"' in served.ask(f"{log}?at={last}&last={newest}").text
        for odd in ("at=0", "at=-1", "at=x", "at=999999999999", "at="):
            assert served.ask(f"{log}?{odd}").status == 200


@pytest.mark.parametrize(
    "settings", [{}, {"max_probes": "1"}, {"probe": "false", "wait": "false"}, {"rescue": "no"}]
)
def test_a_check_is_judged_again_as_the_command_does(
    settings: dict[str, str], served: Served
) -> None:
    start = served.ask("/").headers["location"]
    for record in run("log", "--type", "check_made", "--format", "json").json["events"]:
        number, run_id = str(record["iteration"]), record["run"]
        words = [word for name, text in settings.items() for word in ("--set", f"{name}={text}")]
        told = run("judge", "--replay", number, "--run", run_id, *words, "--format", "json").json
        query = urlencode({"judge": "again", **settings})
        text = served.ask(f"{start}run/{run_id}/{number}?{query}").text
        judged = html.unescape(text.partition('id="judged"')[2])
        assert f"{', '.join(told['trail'])} (decides)" in judged
        assert f"{told['look']} of {told['looks']}" in judged
        if told["status"] is None:
            assert f"next: {told['decision']}" in judged
        else:
            assert f'w-{told["status"]}"' in judged.partition("The check said")[0]


def test_a_setting_that_does_not_fit_is_told(served: Served) -> None:
    record = run("log", "--type", "check_made", "--format", "json").json["events"][0]
    start = served.ask("/").headers["location"]
    page = f"{start}run/{record['run']}/{record['iteration']}"
    text = served.ask(f"{page}?judge=again&max_probes=%3Cscript%3E").text
    assert "max_probes" in text.partition('id="judged"')[2]
    assert "<script>" not in text.partition("<body")[2]
