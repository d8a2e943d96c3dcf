"""The files around the code: what linters and schemas say of them, and whether they agree with each other."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from tests.support import ROOT, git

GITHUB = ROOT / ".github"
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml"))
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))


Done: TypeAlias = "subprocess.CompletedProcess[str]"


def program(*words: str | Path) -> Done:
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
    done = program("zizmor", "--offline", "--no-progress", "--persona=pedantic", GITHUB)
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

    def run() -> Done:
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


def test_every_action_is_pinned_to_a_commit_with_its_version() -> None:
    for path in WORKFLOWS:
        for line in path.read_text().splitlines():
            if "uses:" in line:
                pinned = r"\s+- uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
                assert re.fullmatch(pinned, line), line


def test_ci_runs_on_every_python_and_system_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    job = read_yaml(GITHUB / "workflows" / "ci.yml")["jobs"]["ci"]
    classifiers = "\n".join(project["classifiers"])
    matrix = job["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", classifiers)
    assert project["requires-python"] == f">={matrix['python'][0]}"
    systems = {*matrix["os"], *(leg["os"] for leg in matrix["include"])}
    assert systems == {"ubuntu-latest", "macos-latest"}
    assert re.findall(r"Operating System :: (.*)", classifiers) == ["MacOS", "POSIX :: Linux"]
    assert job["timeout-minutes"] <= 30


@pytest.mark.parametrize("path", [ROOT / ".ci" / "run", GITHUB / "workflows" / "release.yml"])
def test_the_tests_that_ci_names_exist(path: Path) -> None:
    named = re.findall(r"(?<= )tests/[\w/.]+", path.read_text())
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_only_the_job_that_publishes_may_ask_for_an_identity() -> None:
    workflow = read_yaml(GITHUB / "workflows" / "release.yml")
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["publish"]
    assert jobs["publish"]["environment"]["name"] == "release"
    # It runs nothing but actions: no code of the repository or of its dependencies gets near the identity.
    assert all("uses" in step for step in jobs["publish"]["steps"])
    assert [job.get("needs") for job in jobs.values()] == [None, "build", "publish"]


CHANGES = """# Changelog

## [Unreleased]

- not yet

## [1.1.0] - 2026-02-01

### Added

- the new thing

## [1.0.0rc1] - 2026-01-01

- the first thing
"""
BUILT = ("completion_guard-1.1.0-py3-none-any.whl", "completion_guard-1.1.0.tar.gz")
CANDIDATE = tuple(name.replace("1.1.0", "1.0.0rc1") for name in BUILT)


def release_notes(folder: Path, tag: str, built: tuple[str, ...], changes: str) -> Done:
    script = folder / ".ci" / "release.py"
    script.parent.mkdir()
    script.write_bytes((ROOT / ".ci" / "release.py").read_bytes())
    (folder / "CHANGELOG.md").write_text(changes)
    (folder / "dist").mkdir()
    for name in built:
        (folder / "dist" / name).touch()
    words = [sys.executable, str(script), tag, str(folder / "dist")]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("tag", "built", "notes"),
    [
        ("v1.1.0", BUILT, "### Added\n\n- the new thing\n"),
        ("v1.0.0rc1", CANDIDATE, "- the first thing\n"),
    ],
)
def test_the_notes_of_a_release_are_its_section(
    tmp_path: Path, tag: str, built: tuple[str, ...], notes: str
) -> None:
    done = release_notes(tmp_path, tag, built, CHANGES)
    assert (done.returncode, done.stdout) == (0, notes), done.stderr


@pytest.mark.parametrize(
    ("tag", "built", "changes", "why"),
    [
        ("1.1.0", BUILT, CHANGES, "is not v and a version"),
        ("v1.1", BUILT, CHANGES, "is not v and a version"),
        ("v1.1.0/x", BUILT, CHANGES, "is not v and a version"),
        ("v1.2.0", BUILT, CHANGES, "does not fit the built files"),
        ("v1.1.0", BUILT[:1], CHANGES, "does not fit the built files"),
        ("v1.1.0", (*BUILT, "other.whl"), CHANGES, "does not fit the built files"),
        ("v1.1.0", BUILT, CHANGES.replace("[1.1.0]", "[1.1.1]"), "has no section"),
        ("v1.1.0", BUILT, CHANGES.replace("1.1.0] - 2026-02-01", "1.1.0]"), "has no section"),
        ("v1.1.0", BUILT, "## [1.1.0] - 2026-02-01\n\n## [1.0.0] - 2026-01-01\n", "has no section"),
    ],
)
def test_a_release_that_does_not_fit_is_refused(
    tmp_path: Path, tag: str, built: tuple[str, ...], changes: str, why: str
) -> None:
    done = release_notes(tmp_path, tag, built, changes)
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr


def test_the_changelog_is_in_the_format_that_a_release_reads() -> None:
    headings = re.findall(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "## [Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"## \[\d+\.\d+\.\d+((a|b|rc)\d+)?\] - \d{4}-\d\d-\d\d", heading)
