"""Special files that git would wait for, and settings that would make it run something: guard finds them before git does."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.errors import RepositoryProblem
from guard.git import obstacles
from guard.git.locate import Repository, find_repository
from guard.git.obstacles import GitObstacle
from guard.git.reader import RepositoryReader
from guard.git.run import read_config
from tests.support import TIME_LIMIT, commit, git, write

READ = (
    *("HEAD", "commondir", "config", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/grafts", "objects/info/alternates"),
    *("refs/heads/main", "refs/heads/deep/er/new", "refs/stash", "refs/guard"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_START", "sequencer/todo"),
    *("rebase-merge/head-name", "rebase-merge/onto", "rebase-apply/onto"),
)


@pytest.fixture
def begun(repository: Path) -> Path:
    commit(repository, "kept.txt")
    return repository


def reader(root: Path, limit: float = TIME_LIMIT) -> RepositoryReader:
    return RepositoryReader(find_repository(root, lambda _: None), os.environ, limit)


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)


def linked_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def linked_file(path: Path) -> None:
    path.symlink_to(write(path.with_name("linked"), ""))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, device], ids=["pipe", "link to a device"])
@pytest.mark.parametrize("place", READ)
def test_a_special_file_that_git_reads_is_named_at_once(
    place: str, make: Callable[[Path], object], begun: Path
) -> None:
    git_reader = reader(begun)
    replaced(begun / ".git" / place, make)
    with pytest.raises(GitObstacle, match=f"{place} is a"):
        git_reader.ask("status")
    with pytest.raises(GitObstacle, match=f"{place} is a"):
        read_config("user.name", begun / ".git", os.environ)


@pytest.mark.parametrize("name", ["HEAD", "gitdir", "locked"])
def test_a_pipe_of_another_work_tree_is_named_at_once(
    name: str, begun: Path, tmp_path: Path
) -> None:
    git(begun, "worktree", "add", "-q", str(tmp_path / "other"))
    git_reader = reader(begun)
    replaced(begun / ".git/worktrees/other" / name, os.mkfifo)
    with pytest.raises(GitObstacle, match=f"worktrees/other/{name} is a named pipe"):
        git_reader.ask("worktree", "list")


def test_a_link_to_a_pipe_is_one_too(begun: Path) -> None:
    replaced(begun / ".git/info/exclude", linked_pipe)
    with pytest.raises(GitObstacle, match="info/exclude is a named pipe"):
        reader(begun).ask("status")


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", ".mailmap"])
def test_rules_at_the_top_are_looked_at(name: str, begun: Path) -> None:
    os.mkfifo(begun / name)
    with pytest.raises(GitObstacle, match=name):
        reader(begun).ask("status")


@pytest.mark.parametrize(
    "lines",
    [
        "[include]\n\tpath = {pipe}\n",
        '[include] path = "{pipe}"\n',
        "[core]\n\texcludesFile = {pipe} # a comment\n",
        "[core]\n\tattributesFile = ../../pipe\n",
        "[include]\n\tpath = more.cfg\n",
        "[mailmap]\n\tfile = /dev/zero\n",
    ],
)
def test_a_pipe_that_the_settings_name_is_found(lines: str, begun: Path, tmp_path: Path) -> None:
    pipe = begun.parent / "pipe"
    os.mkfifo(pipe)
    write(begun / ".git/more.cfg", f"[core]\n\texcludesFile = {pipe}\n")
    git_reader = reader(begun)
    with open(begun / ".git/config", "a") as file:
        file.write(lines.format(pipe=pipe))
    with pytest.raises(GitObstacle, match=r"pipe|/dev/zero"):
        git_reader.ask("status")


def test_the_null_device_is_no_obstacle(begun: Path) -> None:
    git(begun, "config", "core.excludesFile", os.devnull)
    assert reader(begun).ask("status", "--porcelain") == b""


def test_refs_through_a_link_are_read_and_not_written(begun: Path, tmp_path: Path) -> None:
    """As of a work tree made by `git-new-workdir`."""
    (begun / ".git/refs/heads").rename(tmp_path / "heads")
    (begun / ".git/refs/heads").symlink_to(tmp_path / "heads")
    head = reader(begun).ask("rev-parse", "refs/heads/main")
    assert b"refs/heads/main" in reader(begun).ask("for-each-ref")
    with pytest.raises(GitObstacle, match="refs/heads is a symbolic link"):
        reader(begun).ask("update-ref", "refs/heads/x", head.decode().strip())


def test_refs_that_lead_back_are_an_obstacle(begun: Path) -> None:
    """Git would go round until the system refuses, along every way that there is."""
    for name in ("a", "b"):
        (begun / f".git/refs/heads/{name}").symlink_to("..")
    with pytest.raises(GitObstacle, match="round and round"):
        reader(begun).ask("for-each-ref")


def test_after_one_wait_the_file_is_known_until_it_is_gone(begun: Path) -> None:
    os.mkdir(begun / "deep")
    os.mkfifo(begun / "deep/.gitignore")
    hurried = reader(begun, 1.0)
    with pytest.raises(GitObstacle, match=r"deep/\.gitignore is a named pipe"):
        hurried.ask("status", "--porcelain", "-uall")
    with pytest.raises(GitObstacle, match=r"deep/\.gitignore"):
        reader(begun).ask("rev-parse", "HEAD")
    (begun / "deep/.gitignore").unlink()
    assert reader(begun).ask("rev-parse", "HEAD")


def test_a_git_directory_that_leads_to_another_repository_is_not_followed(
    begun: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", "other")
    git_reader = reader(begun)
    write(begun / ".git/commondir", f"{other}/.git\n")
    with pytest.raises(GitObstacle, match="commondir leads to"):
        git_reader.ask("update-ref", "refs/heads/x", "HEAD")
    assert not (other / ".git/refs/heads/x").exists()


def test_a_folder_whose_time_was_put_back_is_looked_at_again(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstacles, "_SETTLED_NS", -1)
    git_reader, objects = reader(begun), begun / ".git/objects"
    git_reader.ask("hash-object", "-w", "--stdin", stdin=b"known")
    before = objects.stat()
    git_reader.ask("hash-object", "-w", "--stdin", stdin=b"known")
    (objects / "ff").symlink_to(tmp_path)
    os.utime(objects, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(GitObstacle, match="objects/ff is a symbolic link"):
        git_reader.ask("hash-object", "-w", "--stdin", stdin=b"another")


def test_settings_whose_time_was_put_back_are_read_again(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstacles, "_SETTLED_NS", -1)
    git_reader, config = reader(begun), begun / ".git/config"
    os.mkfifo(begun.parent / "pipe")
    with open(config, "a") as file:
        file.write(f"[core]\n\texcludesFile = {begun.parent}/none\n")
    before = config.stat()
    git_reader.ask("status")
    with open(config, "r+") as file:
        file.write(config.read_text().replace("/none", "/pipe"))
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(GitObstacle, match="pipe is a named pipe"):
        git_reader.ask("status")


LENT = {
    "info/alternates": os.mkfifo,
    "pack/pack-1.idx": os.mkfifo,
    "pack/multi-pack-index": os.mkfifo,
    "pack/pack-2.idx": device,
}


@pytest.mark.parametrize("place", LENT)
def test_a_special_file_among_packs_is_named_at_once(place: str, begun: Path) -> None:
    """Also where another repository lends its objects, and where that one borrows in turn."""
    third, second = begun.parent / "third", begun.parent / 'sec"ond'
    for folder, named in ((second, f"# said\n\n{third}\n"), (third, "")):
        write(folder / "info/alternates", named)
    replaced(third / place, LENT[place])
    git_reader = reader(begun)
    quoted = os.fspath(second).replace('"', '\\"')
    for named in (f'"{quoted}"', f"../../../{third.name}"):
        write(begun / ".git/objects/info/alternates", f"{named}\n")
        with pytest.raises(GitObstacle, match=f"third/{place} is a"):
            git_reader.ask("rev-parse", "HEAD")


@pytest.mark.parametrize("make", [os.mkfifo, linked_file], ids=["pipe", "link"])
def test_a_shared_part_of_the_index_is_a_file_or_not_read(
    make: Callable[[Path], object], begun: Path
) -> None:
    """Git sets its time when it reads it."""
    git(begun, "update-index", "--split-index")
    (shared,) = (begun / ".git").glob("sharedindex.*")
    git_reader = reader(begun)
    replaced(shared, make)
    with pytest.raises(GitObstacle, match=r"sharedindex\.[0-9a-f]+ is a"):
        git_reader.ask("status")


def test_no_object_that_is_a_link_is_borrowed_and_written(begun: Path, tmp_path: Path) -> None:
    """Git sets the time of an object that is there already."""
    beside, known = write(tmp_path / "bashrc", ""), "blob 5\0known"
    oid = hashlib.sha1(known.encode(), usedforsecurity=False).hexdigest()
    write(begun / ".git/objects/info/alternates", f"{tmp_path}/lent\n")
    replaced(tmp_path / "lent" / oid[:2] / oid[2:], lambda path: path.symlink_to(beside))
    with pytest.raises(GitObstacle, match="is a symbolic link"):
        reader(begun).ask("hash-object", "-w", "--stdin", stdin=b"known")


def test_objects_are_borrowed_from_a_clone(begun: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--shared", f"{begun}", "borrower")
    git(tmp_path, "clone", "-q", "--reference", f"{begun}", f"{begun}", "second")
    for name in ("borrower", "second"):
        git_reader = reader(tmp_path / name)
        assert git_reader.ask("hash-object", "-w", "--stdin", stdin=b"new")
        assert git_reader.ask("update-ref", "refs/heads/x", "HEAD") == b""


def test_the_log_of_a_branch_to_which_a_symbolic_ref_leads_is_looked_at(begun: Path) -> None:
    head = git(begun, "rev-parse", "HEAD").strip()
    beside = begun.parent / "bashrc"
    write(beside, "")
    write(begun / ".git/refs/heads/rescue", "ref: refs/heads/next\n")
    write(begun / ".git/refs/heads/next", "ref:refs/heads/last\n")
    (begun / ".git/logs/refs/heads/last").symlink_to(beside)
    with pytest.raises(GitObstacle, match="logs/refs/heads/last is a symbolic link"):
        reader(begun).ask("update-ref", "-m", "x", "refs/heads/rescue", head)
    assert beside.read_text() == ""
    write(begun / ".git/refs/heads/last", "ref: refs/heads/rescue\n")
    with pytest.raises(RepositoryProblem):
        reader(begun).ask("update-ref", "-m", "x", "refs/heads/rescue", head)


def test_a_work_tree_that_became_a_link_is_not_followed(begun: Path, tmp_path: Path) -> None:
    """To a clone, whose history is the same: the work that lies there is none of the agent's."""
    git_reader = reader(begun)
    shutil.copytree(begun, tmp_path / "other")
    begun.rename(tmp_path / "moved")
    begun.symlink_to(tmp_path / "other")
    for words in (("rev-parse", "HEAD"), ("update-ref", "refs/heads/x", "HEAD")):
        with pytest.raises(GitObstacle, match=r"leads to .*other/\.git"):
            git_reader.ask(*words)
    assert reader(begun).ask("rev-parse", "HEAD")


def test_nothing_is_written_for_a_work_tree_that_became_a_link(begun: Path, tmp_path: Path) -> None:
    git(begun, "worktree", "add", "-q", f"{tmp_path}/linked")
    git_reader = reader(tmp_path / "linked")
    (tmp_path / "linked").rename(tmp_path / "moved")
    (tmp_path / "linked").symlink_to(tmp_path / "moved")
    with pytest.raises(GitObstacle, match="linked leads to"):
        git_reader.ask("update-ref", "refs/heads/x", "HEAD")


def other_place(root: Path, git_dir: str) -> Repository:
    """Where guard knows the git directory to be."""
    place = Path(os.path.realpath(root.parent / git_dir))
    return Repository(Path(os.path.realpath(root)), place, place, git_dir_exists=False)


def test_a_git_file_that_was_rewritten_is_not_followed(begun: Path, tmp_path: Path) -> None:
    (begun / ".git").rename(tmp_path / "real.git")
    write(begun / ".git", f"gitdir: {tmp_path}/real.git\n")
    known = other_place(begun, "real.git")
    assert find_repository(begun, lambda _: known).git_dir_exists
    git(tmp_path, "init", "-q", "other")
    write(begun / ".git", f"gitdir: {tmp_path}/other/.git\n")
    found = find_repository(begun, lambda _: known)
    assert found == known
    with pytest.raises(RepositoryProblem, match=r"real\.git"):
        RepositoryReader(found, os.environ).ask("rev-parse", "HEAD")


def test_hooks_that_the_settings_name_are_switched_off_for_what_writes(begun: Path) -> None:
    """A git older than 2.54 does not know them."""
    git(begun, "config", "hook.own.event", "reference-transaction")
    git(begun, "config", "hook.own.command", "false")
    _argv, variables = reader(begun).command("update-ref", "refs/heads/x", "HEAD")
    names = {name: value for name, value in variables.items() if name.startswith("GIT_CONFIG_KEY")}
    assert "hook.own.enabled" in names.values()
    _argv, variables = reader(begun).command("rev-parse", "HEAD")
    assert "hook.own.enabled" not in variables.values()
