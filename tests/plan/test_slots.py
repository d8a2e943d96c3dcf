"""The work trees of a plan's agents: made, used again, and never emptied before what is in them is safe."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.errors import Refused, RepositoryProblem, StoreUnavailable
from guard.plan.slots import Slot, Slots, hold
from tests.support import commit, git, run, write
from tests.support.planted_links import imprint, outside, plant

AGENT = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('work\\n')"


@pytest.fixture
def base(repository: Path) -> str:
    write(repository / ".gitignore", "built/\n.env\n")
    git(repository, "add", ".gitignore")
    return commit(repository, "base.txt")


@pytest.fixture
def slots(repository: Path, base: str) -> Slots:
    return Slots(Invocation())


def branch(slot: Slot) -> str:
    return git(slot.path, "symbolic-ref", "HEAD").strip().removeprefix("refs/heads/")


def status(slot: Slot) -> str:
    return git(slot.path, "status", "--porcelain")


def test_a_slot_has_the_branch_of_its_task_and_lies_outside_of_the_project(
    slots: Slots, base: str, repository: Path
) -> None:
    slot = slots.slot(1)
    assert not slots.prepare(slot, "A-1", base)
    assert branch(slot) == "guard/task/A-1"
    assert git(slot.path, "rev-parse", "HEAD").strip() == base
    assert (slot.path / "base.txt").read_text() == "text\n"
    assert status(slot) == ""
    assert not slot.path.is_relative_to(repository)
    assert git(repository, "status", "--porcelain") == ""


def test_the_next_task_gets_the_same_slot_clean_with_what_is_installed_there(
    slots: Slots, base: str
) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    commit(slot.path, "a.txt")
    write(slot.path / "built" / "thing", "installed\n")
    slots.prepare(slot, "B", base)
    assert branch(slot) == "guard/task/B"
    assert not (slot.path / "a.txt").exists()
    assert (slot.path / "built" / "thing").read_text() == "installed\n"
    slots.prepare(slot, "A", base)
    assert (slot.path / "a.txt").exists()


def test_a_slot_that_has_the_task_already_is_left_as_it_is(slots: Slots, base: str) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    write(slot.path / "half.txt", "half done\n")
    slots.prepare(slot, "A", base)
    assert status(slot) == "?? half.txt\n"


def test_what_a_killed_agent_left_is_committed_to_its_branch_before_the_slot_is_reused(
    slots: Slots, base: str
) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    run("--repo", slot.path, "baseline")
    write(slot.path / "half.txt", "half done\n")
    write(slot.path / "base.txt", "changed\n")
    slots.prepare(slot, "B", base)
    assert status(slot) == ""
    assert (slot.path / "base.txt").read_text() == "text\n"
    assert not (slot.path / "half.txt").exists()
    assert git(slot.path, "show", "guard/task/A:half.txt") == "half done\n"
    assert git(slot.path, "show", "guard/task/A:base.txt") == "changed\n"


def test_what_cannot_be_committed_is_in_a_snapshot(slots: Slots, base: str, tmp_path: Path) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    git(slot.path, "checkout", "-q", "--detach")
    write(slot.path / "half.txt", "half done\n")
    slots.prepare(slot, "B", base)
    assert not (slot.path / "half.txt").exists()
    to = tmp_path / "restored"
    assert run("--repo", slot.path, "restore", "latest", "--to", to).code == 0
    assert (to / "half.txt").read_text() == "half done\n"


def test_files_that_only_the_last_branch_ignored_are_saved_and_deleted(
    slots: Slots, base: str, tmp_path: Path
) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    commit(slot.path, ".gitignore", "notes/\n")
    write(slot.path / "notes" / "mine.txt", "mine\n")
    slots.prepare(slot, "B", base)
    assert status(slot) == ""
    assert not (slot.path / "notes").exists()
    to = tmp_path / "restored"
    assert run("--repo", slot.path, "restore", "latest", "--to", to).code == 0
    assert (to / "notes" / "mine.txt").read_text() == "mine\n"


def test_a_merge_that_was_left_open_does_not_reach_the_next_task(slots: Slots, base: str) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    git(slot.path, "checkout", "-q", "-b", "other")
    commit(slot.path, "base.txt", "theirs\n")
    git(slot.path, "checkout", "-q", "guard/task/A")
    commit(slot.path, "base.txt", "ours\n")
    with pytest.raises(Exception, match="git"):
        git(slot.path, "merge", "other")
    slots.prepare(slot, "B", base)
    assert status(slot) == ""
    commit(slot.path, "b.txt")
    assert git(slot.path, "rev-list", "--parents", "-1", "HEAD").split()[1:] == [base]


def test_a_reset_that_was_killed_is_done_again_and_commits_nothing(slots: Slots, base: str) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    tip = commit(slot.path, "a.txt")
    slot.write(slot.record().model_copy(update={"is_reset": False}))
    git(slot.path, "read-tree", "--reset", "-u", base)  # Half of the reset: HEAD is still A's.
    slots.prepare(slot, "B", base)
    assert status(slot) == ""
    assert git(slot.path, "rev-parse", "guard/task/A").strip() == tip
    assert git(slot.path, "rev-parse", "guard/task/B").strip() == base


def test_no_hook_and_no_filter_of_the_repository_runs(
    slots: Slots, base: str, repository: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = write(repository / ".git" / "hooks" / name, f"#!/bin/sh\necho {name} >> {trace}\n")
        hook.chmod(0o755)
    git(repository, "config", "filter.evil.smudge", f"echo smudge >> {trace}; cat")
    git(repository, "config", "filter.evil.clean", f"echo clean >> {trace}; cat")
    git(repository, "config", "core.fsmonitor", f"echo monitor >> {trace}")
    git(repository, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "status")
    trace.unlink(missing_ok=True)
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    write(slot.path / "left.txt", "left\n")
    slots.prepare(slot, "B", base)
    assert not trace.exists()


def test_copied_files_are_there_for_each_task_and_no_agent_commits_them(
    base: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PLAN__COPY", "local.cfg,conf/*.json")
    write(repository / "local.cfg", "secret\n").chmod(0o600)
    write(repository / "conf" / "a.json", "{}\n")
    guard = Invocation()
    slots, slot = Slots(guard), Slots(guard).slot(1)
    slots.prepare(slot, "A", base)
    assert (slot.path / "local.cfg").read_text() == "secret\n"
    assert (slot.path / "local.cfg").stat().st_mode & 0o777 == 0o600
    assert (slot.path / "conf" / "a.json").exists()
    script = "echo done > a.txt; git add -A; git commit -qm work"
    done = run(
        *("--repo", slot.path, "run", "--no-probe", "--", "sh", "-c", script),
        cwd=slot.path,
        env={"GUARD_SLOT_EXCLUDES": os.fspath(slot.excludes)},
    )
    assert done.code == 0, done.err
    assert git(slot.path, "show", "--name-only", "--format=").split() == ["a.txt"]
    write(repository / "local.cfg", "renewed\n")
    slots.prepare(slot, "B", base)
    assert (slot.path / "local.cfg").read_text() == "renewed\n"


@pytest.mark.parametrize("trap", ["local.cfg", "conf"])
def test_no_copied_file_is_written_through_a_link_that_an_agent_left(
    trap: str, base: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PLAN__COPY", "local.cfg,conf/*.json")
    write(repository / ".gitignore", "local.cfg\nconf\n")
    git(repository, "commit", "-q", "-a", "-m", "Ignore them")
    tip = git(repository, "rev-parse", "HEAD").strip()
    write(repository / "local.cfg", "secret\n")
    write(repository / "conf" / "a.json", "{}\n")
    guard = Invocation()
    slots, slot = Slots(guard), Slots(guard).slot(1)
    slots.prepare(slot, "A", tip)
    beside = outside(repository)
    (slot.path / "local.cfg").unlink()
    (slot.path / "conf" / "a.json").unlink()
    (slot.path / "conf").rmdir()
    (slot.path / trap).symlink_to(beside / ("bashrc" if trap == "local.cfg" else "folder"))
    before = imprint(beside)
    slots.prepare(slot, "B", tip)
    assert imprint(beside) == before
    assert (slot.path / "local.cfg").read_text() == "secret\n"


def test_the_set_up_is_due_again_when_its_command_or_its_inputs_change(
    base: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PLAN__SETUP", "make install")
    slots = Slots(Invocation())
    slot = slots.slot(1)
    assert slots.prepare(slot, "A", base)
    assert slots.prepare(slot, "A", base)
    slots.finish_setup(slot)
    assert not slots.prepare(slot, "A", base)
    locked = commit(repository, "uv.lock")
    assert slots.prepare(slot, "B", locked)
    slots.finish_setup(slot)
    monkeypatch.setenv("GUARD_PLAN__SETUP", "make install-all")
    assert Slots(Invocation()).prepare(slot, "B", locked)


def test_the_inputs_of_the_set_up_can_be_named(
    base: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PLAN__SETUP", "make install")
    monkeypatch.setenv("GUARD_PLAN__SETUP_INPUTS", "tools/*")
    slots = Slots(Invocation())
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    slots.finish_setup(slot)
    assert not slots.prepare(slot, "B", commit(repository, "uv.lock"))
    assert slots.prepare(slot, "C", commit(repository, "tools/list"))


def test_nothing_is_prepared_on_a_full_disk(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_PLAN__MIN_FREE_BYTES", str(2**50))
    slots = Slots(Invocation())
    with pytest.raises(StoreUnavailable, match="min_free_bytes"):
        slots.prepare(slots.slot(1), "A", base)
    assert not slots.slot(1).path.exists()


def test_a_branch_that_is_checked_out_elsewhere_is_left_alone(
    slots: Slots, base: str, repository: Path
) -> None:
    git(repository, "checkout", "-q", "-b", "guard/task/A")
    with pytest.raises(Refused, match="is checked out in"):
        slots.prepare(slots.slot(1), "A", base)


def test_the_branch_of_the_task_follows_an_agent_that_left_it(slots: Slots, base: str) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    git(slot.path, "checkout", "-q", "-b", "my-feature")
    tip = commit(slot.path, "a.txt")
    slots.bring_home(slot, "A")
    assert branch(slot) == "guard/task/A"
    assert git(slot.path, "rev-parse", "guard/task/A").strip() == tip
    git(slot.path, "checkout", "-q", "--orphan", "another")
    commit(slot.path, "b.txt")
    slots.bring_home(slot, "A")
    assert git(slot.path, "rev-parse", "guard/task/A").strip() == tip


def test_a_folder_that_is_no_work_tree_any_more_is_put_aside(slots: Slots, base: str) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", base)
    (slot.path / ".git").unlink()
    write(slot.path / "left.txt", "left\n")
    slots.prepare(slot, "A", base)
    assert branch(slot) == "guard/task/A"
    assert (slot.path.with_name("slot-1.aside-1") / "left.txt").exists()


def test_a_slot_is_in_use_as_long_as_its_lock_is_held(slots: Slots) -> None:
    slot = slots.slot(2)
    with hold(slot) as lock:
        assert lock is not None
        assert slot.is_in_use
        assert slot.acquire() is None
    assert not slot.is_in_use
    assert [one.number for one in slots.existing()] == [2]


PLANTED = {
    **dict.fromkeys(("worktrees", "worktrees/slot-1", "worktrees/slot-1/logs"), "link to a folder"),
    **dict.fromkeys(("logs", "refs", "refs/heads", "refs/heads/guard"), "link to a folder"),
    **dict.fromkeys(("worktrees/slot-1/logs/HEAD", "logs/refs/heads/guard/task/B"), "second name"),
    **dict.fromkeys(("worktrees/slot-1/index", "worktrees/slot-1/HEAD"), "link to what was there"),
}


@pytest.mark.parametrize("again", [False, True], ids=["made", "used again"])
@pytest.mark.parametrize(("place", "kind"), PLANTED.items(), ids=PLANTED)
def test_no_slot_is_made_or_used_through_what_an_agent_planted(
    place: str, kind: str, again: bool, slots: Slots, base: str, repository: Path
) -> None:
    slot, beside = slots.slot(1), outside(repository)
    if again:
        slots.prepare(slot, "A", base)
        write(slot.path / "half.txt", "half done\n")
    plant(repository / ".git", place, kind, beside)
    before = imprint(beside)
    with suppress(RepositoryProblem):
        slots.prepare(slot, "B", base)
    assert imprint(beside) == before


@pytest.fixture
def with_submodules(repository: Path, tmp_path: Path, base: str) -> str:
    """A project with the submodule `lib`, which has the submodule `deep`, and `absent`, which is not initialised."""
    for name, inner in (("deep", None), ("lib", "deep"), ("absent", None)):
        root = tmp_path / "origins" / name
        root.mkdir(parents=True)
        git(root, "init", "-q", "-b", "main")
        _set_author(root)
        commit(root, f"{name}.c")
        if inner:
            _add_submodule(root, tmp_path / "origins" / inner, inner)
    for name in ("lib", "absent"):
        _add_submodule(repository, tmp_path / "origins" / name, name)
    git(repository, *ALLOWED, "submodule", "--quiet", "update", "--init", "--recursive")
    git(repository, "submodule", "--quiet", "deinit", "-f", "absent")
    _set_author(repository / "lib")
    return git(repository, "rev-parse", "HEAD").strip()


ALLOWED = ("-c", "protocol.file.allow=always")


def _set_author(root: Path) -> None:
    git(root, "config", "user.name", "An Author")
    git(root, "config", "user.email", "author@example.com")


def _add_submodule(root: Path, origin: Path, path: str) -> None:
    git(root, *ALLOWED, "submodule", "--quiet", "add", os.fspath(origin), path)
    git(root, "commit", "-q", "-m", f"Add {path}")


def test_submodules_are_there_as_the_project_has_them(
    slots: Slots, with_submodules: str, repository: Path
) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", with_submodules)
    assert (slot.path / "lib" / "lib.c").exists()
    assert (slot.path / "lib" / "deep" / "deep.c").exists()
    assert not list((slot.path / "absent").iterdir()), "the project does not have it either"
    assert status(slot) == ""
    assert git(slot.path, "submodule", "status", "--recursive").count("\n") == 3
    assert git(repository, "status", "--porcelain") == ""


def test_a_commit_that_an_agent_makes_in_a_submodule_is_the_projects(
    slots: Slots, with_submodules: str, repository: Path
) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", with_submodules)
    made = commit(slot.path / "lib", "lib.c", "better\n")
    git(slot.path, "commit", "-q", "-a", "-m", "feat: a better lib")
    slots.prepare(slot, "B", with_submodules)
    assert (slot.path / "lib" / "lib.c").read_text() == "text\n"
    assert status(slot) == ""
    git(repository / "lib", "gc", "-q", "--prune=now")
    assert git(repository / "lib", "show", f"{made}:lib.c") == "better\n"
    slots.prepare(slot, "A", with_submodules)
    assert (slot.path / "lib" / "lib.c").read_text() == "better\n"
    assert status(slot) == ""


def test_what_an_agent_left_in_a_submodule_is_saved_before_the_next_task(
    slots: Slots, with_submodules: str, tmp_path: Path
) -> None:
    slot = slots.slot(1)
    slots.prepare(slot, "A", with_submodules)
    write(slot.path / "lib" / "lib.c", "half\n")
    write(slot.path / "lib" / "deep" / "new.c", "new\n")
    slots.prepare(slot, "B", with_submodules)
    assert status(slot) == ""
    assert (slot.path / "lib" / "lib.c").read_text() == "text\n"
    assert not (slot.path / "lib" / "deep" / "new.c").exists()
    to = tmp_path / "restored"
    assert run("--repo", slot.path, "restore", "latest", "--to", to).code == 0
    assert (to / "lib" / "lib.c").read_text() == "half\n"
    assert (to / "lib" / "deep" / "new.c").read_text() == "new\n"


def test_a_submodule_whose_commit_the_project_lacks_is_left_out_and_named(
    slots: Slots, with_submodules: str, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    git(repository, "update-index", "--cacheinfo", f"160000,{'1' * 40},lib")
    git(repository, "commit", "-q", "-m", "Move lib")
    slot = slots.slot(1)
    slots.prepare(slot, "A", git(repository, "rev-parse", "HEAD").strip())
    assert not list((slot.path / "lib").iterdir())
    assert "the submodule lib is left out" in capfd.readouterr().err


@pytest.mark.parametrize("trap", ["link", "folder"])
def test_no_submodule_is_filled_through_what_an_agent_left_in_its_place(
    trap: str, slots: Slots, with_submodules: str, repository: Path, tmp_path: Path
) -> None:
    slot, beside = slots.slot(1), outside(repository)
    slots.prepare(slot, "A", with_submodules)
    shutil.rmtree(slot.path / "lib")
    if trap == "link":
        (slot.path / "lib").symlink_to(beside / "folder")
    else:
        write(slot.path / "lib" / "mine.txt", "mine\n")
    before = imprint(beside)
    slots.prepare(slot, "B", with_submodules)
    assert imprint(beside) == before
    assert (slot.path / "lib" / "lib.c").exists()
    assert status(slot) == ""
    if trap == "folder":
        to = tmp_path / "restored"
        assert run("--repo", slot.path, "restore", "latest", "--to", to).code == 0
        assert (to / "lib" / "mine.txt").read_text() == "mine\n"
