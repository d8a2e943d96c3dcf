"""Folders that a tool may rebuild with work in them, ignore rules that the iteration wrote, and submodules."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from guard.core.snapshots.snapshot import Occasion
from guard.git.locate import find_repository
from guard.snapshots.project import Site
from guard.snapshots.take import take_and_prune
from tests.rescue.states_places import submodule
from tests.rescue.states_start import (
    ANYTHING,
    Build,
    Left,
    State,
    dirty,
    identify,
    in_removed_repository,
    in_repository,
)
from tests.support import TIME_LIMIT, commit, git, write
from tests.support.rescues import NOW

PACKAGES = "node_modules: installed packages"
HELD_LIBRARY = {"lib": in_repository("lib")}


def with_files(*names: str, rules: str = "", left: tuple[str, ...] = ()) -> Build:
    """Work is left beside files that lie there, in a repository with these ignore rules."""

    def build(root: Path) -> Left:
        if rules:
            commit(root, ".gitignore", rules)
        for name in names:
            write(root / name, os.fsencode(name))
        return [*dirty(root), *left]

    return build


def environment(rules: str) -> Build:
    own = ("env/notes.txt", "env/src/tool.py", "env/lib/mine.py")
    made = ("env/pyvenv.cfg", "env/bin/python", "env/lib/python3.11/site-packages/a.py")
    return with_files(*own, *made, rules=rules)


def tracked_and_ignored(root: Path) -> Left:
    write(root / "node_modules/a/patched.js", "as installed\n")
    git(root, "add", "-f", "node_modules")
    commit(root, ".gitignore", "node_modules/\n")
    write(root / "node_modules/a/patched.js", "patched\n")
    write(root / "node_modules/b/index.js", "installed\n")
    return [*dirty(root), "node_modules/a/patched.js"]


def untracked_and_ignored(root: Path) -> Left:
    left = tracked_and_ignored(root)
    git(root, "rm", "-r", "-q", "--cached", "node_modules")
    return left


def ignored_without_index(root: Path) -> Left:
    left = tracked_and_ignored(root)
    (root / ".git/index").unlink()
    return left


def linked_packages(root: Path) -> Left:
    commit(root, ".gitignore", "node_modules\n")
    write(root.parent / "installed/a.js", "installed\n")
    (root / "node_modules").symlink_to("../installed")
    return dirty(root)


def self_ignored(root: Path) -> Left:
    write(root / ".mypy_cache/.gitignore", "*\n")
    write(root / ".mypy_cache/3.11/a.json", "{}\n")
    return [*dirty(root), ".mypy_cache/.gitignore"]


def odd_names_in_packages(root: Path) -> Left:
    names = [b"node_modules/lat\xe9n", b"node_modules/new\nline", b"node_modules/-rf"]
    for name in names:
        write(root / os.fsdecode(name), name)
    return dirty(root)


def inner_repository(place: str, *names: str, rules: str = "") -> Build:
    def build(root: Path) -> Left:
        inner = root / place
        inner.mkdir(parents=True)
        git(inner, "init", "-q")
        identify(inner)
        commit(inner, ".gitignore", rules or "*.log\n")
        for name in names:
            write(inner / name, name)
        return dirty(root)

    return build


def packages_without_git(root: Path) -> Left:
    names = ("node_modules/a.js", "env/pyvenv.cfg", "env/bin/python")
    left = with_files(*names, rules="node_modules/\nenv/\n")(root)
    shutil.rmtree(root / ".git")
    return left


def hidden(hide: Callable[[Path], object], *names: str, rules: str = "*.log\n") -> Build:
    """The iteration writes files and a rule that hides them; a snapshot was taken at its baseline."""

    def build(root: Path) -> Left:
        commit(root, ".gitignore", rules)
        write(root / "node_modules/users.txt", "from before\n")
        workspace = root.parent / "workspace"
        site = Site(find_repository(root, lambda _: None), workspace, os.environ, TIME_LIMIT)
        take_and_prune(site, Occasion("baseline", NOW))
        for name in names:
            write(root / name, f"hidden {name}\n")
        hide(root)
        return dirty(root)

    return build


def rule_outside(root: Path) -> None:
    rules = write(root.parent / "rules", "node_modules\n")
    git(root, "config", "core.excludesFile", str(rules))


def in_library(change: Callable[[Path], object], *left: str) -> Build:
    """Work is left, and something happens in a submodule."""

    def build(root: Path) -> Left:
        change(submodule(root))
        return [*dirty(root), *left]

    return build


def edit_inside(library: Path) -> None:
    write(library / "code.c", "edited inside\n")


def add_inside(library: Path) -> None:
    write(library / "new.c", "new inside\n")
    write(library / "staged.c", "staged inside\n")
    git(library, "add", "staged.c")


def commit_inside(library: Path) -> None:
    commit(library, "code.c", "committed inside\n")


def packages_inside(library: Path) -> None:
    write(library / "node_modules/mine.js", "mine\n")
    write(library / "__pycache__/a.pyc", "made\n")
    write(library / ".gitignore", "__pycache__/\n")


def lose_git_file(library: Path) -> None:
    edit_inside(library)
    (library / ".git").unlink()


def break_index_inside(library: Path) -> None:
    edit_inside(library)
    write(library.parent / ".git/modules/lib/index", b"no index")


def break_settings_inside(library: Path) -> None:
    edit_inside(library)
    write(library.parent / ".git/modules/lib/config", "[core\nbroken")


def not_initialised(library: Path) -> None:
    git(library.parent, "submodule", "--quiet", "deinit", "-f", "lib")
    write(library / "work.c", "written into the empty folder\n")


def nested_submodule(library: Path) -> None:
    other = library.parent.parent / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    identify(other)
    commit(other, "deep.c", "first\n")
    allow = ("-c", "protocol.file.allow=always")
    git(library, *allow, "submodule", "--quiet", "add", str(other), "inner")
    git(library, "commit", "-q", "-m", "Add another")
    git(library.parent, "commit", "-qam", "Take it")
    write(library / "inner/deep.c", "edited deep inside\n")


def removed_submodule(root: Path) -> Left:
    submodule(root)
    git(root, "rm", "-q", "-f", "lib")
    return [*dirty(root), ".gitmodules", "lib"]


def broken_modules_file(root: Path) -> Left:
    edit_inside(submodule(root))
    write(root / ".gitmodules", "[submodule\nbroken")
    return [*dirty(root), ".gitmodules", "lib"]


def submodule_among_packages(root: Path) -> Left:
    inner_repository("node_modules/lib")(root)
    git(root, "-c", "advice.addEmbeddedRepo=false", "add", "-f", "node_modules/lib")
    commit(root, ".gitignore", "node_modules/\n")
    git(root, "commit", "-q", "--allow-empty", "-m", "Submodule")
    write(root / "node_modules/lib/code.c", "edited inside\n")
    write(root / "node_modules/a/index.js", "installed\n")
    return [*dirty(root), *(f"node_modules/lib/{name}" for name in (".gitignore", "code.c"))]


REBUILT = {
    "file of the user's in node_modules": State(
        with_files("node_modules/notes.txt"), remains=("?? node_modules/notes.txt",)
    ),
    "file of the agent's in node_modules": State(
        with_files("node_modules/patch.js", left=("node_modules/patch.js",)),
        held={"node_modules/patch.js": "rebuilt: installed packages"},
        remains=("?? node_modules/patch.js",),
    ),
    "notes in caches": State(
        with_files("src/__pycache__/notes.txt", ".tox/notes.txt", ".pytest_cache/v/x"),
        remains=("?? .pytest_cache/v/x", "?? .tox/notes.txt", "?? src/__pycache__/notes.txt"),
    ),
    "ignored packages in a subfolder": State(
        with_files("web/node_modules/a/index.js", "web/main.js", rules="node_modules/\n"),
        remains=("?? web/main.js",),
        skipped=("web/node_modules: installed packages",),
    ),
    "ignored packages but for one": State(
        with_files(
            *("node_modules/a/x.js", "node_modules/mine.js"),
            rules="node_modules/*\n!node_modules/mine.js\n",
        ),
        remains=("?? node_modules/mine.js",),
        skipped=("node_modules/a: installed packages",),
    ),
    "tracked file among ignored packages": State(tracked_and_ignored, skipped=(PACKAGES,)),
    "file that git was told to forget among ignored packages": State(
        untracked_and_ignored, skipped=(PACKAGES,), naive_loses=True
    ),
    "tracked file among ignored packages, index missing": State(
        ignored_without_index, skipped=(PACKAGES,), remains=ANYTHING, naive_loses=True
    ),
    "cache that ignores itself": State(
        self_ignored,
        held={".mypy_cache/.gitignore": "rebuilt: a cache"},
        skipped=(".mypy_cache: a cache",),
        naive_loses=True,
    ),
    "ignored virtual environment with work in it": State(
        environment("env/\n"),
        skipped=(
            "env/bin: a virtual environment",
            "env/lib/python3.11: a virtual environment",
        ),
        naive_loses=True,
    ),
    "virtual environment that git lists": State(
        environment("*.log\n"),
        remains=(
            *("?? env/bin/python", "?? env/lib/mine.py"),
            *("?? env/lib/python3.11/site-packages/a.py", "?? env/notes.txt"),
            *("?? env/pyvenv.cfg", "?? env/src/tool.py"),
        ),
    ),
    "what only looks like a virtual environment": State(
        with_files("tool/pyvenv.cfg", "tool/bin/deploy.sh", rules="tool/\n"), naive_loses=True
    ),
    "file named node_modules": State(
        with_files("node_modules", rules="node_modules\n"), naive_loses=True
    ),
    "link named node_modules": State(linked_packages, naive_loses=True),
    "node_modules in other letters": State(
        with_files("Node_Modules/a.js", rules="Node_Modules\n"), naive_loses=True
    ),
    "odd names in node_modules": State(
        odd_names_in_packages,
        remains=("?? node_modules/-rf", "?? node_modules/lat\udce9n", "?? node_modules/new\nline"),
    ),
    "target that is no cache of git's": State(
        with_files("target/CACHEDIR.TAG", "target/notes.txt"),
        remains=("?? target/CACHEDIR.TAG", "?? target/notes.txt"),
    ),
    "node_modules in a nested repository": State(
        inner_repository("vendor/lib", "node_modules/mine.js"),
        remains=("?? vendor/lib/",),
        naive_loses=True,
    ),
    "ignored cache in a nested repository": State(
        inner_repository("vendor/lib", ".tox/a", "code.c", rules=".tox/\n"),
        remains=("?? vendor/lib/",),
        skipped=("vendor/lib/.tox: a cache",),
        naive_loses=True,
    ),
    "repository named node_modules": State(
        inner_repository("node_modules", "mine.js"),
        remains=("?? node_modules/",),
        naive_loses=True,
    ),
    ".git gone, with packages": State(
        packages_without_git, "not_plain:no_git_dir", known=True, naive_loses=True
    ),
    "packages hidden by the agent in .gitignore": State(
        hidden(
            lambda root: write(root / ".gitignore", "*.log\nnode_modules/\n"),
            "node_modules/new.js",
        ),
        remains=(" M .gitignore",),
        naive_loses=True,
    ),
    "packages hidden by the agent in info/exclude": State(
        hidden(
            lambda root: write(root / ".git/info/exclude", "node_modules\n"), "node_modules/new.js"
        ),
        naive_loses=True,
    ),
    "packages hidden by the agent in another file": State(
        hidden(rule_outside, "node_modules/new.js"), naive_loses=True
    ),
    "packages hidden by the agent from inside": State(
        hidden(lambda root: write(root / "node_modules/.gitignore", "*\n"), "node_modules/new.js"),
        naive_loses=True,
    ),
    "exception taken back by the agent": State(
        hidden(
            lambda root: write(root / ".gitignore", "node_modules/*\n"),
            "node_modules/new.txt",
            rules="node_modules/*\n!node_modules/*.txt\n",
        ),
        remains=(" M .gitignore",),
        naive_loses=True,
    ),
    "everything hidden by the agent": State(
        hidden(lambda root: write(root / ".git/info/exclude", "*\n"), "src/new.py", "a/.tox/b"),
        held={"new.txt": "ignored"},
        naive_loses=True,
    ),
    "submodule edited by the user": State(
        in_library(edit_inside), remains=(" M lib",), naive_loses=True
    ),
    "submodule edited by the agent": State(
        in_library(edit_inside, "lib"), held=HELD_LIBRARY, remains=(" M lib",), naive_loses=True
    ),
    "submodule with new files": State(
        in_library(add_inside, "lib"), held=HELD_LIBRARY, remains=(" M lib",), naive_loses=True
    ),
    "submodule with a commit": State(
        in_library(commit_inside, "lib"), held=HELD_LIBRARY, remains=(" M lib",), naive_loses=True
    ),
    "submodule with packages": State(
        in_library(packages_inside, "lib"),
        held=HELD_LIBRARY,
        remains=(" M lib",),
        skipped=("lib/__pycache__: a cache",),
        naive_loses=True,
    ),
    "submodule without its .git": State(
        in_library(lose_git_file, "lib"), held=HELD_LIBRARY, naive_loses=True
    ),
    "submodule with a broken index": State(
        in_library(break_index_inside, "lib"), held=HELD_LIBRARY, naive_loses=True, sound=False
    ),
    "submodule with broken settings": State(
        in_library(break_settings_inside, "lib"), held=HELD_LIBRARY, naive_loses=True, sound=False
    ),
    "submodule not initialised, with a file": State(
        in_library(not_initialised, "lib"), held=HELD_LIBRARY, naive_loses=True
    ),
    "submodule in a submodule": State(
        in_library(nested_submodule, "lib"),
        held=HELD_LIBRARY,
        remains=(" M lib",),
        naive_loses=True,
    ),
    "submodule removed": State(
        removed_submodule, held={"lib": in_removed_repository("lib")}, remains=("D  lib",)
    ),
    "submodule edited, .gitmodules broken": State(
        broken_modules_file, held=HELD_LIBRARY, naive_loses=True
    ),
    "submodule among ignored packages": State(
        submodule_among_packages,
        held={
            f"node_modules/lib/{name}": in_repository("node_modules/lib")
            for name in (".gitignore", "code.c")
        },
        remains=ANYTHING,
        skipped=(PACKAGES,),
        naive_loses=True,
    ),
}
