"""Where programs are found, where they are not, and what is said of those that guard does not run."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.git.locate import find_repository, repository_at
from guard.system.programs import (
    find_as_shell,
    find_program,
    own_environment,
    own_python,
    search_program,
)
from tests.support import TIME_LIMIT, commit, git, new_repository, run, tool_folder, write
from tests.support.sessions import script


def tool(folder: Path, name: str = "tool") -> str:
    """A program in a folder; the folder, for a search path."""
    script(folder / name, "echo 1.2.3")
    return str(folder)


def known(root: Path) -> Path:
    return find_repository(root, lambda _: None).root


def find(path: str, **more: str) -> str | None:
    return search_program("tool", {"PATH": path, "HOME": os.environ["HOME"], **more}).program


def in_subfolder(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (root / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(root / "deep/er")
    return tool(root / ".venv/bin")


def named_by_option(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(elsewhere)
    known(root)
    return tool(root / ".venv/bin")


def through_a_link(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    tool(root / "bin")
    (elsewhere / "project").symlink_to(root)
    return str(elsewhere / "project/bin")


def by_its_own_link(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    tool(root / "bin")
    (elsewhere / "tool").symlink_to(root / "bin/tool")
    return str(elsewhere)


def without_git_directory(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    known(root)
    shutil.rmtree(root / ".git")
    monkeypatch.chdir(elsewhere)
    return tool(root / "bin")


def in_linked_work_tree(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    git(root, "worktree", "add", "-q", str(elsewhere / "linked"))
    known(root)
    return tool(elsewhere / "linked/bin")


def in_main_work_tree(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    git(root, "worktree", "add", "-q", str(elsewhere / "linked"))
    monkeypatch.chdir(elsewhere / "linked")
    known(elsewhere / "linked")
    return tool(root / "bin")


def around_a_submodule(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    library = new_repository(elsewhere / "library", "x.txt")
    git(root, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(library), "lib")
    monkeypatch.chdir(root / "lib")
    known(root / "lib")
    return tool(root / "bin")


def in_separate_git_directory(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    git(root, "init", "-q", f"--separate-git-dir={elsewhere}/project.git")
    known(root)
    return tool(elsewhere / "project.git/bin")


def in_the_work_tree_of_an_agent(
    root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    other = new_repository(elsewhere / "other", "x.txt")
    repository_at(other)
    return tool(other / "bin")


PLACES: list[Callable[[Path, Path, pytest.MonkeyPatch], str]] = [
    in_subfolder,
    named_by_option,
    through_a_link,
    by_its_own_link,
    without_git_directory,
    in_linked_work_tree,
    in_main_work_tree,
    around_a_submodule,
    in_separate_git_directory,
    in_the_work_tree_of_an_agent,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_inside_the_repository_none_is_found(
    place: Callable[[Path, Path, pytest.MonkeyPatch], str],
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit(repository)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = place(repository, elsewhere, monkeypatch)
    assert find_as_shell("tool", {"PATH": path}) == f"{path}/tool", "a shell finds it"
    assert find(path) is None
    search = search_program("tool", {"PATH": path})
    assert (
        search.problem == f"tool is only inside the repository ({path}/tool): guard does not run it"
    )
    assert (
        search.hint == "install tool elsewhere on PATH, or name it by its path in your own settings"
    )
    outside = tool(tmp_path / "outside")
    assert find(f"{path}{os.pathsep}{outside}") == f"{outside}/tool"


@pytest.mark.parametrize("entry", ["", ".", "bin", "../project/bin", "./bin"])
def test_a_relative_entry_counts_for_nothing(repository: Path, entry: str) -> None:
    tool(repository)
    tool(repository / "bin")
    assert find_as_shell("tool", {"PATH": entry})
    assert find(entry) is None
    assert "in a relative entry of PATH" in search_program("tool", {"PATH": entry}).problem


def test_another_repository_counts_unless_it_holds_tools(repository: Path, tmp_path: Path) -> None:
    other = tool(new_repository(tmp_path / "other", "x.txt") / "bin")
    assert find(other) is None
    assert "inside another repository" in search_program("tool", {"PATH": other}).problem


@pytest.mark.parametrize("clone", [".nvm", ".pyenv", ".config/nvm", ".local/share/asdf", "."])
def test_installers_that_are_clones_and_a_home_under_version_control_hold_tools(
    clone: str, repository: Path, home: Path
) -> None:
    (home / clone / ".git").mkdir(parents=True)
    path = tool(home / clone / "versions/1/bin")
    assert find(path) == f"{path}/tool"


def test_a_project_in_the_home_folder_holds_none(repository: Path, home: Path) -> None:
    (home / "project/.git").mkdir(parents=True)
    (home / ".codex/worktrees/1/.git").mkdir(parents=True)
    assert find(tool(home / "project/bin")) is None
    assert find(tool(home / ".codex/worktrees/1/bin")) is None


def test_outside_of_repositories_the_current_folder_counts_for_nothing(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    path = tool(folder / ".venv/bin")
    assert find(path) == f"{path}/tool"
    monkeypatch.chdir(folder)
    assert find(path) is None
    assert "inside the current folder" in search_program("tool", {"PATH": path}).problem


@pytest.mark.parametrize("folder", ["/", "/usr", "/usr/bin", "home"])
def test_a_current_folder_that_holds_the_users_tools_closes_nothing(
    folder: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tool(home / ".local/bin")
    monkeypatch.chdir(home if folder == "home" else folder)
    assert find(path) == f"{path}/tool"
    assert search_program("sh", os.environ).program is not None


def fake_worktree(root: Path) -> None:
    write(root / ".git/worktrees/x/gitdir", "/usr/bin/.git\n")
    write(root / ".git/worktrees/y/gitdir", "/bin/.git\n")


def fake_pointer(root: Path) -> None:
    shutil.rmtree(root / ".git")
    write(root / ".git", "gitdir: /usr\n")


def fake_common_directory(root: Path) -> None:
    write(root / ".git/commondir", "/usr\n")


@pytest.mark.parametrize("fake", [fake_worktree, fake_pointer, fake_common_directory])
def test_an_agent_cannot_close_the_folders_of_the_system(
    fake: Callable[[Path], None], repository: Path
) -> None:
    """Then guard would find no git, and could take no snapshot."""
    fake(repository)
    repository_at(repository)
    assert search_program("sh", os.environ).program is not None


def test_a_closed_folder_is_known_by_another_spelling_but_not_by_a_number_that_was_given_away(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    moved = known(repository).rename(tmp_path / "other-spelling")
    path = tool(moved / "bin")
    shutil.rmtree(moved / ".git")
    assert find(path) == f"{path}/tool", "the folder that was closed is gone"
    repository.symlink_to(moved)
    assert find(path) is None


def test_a_path_is_taken_as_the_user_wrote_it(repository: Path) -> None:
    path = tool(repository / "bin")
    assert find_program(f"{path}/tool", {"PATH": ""}) == f"{path}/tool"
    assert find_program("bin/tool", {"PATH": ""}, repository) == f"{path}/tool"
    assert find_program("bin/none", {"PATH": ""}, repository) is None


def test_what_is_not_there_is_not_installed() -> None:
    search = search_program("no-such-tool", os.environ)
    assert (search.problem, search.hint) == ("no-such-tool is not installed", None)


INSIDE, OUTSIDE = "{root}/x", "{outside}/x"
VARIABLES: dict[str, tuple[str, str, str | None]] = {
    "a library of the repository's": ("LD_PRELOAD", INSIDE, None),
    "one of two libraries": ("LD_PRELOAD", f"{OUTSIDE}:{INSIDE}", OUTSIDE),
    "libraries between spaces": ("LD_PRELOAD", f"{OUTSIDE} {INSIDE}", None),
    "a library by its name": ("LD_PRELOAD", "libx.so", "libx.so"),
    "a library of the user's": ("LD_PRELOAD", OUTSIDE, OUTSIDE),
    "libraries of the current folder": ("LD_LIBRARY_PATH", f":{OUTSIDE}:.", OUTSIDE),
    "modules of the current folder": ("PYTHONPATH", f"lib:{OUTSIDE}", OUTSIDE),
    "modules of the repository's": ("NODE_PATH", INSIDE, None),
    "keys of the repository's": ("GNUPGHOME", INSIDE, None),
    "keys of the current folder": ("GNUPGHOME", ".gnupg", None),
    "keys of the user's": ("GNUPGHOME", OUTSIDE, OUTSIDE),
    "a shell by its name": ("SHELL", "bash", "bash"),
    "a shell of the repository's": ("SHELL", INSIDE, None),
    "options of Node.js": ("NODE_OPTIONS", "--use-system-ca", "--use-system-ca"),
    "a module for Node.js": ("NODE_OPTIONS", "--max-http-header-size=9 --require=./x.js", None),
    "a package for Node.js": ("NODE_OPTIONS", "--import tsx", None),
    "a short option of Node.js": ("NODE_OPTIONS", "-r ./x.js", None),
    "a module of the user's": ("NODE_OPTIONS", f"--require {OUTSIDE}", f"--require {OUTSIDE}"),
    "a module of the repository's": ("NODE_OPTIONS", f"--import=file://{INSIDE}", None),
    "commands for bash": ("BASH_ENV", OUTSIDE, None),
    "a function for bash": ("BASH_FUNC_git%%", "() x", None),
    "options of perl": ("PERL5OPT", "-Mx", None),
    "an editor": ("EDITOR", "vi", None),
    "what has no part in it": ("ANTHROPIC_API_KEY", "x:.:y", "x:.:y"),
}


@pytest.mark.parametrize(("name", "value", "kept"), VARIABLES.values(), ids=VARIABLES)
def test_a_program_of_guards_choice_gets_no_variable_that_runs_code(
    name: str, value: str, kept: str | None, repository: Path, tmp_path: Path
) -> None:
    places = {"root": repository, "outside": tmp_path / "outside"}
    found = own_environment({name: value.format(**places), "PATH": "/bin"})
    expected = {} if kept is None else {name: kept.format(**places)}
    assert found == {**expected, "PATH": "/bin"}


def test_guards_own_python_imports_nothing_from_the_current_folder(repository: Path) -> None:
    write(repository / "guard.py", "raise SystemExit('planted')\n")
    for words, planted in (([sys.executable], True), (own_python(), False)):
        done = subprocess.run(
            [*words, "-m", "guard", "--version"], capture_output=True, text=True, timeout=TIME_LIMIT
        )
        assert ("planted" in done.stderr, done.stdout.startswith("guard, ")) == (
            planted,
            not planted,
        )


def test_doctor_says_which_programs_are_only_inside_the_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tool(repository / ".venv/bin", "claude")
    tool(repository / ".venv/bin", "tmux")
    tools = tool_folder(tmp_path / "tools")
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{tools}")
    shown = run("doctor").out
    for name in ("claude", "tmux"):
        assert (
            f"{name} is only inside the repository ({path}/{name}): guard does not run it" in shown
        )
    assert "hint: install claude elsewhere on PATH, or name it by its path" in shown
    assert "none found on PATH" in shown
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{tool(tools, 'claude')}")
    assert "claude 1.2.3" in run("doctor").out


def test_doctor_says_that_guard_itself_lies_in_the_repository(repository: Path) -> None:
    code = "import sys; sys.prefix = sys.argv.pop(); from guard.cli import main; main()"
    words = [sys.executable, "-P", "-c", code, "doctor", str(repository / ".venv")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    assert f"guard is installed inside the repository ({repository}/.venv)" in done.stdout
    assert "guard is installed inside" not in run("doctor").out


def test_status_says_that_tmux_is_only_inside_the_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tool(repository / ".venv/bin", "tmux")
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{tool_folder(tmp_path / 'tools')}")
    place = ("--task", "T1", "--agent", "a1", "--tmux-session", "s1")
    said = run("agent", "spawn", *place)
    assert f"tmux is only inside the repository ({path}/tmux): guard does not run it" in said.err
