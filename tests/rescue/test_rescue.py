"""What a rescue commits, what it holds back, and what it leaves as it was."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from guard.errors import RepositoryProblem
from guard.git.locate import find_repository
from guard.rescue import rescue
from guard.rescue.changes import PathChange, list_changes
from guard.rescue.commits import Committer, prove, write_selection
from guard.rescue.move_branch import IndexLocked, move_with_index
from guard.rescue.order import Orders
from guard.rescue.select import CommitSelection
from guard.snapshots.project import Project, Site
from guard.snapshots.take import open_for_snapshot, take
from guard.system.clock import Deadline
from tests.rescue.states import STATES, start
from tests.support import TIME_LIMIT, commit, git, write
from tests.support.rescues import BY_HAND, NOW, attempt_rescue, contents, fingerprint, recovered


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def committed(root: Path, path: str) -> bytes:
    words = ["git", "cat-file", "blob", f"HEAD:{path}"]
    return subprocess.run(words, cwd=root, check=True, capture_output=True).stdout


def status(root: Path) -> set[str]:
    harmless = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
    return set(git(root, *harmless, "status", "--porcelain", "-uall").splitlines())


def project_of(root: Path) -> Project:
    return Project(find_repository(root, lambda _: None), os.environ, Deadline(TIME_LIMIT))


def test_the_users_own_work_stays_as_it_was(repository: Path, workspace: Path) -> None:
    write(repository / "mine.txt", "staged by the user\n")
    git(repository, "add", "mine.txt")
    write(repository / "mine.txt", "and edited again\n")
    git(repository, "rm", "-q", "--cached", "kept.txt")
    write(repository / "notes.txt", "untracked\n")
    own = status(repository)
    staged = git(repository, "ls-files", "--stage", "mine.txt")
    left = STATES["plain"].build(repository)
    result = attempt_rescue(repository, workspace, left)
    assert result.reason == "rescued"
    assert status(repository) == own
    assert git(repository, "ls-files", "--stage", "mine.txt") == staged
    assert git(repository, "show", "--format=", "--name-status", "HEAD").splitlines() == [
        "M\tedited.txt",
        "A\tnew.txt",
    ]


def test_an_index_of_two_parts_keeps_both(repository: Path, workspace: Path) -> None:
    """Git deletes the shared parts of other indexes when it writes one of its own in two parts."""
    write(repository / "staged.txt", "the user's own, staged\n")
    git(repository, "add", "staged.txt")
    git(repository, "config", "core.splitIndex", "true")
    git(repository, "update-index", "--split-index")
    git(repository, "config", "splitIndex.sharedIndexExpire", "now")
    shared = {path.name for path in (repository / ".git").glob("sharedindex.*")}
    write(repository / "edited.txt", "edited\n")
    result = attempt_rescue(repository, workspace, ["edited.txt"])
    assert result.reason == "rescued", result.detail
    assert {path.name for path in (repository / ".git").glob("sharedindex.*")} == shared
    assert git(repository, "status", "--porcelain") == "A  staged.txt\n"


def test_an_index_that_is_missing_stays_so(repository: Path, workspace: Path) -> None:
    left = STATES["index missing"].build(repository)
    result = attempt_rescue(repository, workspace, left)
    assert "there is no index" in result.detail
    assert not (repository / ".git/index").exists()


@pytest.mark.parametrize(
    ("state", "path", "blob"),
    [
        ("autocrlf", "edited.txt", b"one\ntwo\n"),
        ("autocrlf", "mixed.txt", b"one\ntwo\n"),
        ("autocrlf", "binary.bin", b"\0\r\n\0"),
        ("autocrlf and a file committed with CRLF", "dos.txt", b"one\r\ntwo\r\n"),
        ("working-tree-encoding and ident", "wide.utf16", b"wide\n"),
        ("working-tree-encoding and ident", "who.id", b"$Id$\n"),
        ("staged and on disk differ", "edited.txt", b"version on disk\n"),
        ("every kind of change", "link", b"nowhere at all"),
        ("kinds swapped", "edited.txt", b"mine.txt"),
        ("sparse checkout", "folder/outside.txt", b"outside the cone\n"),
        ("no commit yet", "kept.txt", b"kept.txt\n" * 3),
    ],
)
def test_blobs_are_gits_own_conversion(
    state: str, path: str, blob: bytes, repository: Path, workspace: Path
) -> None:
    left = STATES[state].build(repository)
    assert attempt_rescue(repository, workspace, left).reason == "rescued"
    assert committed(repository, path) == blob


def test_modes_and_links_and_renames_are_committed(repository: Path, workspace: Path) -> None:
    left = STATES["every kind of change"].build(repository)
    attempt_rescue(repository, workspace, left)
    tree = git(repository, "ls-tree", "-r", "HEAD")
    modes = {line.split("\t")[1]: line.split()[0] for line in tree.splitlines()}
    assert (modes["tool.sh"], modes["link"]) == ("100755", "120000")
    assert not {"deleted.txt", "kept.txt"} & set(modes)
    changed = git(repository, "show", "--format=", "--name-status", "-M", "HEAD")
    assert "R100\tkept.txt\trenamed.txt" in changed


@pytest.mark.parametrize(
    "paths", [[], ["kept.txt"], ["never-was.txt"]], ids=["none", "clean", "gone"]
)
def test_nothing_left_makes_no_commit(paths: list[str], repository: Path, workspace: Path) -> None:
    before = fingerprint(repository / ".git")
    result = attempt_rescue(repository, workspace, paths)
    assert (result.reason, result.commits) == ("nothing", ())
    assert result.snapshot is not None
    assert fingerprint(repository / ".git") == before


def test_a_second_rescue_finds_nothing(repository: Path, workspace: Path) -> None:
    left = STATES["every kind of change"].build(repository)
    assert attempt_rescue(repository, workspace, left).reason == "rescued"
    assert attempt_rescue(repository, workspace, left).reason == "nothing"


def test_without_a_git_directory_there_is_only_the_snapshot(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    known = find_repository(repository, lambda _: None)
    left = STATES["plain"].build(repository)
    shutil.rmtree(repository / ".git")
    workspace.mkdir(mode=0o700)
    orders = Orders("r1", 2, "main", [name.encode() for name in left if isinstance(name, str)])
    result = rescue(Site(known, workspace, os.environ, TIME_LIMIT), orders, NOW)
    assert result.reason == "not_plain:no_git_dir"
    assert result.snapshot is not None
    assert recovered(result.snapshot, tmp_path / "back") == contents(repository)


def test_a_git_directory_replaced_by_a_pointer_is_not_trusted(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    known = find_repository(repository, lambda _: None)
    (repository / ".git").rename(tmp_path / "real.git")
    write(repository / ".git", f"gitdir: {tmp_path}/real.git\n")
    before = fingerprint(tmp_path / "real.git")
    write(repository / "new.txt", "new\n")
    workspace.mkdir(mode=0o700)
    orders = Orders("r1", 2, "main", [b"new.txt"])
    result = rescue(Site(known, workspace, os.environ, TIME_LIMIT), orders, NOW)
    assert result.reason == "not_plain:no_git_dir"
    assert fingerprint(tmp_path / "real.git") == before


def test_a_rescue_branch_that_exists_is_never_moved(repository: Path, workspace: Path) -> None:
    left = STATES["detached"].build(repository)
    first = attempt_rescue(repository, workspace, left)
    write(repository / "new.txt", "newer\n")
    second = attempt_rescue(repository, workspace, left)
    assert (first.branch, second.branch) == ("guard/rescue/r1-2", "guard/rescue/r1-2-2")
    assert git(repository, "show", "guard/rescue/r1-2:new.txt") == "new\n"
    assert git(repository, "show", "guard/rescue/r1-2-2:new.txt") == "newer\n"


def test_a_branch_in_the_way_of_the_rescue_branch_is_said(
    repository: Path, workspace: Path
) -> None:
    left = STATES["detached"].build(repository)
    git(repository, "branch", "guard")
    result = attempt_rescue(repository, workspace, left)
    assert (result.reason, result.branch, result.commits) == ("refused", None, ())
    assert "refs/heads/guard" in result.detail


@pytest.mark.parametrize("name", ["main", "refs/heads/main"])
def test_the_branch_of_the_baseline_may_be_named_either_way(
    name: str, repository: Path, workspace: Path
) -> None:
    left = STATES["plain"].build(repository)
    assert attempt_rescue(repository, workspace, left, baseline_branch=name).reason == "rescued"


def test_a_baseline_on_no_branch_allows_no_commit_on_one(repository: Path, workspace: Path) -> None:
    left = STATES["plain"].build(repository)
    result = attempt_rescue(repository, workspace, left, baseline_branch=None)
    assert (result.reason, result.branch) == ("not_plain:branch_changed", "guard/rescue/r1-2")


def test_a_linked_work_tree_is_rescued_where_it_stands(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    git(repository, "config", "core.bare", "true")
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", "-b", "feature", str(linked))
    left = STATES["plain"].build(linked)
    result = attempt_rescue(linked, workspace, left, baseline_branch="feature")
    assert (result.reason, result.branch) == ("rescued", None)
    assert status(linked) == set()
    assert result.snapshot is not None
    assert recovered(result.snapshot, tmp_path / "back") == contents(linked)
    assert git(repository, "rev-parse", "feature").strip() == result.commits[0]


def test_a_repository_of_the_other_hash_is_rescued_alike(tmp_path: Path, workspace: Path) -> None:
    root = tmp_path / "sha256"
    root.mkdir()
    git(root, "init", "-q", "-b", "main", "--object-format=sha256")
    git(root, "config", "core.autocrlf", "input")
    write(root / "dos.txt", b"one\r\n")
    result = attempt_rescue(root, workspace, ["dos.txt"])
    assert result.reason == "rescued"
    assert len(result.commits[0]) == 64
    assert committed(root, "dos.txt") == b"one\n"


def test_a_branch_of_any_name_is_rescued(repository: Path, workspace: Path) -> None:
    name = b"lat\xe9n"
    subprocess.run([b"git", b"checkout", b"-q", b"-b", name], cwd=repository, check=True)
    left = STATES["plain"].build(repository)
    result = attempt_rescue(repository, workspace, left, baseline_branch="refs/heads/lat\\xe9n")
    assert result.reason == "rescued"


@pytest.mark.parametrize(
    ("variables", "who"),
    [
        ({}, "Test Author <author@example.com>"),
        (
            {"GIT_AUTHOR_NAME": "CI", "GIT_AUTHOR_EMAIL": "ci@example.com"},
            "CI <ci@example.com>",
        ),
        (
            {"GIT_DIR": "/proc/nowhere", "GIT_INDEX_FILE": "/proc/nowhere"},
            "Test Author <author@example.com>",
        ),
    ],
    ids=["configured", "from the environment", "of another repository"],
)
def test_the_commit_is_the_users(
    variables: dict[str, str],
    who: str,
    repository: Path,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = STATES["plain"].build(repository)
    with monkeypatch.context() as scene:
        for name, value in variables.items():
            scene.setenv(name, value)
        assert attempt_rescue(repository, workspace, left).reason == "rescued"
    assert git(repository, "show", "-s", "--format=%an <%ae>").strip() == who


def test_without_an_identity_the_commit_is_guards(repository: Path, workspace: Path) -> None:
    left = STATES["no identity"].build(repository)
    attempt_rescue(repository, workspace, left)
    assert git(repository, "show", "-s", "--format=%cn <%ce>").strip() == "guard <guard@localhost>"


def test_a_branch_that_moved_meanwhile_is_not_moved_back(repository: Path, tmp_path: Path) -> None:
    old = git(repository, "rev-parse", "HEAD").strip()
    new = commit(repository, "new.txt")
    project = project_of(repository)
    update = Committer(project, tmp_path, "r1", 2).branch_update("refs/heads/main", old, old)
    with pytest.raises(RepositoryProblem, match="update-ref"), update as words:
        project.call(*words)
    assert git(repository, "rev-parse", "HEAD").strip() == new


def test_an_index_that_is_locked_meanwhile_is_not_waited_for_long(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    write(repository / ".git/index.lock", "")
    change = PathChange(
        "M", b"100644", git(repository, "rev-parse", ":kept.txt").strip(), b"kept.txt"
    )
    words = ("update-ref", "refs/heads/other", head)
    with pytest.raises(IndexLocked):
        move_with_index(project_of(repository), head, [change], words)
    assert git(repository, "branch", "--list", "other") == ""
    assert (repository / ".git/index.lock").exists()
    assert not list((repository / ".git").glob("guard-index*"))


@pytest.mark.parametrize(
    ("plan", "text", "why"),
    [
        (CommitSelection((b"new.txt",), (), ()), "changed since", "changed since the snapshot"),
        (CommitSelection((), (), ()), "new\n", "the rescue did not choose it"),
    ],
    ids=["other bytes", "another path"],
)
def test_a_commit_that_is_not_proven_is_refused(
    plan: CommitSelection, text: str, why: str, repository: Path, workspace: Path
) -> None:
    workspace.mkdir(mode=0o700)
    project = project_of(repository)
    write(repository / "new.txt", "new\n")
    head = git(repository, "rev-parse", "HEAD").strip()
    with open_for_snapshot(project, workspace, BY_HAND) as shadow:
        taken = take(project, shadow, BY_HAND, [b"new.txt"])
        write(repository / "new.txt", text)
        own = project.with_index(workspace / "index")
        own.call("read-tree", head)
        tree = write_selection(own, CommitSelection((b"new.txt",), (), ()))
        with pytest.raises(RepositoryProblem, match=why):
            prove(own, shadow, taken, plan, list_changes(own, head, tree))


def test_rescues_at_once_do_each_other_no_harm(repository: Path, workspace: Path) -> None:
    names = [f"new-{number}.txt" for number in range(6)]
    for name in names:
        write(repository / name, name)
    workspace.mkdir(mode=0o700)
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda name: attempt_rescue(repository, workspace, [name]), names))
    reasons = {result.reason for result in results}
    assert "rescued" in reasons
    assert reasons <= {"rescued", "refused", "not_plain:index_lock", "not_plain:head_lock"}
    for name, result in zip(names, results, strict=True):
        if result.reason != "rescued":
            assert attempt_rescue(repository, workspace, [name]).reason == "rescued"
        assert committed(repository, name) == name.encode()
    git(repository, "fsck", "--strict")
    assert not list((repository / ".git").rglob("*.lock"))
