"""What a rescue holds back from its commit: named, with the reason, and safe in the snapshot."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.core.rescue.settings import COMMIT_MAX_FILE_BYTES, RescueSettings, SnapshotLimits
from tests.rescue.states import start
from tests.rescue.states_start import in_repository
from tests.support import commit, git, run, write
from tests.support.rescues import attempt_rescue, contents, fingerprint, recovered
from tests.support.sessions import answering

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


def secrets_in_many_lines(root: Path) -> str:
    write(root / "many.py", f'KEY = "{KEY}"\n\nOTHER = "gh' + "p_" + "a1B2" * 9 + '"\n')
    return "many.py"


def secret_in_wide_characters(root: Path) -> str:
    write(root / "wide.txt", f"first\r\nkey {KEY}\r\n".encode("utf-16"))
    return "wide.txt"


def new_env(root: Path) -> str:
    write(root / ".env", "PORT=80\n")
    return ".env"


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
    secrets_in_many_lines: "secret: anthropic, line 1; github, line 3",
    secret_in_wide_characters: "secret: anthropic, line 2",
    new_env: "secret: sensitive_name",
    large: f"too_large: {COMMIT_MAX_FILE_BYTES + 10 * 1024**2} bytes",
    nested: in_repository("sub"),
    nested_without_commits: in_repository("sub"),
    submodule: in_repository("sub"),
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


@pytest.mark.parametrize("name", [".env", "id_rsa", "release.p12"])
def test_a_sensitive_name_that_is_committed_already_holds_nothing_back(
    name: str, repository: Path, workspace: Path
) -> None:
    commit(repository, name, "PORT=80\n")
    write(repository / name, "PORT=81\n")
    assert attempt_rescue(repository, workspace, [name]).held_back == ()


def test_an_example_is_no_sensitive_name(repository: Path, workspace: Path) -> None:
    write(repository / ".env.example", "API_KEY=your-key-here\n")
    assert attempt_rescue(repository, workspace, [".env.example"]).held_back == ()


def test_a_link_of_a_sensitive_name_has_no_secret(repository: Path, workspace: Path) -> None:
    (repository / ".env").symlink_to("settings/local")
    assert attempt_rescue(repository, workspace, [".env"]).held_back == ()


@pytest.mark.parametrize(
    ("allowed", "held"),
    {
        "anthropic:keys.py": [".env", "many.py"],
        "sensitive_name:.env, *:*.py": [],
        "anthropic:*": [".env", "many.py"],
        "github:*, sensitive_name:web/*": [".env", "keys.py", "many.py"],
    }.items(),
)
def test_the_user_lets_hits_pass(
    allowed: str, held: list[str], repository: Path, workspace: Path
) -> None:
    paths = [build(repository) for build in (secret_in_new, secrets_in_many_lines, new_env)]
    result = attempt_rescue(
        repository, workspace, paths, limits=SnapshotLimits(RescueSettings(allow_secrets=allowed))
    )
    assert [one.path for one in result.held_back] == held


def test_a_secret_is_in_the_snapshot_and_nowhere_else(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write(repository / "new.txt", "new\n")
    result = attempt_rescue(
        repository, workspace, [secret_in_new(repository), secret_in_edited(repository), "new.txt"]
    )
    assert [one.why for one in result.held_back] == [
        "secret: anthropic, line 3",
        "secret: anthropic, line 2",
    ]
    assert KEY not in git(repository, "log", "--all", "-p")
    objects = git(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert not any(KEY in git(repository, "cat-file", "-p", oid) for oid in objects.split())
    assert KEY not in result.model_dump_json()
    assert result.snapshot is not None
    back = recovered(result.snapshot, tmp_path / "back")
    assert KEY.encode() in back[b"keys.py"][1]
    assert KEY.encode() in back[b"edited.txt"][1]
    private = [
        path for path in workspace.rglob("*") if path.is_file() and "shadow" not in str(path)
    ]
    assert not any(KEY.encode() in path.read_bytes() for path in private)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_check_and_its_log_name_the_line_and_never_the_secret(
    form: str, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    own = ("--workspace", workspace)
    assert run(*own, "baseline").code == 0
    secret_in_new(repository)
    write(repository / "new.txt", "new\n")
    probe = ("--probe-command", answering(tmp_path, "complete"))
    result = run(*own, "check", *probe, "--format", form)
    log = run(*own, "log", "--format", "json")
    assert "secret: anthropic, line 2" in log.out
    assert KEY not in result.out + result.err + log.out + log.err
    assert KEY not in (workspace / "events.jsonl").read_text()
    assert KEY not in git(repository, "log", "--all", "-p")
    assert git(repository, "status", "--porcelain") == "?? keys.py\n"
