"""A checkout has the bytes of its tree and nothing else, whatever was done to it before; the project does not change."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from guard.errors import RepositoryProblem, StoreUnavailable
from guard.git.locate import repository_at
from guard.prove.checkout import Checkouts, SetUp, checkouts_root
from tests.support import commit, git, write
from tests.support.checkouts import contents, open_checkouts, state_of

HOSTILE = {
    b"plain.txt": b"one\r\ntwo\n",
    b"$Id$.txt": b"$Id$\n",
    b"non-utf8-\xff\xfe.txt": b"bytes\0\xff",
    b"with\nnewline": b"x\n",
    b'"quoted" [section "a"]\\': b"x\n",
    b"-rf": b"x\n",
    b"deep/er/and/deeper/file": b"x\n",
    b"empty": b"",
    b".gitattributes": b"* text eol=crlf ident filter=evil\nplain.txt working-tree-encoding=UTF-16\n",
    b".gitignore": b"*.log\nignored/\n",
}


@pytest.fixture
def project(repository: Path) -> Path:
    """A repository with names and contents that git could change, and filters, hooks and an fsmonitor that leave a trace."""
    for name in (name for name in HOSTILE if name != b".gitattributes"):
        path = os.path.join(os.fsencode(repository), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(HOSTILE[name])
    write(repository / "run.sh", "#!/bin/sh\n").chmod(0o755)
    (repository / "link").symlink_to("plain.txt")
    git(repository, "add", "-A")
    write(repository / ".gitattributes", HOSTILE[b".gitattributes"])
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "-q", "-m", "all")
    trap = f"sh -c 'touch {repository.parent}/trapped; cat'"
    git(repository, "config", "filter.evil.smudge", trap)
    git(repository, "config", "core.fsmonitor", trap)
    hook = write(
        repository / ".git/hooks/post-checkout", f"#!/bin/sh\ntouch {repository.parent}/trapped\n"
    )
    hook.chmod(0o755)
    return repository


def head_of(project: Path) -> str:
    return git(project, "rev-parse", "HEAD").strip()


def committed(project: Path, commit: str = "HEAD") -> dict[bytes, bytes]:
    """What git has in a commit, read without a work tree."""
    words = ["git", "ls-tree", "-r", "-z", commit]
    listed = subprocess.run(words, cwd=project, capture_output=True, check=True).stdout
    found = {}
    for line in listed.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, kind, oid = head.split()
        if kind == b"blob":
            show = ["git", "cat-file", "blob", oid.decode()]
            data = subprocess.run(show, cwd=project, capture_output=True, check=True).stdout
            found[path] = b"-> " + data if mode == b"120000" else data
    return found


def test_a_checkout_has_the_committed_bytes_and_the_project_is_as_it_was(project: Path) -> None:
    before = state_of(project)
    checkouts = open_checkouts(project)
    tree = checkouts.tree_of(head_of(project))
    with checkouts.open("after", tree, head_of(project)) as checkout:
        assert contents(checkout.path) == committed(project)
        assert os.access(checkout.path / "run.sh", os.X_OK)
        assert not os.access(checkout.path / "plain.txt", os.X_OK)
        assert any("eol=crlf" in note for note in checkout.notes)
        assert checkout.path.name == project.name
    assert state_of(project) == before
    assert not (project.parent / "trapped").exists()


def test_git_answers_in_a_checkout(project: Path) -> None:
    git(project, "config", "core.fsmonitor", "false")
    git(project, "tag", "-a", "-m", "first", "v1.0")
    before = state_of(project)
    checkouts = open_checkouts(project)
    with checkouts.open("after", checkouts.tree_of(head_of(project)), head_of(project)) as checkout:
        assert git(checkout.path, "status", "--porcelain") == ""
        assert head_of(checkout.path) == head_of(project)
        assert git(checkout.path, "describe", "--tags").strip() == "v1.0"
        assert git(checkout.path, "ls-files") == git(project, "ls-files")
        assert "evil" not in (checkout.path / ".git/config").read_text()
        write(checkout.path / "new.txt", "new\n")
        git(checkout.path, "add", "new.txt")
        git(checkout.path, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "-m", "x")
    with checkouts.open("after", checkouts.tree_of(head_of(project)), head_of(project)) as checkout:
        assert head_of(checkout.path) == head_of(project)
        assert not (checkout.path / "new.txt").exists()
    assert state_of(project) == before


def vandalise(folder: Path, outside: Path) -> None:
    """All that a run can do to its checkout."""
    write(folder / "stranger.txt", "x")
    write(folder / "a.log", "ignored")
    write(folder / "ignored/by/rule.txt", "x")
    write(folder / "deep/er/stranger", "x")
    (folder / "empty-folder/inside").mkdir(parents=True)
    (folder / "link-out").symlink_to(outside)
    nested = folder / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    status = os.stat(folder / "plain.txt")
    write(folder / "plain.txt", HOSTILE[b"plain.txt"].upper())
    os.utime(folder / "plain.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    (folder / "run.sh").chmod(0o644)
    (folder / "-rf").unlink()
    os.link(folder / "empty", folder / "second-name")
    (folder / "link").unlink()
    (folder / "link").symlink_to("run.sh")
    shutil.rmtree(folder / "deep/er/and")
    (folder / "deep/er/and").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    write(folder / "read-only/file", "x")
    (folder / "read-only").chmod(0o500)
    (folder / "deep").chmod(0o500)
    shutil.rmtree(folder / ".git")
    write(folder / ".git", "gitdir: /proc/nowhere\n")


def test_a_checkout_that_was_changed_is_clean_again(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    kept = write(outside / "deeper/file", "kept")
    checkouts, head = open_checkouts(project), head_of(project)
    tree = checkouts.tree_of(head)
    with checkouts.open("after", tree, head) as checkout:
        place = checkout.path
        vandalise(place, outside)
    with open_checkouts(project).open("after", tree, head) as checkout:
        assert checkout.path == place
        assert contents(checkout.path) == committed(project)
        assert os.access(checkout.path / "run.sh", os.X_OK)
        assert os.stat(checkout.path / "empty").st_nlink == 1
        assert os.access(checkout.path / "deep", os.W_OK)
        assert git(checkout.path, "status", "--porcelain", "--ignored") == ""
    assert kept.read_text() == "kept"


def test_the_next_commit_brings_only_the_difference(project: Path) -> None:
    checkouts, head = open_checkouts(project), head_of(project)
    with checkouts.open("after", checkouts.tree_of(head), head) as checkout:
        untouched = os.stat(checkout.path / "plain.txt")
    git(project, "rm", "-q", "-rf", "deep")
    git(project, "config", "core.fsmonitor", "false")
    head = commit(project, "deep", "now a file\n")
    with checkouts.open("after", checkouts.tree_of(head), head) as checkout:
        assert contents(checkout.path) == committed(project)
        assert os.stat(checkout.path / "plain.txt").st_ctime_ns == untouched.st_ctime_ns


def test_a_tree_nested_deeper_than_files_can_be_open_is_deleted(project: Path) -> None:
    checkouts, head = open_checkouts(project), head_of(project)
    tree = checkouts.tree_of(head)
    with checkouts.open("after", tree, head) as checkout:
        here = os.open(checkout.path, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("below", dir_fd=here)
            below = os.open("below", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
    with checkouts.open("after", tree, head) as checkout:
        assert contents(checkout.path) == committed(project)


def test_trees_are_composed_without_an_object_in_the_project(project: Path) -> None:
    git(project, "config", "core.fsmonitor", "false")
    baseline = head_of(project)
    git(project, "rm", "-q", "-rf", "deep", "run.sh")
    write(project / "run.sh/inside", "now a folder\n")
    git(project, "add", "run.sh")
    head = commit(project, "deep", "now a file\n")
    before = state_of(project)
    checkouts = open_checkouts(project)
    old, new = checkouts.tree_of(baseline), checkouts.tree_of(head)
    tree = checkouts.compose(
        new,
        remove=[b"-rf", b"not-there"],
        take=[(b"deep/er/and/deeper/file", old), (b"run.sh", old), (b"empty", head_tree := new)],
        replace={b"plain.txt": b"replaced", b"new/file": b"new"},
    )
    assert head_tree == new
    expected = {**committed(project, head), b"plain.txt": b"replaced", b"new/file": b"new"}
    for gone in (b"-rf", b"deep", b"run.sh/inside"):
        del expected[gone]
    expected |= {
        name: committed(project, baseline)[name] for name in (b"run.sh", b"deep/er/and/deeper/file")
    }
    with checkouts.open("old_tests", tree, head) as checkout:
        assert contents(checkout.path) == expected
        assert git(checkout.path, "status", "--porcelain") == ""
        assert git(checkout.path, "rev-parse", "HEAD^").strip() == head
    assert checkouts.compose(new, take=[(b"plain.txt", new)]) == new
    assert state_of(project) == before


def test_a_slot_is_one_guards_at_a_time(project: Path) -> None:
    head = head_of(project)
    first = open_checkouts(project)
    second = Checkouts(repository_at(project), first.folder.parent, os.environ, wait_seconds=0.1)
    tree = first.tree_of(head)
    with first.open("after", tree, head):
        with (
            pytest.raises(StoreUnavailable, match="another guard"),
            second.open("after", tree, head),
        ):
            pass
        with second.open("before", tree, head) as checkout:
            assert contents(checkout.path) == committed(project)
    with second.open("after", tree, head):
        pass


def test_an_object_that_was_exchanged_is_found(project: Path) -> None:
    # Git reads a loose object without a look at its id.
    head = head_of(project)
    oid = git(project, "rev-parse", "HEAD:plain.txt").strip()
    other = git(project, "rev-parse", "HEAD:run.sh").strip()
    objects = project / ".git/objects"
    victim = objects / oid[:2] / oid[2:]
    victim.chmod(0o644)
    shutil.copyfile(objects / other[:2] / other[2:], victim)
    checkouts = open_checkouts(project)
    tree = checkouts.tree_of(head)
    with pytest.raises(RepositoryProblem), checkouts.open("after", tree, head):
        pass


def test_a_file_whose_object_is_missing_is_an_error_that_names_it(project: Path) -> None:
    head = head_of(project)
    oid = git(project, "rev-parse", "HEAD:plain.txt").strip()
    (project / ".git/objects" / oid[:2] / oid[2:]).unlink()
    checkouts = open_checkouts(project)
    tree = checkouts.tree_of(head)
    with pytest.raises(RepositoryProblem, match=r"plain\.txt"), checkouts.open("after", tree, head):
        pass


def test_a_link_into_the_project_is_reported(repository: Path) -> None:
    write(repository / "code/a.py", "x = 1\n")
    (repository / "inside").symlink_to("code")
    (repository / "back").symlink_to(repository / "code")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "links")
    checkouts, head = open_checkouts(repository), head_of(repository)
    with checkouts.open("after", checkouts.tree_of(head), head) as checkout:
        assert checkout.links_to_project == ("back",)


class Installer:
    """Stands for the set-up command: makes some files, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, command: str, folder: Path) -> bool:
        self.calls += 1
        write(folder / "built/inside/module.so", f"built {self.calls}")
        if not (folder / "built/link").exists():
            (folder / "built/link").symlink_to("inside")
        if command == "touches":
            write(folder / "plain.txt", "changed by the set-up")
        return command != "fails"


def test_the_products_of_a_set_up_are_kept_until_they_or_its_inputs_change(project: Path) -> None:
    git(project, "config", "core.fsmonitor", "false")
    install, setup = Installer(), SetUp("install", ("*.lock",))

    def use(step: SetUp | None = setup) -> dict[bytes, bytes]:
        checkouts, head = open_checkouts(project), head_of(project)
        with checkouts.open("after", checkouts.tree_of(head), head, step) as checkout:
            assert checkout.set_up(install)
            found = contents(checkout.path)
            write(checkout.path / "built/stranger", "x")
            return found

    assert use()[b"built/inside/module.so"] == b"built 1"
    found = use()
    assert (install.calls, b"built/stranger" in found) == (1, False)
    commit(project, "other.txt")
    use()
    assert install.calls == 1
    commit(project, "sub/some.lock", "new dependency")
    use()
    assert install.calls == 2
    place = open_checkouts(project).folder / "after" / project.name
    write(place / "built/inside/module.so", "spoiled")
    assert use()[b"built/inside/module.so"] == b"built 3"
    commit(project, "built/link", "now tracked\n")
    use()
    assert install.calls == 4
    assert b"built/inside/module.so" not in use(None)


@pytest.mark.parametrize(("command", "works"), [("touches", True), ("fails", False)])
def test_a_set_up_that_fails_or_changes_the_tree_runs_each_time(
    project: Path, command: str, works: bool
) -> None:
    install = Installer()
    checkouts, head = open_checkouts(project), head_of(project)
    tree = checkouts.tree_of(head)
    for calls in (1, 2):
        with checkouts.open("after", tree, head, SetUp(command)) as checkout:
            assert (checkout.path / "plain.txt").read_bytes() == HOSTILE[b"plain.txt"]
            assert not (checkout.path / "built").exists()
            assert checkout.set_up(install) == works
            assert install.calls == calls


def test_checkouts_that_nobody_uses_are_deleted(project: Path, tmp_path: Path) -> None:
    checkouts, head = open_checkouts(project), head_of(project)
    with checkouts.open("after", checkouts.tree_of(head), head) as checkout:
        assert checkouts.clean_up(keep_days=14) == []
        assert checkouts.clean_up(keep_days=0) == []
        assert contents(checkout.path) == committed(project)
    gone = tmp_path / "gone"
    shutil.copytree(project, gone, symlinks=True)
    others = open_checkouts(gone)
    with others.open("after", others.tree_of(head), head):
        pass
    shutil.rmtree(gone)
    assert checkouts.clean_up(keep_days=14) == [others.folder]
    assert checkouts.clean_up(keep_days=0) == [checkouts.folder]
    assert list(checkouts.folder.parent.iterdir()) == []


def test_checkouts_lie_outside_the_project(repository: Path, home: Path) -> None:
    assert checkouts_root(repository_at(repository), os.environ) == home / ".cache/guard/prove"
    around = {"HOME": str(repository), "XDG_CACHE_HOME": str(repository / "cache")}
    assert not checkouts_root(repository_at(repository), around).is_relative_to(repository)
