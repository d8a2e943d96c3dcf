"""The files around the code: what linters and schemas say of them, and whether they agree with each other."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import ROOT, git

GITHUB = ROOT / ".github"
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml"))
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))


def program(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a program of the virtual environment of the tests."""
    path = Path(sys.executable).with_name(str(words[0]))
    return subprocess.run([path, *words[1:]], capture_output=True, text=True, check=False)


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def schema_of(path: Path) -> str:
    if path.parent.name == "workflows":
        return "vendor.github-workflows"
    if path.name == "dependabot.yml":
        return "vendor.dependabot"
    return "vendor.github-issue-" + ("config" if path.name == "config.yml" else "forms")


@pytest.mark.parametrize(
    "path", [*WORKFLOWS, *FORMS, GITHUB / "dependabot.yml"], ids=lambda path: path.name
)
def test_files_for_github_fit_their_schemas(path: Path) -> None:
    done = program("check-jsonschema", "--builtin-schema", schema_of(path), path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing() -> None:
    done = program("zizmor", "--offline", "--no-progress", GITHUB)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_of_pre_commit_is_valid() -> None:
    done = program("pre-commit", "validate-config", ROOT / ".pre-commit-config.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def hooks() -> dict[str, Any]:
    (local,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    return {hook["id"]: hook for hook in local["hooks"]}


def test_hooks_call_programs_that_the_development_environment_has() -> None:
    for hook in hooks().values():
        path = Path(hook["entry"].split()[0])
        assert path.parent == Path(".venv/bin")
        assert os.access(Path(sys.executable).with_name(path.name), os.X_OK), path


def test_the_project_uses_guards_own_hooks_as_they_are_offered() -> None:
    used = hooks()
    for offered in read_yaml(ROOT / ".pre-commit-hooks.yaml"):
        del offered["description"]
        expected = {**offered, "entry": f".venv/bin/{offered['entry']}", "language": "system"}
        assert used[offered["id"]] == expected


@pytest.mark.parametrize("name", ["ruff-check", "check-dependabot", "guard-validate-state"])
def test_a_hook_runs_and_refuses(name: str, repository: Path) -> None:
    """A hook of each kind, on a project where it passes, and on one where it has to refuse."""
    (repository / ".venv").symlink_to(Path(sys.executable).parents[1])
    (repository / ".github").mkdir()
    bad = {
        "ruff-check": ("bad.py", "import os\n"),
        "check-dependabot": (".github/dependabot.yml", "version: 1\n"),
        "guard-validate-state": ("guard.toml", "[store]\nlock_wait_seconds = 'long'\n"),
    }
    (repository / ".pre-commit-config.yaml").write_bytes(
        (ROOT / ".pre-commit-config.yaml").read_bytes()
    )
    (repository / ".gitignore").write_text(".venv\n")
    good = (GITHUB / "dependabot.yml").read_text()
    (repository / ".github" / "dependabot.yml").write_text(good)
    (repository / "good.py").write_text("VALUE = 1\n")

    def run() -> "subprocess.CompletedProcess[str]":
        git(repository, "add", "-A")
        pre_commit = str(Path(sys.executable).with_name("pre-commit"))
        words = [pre_commit, "run", name, "--all-files"]
        return subprocess.run(words, cwd=repository, capture_output=True, text=True, check=False)

    passed = run()
    assert (passed.returncode, "Passed" in passed.stdout) == (0, True), passed.stdout
    path, text = bad[name]
    (repository / path).write_text(text)
    refused = run()
    assert (refused.returncode, "Failed" in refused.stdout) == (1, True), refused.stdout
