"""`guard install git` and `guard uninstall git`: what was there is kept, called, and back again byte for byte."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guard.context.invocation import Invocation
from guard.core.hooks.event_kinds import GIT_HOOKS, refusal_code
from guard.errors import GuardError, Refused, RepositoryProblem
from guard.install import git_options as git_asked
from guard.install import git_scripts
from guard.install import pre_commit_yaml as pre_commit
from tests.support import commit, git, run, write
from tests.support.git_hooks import commits, tried


def put(*hooks: str, dry_run: bool = False, shared: bool = False) -> dict[str, str]:
    done = git_asked.install_git_hooks(
        Invocation(), hooks, shared=shared, dry_run=dry_run, command=None
    )
    return {one.hook: one.step for one in done.hooks}


def take(*hooks: str) -> dict[str, str]:
    done = git_asked.uninstall_git_hooks(Invocation(), hooks, shared=False, dry_run=False)
    return {one.hook: one.step for one in done.hooks}


def contents(folder: Path) -> dict[str, Any]:
    return {
        path.name: (
            os.readlink(path) if path.is_symlink() else path.read_bytes(),
            path.lstat().st_mode,
        )
        for path in folder.iterdir()
    }


def old_hook(folder: Path, name: str, body: str, mode: int = 0o755) -> Path:
    path = write(folder / name, f"#!/bin/sh\n{body}\n")
    path.chmod(mode)
    return path


@pytest.fixture
def hooks(repository: Path) -> Path:
    return repository / ".git" / "hooks"


def test_installing_again_changes_nothing_and_a_dry_run_never_does(hooks: Path) -> None:
    before = contents(hooks)
    assert set(put(dry_run=True).values()) == {"install"}
    assert contents(hooks) == before
    assert set(put().values()) == {"install"}
    installed = contents(hooks)
    assert set(put().values()) == {"unchanged"}
    assert contents(hooks) == installed
    assert set(take().values()) == {"remove"}
    assert contents(hooks) == before
    assert set(take().values()) == {"absent"}


def test_all_that_was_there_is_back_byte_for_byte(hooks: Path, tmp_path: Path) -> None:
    old_hook(hooks, "pre-commit", "exit 0", 0o700)
    write(hooks / "post-commit", b"\xff not even a script").chmod(0o644)
    (hooks / "pre-push").symlink_to(old_hook(tmp_path, "elsewhere", "exit 0"))
    before = contents(hooks)
    put()
    assert contents(hooks) != before
    assert stat.S_IMODE((hooks / "pre-push").lstat().st_mode) == 0o755
    assert take()["pre-push"] == "restore"
    assert contents(hooks) == before


def test_the_hook_from_before_goes_first_is_told_the_same_and_has_its_say(
    hooks: Path, repository: Path, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    old_hook(hooks, "pre-push", f'echo "push $1" >>"{said}"; cat >>"{said}"; exit "${{REFUSE:-0}}"')
    old_hook(hooks, "post-rewrite", f'echo "rewrite $1" >>"{said}"; cat >>"{said}"')
    old_hook(hooks, "pre-commit", 'exit "${REFUSE:-0}"')
    put()
    old = commit(repository)
    git(repository, "commit", "-q", "--amend", "-m", "Amended")
    new = git(repository, "rev-parse", "HEAD").strip()
    assert said.read_text() == f"rewrite amend\n{old} {new}\n"
    assert [(one.old, one.new) for one in commits().rewrites] == [(old, new)]
    said.write_text("")
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    place = str(tmp_path / "remote.git")
    assert tried(repository, "push", "-q", place, "main", REFUSE="1").returncode != 0
    write(repository / "left.txt", "left")
    refused = tried(repository, "push", "-q", place, "main")
    assert "1 file not committed" in refused.stderr
    assert said.read_text().count(f"push {place}\nrefs/heads/main {new} refs/heads/main ") == 2
    done = tried(repository, "commit", "-q", "--allow-empty", "-m", "x", REFUSE="3")
    assert done.returncode == 1
    assert len(commits().commits) == 2


def test_what_was_changed_by_hand_is_said_and_not_overwritten(hooks: Path) -> None:
    put()
    changed = hooks / "post-commit"
    changed.write_text(changed.read_text() + "echo mine\n")
    before = contents(hooks)
    with pytest.raises(Refused, match="changed by hand"):
        put()
    assert contents(hooks) == before
    done = run("uninstall", "git")
    assert done.code == 1
    assert "post-commit: left as it is: it was changed by hand" in done.out
    assert changed.exists()
    assert not (hooks / "pre-push").exists()


def test_an_older_version_is_upgraded_and_a_newer_one_refused(hooks: Path) -> None:
    put("post-commit")
    path = hooks / "post-commit"
    current = path.read_bytes()
    path.write_bytes(git_scripts.render_script("post-commit", "/another/guard"))
    assert put("post-commit") == {"post-commit": "upgrade"}
    assert path.read_bytes() == current
    path.write_bytes(current.replace(b"hook: post-commit 3", b"hook: post-commit 99"))
    with pytest.raises(Refused, match="newer guard"):
        put("post-commit")
    # The first version had no digest: it was copied by hand.
    write(hooks / "pre-commit", _first_pre_commit()).chmod(0o755)
    assert put("pre-commit") == {"pre-commit": "upgrade"}


def _first_pre_commit() -> bytes:
    return (Path(__file__).parent / "pre-commit-1").read_bytes()


def test_only_the_hooks_that_were_named(hooks: Path) -> None:
    assert put("post-commit", "pre-push") == {"post-commit": "install", "pre-push": "install"}
    assert not (hooks / "pre-commit").exists()
    assert take("pre-push") == {"pre-push": "remove"}
    assert (hooks / "post-commit").exists()


def test_where_core_hooks_path_leads(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "core.hooksPath", ".githooks")
    put("post-commit")
    assert (repository / ".githooks" / "post-commit").is_file()
    made = commit(repository)
    assert commits().commits[0].oid == made
    take()
    shared = tmp_path / "shared"
    git(repository, "config", "core.hooksPath", str(shared))
    with pytest.raises(Refused, match="other repositories may share"):
        put()
    assert not shared.exists()
    put("post-commit", shared=True)
    assert (shared / "post-commit").is_file()


REFUSED: dict[str, Callable[[Path], object]] = {
    "a folder in its place": lambda hooks: (hooks / "pre-push").mkdir(),
    "somebody else's hook twice": lambda hooks: (
        old_hook(hooks, "pre-push", "exit 0"),
        old_hook(hooks, "pre-push.before-guard", "exit 0"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_guard_does_not_know_is_refused_before_anything_changes(
    name: str, hooks: Path
) -> None:
    REFUSED[name](hooks)
    with pytest.raises(GuardError):
        put()
    assert not (hooks / "pre-commit").exists()


def test_a_bare_repository_has_no_commits_to_watch(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    guard = Invocation(repo=tmp_path / "bare.git")
    with pytest.raises(RepositoryProblem, match="bare"):
        git_asked.install_git_hooks(guard, (), shared=False, dry_run=False, command=None)


def test_an_installation_that_was_cut_off_is_finished_or_undone(hooks: Path) -> None:
    before = old_hook(hooks, "pre-push", "exit 0").read_bytes()
    (hooks / "pre-push").rename(hooks / "pre-push.before-guard")
    assert put("pre-push") == {"pre-push": "install"}
    assert take("pre-push") == {"pre-push": "restore"}
    assert (hooks / "pre-push").read_bytes() == before


def test_options_of_agents_and_of_git_do_not_mix(repository: Path) -> None:
    assert run("install", "git", "--user").code == 2
    assert run("install", "claude", "--hook", "pre-push").code == 2
    assert run("install", "git", "--command", "env guard").code == 2


def test_scripts_know_themselves_whatever_the_program_is_called() -> None:
    for event in GIT_HOOKS:
        for program in ("/usr/bin/guard", "/a b/it's/guard", "/\udcff/guard"):
            data = git_scripts.render_script(event, program)
            assert git_scripts.read_script(event, data) == git_scripts.Script("current", program)
            assert git_scripts.read_script(event, data + b"\n").kind == "changed"
    assert (
        git_scripts.read_script("pre-push", git_scripts.render_script("pre-commit", "x")).kind
        == "other"
    )


def test_the_file_for_pre_commit_is_current() -> None:
    assert pre_commit.FILE.read_text() == pre_commit.text()


@pytest.mark.parametrize("code", [1, 2, 3, 126, 139])
def test_a_guard_that_is_broken_refuses_neither_a_commit_nor_a_push(
    code: int, hooks: Path, repository: Path, tmp_path: Path
) -> None:
    broken = old_hook(tmp_path, "guard", f"echo 'ImportError: gone' >&2; exit {code}")
    git_asked.install_git_hooks(Invocation(), (), shared=False, dry_run=False, command=str(broken))
    done = tried(repository, "commit", "-q", "--allow-empty", "-m", "all the same")
    assert (done.returncode, "this commit was not checked" in done.stderr) == (0, True)
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    for before in (False, True):
        if before:
            old_hook(hooks, "pre-push.before-guard", "exit 0")
        pushed = tried(repository, "push", str(tmp_path / "remote.git"), f"HEAD:{before}")
        assert (pushed.returncode, "this push was not checked" in pushed.stderr) == (0, True)


def test_the_hook_from_before_is_called_also_after_another_program_has_renamed_guards(
    hooks: Path, repository: Path, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    old_hook(hooks, "post-commit", f'echo mine >>"{said}"')
    put("post-commit")
    (hooks / "post-commit").rename(hooks / "post-commit.legacy")
    old_hook(hooks, "post-commit", 'exec "$0.legacy" "$@"')
    commit(repository)
    assert said.read_text() == "mine\n"
    assert len(commits().commits) == 1


@pytest.mark.parametrize("told", ["", "0", "256", "-1", "x", "٣", "9" * 5000])
def test_an_exit_code_that_no_process_can_have_is_not_the_one_of_a_refusal(told: str) -> None:
    assert (refusal_code(told), refusal_code("97")) == (1, 97)


def test_a_hook_from_before_that_cannot_be_put_back_is_told_of(hooks: Path) -> None:
    old_hook(hooks, "pre-commit", "exit 0")
    put()
    (hooks / "pre-commit").rename(hooks / "pre-commit.legacy")
    old_hook(hooks, "pre-commit", 'exec "$0.legacy" "$@"')
    done = run("uninstall", "git")
    assert done.code == 1
    assert "pre-commit: left as it is: it is not guard's, and pre-commit.before-guard" in done.out
