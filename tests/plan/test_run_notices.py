"""The notices of `guard plan run`: one for each thing that a person wants to know, whichever agent it is about."""

import json
import time
from pathlib import Path
from typing import Any

from tests.streams import init, jsonl, refused, result
from tests.support import run, write
from tests.support.plan_runs import WORK, PlanRunStory


class Notices:
    """A command of the user's that keeps each notice."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "notices"
        self.env = {"GUARD_NOTIFY__COMMAND": f"cat >> {self.file}"}

    @property
    def got(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    @property
    def words(self) -> list[tuple[str, str]]:
        return [(notice["kind"], notice["title"].partition(": ")[2]) for notice in self.got]


def test_the_end_of_a_plan_and_its_budget_are_told(repository: Path, tmp_path: Path) -> None:
    story, notices = PlanRunStory(repository, "T1: one", "T2: two"), Notices(tmp_path)
    used = {"claude-opus": {"inputTokens": 1000, "costUSD": 0.45}}
    path = write(
        story.scripts / "stream", jsonl(init(), result(model_usage_since_last_result=used))
    )
    story.does("work", f"{WORK}cat {path}\n")
    assert story.run("--agents", "1", "--max-cost", "1", env=notices.env).code == 0
    assert notices.words == [
        ("budget", "80 % of max_cost is used up"),
        ("ended", "the run of the plan has ended: complete"),
    ]
    assert notices.got[1]["text"] == "2 of 2 tasks landed"


def test_a_question_is_told_once_however_often_the_plan_is_run(
    repository: Path, tmp_path: Path
) -> None:
    story, notices = PlanRunStory(repository, "T1: one"), Notices(tmp_path)
    ask = "printf 'SEEKING DIVINE CLARIFICATION\\n\\nTask: T1\\nQuestion: Which port?\\n'\n"
    story.does("work", ask)
    assert story.run(env=notices.env).code == 14
    assert story.run(env=notices.env).code == 14
    (notice,) = notices.got
    assert (notice["kind"], notice["text"]) == ("blocked", "task T1: Which port?")


def test_a_breaker_that_opens_is_told_once_for_all_agents(repository: Path, tmp_path: Path) -> None:
    story = PlanRunStory(repository, *(f"T{n}: task {n}" for n in range(4)))
    notices = Notices(tmp_path)
    story.does("work", "true\n")
    assert story.run("--agents", "2", env=notices.env).code == 20
    assert notices.words == [("breaker", "the breaker of the plan is open")]


def test_a_limit_that_lasts_is_told_once_for_all_agents(repository: Path, tmp_path: Path) -> None:
    story, notices = PlanRunStory(repository, "T1: one", "T2: two"), Notices(tmp_path)
    reset = int(time.time()) + 6 * 3600
    limited = jsonl(init(), refused(at=reset), result("limit", is_error=True, api_error_status=429))
    path = write(story.scripts / "stream", limited)
    story.does("work", f"cat {path}; exit 1\n")
    done = story.run("--agents", "2", "--max-time", "20", env=notices.env)
    assert done.code == 12
    kinds = [kind for kind, _ in notices.words]
    assert kinds == ["limit", "ended"]


def test_work_of_a_task_that_is_refuted_twice_is_told(repository: Path, tmp_path: Path) -> None:
    story, notices = PlanRunStory(repository, "T1: one"), Notices(tmp_path)
    story.does("T1.work.1", f"touch bad.txt\n{WORK}")
    story.does("T1.work.2", f"echo worse > bad.txt\n{WORK}")
    story.does("T1.work.3", f"git rm -q bad.txt\n{WORK}")
    env = {
        **notices.env,
        "GUARD_PROVE__COMMAND": "test ! -e bad.txt || { echo bad is there; exit 1; }",
    }
    done = story.run(audit=None, env=env)
    assert done.code == 0, done.err
    assert ("refuted", "task T1: the work was refuted twice in a row") in notices.words
    assert run("log", "--type", "notice_sent", "--format", "json").json["events"] != []
