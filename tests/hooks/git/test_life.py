"""Guard's hooks through the life of a repository under plain git."""

import os
import re
import shutil
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.core.hooks.git.state import MissedCommits
from guard.hooks.git.commits import find_missed_commits
from guard.hooks.git.prepare_commit_msg import prepare_message
from tests.support import commit, git, path_without_guard, run, write
from tests.support.git_hooks import commits, tried


def told(root: Path | None = None) -> list[tuple[str, str, bool | None]]:
    return [(one.oid, one.how, one.verified) for one in commits(root).commits]


def head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD").strip()


def test_commits_amends_and_picks_are_told_of_with_how_they_were_made(hooked: Path) -> None:
    first = commit(hooked)
    second = commit(hooked, "b.txt")
    git(hooked, "commit", "-q", "--amend", "-m", "Amended")
    amended = head(hooked)
    git(hooked, "switch", "-qc", "side", first)
    git(hooked, "cherry-pick", "-x", amended)
    git(hooked, "rm", "-q", "b.txt")
    git(hooked, "commit", "-q", "-m", "Remove it")
    assert told() == [
        (first, "initial", True),
        (second, "commit", True),
        (amended, "amend", True),
        (git(hooked, "rev-parse", "HEAD~1").strip(), "cherry-pick", None),
        (head(hooked), "commit", True),
    ]
    view = commits()
    assert [one.branch for one in view.commits][-2:] == ["refs/heads/side"] * 2
    assert [(one.old, one.new) for one in view.rewrites] == [(second, amended)]
    assert view.commits[2].previous == second


def test_a_rebase_tells_which_commits_took_the_place_of_which(hooked: Path) -> None:
    base = commit(hooked)
    git(hooked, "switch", "-qc", "side")
    old = commit(hooked, "side.txt")
    git(hooked, "switch", "-q", "main")
    commit(hooked, "main.txt")
    git(hooked, "switch", "-q", "side")
    git(hooked, "rebase", "-q", "main")
    assert (old, head(hooked)) in [(one.old, one.new) for one in commits().rewrites]
    assert base in commits().known_oids()
    assert find_missed_commits(Invocation()) == MissedCommits()


def test_what_came_past_the_hooks_is_noticed_afterwards(hooked: Path) -> None:
    commit(hooked)
    assert run("baseline").code == 0
    git(hooked, "commit", "-q", "--allow-empty", "-m", "usual")
    write(hooked / "file.txt", "unchecked\n")
    git(hooked, "commit", "-qa", "--no-verify", "-m", "unchecked")
    unchecked = head(hooked)
    write(hooked / "file.txt", "unseen\n")
    git(hooked, "-c", "core.hooksPath=/dev/null", "commit", "-qa", "-m", "unseen")
    unseen = head(hooked)
    report = run("check", "--no-probe", "--no-wait", "--format", "json").json
    facts = [one["fact"] for one in report["evidence"] if one["source"] == "git hooks"]
    assert facts == [
        f"1 commit made past the pre-commit hook (--no-verify): {unchecked[:10]}",
        f"1 commit made past every hook: {unseen[:10]}",
    ]
    assert report["status"] == "complete"
    lines = [one["found"] for one in run("doctor", "--format", "json").json["checks"]]
    assert facts[0] in lines
    assert facts[1] in lines


def test_a_commit_that_was_given_up_after_its_checks_vouches_for_no_other(hooked: Path) -> None:
    commit(hooked)
    write(hooked / "file.txt", "more\n")
    write(hooked / ".git/hooks/commit-msg", "#!/bin/sh\nexit 1\n").chmod(0o755)
    assert tried(hooked, "commit", "-qam", "refused").returncode == 1
    git(hooked, "commit", "-qa", "--no-verify", "-m", "x")
    assert told()[-1][1:] == ("commit", False)


def test_linked_work_trees_have_commits_of_their_own(hooked: Path, tmp_path: Path) -> None:
    commit(hooked)
    linked = tmp_path / "linked"
    git(hooked, "worktree", "add", "-q", str(linked))
    there = commit(linked, "there.txt")
    assert [one[0] for one in told(linked)] == [there]
    assert there not in commits().known_oids()


def test_a_submodule_has_hooks_of_its_own(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    git(tmp_path, "clone", "-q", str(repository), str(library))
    git(library, "config", "user.name", "A")
    git(library, "config", "user.email", "a@example.com")
    commit(library)
    git(
        repository,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(library),
        "sub",
    )
    sub = repository / "sub"
    git(sub, "config", "user.name", "A")
    git(sub, "config", "user.email", "a@example.com")
    assert run("--repo", sub, "install", "git").code == 0
    made = commit(sub, "new.txt")
    assert [one[0] for one in told(sub)] == [made]
    assert not (repository / ".git/hooks/post-commit").exists()


def test_the_hook_of_another_repository_is_not_this_ones(hooked: Path, tmp_path: Path) -> None:
    """`--git-dir` elsewhere: the folder belongs to one repository, the commit to another."""
    commit(hooked)
    other = tmp_path / "other.git"
    git(tmp_path, "clone", "-q", "--bare", str(hooked), str(other))
    for name in ("post-commit", "pre-commit"):
        (other / "hooks" / name).write_bytes((hooked / ".git/hooks" / name).read_bytes())
        (other / "hooks" / name).chmod(0o755)
    place = (f"--git-dir={other}", f"--work-tree={hooked}", "-c", "core.bare=false")
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    git(hooked, *place, *identity, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    assert len(told()) == 1


@pytest.mark.parametrize("skip", ["1", "post-commit", "pre-push,post-commit", "all"])
def test_a_variable_leaves_a_hook_out(hooked: Path, skip: str) -> None:
    commit(hooked)
    tried(hooked, "commit", "-q", "--allow-empty", "-m", "x", GUARD_SKIP=skip)
    assert len(told()) == 1


def test_a_commit_goes_through_whatever_is_wrong_with_guard(
    hooked: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(home / "state")
    write(home / "state" / "guard", "not a folder")
    commit(hooked)
    (home / "state" / "guard").unlink()
    for hook in (hooked / ".git/hooks").glob("p*"):
        if not hook.name.endswith(".sample"):
            text = hook.read_text().splitlines()
            hook.write_text(
                "\n".join("program=/gone" if t.startswith("program=/") else t for t in text)
            )
    monkeypatch.setenv("PATH", path_without_guard())
    done = tried(hooked, "commit", "-q", "--allow-empty", "-m", "without guard")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("entry", ["{root}/.venv/bin", ".venv/bin", "{link}"])
def test_when_guard_is_gone_none_of_the_work_tree_takes_its_place(
    entry: str, hooked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hook in (hooked / ".git/hooks").glob("p*[!e]"):
        hook.write_text(re.sub(r"(?m)^program=/.*", "program=/gone", hook.read_text()))
    write(hooked / ".venv/bin/guard", f"#!/bin/sh\ntouch {tmp_path}/ran\n").chmod(0o755)
    (tmp_path / "link").symlink_to(hooked)
    place = entry.format(root=hooked, link=tmp_path / "link/.venv/bin")
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{path_without_guard()}")
    tried(hooked, "commit", "-q", "--allow-empty", "-m", "without guard")
    assert not (tmp_path / "ran").exists()
    write(tmp_path / "bin/guard", f"#!/bin/sh\ntouch {tmp_path}/ran\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{path_without_guard()}")
    tried(hooked, "commit", "-q", "--allow-empty", "-m", "by another guard")
    assert (tmp_path / "ran").exists()


def test_the_trailer_runs_no_command_of_the_settings(hooked: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    git(hooked, "config", "trailer.own.command", f"touch {ran}")
    git(hooked, "config", "core.commentChar", ";")
    run("baseline")
    commit(hooked)
    assert "Guard-Run" in git(hooked, "log", "-1", "--format=%(trailers)")
    assert not ran.exists()
    git(hooked, "interpret-trailers", "--trailer", "a: b", os.devnull)
    assert ran.exists(), "the control shows nothing"


@pytest.mark.parametrize("kind", ["link", "second name"])
def test_a_message_that_is_another_file_too_is_left_alone(
    kind: str, hooked: Path, tmp_path: Path
) -> None:
    mine = write(tmp_path / "mine", "mine\n")
    message = hooked / ".git/planted"
    if kind == "link":
        message.symlink_to(mine)
    else:
        message.hardlink_to(mine)
    run("baseline")
    assert prepare_message([str(message)], os.environ) == 0
    assert mine.read_text() == "mine\n"


def test_the_trailer_names_the_iteration_once_and_only_inside_of_one(hooked: Path) -> None:
    commit(hooked)
    assert "Guard-Run" not in git(hooked, "log", "-1", "--format=%B")
    begun = run("baseline", "--format", "json").json
    trailer = f"Guard-Run: {begun['run']}/{begun['iteration']}"
    commit(hooked, "b.txt")
    git(hooked, "commit", "-q", "--amend", "--no-edit", "--allow-empty")
    assert git(hooked, "log", "-1", "--format=%(trailers)").splitlines() == [trailer, ""]
    git(hooked, "switch", "-qc", "side", "HEAD~1")
    commit(hooked, "c.txt")
    git(hooked, "merge", "-q", "--no-edit", "main")
    assert "Guard-Run" not in git(hooked, "log", "-1", "--format=%B")
    assert commits().commits[-1].run == begun["run"]
