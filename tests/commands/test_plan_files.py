"""`guard plan load` of files that are no plan, of plans that changed under the work, and by several at once."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.coordinator.plan import load_file
from guard.core.plan.parse import MOST_BYTES
from guard.errors import WrongUsage
from tests.commands.test_plan import call, state, types
from tests.support import TIME_LIMIT, write

TASKS = "- [ ] 1.1: One\n- [ ] 1.2: Two (depends: 1.1)\n- [ ] 3: Three\n"
WITHOUT = {"gone": "- [ ] 3: Three\n", "renamed": "- [ ] One.one: One\n- [ ] 3: Three\n"}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "cannot be read: it is not a regular file"),
        (lambda path: os.symlink("/dev/zero", path), "cannot be read: it is not a regular file"),
        (os.mkdir, "cannot be read: it is not a regular file"),
        (lambda path: os.symlink(path, path), "cannot be read: Too many levels of symbolic links"),
        (lambda path: write(path, b"- [ ] a: b\0c\n"), "is not text"),
        (lambda path: write(path, "- [ ] a: b\n".encode("utf-16")), "is not text"),
        (lambda path: write(path, b"\xff"), "is not text"),
        (lambda path: os.truncate(write(path, b"x"), MOST_BYTES + 1), "is too large for a plan"),
    ],
    ids=["pipe", "device", "folder", "loop", "nul", "utf-16", "bytes", "large"],
)
def test_what_is_no_text_file_is_refused_at_once(
    make: Callable[[Path], object], why: str, repository: Path
) -> None:
    path = repository / "plan.md"
    make(path)
    with pytest.raises(WrongUsage, match=why):
        load_file(Invocation(repo=repository), path, None)


@pytest.mark.parametrize("how", ["at work", "awaiting its audit", "asking", "in expansion"])
@pytest.mark.parametrize("plan", WITHOUT.values(), ids=WITHOUT)
def test_what_is_under_way_keeps_its_place_in_the_plan(
    plan: str, how: str, repository: Path
) -> None:
    write(repository / "plan.md", TASKS)
    call("plan", "load", "plan.md")
    if how == "in expansion":
        call("plan", "assess", "--expand", "1.1")
    else:
        call("plan", "dispatch", "1.1", "--agent", "dev")
    if how == "awaiting its audit":
        call("plan", "ready", "1.1")
    if how == "asking":
        call("plan", "ask", "--agent", "dev", "Which?")
    before = state()
    write(repository / "plan.md", plan)
    assert call("plan", "load", "plan.md") == (1, "the new plan lacks tasks in progress: 1.1")
    assert state() == before
    write(repository / "plan.md", TASKS.replace("One", "Another title"))
    assert call("plan", "load", "plan.md")[0] == 0
    assert state()["in_progress_tasks"] == before["in_progress_tasks"]
    assert state()["pending_divine_questions"] == before["pending_divine_questions"]


def test_a_question_about_a_task_that_is_gone_can_be_answered(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COORDINATOR__REDISPATCH_LIMIT", "0")
    write(repository / "plan.md", TASKS)
    call("plan", "load", "plan.md")
    call("plan", "dispatch", "1.1", "--agent", "dev")
    call("plan", "lost", "--agent", "dev")
    write(repository / "plan.md", WITHOUT["gone"])
    assert call("plan", "load", "plan.md")[0] == 0
    (question,) = state()["pending_divine_questions"]
    assert call("plan", "answer", question["question_id"], "leave it")[0] == 0
    assert call("plan", "dispatch", "3", "--agent", "dev")[0] == 0


def test_names_that_look_like_options_and_paths_are_tasks_like_others(repository: Path) -> None:
    names = [
        ".",
        "..",
        "-rf",
        "/etc/passwd",
        "registry",
        "~",
        "$(touch x)",
        "\u202eevil",
        "abc",
        "ABC",
    ]
    tasks = [{"id": name, "title": "x"} for name in names]
    write(repository / "plan.json", json.dumps({"tasks": tasks}))
    assert call("plan", "load", "plan.json")[0] == 0
    told = {task["name"]: task["id"] for task in state()["tasks"]}
    assert list(told) == names
    assert len(set(told.values())) == len(names)
    for number, task_id in enumerate(told.values()):
        assert call("plan", "dispatch", task_id, "--agent", f"dev-{number}")[0] == 0
        call("plan", "ready", task_id)
        call(
            "plan",
            "audit",
            task_id,
            "--agent",
            "aud",
            "--verdict",
            "pass",
            "--message",
            "green",
            "--no-commits",
        )
    assert len(state()["completed_tasks"]) == len(names)
    assert "\u202e" not in call("plan", "show")[1]
    assert sorted(os.listdir(repository)) == [".git", "plan.json"]


@pytest.mark.parametrize("event_id", [None, "once"])
def test_several_load_at_once(event_id: str | None, repository: Path) -> None:
    """Each plan is loaded whole, one after the other; the same under one id only once."""
    words = ["--event-id", event_id] if event_id else []
    sizes = [3, 3, 3] if event_id else [3, 30, 300]
    files = [
        write(
            repository / f"{number}" / "plan.md",
            "".join(f"- [ ] P{size}-{one}: x\n" for one in range(size)),
        )
        for number, size in enumerate(sizes)
    ]
    chosen = files[:1] * 3 if event_id else files
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "guard", "plan", "load", *words, file],
            cwd=repository,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for file in chosen
    ]
    for process in running:
        _, trouble = process.communicate(timeout=TIME_LIMIT)
        assert process.returncode == 0, trouble
    tasks = [task["id"] for task in state()["tasks"]]
    assert len(tasks) in sizes
    assert {one.rpartition("-")[0] for one in tasks} == {f"P{len(tasks)}"}
    store = Invocation(repo=repository).store
    assert types(store).count("plan_loaded") == (1 if event_id else 3)
    assert store.verify().ok
