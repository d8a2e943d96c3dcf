"""Commits of one thought each: together they are exactly what was proven, on the branch or on one of their own."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from guard.core.rescue.groups import Changed, Group, group_changes
from guard.core.snapshots.snapshot import Rescue
from tests.rescue.states import start
from tests.support import commit, git, write
from tests.support.rescues import attempt_rescue, contents, fingerprint, recovered

MARK = "Guard-Rescue: r1/2"


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def one_each(changes: Sequence[Changed]) -> list[Group]:
    """As many commits as there can be."""
    return [Group(f"chore: {number}", "", (one,)) for number, one in enumerate(changes)]


def backwards(changes: Sequence[Changed]) -> list[Group]:
    return one_each(changes)[::-1]


def checked_out(root: Path, tip: str, folder: Path) -> dict[bytes, tuple[str, bytes]]:
    """What somebody gets who checks out this commit."""
    git(root, "worktree", "add", "-q", "--detach", str(folder), tip)
    return contents(folder)


def trees(root: Path, result: Rescue) -> list[str]:
    return [git(root, "rev-parse", f"{oid}^{{tree}}").strip() for oid in result.commits]


def file_to_folder(root: Path) -> list[str]:
    (root / "kept.txt").unlink()
    write(root / "kept.txt/inside.py", "x = 1\n")
    write(root / "kept.txt/deep/er.md", "# deeper\n")
    return ["kept.txt", "kept.txt/inside.py", "kept.txt/deep/er.md"]


def folder_to_file(root: Path) -> list[str]:
    commit(root, "lib/a.py")
    commit(root, "lib/b/c.md")
    git(root, "rm", "-q", "-r", "--cached", "lib")
    git(root, "reset", "-q")
    for path in ("lib/a.py", "lib/b/c.md"):
        (root / path).unlink()
    (root / "lib/b").rmdir()
    (root / "lib").rmdir()
    write(root / "lib", "a file now\n")
    return ["lib", "lib/a.py", "lib/b/c.md"]


def every_kind(root: Path) -> list[str]:
    (root / "deleted.txt").unlink()
    (root / "kept.txt").rename(root / "renamed.txt")
    write(root / "src/code.py", "def f():\n    return 1\n").chmod(0o755)
    write(root / "tests/test_code.py", "def test_f():\n    assert True\n")
    write(root / "README.md", "# read\n")
    (root / "edited.txt").unlink()
    (root / "edited.txt").symlink_to("nowhere")
    return [
        "deleted.txt",
        "kept.txt",
        "renamed.txt",
        "src/code.py",
        "tests/test_code.py",
        "README.md",
        "edited.txt",
    ]


STORIES = {
    "a file becomes a folder": file_to_folder,
    "a folder becomes a file": folder_to_file,
    "every kind of change": every_kind,
}


@pytest.mark.parametrize("planner", [group_changes, one_each, backwards])
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_the_commits_add_up_to_the_work_tree(
    story: Callable[[Path], list[str]],
    planner: Callable[[Sequence[Changed]], list[Group]],
    repository: Path,
    workspace: Path,
    tmp_path: Path,
) -> None:
    left = story(repository)
    base = git(repository, "rev-parse", "HEAD").strip()
    result = attempt_rescue(repository, workspace, left, grouping=planner)
    assert result.reason == "rescued", result.detail
    assert len(result.commits) == len(result.plan)
    assert git(repository, "status", "--porcelain") == ""
    assert checked_out(repository, "HEAD", tmp_path / "other") == contents(repository)
    assert git(repository, "rev-parse", f"{result.commits[0]}^").strip() == base
    assert git(repository, "rev-list", "--count", f"{base}..HEAD") == f"{len(result.commits)}\n"
    for oid in result.commits:
        assert git(repository, "show", "-s", "--format=%(trailers)", oid).strip() == MARK
    chain = [git(repository, "rev-parse", f"{base}^{{tree}}").strip(), *trees(repository, result)]
    assert len(set(chain)) == len(chain), "no commit is empty"
    git(repository, "fsck", "--strict")


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_branch_of_its_own_has_the_same_commits(
    story: Callable[[Path], list[str]], repository: Path, workspace: Path, tmp_path: Path
) -> None:
    left = story(repository)
    before = fingerprint(repository / ".git"), contents(repository)
    result = attempt_rescue(repository, workspace, left, on_branch=True)
    assert (result.reason, result.branch) == ("on_branch", "guard/rescue/r1-2")
    assert checked_out(repository, "guard/rescue/r1-2", tmp_path / "other") == before[1]
    after = fingerprint(repository / ".git")
    assert contents(repository) == before[1]
    for name in ("HEAD", "index", "refs/heads/main"):
        assert after[name] == before[0][name]
    again = attempt_rescue(repository, workspace, left, grouping=group_changes)
    assert trees(repository, again) == trees(repository, result)


def test_a_rename_is_in_one_commit(repository: Path, workspace: Path) -> None:
    left = every_kind(repository)
    attempt_rescue(repository, workspace, left, grouping=one_each)
    log = git(repository, "log", "-M", "--format=%s", "--name-status", "--diff-filter=R", "-3")
    assert "R100\tkept.txt\trenamed.txt" in log


@pytest.mark.parametrize("what", ["src/tool.sh", "new.sh"])
def test_a_mode_alone_is_a_change(what: str, repository: Path, workspace: Path) -> None:
    commit(repository, "src/tool.sh", "true\n")
    write(repository / what, "true\n").chmod(0o755)
    assert attempt_rescue(repository, workspace, [what]).reason == "rescued"
    assert git(repository, "ls-tree", "HEAD", what).startswith("100755")


def test_fifteen_hundred_files_are_a_few_commits(repository: Path, workspace: Path) -> None:
    left = [f"part{number % 30}/file{number}.py" for number in range(1500)]
    for path in left:
        write(repository / path, f"x = '{path}'\n")
    result = attempt_rescue(repository, workspace, left)
    assert result.reason == "rescued"
    assert 1 <= len(result.commits) <= 12
    assert sum(one.files for one in result.plan) == 1500
    assert git(repository, "status", "--porcelain") == ""


HOSTILE = [b"-rf", b"new\nline.py", b"tab\t.md", b'quote".txt', b"\xff\xfe.bin", b":(top)x", b"a b"]


@pytest.mark.parametrize("planner", [group_changes, one_each])
def test_hostile_names(
    planner: Callable[[Sequence[Changed]], list[Group]], repository: Path, workspace: Path
) -> None:
    for name in HOSTILE:
        Path(os.fsdecode(os.path.join(os.fsencode(repository), name))).write_bytes(name)
    result = attempt_rescue(repository, workspace, HOSTILE, grouping=planner)
    assert result.reason == "rescued", result.detail
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"], check=True, capture_output=True
    )
    assert set(HOSTILE) <= set(listed.stdout.split(b"\0"))
    for one in result.plan:
        assert "\n" not in one.subject


def test_the_first_commits_of_a_repository(tmp_path: Path, workspace: Path) -> None:
    root = tmp_path / "unborn"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    write(root / "src/a.py", "a = 1\n")
    write(root / "README.md", "# a\n")
    result = attempt_rescue(root, workspace, ["src/a.py", "README.md"], grouping=one_each)
    assert result.reason == "rescued", result.detail
    assert git(root, "rev-list", "--max-parents=0", "HEAD").strip() == result.commits[0]
    assert git(root, "status", "--porcelain") == ""


def test_a_branch_that_moves_meanwhile_loses_nothing(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write(repository / "new.py", "new = 1\n")
    write(repository / "tasks.md", "- [ ] write `new.py`\n")
    git(repository, "add", "tasks.md")
    git(repository, "commit", "-q", "-m", "tasks")
    theirs: list[str] = []

    def meanwhile(changes: Sequence[Changed]) -> list[Group]:
        theirs.append(commit(repository, "theirs.txt"))
        return group_changes(changes)

    result = attempt_rescue(
        repository, workspace, ["new.py"], grouping=meanwhile, tasks=b"tasks.md"
    )
    assert (result.reason, result.commits, result.branch) == ("refused", (), None)
    assert "update-ref" in result.detail
    assert result.ticked == ()
    assert (repository / "tasks.md").read_text() == "- [ ] write `new.py`\n"
    assert git(repository, "rev-parse", "HEAD").strip() == theirs[0]
    assert git(repository, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n"
    assert git(repository, "status", "--porcelain") == "?? new.py\n"
    assert result.snapshot is not None
    assert recovered(result.snapshot, tmp_path / "back")[b"new.py"] == ("file", b"new = 1\n")
    second = attempt_rescue(repository, workspace, ["new.py"], tasks=b"tasks.md")
    assert (second.reason, second.ticked) == ("rescued", ("write `new.py`",))


def test_what_changes_while_it_is_planned_is_committed_as_it_was(
    repository: Path, workspace: Path
) -> None:
    write(repository / "new.py", "new = 1\n")

    def meanwhile(changes: Sequence[Changed]) -> list[Group]:
        write(repository / "new.py", "newer = 2\n")
        return group_changes(changes)

    result = attempt_rescue(repository, workspace, ["new.py"], grouping=meanwhile)
    assert result.reason == "rescued"
    assert git(repository, "show", "HEAD:new.py") == "new = 1\n"
    assert git(repository, "status", "--porcelain") == " M new.py\n"


def test_a_dry_run_writes_nothing_and_says_what_a_real_one_makes(
    repository: Path, workspace: Path
) -> None:
    write(repository / "tasks.md", "- [ ] `src/code.py`\n")
    git(repository, "add", "tasks.md")
    git(repository, "commit", "-q", "-m", "tasks")
    left = every_kind(repository)
    before = fingerprint(repository / ".git"), contents(repository)
    planned = attempt_rescue(repository, workspace, left, dry=True, tasks=b"tasks.md")
    assert (planned.reason, planned.commits) == ("planned", ())
    assert (fingerprint(repository / ".git"), contents(repository)) == before
    real = attempt_rescue(repository, workspace, left, tasks=b"tasks.md")
    assert (real.plan, real.ticked) == (planned.plan, planned.ticked)
    assert real.ticked == ("`src/code.py`",)
    subjects = git(repository, "log", "--reverse", "--format=%s", f"-{len(real.plan)}").splitlines()
    assert subjects == [one.subject for one in planned.plan]


def test_a_dry_run_in_a_repository_with_an_odd_path(tmp_path: Path, workspace: Path) -> None:
    root = tmp_path / 'a:b"c\\d'
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    commit_here = ("-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "x")
    write(root / "old.txt", "old\n" * 20)
    git(root, "add", "old.txt")
    git(root, *commit_here)
    (root / "old.txt").rename(root / "moved.txt")
    planned = attempt_rescue(root, workspace, ["old.txt", "moved.txt"], dry=True)
    assert planned.reason == "planned", planned.detail
    assert len(planned.plan) == 1
