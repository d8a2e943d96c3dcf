"""Signs of work in real repositories and files."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from guard.activity import collect_work
from guard.activity.subject import AgentSubject, Collect, PartialTrouble
from guard.core.activity.assess import Signal
from tests.activity.conftest import Look, agent
from tests.support import commit, git, write

NOW = time.time()


def details(collect: Collect, subject: AgentSubject) -> list[str]:
    return [one.detail for one in collect(subject) if isinstance(one, Signal)]


def committed(repository: Path, name: str, *words: str, message: str = "Work") -> None:
    write(repository / name, name)
    git(repository, "add", "-A")
    git(repository, *words, "commit", "-q", "-m", message)


@pytest.mark.parametrize(
    ("words", "message", "ours"),
    [
        (["-c", "user.name=a1"], "Work", True),
        (["-c", "user.email=a1@agents.example"], "Work", True),
        ([], "Work\n\nAgent: a1\n", True),
        ([], "Work\n\nCo-authored-by: A1 <bot@example.com>\n", True),
        ([], "Work\n\nSigned-off-by: a1 <bot@example.com>\n", False),
        (["-c", "user.name=a10"], "Work", False),
        (["-c", "user.name=not-a1-at-all"], "Work", False),
        ([], "Work of a1", False),
        (["-c", "user.name=a1"], "Save\n\nGuard-Rescue: r1/1\n", False),
    ],
)
def test_commits_are_known_by_author_and_trailer(
    repository: Path, subject: Look, words: list[str], message: str, ours: bool
) -> None:
    committed(repository, "one.txt", *words, message=message)
    assert bool(details(collect_work.commits, subject(repository, environ=os.environ))) is ours


def test_commits_are_known_by_a_branch_of_the_agent(repository: Path, subject: Look) -> None:
    commit(repository, "main.txt")
    git(repository, "switch", "-q", "-c", "agents/a1/login")
    commit(repository, "login.txt")
    git(repository, "switch", "-q", "main")
    found = details(collect_work.commits, subject(repository, environ=os.environ))
    assert [line.split(" ", 1)[1] for line in found] == ["Add login.txt"]


def test_where_it_is_alone_every_new_commit_is_its_own(repository: Path, subject: Look) -> None:
    old = {"GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
    write(repository / "old.txt", "old")
    git(repository, "add", "-A")
    os.environ.update(old)
    git(repository, "commit", "-q", "-m", "Old")
    del os.environ["GIT_COMMITTER_DATE"]
    commit(repository, "new.txt")
    found = details(collect_work.commits, subject(repository, is_alone=True, environ=os.environ))
    assert [line.split(" ", 1)[1] for line in found] == ["Add new.txt"]


def test_a_new_branch_on_the_work_of_others_is_no_work(repository: Path, subject: Look) -> None:
    commit(repository, "main.txt")
    git(repository, "branch", "agents/a1")
    assert details(collect_work.commits, subject(repository, environ=os.environ)) == []
    named_main = subject(repository, agent=agent(agent_id="main"), environ=os.environ)
    assert details(collect_work.commits, named_main) == []


def test_where_it_is_alone_other_work_trees_are_not_its_own(
    repository: Path, subject: Look
) -> None:
    commit(repository, "first.txt")
    os.environ["GIT_COMMITTER_DATE"] = "2020-01-01T00:00:00Z"
    git(repository, "commit", "-q", "--amend", "--no-edit")
    del os.environ["GIT_COMMITTER_DATE"]
    git(repository, "worktree", "add", "-q", ".worktrees/other", "-b", "other")
    committed(repository / ".worktrees/other", "theirs.txt")
    alone = subject(repository, is_alone=True, environ=os.environ)
    assert details(collect_work.commits, alone) == []
    assert "theirs.txt" not in "".join(details(collect_work.changed_files, alone))


def test_without_a_commit_there_is_none(repository: Path, subject: Look) -> None:
    assert (
        details(collect_work.commits, subject(repository, is_alone=True, environ=os.environ)) == []
    )


def test_what_was_before_the_agent_is_not_its_work(repository: Path, subject: Look) -> None:
    commit(repository, "before.txt")
    young = agent(spawned_at=datetime.now(UTC) + timedelta(seconds=5))
    looked = subject(repository, is_alone=True, agent=young, environ=os.environ)
    assert details(collect_work.commits, looked) == []


def test_messages_to_it_and_guards_own_files_are_not_its_work(
    tmp_path: Path, subject: Look
) -> None:
    write(tmp_path / "agent_workspaces/a1/inbox/prompt.md", "[C2A] stall-recovery #no-reply")
    write(tmp_path / ".state/workspace.lock", "guard")
    assert details(collect_work.changed_files, subject()) == []
    assert (
        details(
            collect_work.changed_files, subject(is_alone=True, guard_folder=tmp_path / ".state")
        )
        == []
    )


def test_a_file_that_is_written_while_it_is_looked_for_counts(
    tmp_path: Path, subject: Look
) -> None:
    busy = write(tmp_path / "build.log", "text")
    os.utime(busy, (time.time() + 30, time.time() + 30))
    assert details(collect_work.changed_files, subject(is_alone=True)) == ["build.log"]


def test_names_of_any_bytes_are_told(tmp_path: Path, subject: Look) -> None:
    write(tmp_path / os.fsdecode(b"bad\xffname"), "text")
    assert details(collect_work.changed_files, subject(is_alone=True)) == ["bad\\udcffname"]


def test_a_run_of_tests_leaves_traces(repository: Path, subject: Look) -> None:
    write(repository / ".pytest_cache/v/cache/nodeids", "[]")
    assert details(collect_work.runs_of_tests, subject(repository, environ=os.environ)) == []
    found = details(
        collect_work.runs_of_tests, subject(repository, is_alone=True, environ=os.environ)
    )
    assert len(found) == 1
    assert found[0].startswith("pytest: ")


def test_files_that_changed_are_its_own_in_its_folder_or_where_it_is_alone(
    tmp_path: Path, subject: Look
) -> None:
    old = write(tmp_path / "agent_workspaces/a1/notes.txt", "old")
    os.utime(old, (NOW - 86400, NOW - 86400))
    write(tmp_path / "shared.txt", "new")
    write(tmp_path / ".git/index", "new")
    assert details(collect_work.changed_files, subject()) == []
    assert details(collect_work.changed_files, subject(is_alone=True)) == ["shared.txt"]
    write(tmp_path / "agent_workspaces/a1/status.json", "a source of its own")
    assert details(collect_work.changed_files, subject()) == []
    write(tmp_path / "agent_workspaces/a1/more.txt", "new")
    assert details(collect_work.changed_files, subject()) == ["more.txt"]


def test_a_file_from_the_future_does_not_hide_the_newest(tmp_path: Path, subject: Look) -> None:
    ahead = write(tmp_path / "ahead.txt", "x")
    os.utime(ahead, (NOW + 86400, NOW + 86400))
    write(tmp_path / "now.txt", "x")
    assert details(collect_work.changed_files, subject(is_alone=True)) == ["now.txt"]


def test_files_that_were_read(tmp_path: Path, subject: Look) -> None:
    path = write(tmp_path / "agent_workspaces/a1/notes.txt", "old")
    os.utime(path, (NOW - 30, NOW - 86400))
    assert details(collect_work.read_files, subject()) == ["notes.txt"]
    assert details(collect_work.read_files, subject(settings={"workspace_folders": "other"})) == []


def test_too_many_files_are_given_up(tmp_path: Path, subject: Look) -> None:
    deep = tmp_path
    for _ in range(20):
        deep = deep / "d"
    write(deep / "file.txt", "x")
    (trouble,) = collect_work.changed_files(subject(is_alone=True))
    assert isinstance(trouble, PartialTrouble)
    assert "too deep" in trouble.why


def test_one_folder_that_is_given_up_does_not_hide_another(tmp_path: Path, subject: Look) -> None:
    write(tmp_path.joinpath("agent_workspaces/a1", *["d"] * 20, "file.txt"), "x")
    write(tmp_path / ".agents/a1/parser.py", "code")
    assert details(collect_work.changed_files, subject()) == ["parser.py"]


@pytest.mark.parametrize("name", ["a1", "A1", "feature/a1", "a1/parser"])
def test_names_of_agents_are_whole_words(repository: Path, subject: Look, name: str) -> None:
    commit(repository, "first.txt")
    for number, branch in enumerate((name, "a10", "xa1", "a1-b")):
        git(repository, "checkout", "-q", "-b", f"{branch}", "main")
        commit(repository, f"{number}.txt")
    git(repository, "checkout", "-q", "main")
    found = details(collect_work.commits, subject(repository))
    assert [detail.partition(" ")[2] for detail in found] == ["Add 0.txt"]


def test_nothing_is_looked_at_without_a_work_tree(subject: Look) -> None:
    looked = subject(None, agent=agent())
    assert [
        list(one(looked))
        for one in (collect_work.commits, collect_work.changed_files, collect_work.read_files)
    ] == [
        [],
        [],
        [],
    ]
