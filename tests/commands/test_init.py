"""`guard init`: the configuration file that it writes, keeps, or only shows."""

import os
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from guard.context import config
from guard.core.config.resolve import knobs
from guard.schemas.validate import validator
from tests.support import TIME_LIMIT, git, run, write

pytestmark = pytest.mark.usefixtures("usual_limits")


def uncommented(text: str) -> str:
    """The file with every key taken out of its comment."""
    lines = text.splitlines()
    return "\n".join(
        line.removeprefix("# ") if " = " in line and not line.endswith(".") else line
        for line in lines
    )


def test_the_project_gets_a_file_with_its_keys_and_none_of_the_users(repository: Path) -> None:
    result = run("init", "--all", "--format", "json")
    path = repository / "guard.toml"
    assert (result.code, result.err) == (0, "")
    assert list(validator("init").iter_errors(result.json)) == []
    assert (result.json["file"], result.json["action"]) == (str(path), "written")
    text = path.read_text()
    for knob in knobs():
        assert (knob.description in text) == (not knob.user_only)
    assert tomllib.loads(text) == {
        "completion_check": {},
        "rescue": {},
        "registry": {},
        "activity": {},
        "resume": {},
        "coordinator": {},
        "hooks": {},
    }
    assert config.ConfigSources(os.environ).resolve(repository).origins == {}


def test_the_user_gets_a_file_with_every_key(repository: Path, home: Path) -> None:
    result = run("init", "--user")
    path = home / "config" / "guard" / "config.toml"
    assert (result.code, f"\n{path}: written\n" in result.out) == (0, True)
    text = path.read_text()
    assert [knob.key for knob in knobs() if knob.description not in text] == []
    assert not (repository / "guard.toml").exists()


@pytest.mark.parametrize("words", [[], ["--user"]], ids=["project", "user"])
def test_the_keys_taken_out_of_their_comments_are_the_defaults(
    words: list[str], repository: Path, tmp_path: Path
) -> None:
    template = run("init", "--all", "--dry-run", *words).out
    path = write(tmp_path / "all.toml", uncommented(template))
    resolved = config.ConfigSources(os.environ, path).resolve(None)
    expected = {knob.key for knob in knobs() if words or not knob.user_only}
    with_default = {knob.key for knob in knobs() if knob.default is not None}
    assert expected & with_default <= set(resolved.origins) <= expected
    assert (
        resolved.settings.completion_check
        == config.ConfigSources({}).resolve(None).settings.completion_check
    )
    assert resolved.settings.store == config.ConfigSources({}).resolve(None).settings.store


def test_a_dry_run_writes_nothing(repository: Path) -> None:
    assert run("init", "--dry-run").out.startswith("# guard: settings of this repository, proposed")
    assert run("init", "--dry-run", "--format", "json").json["action"] == "would_write"
    assert not (repository / "guard.toml").exists()


@pytest.mark.parametrize("kind", ["a file", "a dangling link"])
def test_what_is_there_is_kept(kind: str, repository: Path) -> None:
    path = repository / "guard.toml"
    write(path, "# mine\n") if kind == "a file" else path.symlink_to("nowhere")
    result = run("init")
    assert (result.code, f"\n{path}: kept as it is\n" in result.out) == (0, True)
    assert run("init", "--format", "json").json["content"] is None
    assert path.is_symlink() or path.read_text() == "# mine\n"
    assert not (repository / "nowhere").exists()


def test_it_goes_to_the_root_of_the_work_tree(repository: Path) -> None:
    (repository / "deep").mkdir()
    assert run("init", cwd=repository / "deep").code == 0
    assert (repository / "guard.toml").exists()


def test_without_a_repository_there_is_no_project(tmp_path: Path) -> None:
    assert run("init", cwd=tmp_path).code == 4
    assert run("init", "--user", cwd=tmp_path).code == 0


def test_a_place_that_cannot_be_written_is_exit_4(repository: Path, home: Path) -> None:
    write(home / "config", "a file where the folder should be")
    result = run("init", "--user")
    assert (result.code, "written" in result.out) == (4, False)
    assert result.err.startswith(f"guard: cannot write {home}/config/guard/config.toml: ")


def test_a_path_that_is_no_text_is_spelled_out(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    git(folder, "init", "-q")
    result = run("init", "--format", "json", cwd=folder)
    assert (result.code, result.err) == (0, "")
    assert result.json["action"] == "written"
    assert (folder / "guard.toml").exists()


@pytest.fixture
def tested(repository: Path) -> Path:
    """A project with tests for pytest in an environment that git ignores."""
    write(repository / ".gitignore", ".venv/\n")
    write(repository / ".venv/bin/pytest", "")
    write(repository / "pyproject.toml", "[tool.pytest.ini_options]\n")
    write(repository / "tests/test_a.py", "def test_a(): pass\n")
    return repository


def status(folder: Path) -> str:
    return git(folder, "status", "--porcelain", "--untracked-files=all")


def test_the_short_file_names_what_was_found_and_counts_once_it_is_trusted(tested: Path) -> None:
    for name in (".github/workflows/ci.yml", "TODO.md", "docs/specs/login/tasks.md"):
        write(tested / name, "- [ ] one\n")
    before = status(tested)
    said = run("init", "--dry-run")
    assert (said.code, said.err) == (0, "")
    assert status(tested) == before
    result = run("init")
    text = (tested / "guard.toml").read_text()
    assert text == said.out
    assert tomllib.loads(text) == {
        "completion_check": {"task_file": "docs/specs/{spec}/tasks.md"},
        "prove": {"command": ".venv/bin/python -m pytest -q", "share": [".venv"]},
    }
    for named in ("TODO.md", ".github/workflows/ci.yml", "pyproject.toml has options of pytest"):
        assert named in text
        assert named in result.out
    assert all(line.strip() in result.out for line in text.splitlines())
    found = config.ConfigSources(os.environ).resolve(tested).settings
    assert (found.prove.command, found.completion_check.task_file) == (
        "",
        "docs/specs/{spec}/tasks.md",
    )
    git(tested, "add", "guard.toml")
    git(tested, "commit", "-qm", "Add guard.toml")
    assert run("trust").code == 0
    settings = run("config", "--format", "json").json["settings"]
    values = {one["key"]: one["value"] for one in settings}
    assert values["prove.command"] == ".venv/bin/python -m pytest -q"
    kept = run("init", "--format", "json")
    assert list(validator("init").iter_errors(kept.json)) == []
    assert (kept.json["action"], kept.json["proof"]) == ("kept", None)


def test_the_next_command_is_for_the_agent_that_is_there(
    tested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write(tmp_path / "programs" / "codex", "#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    write(tested / "tasks.md", "- [ ] one\n")
    found = run("init", "--dry-run", "--format", "json").json
    assert "codex is on PATH" in [one["found"] for one in found["found"]]
    assert found["next"][-1] == (
        "guard loop --until-tasks-done tasks.md --prompt-file prompt.md -- "
        "codex exec --json --dangerously-bypass-approvals-and-sandbox -"
    )
    # Which programs this machine has is nothing for a file of the project.
    assert "codex" not in found["content"]


def test_a_file_name_cannot_write_a_setting(repository: Path) -> None:
    write(repository / ".github/workflows/a\n[prove]\ncommand = 'x'\n#.yml", "")
    run("init")
    text = (repository / "guard.toml").read_text()
    assert tomllib.loads(text) == {}
    assert "a\\x0a[prove]" in text


@pytest.mark.parametrize(
    ("words", "answer", "there"),
    [([], b"n\n", False), ([], b"y\n", True), (["--yes"], b"", True)],
    ids=["no", "yes", "not asked"],
)
def test_on_a_terminal_it_asks_before_it_writes(
    words: list[str], answer: bytes, there: bool, repository: Path
) -> None:
    main, terminal = os.openpty()
    argv = [sys.executable, "-m", "guard", "init", *words]
    with subprocess.Popen(argv, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        os.write(main, answer)
        said = b""
        with suppress(OSError):  # Linux reports the closed end of a terminal as an error.
            while block := os.read(main, 65536):
                said += block
        assert process.wait(TIME_LIMIT) == 0, said
    os.close(main)
    assert (b"Write this to" in said) == (words == [])
    assert (repository / "guard.toml").exists() == there
    assert (b"guard.toml: written" in said) == there


def test_no_proposal_is_no_reason_to_fail(tested: Path) -> None:
    (tested / "pyproject.toml").unlink()
    (tested / "pyproject.toml").mkdir()
    os.mkfifo(tested / "Makefile")
    (tested / "package.json").symlink_to("nowhere")
    found = run("init", "--format", "json")
    assert (found.code, found.json["proof"]["command"]) == (
        0,
        "python3 -m unittest discover -s tests",
    )
