"""`guard init`: the configuration file that it writes, keeps, or only shows."""

import os
import tomllib
from pathlib import Path

import pytest

from guard.context import config
from guard.core.config.resolve import knobs
from guard.schemas.validate import validator
from tests.support import git, run, write

pytestmark = pytest.mark.usefixtures("usual_limits")


def uncommented(text: str) -> str:
    """The file with every key taken out of its comment."""
    lines = text.splitlines()
    return "\n".join(
        line.removeprefix("# ") if " = " in line and not line.endswith(".") else line
        for line in lines
    )


def test_the_project_gets_a_file_with_its_keys_and_none_of_the_users(repository: Path) -> None:
    result = run("init", "--format", "json")
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
    assert (result.code, result.out) == (0, f"{path}: written\n")
    text = path.read_text()
    assert [knob.key for knob in knobs() if knob.description not in text] == []
    assert not (repository / "guard.toml").exists()


@pytest.mark.parametrize("words", [[], ["--user"]], ids=["project", "user"])
def test_the_keys_taken_out_of_their_comments_are_the_defaults(
    words: list[str], repository: Path, tmp_path: Path
) -> None:
    template = run("init", "--dry-run", *words).out
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
    assert run("init", "--dry-run").out.startswith("# guard: settings of this repository.\n")
    assert run("init", "--dry-run", "--format", "json").json["action"] == "would_write"
    assert not (repository / "guard.toml").exists()


@pytest.mark.parametrize("kind", ["a file", "a dangling link"])
def test_what_is_there_is_kept(kind: str, repository: Path) -> None:
    path = repository / "guard.toml"
    write(path, "# mine\n") if kind == "a file" else path.symlink_to("nowhere")
    result = run("init")
    assert (result.code, result.out) == (0, f"{path}: kept as it is\n")
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
    assert (result.code, result.out) == (4, "")
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


def test_a_command_that_proves_is_proposed_and_not_written(tested: Path, home: Path) -> None:
    before = status(tested)
    said = run("init", "--dry-run")
    assert (said.code, said.err) == (0, "")
    assert tomllib.loads(said.out).get("prove") is None
    assert '#     command = ".venv/bin/python -m pytest -q"\n' in said.out
    assert status(tested) == before
    result = run("init")
    users = home / "config" / "guard" / "config.toml"
    lines = result.out.splitlines()
    assert lines[0] == f"{tested / 'guard.toml'}: written"
    assert [line.strip() for line in lines[3:7]] == [
        "[prove]",
        'command = ".venv/bin/python -m pytest -q"',
        'share = [".venv"]',
        "because pyproject.toml has options of pytest; .venv has pytest.",
    ]
    assert f"into {users}: " in result.out
    assert f"into {tested / 'guard.toml'}, commit it, and run `guard trust`: " in result.out
    assert "prove" not in (tested / "guard.toml").read_text()
    assert not users.exists()
    kept = run("init", "--format", "json")
    assert list(validator("init").iter_errors(kept.json)) == []
    assert kept.json["action"] == "kept"
    assert kept.json["proof"]["share"] == [".venv"]


def test_the_lines_of_a_proposal_are_settings_and_then_nothing_more_is_proposed(
    tested: Path, home: Path
) -> None:
    lines = run("init", "--user", "--dry-run").out.splitlines()
    first = lines.index("#     [prove]")
    text = "\n".join(line.removeprefix("#     ") for line in lines[first : first + 3])
    write(home / "config" / "guard" / "config.toml", text)
    found = config.ConfigSources(os.environ).resolve(tested).settings.prove
    assert (found.command, found.share) == (".venv/bin/python -m pytest -q", (".venv",))
    assert run("init").out == f"{tested / 'guard.toml'}: written\n"


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
