"""`guard plan run` works a plan off: agents are sent, audited and landed, each task once, whatever goes wrong."""

import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import guard
from tests.support import git, run, write
from tests.support.plan_runs import TARGET, PlanRunStory
from tests.support.reverts import state


def test_a_plan_is_worked_off_and_every_task_lands_once(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "1.1: second (depends: A)", "C: third")
    before = state(repository)
    report = story.report("--agents", "2")
    assert (report["ended"], report["landed"], report["total_tasks"]) == ("complete", 3, 3)
    assert report["needs_you"] == report["still_working"] == []
    assert sorted(story.landed()) == ["1-1", "A", "C"]
    assert story.landed().index("A") < story.landed().index("1-1")
    assert [task["place"] for task in report["tasks"]] == ["landed"] * 3
    assert story.shown("PLAN.md").count("- [x]") == 3
    assert state(repository) == before, "nobody's work tree, branch or index is touched"
    assert story.branches() == []
    assert (story.sessions("A"), story.sessions("1-1"), story.sessions("C")) == (1, 1, 1)
    again = story.report()
    assert (again["ended"], again["sessions"], story.sessions("A")) == ("complete", 0, 1)
    assert git(repository, "rev-parse", TARGET).strip() == report["head"]


def test_an_agent_sees_what_its_task_builds_on(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second (depends: A)")
    story.does("B.work.1", 'cat A.txt > B.txt; git add -A; git commit -q -m "feat: b"\n')
    report = story.report("--agents", "2")
    assert report["ended"] == "complete"
    assert story.shown("B.txt") == "A\n"
    prompt = story.prompt("B", 1)
    assert "- A: first (complete, commit" in prompt
    assert "What an earlier agent committed" not in prompt, "the work of A is nobody's for B"


def test_the_prompt_file_stands_before_the_prompt(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    write(repository.parent / "rules.md", "# House rules\n\nBe brief.\n")
    story.report("--prompt-file", str(repository.parent / "rules.md"))
    assert story.prompt("A", 1).startswith("# House rules\n\nBe brief.\n\n# Task A: first\n")


def test_wrong_input_is_refused_before_anything_begins(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    assert story.run("--prompt-file", "none.md").code == 2
    assert story.run("--target", "none").code == 1
    assert story.run("--plan", "none.md").code == 2
    assert run("plan", "run", "--", "no-such-program").code == 2
    assert run("plan", "run").code == 2
    assert story.sessions("A") == 0


def test_the_prompt_takes_the_place_of_the_word_for_it(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    words = ("plan", "run", "--audit", "true", "--", "sh", "-c")
    script = f'GUARD_PROMPT="$1" exec {story.agent} {story.scripts}'
    done = run(*words, script, "sh", "{prompt}")
    assert done.code == 0, done.err
    assert story.prompt("A", 1).startswith("# Task A: first\n")
    assert run("log", "--format", "json").out.count("How to report") == 0, "no prompt is logged"


def test_a_second_run_at_the_same_time_is_refused(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    inner = f'{sys.executable} -m guard plan run -- true; echo "inner $?" > {story.scripts}/inner\n'
    story.does("A.work.1", inner + story_work(story))
    assert story.report()["ended"] == "complete"
    assert (story.scripts / "inner").read_text() == "inner 1\n"


def story_work(story: PlanRunStory) -> str:
    return (story.scripts / "work").read_text()


def test_a_runner_in_python_works_the_plan_off(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    report = guard.plan_run([str(story.agent), str(story.scripts)], audit="true")
    assert (report.ended, story.landed()) == ("complete", ["A"])


def test_a_runner_whose_stdout_is_no_descriptor_takes_in_what_a_session_found(
    repository: Path,
) -> None:
    story = PlanRunStory(repository, "A: first")
    story.does("A.work.1", "echo nothing\n")
    story.does("A.work.2", "echo nothing\n")
    story.does("A.work.3", "echo nothing\n")
    with redirect_stdout(StringIO()):
        report = guard.plan_run([str(story.agent), str(story.scripts)], audit="true")
    assert report.ended == "breaker_open", "three sessions without work"


def test_a_rollback_of_what_landed_says_which_commit_takes_it_back(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    assert story.report()["ended"] == "complete"
    done = run("plan", "rollback", "A")
    tip = git(repository, "rev-parse", TARGET)[:10]
    assert f"A returned to available queue (revert {tip})" in done.out
    assert "A.txt" not in git(repository, "ls-tree", "--name-only", TARGET).split()
    assert story.report()["ended"] == "complete"
    assert (story.shown("A.txt"), story.sessions("A")) == ("A\n", 2)
