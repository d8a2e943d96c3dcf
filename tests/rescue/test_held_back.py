"""What a rescue holds back from its commit: named, with the reason, and safe in the snapshot."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.core.rescuing import COMMIT_MAX_FILE_BYTES
from tests.rescue.states import start
from tests.support import commit, git, write
from tests.support.rescuing import attempt_rescue, contents, fingerprint, recovered

Build = Callable[[Path], str]
KEY = "sk-ant-api03-" + "k3Y" * 12


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def secret_in_new(root: Path) -> str:
    write(root / "keys.py", f'\nKEY = "{KEY}"\n')
    return "keys.py"


def secret_in_edited(root: Path) -> str:
    write(root / "edited.txt", f"edited\n\n{KEY}\n")
    return "edited.txt"


def large(root: Path) -> str:
    write(root / "large.bin", b"")
    os.truncate(root / "large.bin", COMMIT_MAX_FILE_BYTES + 10 * 1024**2)
    return "large.bin"


def nested(root: Path) -> str:
    (root / "sub").mkdir()
    git(root / "sub", "init", "-q", "-b", "main")
    git(root / "sub", "config", "user.email", "a@example.com")
    git(root / "sub", "config", "user.name", "A")
    commit(root / "sub", "code.c")
    write(root / "sub/dirty.c", "dirty\n")
    return "sub/"


def nested_without_commits(root: Path) -> str:
    (root / "sub").mkdir()
    git(root / "sub", "init", "-q")
    write(root / "sub/dirty.c", "dirty\n")
    return "sub/dirty.c"


def submodule(root: Path) -> str:
    nested(root)
    git(root, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
    git(root, "commit", "-q", "-m", "Add sub")
    git(root / "sub", "add", "dirty.c")
    git(root / "sub", "commit", "-q", "-m", "Go on")
    return "sub"


def ignored(root: Path) -> str:
    write(root / ".git/info/exclude", "*.env\n")
    write(root / "local.env", "x\n")
    git(root, "add", "-f", "local.env")
    return "local.env"


def packages(root: Path) -> str:
    write(root / "node_modules/a/index.js", "x\n")
    return "node_modules/a/index.js"


def filtered(root: Path) -> str:
    write(root / ".git/info/attributes", "*.bin filter=lfs\n")
    git(root, "config", "filter.lfs.clean", "touch ../ran; cat")
    git(root, "config", "filter.lfs.process", "touch ../ran; false")
    git(root, "config", "filter.lfs.required", "true")
    write(root / "asset.bin", "asset\n")
    return "asset.bin"


def special(root: Path) -> str:
    (root / "edited.txt").unlink()
    os.mkfifo(root / "edited.txt")
    return "edited.txt"


def refused_name(root: Path) -> str:
    write(root / "git~1", "x\n")
    return "git~1"


def outside(root: Path) -> str:
    write(root.parent / "outside.txt", "x\n")
    return "../outside.txt"


def through_a_link(root: Path) -> str:
    write(root.parent / "else/where.txt", "x\n")
    (root / "way").symlink_to("../else")
    return "way/where.txt"


HELD: dict[Build, str | None] = {
    secret_in_new: "secret: anthropic, line 2",
    secret_in_edited: "secret: anthropic, line 3",
    large: f"too_large: {COMMIT_MAX_FILE_BYTES + 10 * 1024**2} bytes",
    nested: "nested_repository",
    nested_without_commits: "nested_repository",
    submodule: "nested_repository",
    ignored: "ignored",
    packages: "rebuilt: installed packages",
    filtered: "filter: lfs",
    special: "not_saved: a special file",
    refused_name: "name: git refuses it",
    outside: "not a path in the work tree",
    through_a_link: None,
}


@pytest.mark.parametrize(
    ("build", "why"), HELD.items(), ids=lambda one: getattr(one, "__name__", "")
)
def test_what_may_not_be_committed_is_held_back(
    build: Build, why: str | None, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    path = build(repository)
    write(repository / "new.txt", "new\n")
    project = contents(repository)
    result = attempt_rescue(repository, workspace, [path, "new.txt"])
    assert result.reason == "rescued"
    assert [(one.path, one.why) for one in result.held_back] == (
        [(path.rstrip("/"), why)] if why else []
    )
    assert git(repository, "show", "--format=", "--name-only", "HEAD").split() == ["new.txt"]
    assert contents(repository) == project
    assert not (tmp_path / "ran").exists()
    assert result.snapshot is not None
    back = recovered(result.snapshot, tmp_path / "back")
    assert {name.replace(b"escaped%", b""): what for name, what in back.items()} == project
    assert KEY not in result.model_dump_json()


@pytest.mark.parametrize("build", [secret_in_new, large, ignored, filtered])
def test_nothing_but_what_is_held_back_makes_no_commit(
    build: Build, repository: Path, workspace: Path
) -> None:
    path = build(repository)
    before = fingerprint(repository / ".git")
    result = attempt_rescue(repository, workspace, [path])
    assert (result.reason, result.commits, len(result.held_back)) == ("held_back", (), 1)
    assert fingerprint(repository / ".git") == before


def test_a_secret_that_was_committed_before_holds_nothing_back(
    repository: Path, workspace: Path
) -> None:
    commit(repository, "keys.py", f'KEY = "{KEY}"\n')
    write(repository / "keys.py", f'# edited\nKEY = "{KEY}"\n')
    assert attempt_rescue(repository, workspace, ["keys.py"]).held_back == ()


def test_a_secret_in_a_new_folder_is_found(repository: Path, workspace: Path) -> None:
    write(repository / "package/keys.py", KEY)
    write(repository / "package/code.py", "code\n")
    result = attempt_rescue(repository, workspace, ["package/"])
    assert [one.path for one in result.held_back] == ["package/keys.py"]
    assert git(repository, "show", "--format=", "--name-only", "HEAD").split() == [
        "package/code.py"
    ]


def test_many_that_are_held_back_are_counted_not_listed(repository: Path, workspace: Path) -> None:
    for number in range(130):
        write(repository / f"{number:03}.py", KEY)
    result = attempt_rescue(repository, workspace, [f"{number:03}.py" for number in range(130)])
    assert len(result.held_back) == 101
    assert result.held_back[-1].why == "and 30 more paths"
