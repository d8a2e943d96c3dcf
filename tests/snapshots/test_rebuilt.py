"""Folders that a tool may rebuild: only what git ignores there, by the rules of the baseline, is left out of a snapshot."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.core.snapshots.snapshot import Occasion, Snapshot
from guard.git.locate import find_repository
from guard.snapshots import collect
from guard.snapshots.project import Site
from guard.snapshots.take import take_and_prune
from tests.rescue.states import start
from tests.rescue.states_start import identify
from tests.support import TIME_LIMIT, commit, git, write
from tests.support.rescues import NOW, take_snapshot

BASELINE = Occasion("baseline", NOW)
CHECK = Occasion("check", NOW, "r1", 1)
ENVIRONMENT = {
    "env/pyvenv.cfg": "home = /usr/bin\n",
    "env/bin/python": "an interpreter\n",
    "env/bin/activate": "a script\n",
    "env/lib/python3.11/site-packages/a.py": "installed\n",
    "env/include/x.h": "installed\n",
}


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def saved(workspace: Path, kept: Snapshot) -> set[str]:
    """The paths of the work tree that a snapshot has."""
    words = ["git", f"--git-dir={workspace}/shadow.git", "ls-tree", "-r", "-z", "--name-only"]
    done = subprocess.run([*words, f"{kept.ref}:worktree"], check=True, capture_output=True)
    return set(os.fsdecode(done.stdout).split("\0")[:-1])


def fill(root: Path, *names: str) -> None:
    for name in names:
        write(root / name, os.fsencode(name))


def ignore(root: Path, *rules: str) -> None:
    commit(root, ".gitignore", "".join(f"{rule}\n" for rule in rules))


@pytest.mark.parametrize(
    ("files", "folder", "why"),
    [
        (["node_modules/a/index.js"], "node_modules", "installed packages"),
        (["web/node_modules/a/index.js"], "web/node_modules", "installed packages"),
        (["src/__pycache__/a.pyc"], "src/__pycache__", "a cache"),
        ([".tox/py/x"], ".tox", "a cache"),
        (["target/CACHEDIR.TAG", "target/debug/x"], "target", "a cache"),
    ],
)
@pytest.mark.parametrize("rule", ["{name}/", "{name}", "/{folder}/*", "**/{name}/**"])
def test_what_git_ignores_there_is_left_out_and_named(
    files: list[str], folder: str, why: str, rule: str, repository: Path, workspace: Path
) -> None:
    ignore(repository, rule.format(name=folder.rpartition("/")[2], folder=folder))
    fill(repository, *files)
    kept = take_snapshot(repository, workspace)
    assert kept.skipped == (f"{folder}: {why}",)
    assert kept.whole
    assert not any(path.startswith(f"{folder}/") for path in saved(workspace, kept))


def test_a_cache_that_ignores_itself_is_left_out(repository: Path, workspace: Path) -> None:
    write(repository / ".mypy_cache/.gitignore", "*\n")
    fill(repository, ".mypy_cache/3.11/a.json", "src/__pycache__/a.pyc")
    ignore(repository, "*.pyc")
    for occasion in (BASELINE, CHECK):
        kept = take_snapshot(repository, workspace, occasion=occasion)
        assert kept.skipped == (".mypy_cache: a cache", "src/__pycache__: a cache")
        assert kept.whole
    write(repository / ".mypy_cache/.gitignore", "*\n# by another version\n")
    assert take_snapshot(repository, workspace, occasion=CHECK).skipped == kept.skipped


@pytest.mark.parametrize(
    "name",
    [
        *("node_modules/mine.js", "a/node_modules/b/node_modules/mine.js", "__pycache__/notes.txt"),
        *(".tox/a", ".nox/a", ".pytest_cache/a", "target/a.rs", "Node_Modules/a", "node_modules"),
        os.fsdecode(b"node_modules/lat\xe9n"),
    ],
)
def test_what_git_lists_is_kept_wherever_it_lies(
    name: str, repository: Path, workspace: Path
) -> None:
    if name.startswith("target"):
        write(repository / "target/CACHEDIR.TAG", "tag\n")
    fill(repository, name)
    kept = take_snapshot(repository, workspace)
    assert name in saved(workspace, kept)
    assert (kept.whole, kept.skipped) == (True, ())


def test_what_a_rule_excepts_and_what_is_tracked_is_kept(repository: Path, workspace: Path) -> None:
    fill(repository, "node_modules/a/x.js", "node_modules/mine/x.js", "node_modules/b/patched.js")
    git(repository, "add", "-f", "node_modules/b")
    ignore(repository, "node_modules/*", "!node_modules/mine")
    kept = take_snapshot(repository, workspace)
    inside = {path for path in saved(workspace, kept) if path.startswith("node_modules")}
    assert inside == {"node_modules/mine/x.js", "node_modules/b/patched.js"}
    assert kept.skipped == (
        "node_modules/a: installed packages",
        "node_modules/b: installed packages",
    )


def test_a_link_of_that_name_is_kept_as_a_link(repository: Path, workspace: Path) -> None:
    fill(repository.parent, "elsewhere/x.js")
    (repository / "node_modules").symlink_to("../elsewhere")
    ignore(repository, "node_modules")
    assert "node_modules" in saved(workspace, take_snapshot(repository, workspace))


@pytest.mark.parametrize("rules", [(), ("env/",), ("*",)])
def test_of_an_environment_only_its_own_parts_are_left_out(
    rules: tuple[str, ...], repository: Path, workspace: Path
) -> None:
    own = ["env/notes.txt", "env/src/tool/main.py", "env/lib/mine.py", "env/share/data.txt"]
    for name, text in ENVIRONMENT.items():
        write(repository / name, text)
    fill(repository, *own)
    write(repository / ".git/info/exclude", "".join(f"{rule}\n" for rule in rules))
    kept = take_snapshot(repository, workspace)
    inside = {path for path in saved(workspace, kept) if path.startswith("env/")}
    if rules:
        assert inside == {*own, "env/pyvenv.cfg"}
        parts = ("env/bin", "env/include", "env/lib/python3.11")
        assert kept.skipped == tuple(f"{part}: a virtual environment" for part in parts)
    else:
        assert inside == {*own, *ENVIRONMENT}
        assert kept.skipped == ()
    assert kept.whole


def test_what_only_looks_like_an_environment_is_kept(repository: Path, workspace: Path) -> None:
    fill(repository, "tool/pyvenv.cfg", "tool/bin/deploy.sh", "tool/lib/python3/x.py")
    ignore(repository, "tool/")
    kept = take_snapshot(repository, workspace)
    assert {"tool/bin/deploy.sh", "tool/lib/python3/x.py"} <= saved(workspace, kept)
    assert kept.skipped == ()


def inner_repository(root: Path) -> Path:
    inner = root / "vendor/lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    identify(inner)
    return inner


def test_a_repository_inside_is_asked_about_its_own_folders(
    repository: Path, workspace: Path
) -> None:
    ignore(repository, "node_modules/")
    inner = inner_repository(repository)
    fill(inner, "node_modules/mine.js", ".tox/x", "__pycache__/tracked.txt")
    git(inner, "add", "-f", "__pycache__/tracked.txt")
    ignore(inner, ".tox", "__pycache__")
    kept = take_snapshot(repository, workspace)
    assert {"vendor/lib/node_modules/mine.js", "vendor/lib/__pycache__/tracked.txt"} <= saved(
        workspace, kept
    )
    assert kept.skipped == ("vendor/lib/.tox: a cache", "vendor/lib/__pycache__: a cache")


def test_a_repository_that_bears_such_a_name_is_kept(repository: Path, workspace: Path) -> None:
    ignore(repository, "node_modules/")
    inner = repository / "node_modules"
    inner.mkdir()
    git(inner, "init", "-q")
    fill(inner, "mine.js")
    assert "node_modules/mine.js" in saved(workspace, take_snapshot(repository, workspace))


def no_git_dir(root: Path) -> None:
    (root / ".git").rename(root.parent / "away")


def broken_config(root: Path) -> None:
    write(root / ".git/config", "[core\nbroken")


@pytest.mark.parametrize("spoil", [no_git_dir, broken_config])
def test_where_git_cannot_tell_all_is_kept(
    spoil: Callable[[Path], None], repository: Path, workspace: Path
) -> None:
    ignore(repository, "node_modules/")
    fill(repository, "node_modules/a/index.js")
    site = Site(find_repository(repository, lambda _: None), workspace, os.environ, TIME_LIMIT)
    workspace.mkdir(mode=0o700)
    spoil(repository)
    kept = take_and_prune(site, BASELINE)
    assert "node_modules/a/index.js" in saved(workspace, kept)
    assert not any("node_modules" in line for line in kept.skipped)


def test_an_index_that_cannot_be_read_makes_it_not_whole(repository: Path, workspace: Path) -> None:
    ignore(repository, "node_modules/")
    fill(repository, "node_modules/a/index.js")
    write(repository / ".git/index", b"DIRC" + bytes(40))
    kept = take_snapshot(repository, workspace)
    assert not kept.whole
    assert kept.skipped[0].startswith(".git/index: ")


def index_gone(root: Path) -> None:
    (root / ".git/index").unlink()


def index_torn(root: Path) -> None:
    write(root / ".git/index", b"DIRC" + bytes(40))


def index_a_pipe(root: Path) -> None:
    (root / ".git/index").unlink()
    os.mkfifo(root / ".git/index")


def index_without_it(root: Path) -> None:
    git(root, "rm", "-r", "-q", "--cached", "node_modules")


@pytest.mark.parametrize("spoil", [index_gone, index_torn, index_a_pipe, index_without_it])
def test_what_is_committed_is_kept_whatever_the_index_says(
    spoil: Callable[[Path], None], repository: Path, workspace: Path
) -> None:
    fill(repository, "node_modules/a/patched.js", "node_modules/b/index.js")
    git(repository, "add", "-f", "node_modules/a")
    ignore(repository, "node_modules/")
    write(repository / "node_modules/a/patched.js", "patched\n")
    site = Site(find_repository(repository, lambda _: None), workspace, os.environ, TIME_LIMIT)
    workspace.mkdir(mode=0o700)
    spoil(repository)
    kept = take_and_prune(site, BASELINE)
    assert "node_modules/a/patched.js" in saved(workspace, kept)
    assert kept.whole == (spoil in (index_gone, index_without_it))


def in_gitignore(root: Path) -> None:
    write(root / ".gitignore", "*.log\nnode_modules/\n")


def in_exclude(root: Path) -> None:
    write(root / ".git/info/exclude", "node_modules\n")


def inside_the_folder(root: Path) -> None:
    write(root / "node_modules/.gitignore", "*\n")


def in_another_excludes_file(root: Path) -> None:
    git(root, "config", "core.excludesFile", str(write(root.parent / "rules", "node_modules\n")))


def by_folding_names(root: Path) -> None:
    git(root, "config", "core.ignoreCase", "true")


def without_the_exception(root: Path) -> None:
    write(root / ".gitignore", "*.log\nNODE_MODULES\nvendor/node_modules/*\n")


@pytest.mark.parametrize(
    ("hide", "name"),
    [
        (in_gitignore, "node_modules/mine.js"),
        (in_exclude, "node_modules/mine.js"),
        (inside_the_folder, "node_modules/mine.js"),
        (in_another_excludes_file, "node_modules/mine.js"),
        (by_folding_names, "node_modules/mine.js"),
        (without_the_exception, "vendor/node_modules/mine.js"),
    ],
)
def test_a_rule_of_the_iteration_hides_nothing(
    hide: Callable[[Path], None], name: str, repository: Path, workspace: Path
) -> None:
    """Neither what was there before, nor what is new, nor in the snapshots of later checks."""
    exception = ("vendor/node_modules/*", "!vendor/node_modules/mine*")
    ignore(repository, "*.log", "NODE_MODULES", *exception)
    fill(repository, name)
    take_snapshot(repository, workspace, occasion=BASELINE)
    hide(repository)
    fill(repository, name + ".new")
    for _ in range(2):
        kept = take_snapshot(repository, workspace, occasion=CHECK)
        assert {name, f"{name}.new"} <= saved(workspace, kept)
        assert kept.whole


def test_an_old_rule_is_obeyed_though_others_came(repository: Path, workspace: Path) -> None:
    """With other lines beside it, and said again elsewhere."""
    ignore(repository, "node_modules/")
    take_snapshot(repository, workspace, occasion=BASELINE)
    write(repository / ".gitignore", "dist/\n/web/node_modules\nnode_modules/\n")
    write(repository / "web/.gitignore", "node_modules\n")
    write(repository / ".git/info/exclude", "build/\n")
    fill(repository, "web/node_modules/a.js", "node_modules/b.js")
    kept = take_snapshot(repository, workspace, occasion=CHECK)
    assert kept.skipped == (
        "node_modules: installed packages",
        "web/node_modules: installed packages",
    )


def test_at_the_next_baseline_a_new_rule_counts_but_hides_nothing_that_was_kept(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(repository, "node_modules/mine.js")
    take_snapshot(repository, workspace, occasion=BASELINE)
    take_snapshot(repository, workspace, occasion=CHECK)
    ignore(repository, "node_modules/")
    kept = take_snapshot(repository, workspace, occasion=BASELINE)
    fill(repository, "node_modules/installed.js")
    kept = take_snapshot(repository, workspace, occasion=CHECK)
    inside = {path for path in saved(workspace, kept) if "node_modules" in path}
    assert inside == {"node_modules/mine.js"}
    assert kept.skipped == ("node_modules: installed packages",)
    monkeypatch.setattr(collect, "_MOST_KEPT_ON", 0)
    kept = take_snapshot(repository, workspace, occasion=CHECK)
    assert not any("node_modules" in path for path in saved(workspace, kept))


def test_a_cache_that_came_in_an_iteration_is_left_out_from_the_next_baseline_on(
    repository: Path, workspace: Path
) -> None:
    take_snapshot(repository, workspace, occasion=BASELINE)
    write(repository / ".mypy_cache/.gitignore", "*\n")
    fill(repository, ".mypy_cache/3.11/a.json")
    kept = take_snapshot(repository, workspace, occasion=CHECK)
    assert ".mypy_cache/3.11/a.json" in saved(workspace, kept)
    for occasion in (BASELINE, CHECK):
        kept = take_snapshot(repository, workspace, occasion=occasion)
        assert kept.skipped == (".mypy_cache: a cache",)


def test_of_what_a_new_rule_hides_not_everything_is_kept_for_ever(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is said, and what git tracks or lists there is kept beyond it."""
    monkeypatch.setattr(collect, "_MOST_HIDDEN_FILES", 1)
    fill(repository, "node_modules/z/tracked.js")
    git(repository, "add", "-f", "node_modules")
    take_snapshot(repository, workspace, occasion=BASELINE)
    write(repository / ".gitignore", "node_modules/*\n!node_modules/listed.js\n")
    fill(repository, *(f"node_modules/{name}/x.js" for name in "abcdef"))
    fill(repository, "node_modules/listed.js")
    kept = take_snapshot(repository, workspace, occasion=CHECK)
    assert not kept.whole
    (line,) = kept.skipped
    assert line.startswith("node_modules/b: hidden by a rule that is newer than the baseline")
    inside = {path for path in saved(workspace, kept) if path.startswith("node_modules/")}
    names = ("a/x.js", "b/x.js", "listed.js", "z/tracked.js")
    assert inside == {f"node_modules/{name}" for name in names}


def test_a_new_rule_in_a_repository_inside_hides_nothing(repository: Path, workspace: Path) -> None:
    inner = inner_repository(repository)
    ignore(inner, ".tox/")
    take_snapshot(repository, workspace, occasion=BASELINE)
    write(inner / ".git/info/exclude", "node_modules/\n")
    fill(inner, "node_modules/mine.js", ".tox/x")
    kept = take_snapshot(repository, workspace, occasion=CHECK)
    assert "vendor/lib/node_modules/mine.js" in saved(workspace, kept)
    assert kept.skipped == ("vendor/lib/.tox: a cache",)


def test_what_is_left_out_is_not_walked(repository: Path, workspace: Path) -> None:
    """However much there is in it: a walk would name the pipe."""
    ignore(repository, "node_modules/")
    fill(repository, "node_modules/a/index.js")
    os.mkfifo(repository / "node_modules/a/pipe")
    kept = take_snapshot(repository, workspace)
    assert kept.skipped == ("node_modules: installed packages",)
