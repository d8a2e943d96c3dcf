"""Secrets in git's hooks: an agent's commit is refused, a person's is warned of, and the value is never shown."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.core.hooks.event_kinds import MARK
from guard.hooks.git import secrets
from guard.hooks.git.pre_commit import check_staged
from guard.hooks.git.work_tree import ask_git
from guard.iteration.begin import begin
from tests.support import commit, git, run, write
from tests.support.git_hooks import tried

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6"
OTHER = "ghp_" + "zY9xW8vU7tS6rQ5pO4nM3lK2jI1hG0fE9dC8"
User = Callable[[str], Path]


@pytest.fixture
def project(repository: Path) -> Path:
    commit(repository, "known.py", f"value = '{TOKEN}'\n")
    return repository


@pytest.fixture
def staged(capsys: pytest.CaptureFixture[str]) -> Callable[[], tuple[int, str]]:
    """Run the pre-commit hook on what is staged; its answer, and what it says."""

    def check() -> tuple[int, str]:
        capsys.readouterr()
        code = check_staged(os.environ)
        return code, capsys.readouterr().err

    return check


@pytest.fixture
def user(home: Path) -> User:
    return lambda text: write(home / "config/guard/config.toml", text)


def stage(root: Path, name: str = "a.py", text: str = f"x\nvalue = '{OTHER}'\n") -> None:
    write(root / name, text)
    git(root, "add", "-A")


def test_a_person_is_warned(project: Path, staged: Callable[[], tuple[int, str]]) -> None:
    stage(project)
    code, said = staged()
    assert code == 0
    assert "guard: secret in a.py: github, line 2" in said
    assert "warning: the commit is made all the same" in said
    assert OTHER not in said


def test_a_running_iteration_refuses(project: Path, staged: Callable[[], tuple[int, str]]) -> None:
    begin(Invocation())
    stage(project, ".env", "A=1\n")
    code, said = staged()
    assert code == 1
    assert "guard: secret in .env: sensitive_name" in said
    assert "commit refused" in said


def test_an_iteration_in_another_work_tree_only_warns(
    project: Path,
    staged: Callable[[], tuple[int, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin(Invocation())
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", str(linked))
    monkeypatch.chdir(linked)
    stage(linked)
    code, said = staged()
    assert (code, "secret in a.py" in said) == (0, True)


@pytest.mark.parametrize(("number", "code"), [(1, 1), (2, 0)], ids=["its own", "one that is over"])
def test_an_agent_is_refused_in_a_work_tree_that_it_made(
    number: int,
    code: int,
    project: Path,
    staged: Callable[[], tuple[int, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = begin(Invocation())
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", str(linked))
    monkeypatch.chdir(linked)
    monkeypatch.setenv(MARK, f"{begun.run}/{number}")
    stage(linked)
    assert staged()[0] == code


@pytest.mark.parametrize("text", ["refuse_secrets = true", "refuse_secrets = false"])
def test_the_setting_refuses_a_person_too_and_a_project_may_switch_it_on(
    text: str, project: Path, staged: Callable[[], tuple[int, str]], user: User
) -> None:
    write(project / "guard.toml", "[hooks]\nrefuse_secrets = true\n")
    user(f"[hooks]\n{text}\n")
    stage(project)
    assert staged()[0] == (1 if "true" in text else 0)


def test_a_project_cannot_switch_it_off_or_allow_a_secret(
    project: Path, staged: Callable[[], tuple[int, str]], user: User
) -> None:
    write(
        project / "guard.toml",
        "[hooks]\nrefuse_secrets = false\n[rescue]\nallow_secrets = '*:*'\n",
    )
    user("[hooks]\nrefuse_secrets = true\n")
    stage(project)
    assert staged()[0] == 1


def test_what_the_user_allows_is_neither_refused_nor_said(
    project: Path, staged: Callable[[], tuple[int, str]], user: User
) -> None:
    begin(Invocation())
    user("[rescue]\nallow_secrets = 'github:*.py'\n")
    stage(project)
    assert staged() == (0, "")


def test_a_name_that_the_user_allows_does_not_allow_what_is_in_the_file(
    project: Path, staged: Callable[[], tuple[int, str]], user: User
) -> None:
    begin(Invocation())
    user("[rescue]\nallow_secrets = 'sensitive_name:.env'\n")
    stage(project, ".env", "A=1\n")
    assert staged() == (0, "")
    stage(project, ".env", f"A={OTHER}\n")
    code, said = staged()
    assert (code, "guard: secret in .env: github, line 1" in said) == (1, True)


def test_a_file_that_gets_a_sensitive_name_by_a_move_is_refused(
    project: Path, staged: Callable[[], tuple[int, str]]
) -> None:
    commit(project, "settings.txt", "password: hunter2\n")
    commit(project, "old/.env", "A=1\n")
    begin(Invocation())
    git(project, "mv", "old/.env", ".env")
    assert staged() == (0, "")
    git(project, "mv", "settings.txt", ".env.local")
    code, said = staged()
    assert (code, "guard: secret in .env.local: sensitive_name" in said) == (1, True)


def test_what_was_committed_before_is_no_news(
    project: Path, staged: Callable[[], tuple[int, str]]
) -> None:
    begin(Invocation())
    git(project, "mv", "known.py", "moved.py")
    assert staged() == (0, "")
    write(project / "moved.py", f"# more\nvalue = '{TOKEN}'\n")
    git(project, "add", "-A")
    assert staged() == (0, "")


def test_what_is_staged_counts_and_not_the_work_tree(
    project: Path, staged: Callable[[], tuple[int, str]]
) -> None:
    begin(Invocation())
    stage(project)
    write(project / "a.py", "clean\n")
    assert staged()[0] == 1
    git(project, "add", "-A")
    write(project / "a.py", f"value = '{OTHER}'\n")
    assert staged()[0] == 0


def test_the_other_side_of_a_merge_was_committed_before(
    project: Path, staged: Callable[[], tuple[int, str]]
) -> None:
    git(project, "switch", "-q", "-c", "side")
    commit(project, "side.py", f"value = '{OTHER}'\n")
    git(project, "switch", "-q", "main")
    commit(project, "main.txt")
    begin(Invocation())
    git(project, "merge", "-q", "--no-commit", "side")
    assert staged() == (0, "")


def test_every_other_side_of_a_merge_was_committed_before(
    project: Path, staged: Callable[[], tuple[int, str]]
) -> None:
    for name in ("first", "second"):
        git(project, "switch", "-q", "-c", name, "main")
        commit(project, f"{name}.py", f"value = '{OTHER}'\n")
    git(project, "switch", "-q", "main")
    commit(project, "main.txt")
    begin(Invocation())
    git(project, "merge", "-q", "--no-commit", "first", "second")
    assert staged() == (0, "")
    stage(project)
    assert "secret in a.py: github, line 2" in staged()[1]


def test_what_is_too_large_is_said_and_refuses_nothing(
    project: Path, staged: Callable[[], tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "MOST_FILE_BYTES", 4)
    stage(project)
    code, said = staged()
    assert code == 0
    assert said.startswith("guard: not searched for secrets: 1 of 1 staged files")


def test_a_state_that_cannot_be_read_refuses_only_what_guard_started(
    project: Path,
    staged: Callable[[], tuple[int, str]],
    user: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage(project)
    user("[hooks\n")
    assert staged()[0] == 0
    monkeypatch.setenv("GUARD_ITERATION", "r1/1")
    assert staged()[0] == 1


def test_no_way_to_commit_gets_past_the_hooks_in_an_iteration(project: Path) -> None:
    git(project, "switch", "-q", "-c", "side")
    stage(project)
    git(project, "commit", "-q", "-m", "A secret")
    git(project, "switch", "-q", "main")
    assert run("install", "git").code == 0
    begin(Invocation())
    assert tried(project, "cherry-pick", "side").returncode != 0
    git(project, "cherry-pick", "--abort")
    stage(project, "b.py")
    for words in (("commit", "-qm", "x"), ("commit", "-qm", "x", "--no-verify")):
        refused = tried(project, *words)
        assert refused.returncode != 0, words
        assert "secret in b.py: github, line 2" in refused.stderr
        assert OTHER not in refused.stderr
    assert tried(project, "commit", "-qm", "x", GUARD_SKIP="1").returncode == 0


def test_a_push_with_a_secret_is_refused_in_an_iteration_and_warned_of_otherwise(
    project: Path, tmp_path: Path
) -> None:
    git(project, "init", "-q", "--bare", str(tmp_path / "remote"))
    git(project, "remote", "add", "origin", str(tmp_path / "remote"))
    git(project, "push", "-q", "origin", "main")
    assert run("install", "git", "--hook", "pre-push").code == 0
    stage(project)
    git(project, "commit", "-q", "-m", "A secret")
    commit(project, "a.py", "clean\n")
    begin(Invocation())
    refused = tried(project, "push", "-q", "origin", "main")
    assert refused.returncode != 0
    assert "secret committed: a.py (github, line 2)" in refused.stderr
    assert run("check", "--no-probe", "--baseline", "HEAD~1").code == 0
    pushed = tried(project, "push", "-q", "origin", "main")
    assert pushed.returncode == 0, pushed.stderr
    assert "secret committed: a.py (github, line 2)" in pushed.stderr


def test_many_staged_files_are_searched_in_few_calls(
    project: Path, staged: Callable[[], tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []

    def ask(environ: Mapping[str, str], *words: str, stdin: bytes = b"") -> bytes | None:
        calls.append(words)
        return ask_git(environ, *words, stdin=stdin)

    monkeypatch.setattr(secrets, "ask_git", ask)
    for number in range(1001):
        write(project / "many" / f"{number}.txt", f"{number}\n")
    stage(project)
    assert "secret in a.py" in staged()[1]
    assert len(calls) < 10
