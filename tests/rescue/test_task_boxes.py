"""Boxes ticked by a rescue: by what is in its commits, in a commit apart, and only in a file that nobody has plans for."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from guard.core.rescue.groups import Changed, Group, group_changes
from guard.core.snapshots.snapshot import Rescue
from tests.rescue.states import start
from tests.support import git, write
from tests.support.rescues import attempt_rescue
from tests.support.sessions import script

TASKS = "# Tasks\n\n- [ ] write `new.py`\n- [ ] write `other.py`\n- [ ] think\n"
DONE = TASKS.replace("[ ] write `new.py`", "[x] write `new.py`")


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)
    have(repository, TASKS)
    write(repository / "new.py", "x = 1\n")


def have(root: Path, text: str | bytes, name: str = "tasks.md") -> None:
    """A task file that is committed."""
    write(root / name, text)
    git(root, "add", "--", name)
    git(root, "commit", "-q", "--allow-empty", "-m", "tasks")


def rescued(root: Path, workspace: Path, *more: str, **options: Any) -> Rescue:
    options = {"tasks": b"tasks.md", **options}
    return attempt_rescue(root, workspace, ["new.py", *more], **options)


def committed(root: Path, name: str = "tasks.md") -> bytes:
    words = ["git", "cat-file", "blob", f"HEAD:{name}"]
    return subprocess.run(words, cwd=root, check=True, capture_output=True).stdout


def test_a_box_is_ticked_in_a_commit_apart(repository: Path, workspace: Path) -> None:
    (repository / "tasks.md").chmod(0o640)
    result = rescued(repository, workspace)
    assert (result.reason, result.ticked) == ("rescued", ("write `new.py`",))
    assert (repository / "tasks.md").read_text() == DONE == committed(repository).decode()
    assert (repository / "tasks.md").stat().st_mode & 0o777 == 0o640
    changed = git(repository, "show", "--format=%s%n%b", "--name-only", "HEAD").split("\n")
    assert changed[:2] == ["docs(tasks): tick 1 task", "- write `new.py`"]
    assert "Guard-Rescue: r1/2" in changed
    assert changed[-2] == "tasks.md"
    assert git(repository, "diff", "--name-only", "HEAD~2", "HEAD~1") == "new.py\n"
    assert result.plan[-1].paths == ("tasks.md",)
    assert git(repository, "status", "--porcelain") == ""
    assert not list(repository.glob("*.guard-*"))


@pytest.mark.parametrize(
    ("settings", "attributes", "text", "blob"),
    [
        ({}, "", TASKS.replace("\n", "\r\n"), DONE.replace("\n", "\r\n")),
        ({"core.autocrlf": "true"}, "", TASKS.replace("\n", "\r\n"), DONE),
        ({}, "*.md text eol=crlf\n", TASKS.replace("\n", "\r\n"), DONE),
        ({}, "*.md text working-tree-encoding=UTF-16\n", TASKS.encode("utf-16"), DONE),
    ],
    ids=["as they are", "autocrlf", "eol", "another encoding"],
)
def test_line_ends_and_encodings_are_kept(
    settings: dict[str, str],
    attributes: str,
    text: str | bytes,
    blob: str,
    repository: Path,
    workspace: Path,
) -> None:
    for name, value in settings.items():
        git(repository, "config", name, value)
    if attributes:
        have(repository, attributes, ".gitattributes")
    have(repository, text)
    assert rescued(repository, workspace).ticked == ("write `new.py`",)
    now = (repository / "tasks.md").read_bytes()
    data = text if isinstance(text, bytes) else text.encode()
    assert len(now) == len(data)
    assert sum(one != other for one, other in zip(now, data, strict=True)) == 1
    assert committed(repository) == blob.encode()
    assert git(repository, "status", "--porcelain") == ""


def test_a_file_that_the_agent_changed_is_ticked_upon_that(
    repository: Path, workspace: Path
) -> None:
    write(repository / "tasks.md", TASKS + "- [ ] more\n")
    result = rescued(repository, workspace, "tasks.md")
    assert result.ticked == ("write `new.py`",)
    assert committed(repository).decode() == DONE + "- [ ] more\n"
    assert git(repository, "show", "HEAD~1:tasks.md") == TASKS + "- [ ] more\n"
    assert git(repository, "status", "--porcelain") == ""


def test_a_task_file_that_is_new(repository: Path, workspace: Path) -> None:
    git(repository, "rm", "-q", "tasks.md")
    git(repository, "commit", "-q", "-m", "no tasks")
    write(repository / "tasks.md", TASKS)
    assert rescued(repository, workspace, "tasks.md").ticked == ("write `new.py`",)
    assert git(repository, "status", "--porcelain") == ""


def untouched(root: Path, result: Rescue, text: str) -> None:
    assert (result.reason, result.ticked) == ("rescued", ())
    assert (root / "tasks.md").read_text() == text
    assert "tick" not in git(root, "log", "--format=%s")


def test_one_that_the_user_has_changed_is_left_alone(repository: Path, workspace: Path) -> None:
    write(repository / "tasks.md", TASKS + "mine\n")
    untouched(repository, rescued(repository, workspace), TASKS + "mine\n")
    assert git(repository, "status", "--porcelain") == " M tasks.md\n"


def test_one_that_the_user_has_staged_stays_staged(repository: Path, workspace: Path) -> None:
    write(repository / "tasks.md", TASKS + "mine\n")
    git(repository, "add", "tasks.md")
    write(repository / "tasks.md", TASKS)
    staged = git(repository, "ls-files", "--stage", "tasks.md")
    untouched(repository, rescued(repository, workspace), TASKS)
    assert git(repository, "ls-files", "--stage", "tasks.md") == staged
    git(repository, "rm", "-q", "-f", "--cached", "tasks.md")
    write(repository / "other.py", "y = 2\n")
    untouched(repository, rescued(repository, workspace, "other.py"), TASKS)
    assert git(repository, "ls-files", "tasks.md") == ""


def test_one_that_changes_meanwhile_is_left_alone(repository: Path, workspace: Path) -> None:
    def meanwhile(changes: Sequence[Changed]) -> list[Group]:
        write(repository / "tasks.md", "somebody's\n")
        return group_changes(changes)

    script(repository / ".git/hooks/pre-commit", "echo later >> tasks.md")
    result = rescued(repository, workspace, hooks=True)
    untouched(repository, result, TASKS + "later\n")
    assert "changed meanwhile: nothing is ticked" in result.detail
    assert len(result.plan) == len(result.commits)
    write(repository / "tasks.md", TASKS)
    write(repository / "other.py", "y = 2\n")
    result = rescued(repository, workspace, "other.py", grouping=meanwhile)
    untouched(repository, result, "somebody's\n")


def test_a_link_is_not_followed(repository: Path, workspace: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere.md", TASKS)
    git(repository, "rm", "-q", "tasks.md")
    (repository / "tasks.md").symlink_to(tmp_path / "elsewhere.md")
    git(repository, "add", "tasks.md")
    git(repository, "commit", "-q", "-m", "link")
    untouched(repository, rescued(repository, workspace), TASKS)
    assert (repository / "tasks.md").is_symlink()


def test_a_file_under_a_filter_is_left_alone_and_the_filter_does_not_run(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    evil = script(tmp_path / "evil", f"touch {tmp_path}/ran; exec cat")
    write(repository / ".git/info/attributes", "tasks.md filter=evil\n")
    git(repository, "config", "filter.evil.clean", evil)
    write(repository / "tasks.md", TASKS + "mine\n")
    untouched(repository, rescued(repository, workspace), TASKS + "mine\n")
    assert not (tmp_path / "ran").exists()


def test_only_evidence_ticks(repository: Path, workspace: Path) -> None:
    """Not what stands in the file, not a file that was there before, not one that is held back or deleted."""
    text = (
        "- [x] claimed\n- [ ] `kept.txt`\n- [ ] `deleted.txt`\n- [ ] `.env.production`\n"
        "- [ ] `tasks.md`\n- [ ] all is done, says the agent\n- [ ] `new.py` and `absent.py`\n"
    )
    have(repository, text)
    (repository / "deleted.txt").unlink()
    write(repository / ".env.production", "TOKEN=x\n")
    write(repository / "tasks.md", text + "\n")
    result = rescued(repository, workspace, "deleted.txt", ".env.production", "tasks.md")
    untouched(repository, result, text + "\n")
    assert [one.path for one in result.held_back] == [".env.production"]


@pytest.mark.parametrize("options", [{"on_branch": True}, {"baseline_branch": "elsewhere"}])
def test_on_a_branch_of_its_own_nothing_is_ticked(
    options: dict[str, Any], repository: Path, workspace: Path
) -> None:
    result = rescued(repository, workspace, **options)
    assert (result.branch, result.ticked) == ("guard/rescue/r1-2", ())
    assert (repository / "tasks.md").read_text() == TASKS
    assert git(repository, "show", "guard/rescue/r1-2:tasks.md") == TASKS


def test_a_place_where_no_other_file_can_be_made(repository: Path, workspace: Path) -> None:
    have(repository, TASKS, "specs/login/tasks.md")
    long = "t" * 250 + ".md"
    (repository / "specs/login/tasks.md").rename(repository / "specs/login" / long)
    git(repository, "add", "-A", "specs")
    git(repository, "commit", "-q", "-m", "long")
    path = os.fsencode(f"specs/login/{long}")
    result = rescued(repository, workspace, tasks=path)
    assert (result.reason, result.ticked) == ("rescued", ())
    assert "nothing is ticked" in result.detail


def test_a_file_that_does_not_parse_ticks_no_box(repository: Path, workspace: Path) -> None:
    write(repository / "new.py", "def broken(:\n")
    result = rescued(repository, workspace)
    assert (result.reason, result.ticked) == ("rescued", ())
