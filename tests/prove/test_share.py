"""Shared folders: what is installed in them serves the checkout, and the work tree's own code never does."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import git, run, write

WRONG = "def value():\n    return 'wrong'\n"
RIGHT = "def value():\n    return 'right'\n"
TESTS = "from lib import value\n\n\ndef test_value():\n    assert value() == 'right'\n"


def save(project: Path) -> None:
    git(project, "add", "-A")
    git(project, "commit", "-qm", "change")


def prove(command: str) -> dict[str, Any]:
    found = run("prove", "--format", "json", "--command", command)
    assert found.out, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def environment(folder: Path) -> Path:
    """A virtual environment that has the packages of this one, too."""
    words = [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(folder)]
    subprocess.run(words, check=True, capture_output=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    own = next(path for path in sys.path if path.endswith("site-packages"))
    write(packages / "own.pth", own + "\n")
    return packages


BY_EXIT_CODE = """.venv/bin/python -c 'from lib import value; assert value() == "right"'"""
FINDER = """
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location

MAPPING = {{"lib": {path!r}}}


class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return spec_from_file_location(name, MAPPING[name]) if name in MAPPING else None


def install():
    sys.meta_path.{how}
"""


@pytest.fixture
def project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GUARD_PROVE__SHARE", ".venv")
    write(repository / ".gitignore", ".venv\n__pycache__\n")
    write(repository / "src/lib.py", RIGHT)
    write(repository / "tests/test_lib.py", TESTS)
    save(repository)
    return repository


@pytest.mark.parametrize("kind", ["path", "table"])
@pytest.mark.parametrize("command", [".venv/bin/python -m pytest -q", BY_EXIT_CODE])
def test_an_editable_install_of_the_work_tree_is_not_what_is_tested(
    project: Path, kind: str, command: str
) -> None:
    packages = environment(project / ".venv")
    if kind == "path":
        write(packages / "lib.pth", f"{project}/src\n")
    else:
        text = FINDER.format(path=f"{project}/src/lib.py", how="append(Finder)")
        write(packages / "__editable___lib_finder.py", text)
        write(packages / "lib.pth", "import __editable___lib_finder as f; f.install()\n")
    write(project / "src/lib.py", WRONG)
    save(project)
    # What is committed is wrong, and only the work tree is right.
    write(project / "src/lib.py", RIGHT)
    assert prove(command)["result"] == "refuted"
    # And the other way round.
    save(project)
    write(project / "src/lib.py", WRONG)
    assert prove(command)["result"] == "proven"


def test_code_that_the_work_tree_puts_first_proves_nothing(project: Path) -> None:
    packages = environment(project / ".venv")
    text = FINDER.format(path=f"{project}/src/lib.py", how="insert(0, Finder)")
    write(packages / "__editable___lib_finder.py", text)
    write(packages / "lib.pth", "import __editable___lib_finder as f; f.install()\n")
    write(project / "src/other.py", "x = 1\n")
    save(project)
    found = prove(".venv/bin/python -m pytest -q")
    assert (found["result"], found["reason"]) == ("unverifiable", "shared_code")
    assert "src/lib.py" in found["detail"]


def test_an_environment_that_is_active_need_not_be_shared(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = environment(project / ".venv")
    write(packages / "lib.pth", f"{project}/src\n")
    monkeypatch.setenv("GUARD_PROVE__SHARE", "")
    monkeypatch.setenv("PATH", f"{project}/.venv/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", f"{project}/.venv")
    write(project / "src/lib.py", WRONG)
    save(project)
    write(project / "src/lib.py", RIGHT)
    assert prove("python -m pytest -q")["result"] == "refuted"


def workspace(project: Path) -> None:
    write(project / ".gitignore", "node_modules\n")
    write(project / "packages/lib/package.json", '{"name": "lib", "main": "lib.js"}')
    write(project / "packages/lib/lib.js", "exports.value = 'right'\n")
    write(
        project / "packages/app/test.js",
        "if (require('lib').value !== 'right' || require('dep') !== 1) process.exit(1)\n",
    )
    write(project / "node_modules/dep/package.json", '{"name": "dep", "main": "dep.js"}')
    write(project / "node_modules/dep/dep.js", "module.exports = 1\n")
    (project / "node_modules/lib").symlink_to("../packages/lib")
    save(project)


@pytest.fixture
def node() -> str:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    return program


@pytest.fixture
def node_project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GUARD_PROVE__SHARE", "node_modules")
    workspace(repository)
    return repository


def test_a_link_of_a_workspace_leads_to_the_checkout(node_project: Path, node: str) -> None:
    command = f"{node} packages/app/test.js"
    assert prove(command)["result"] == "proven"
    write(node_project / "packages/lib/lib.js", "exports.value = 'wrong'\n")
    save(node_project)
    write(node_project / "packages/lib/lib.js", "exports.value = 'right'\n")
    assert prove(command)["result"] == "refuted"
    save(node_project)
    write(node_project / "packages/lib/lib.js", "exports.value = 'wrong'\n")
    assert prove(command)["result"] == "proven"


@pytest.mark.parametrize("how", ["nested", "dependency"])
def test_an_installed_package_that_loads_the_work_tree_proves_nothing(
    node_project: Path, how: str
) -> None:
    if how == "nested":
        (node_project / "node_modules/dep/node_modules").mkdir()
        (node_project / "node_modules/dep/node_modules/lib").symlink_to("../../../packages/lib")
    else:
        text = '{"name": "dep", "main": "dep.js", "dependencies": {"lib": "*"}}'
        write(node_project / "node_modules/dep/package.json", text)
    found = prove("true")
    assert (found["result"], found["reason"]) == ("unverifiable", "shared_code")
    assert "node_modules/dep" in found["detail"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../outside", "outside of the project"),
        ("nowhere", "no folder nowhere"),
        ("packages", "the commit has packages itself"),
        (".git", "outside of the project"),
    ],
)
def test_what_cannot_be_shared_is_noted(
    node_project: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setenv("GUARD_PROVE__SHARE", name)
    assert any(said in note for note in prove("true")["notes"])
