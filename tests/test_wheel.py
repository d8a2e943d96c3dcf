"""The wheel, installed into an empty environment and used."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pydantic
import pytest

from tests.support import ROOT, git

pytestmark = pytest.mark.long
# The release workflow tests the very file that it publishes.
BUILT = os.environ.get("GUARD_TESTS_WHEEL")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if BUILT is not None:
        return Path(BUILT)
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_it_carries_schemas_hooks_and_type_marker(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "guard/py.typed" in names
    for folder in ("schemas", "hooks"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
        assert {f"guard/_data/{path.relative_to(ROOT).as_posix()}" for path in files} <= names
    folders = ("report/templates", "dashboard/templates", "dashboard/static")
    templates = [path for folder in folders for path in (ROOT / "guard" / folder).rglob("*.*")]
    assert "guard/dashboard/static/htmx.LICENSE.txt" in names
    assert {path.relative_to(ROOT).as_posix() for path in templates if path.is_file()} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_it_works_where_only_it_and_its_dependencies_are(
    wheel: Path, tmp_path: Path, home: Path
) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    libraries = next((place / "lib").glob("python*")) / "site-packages"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", libraries, wheel],
        check=True,
        capture_output=True,
    )
    # The dependencies come from the environment of the tests; guard itself must not.
    (libraries / "dependencies.pth").write_text(f"{Path(pydantic.__file__).parents[1]}\n")
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    script = (
        "import sys; sys.path = [p for p in sys.path if p != sys.argv[1]]; sys.argv = sys.argv[1:];"
        "import guard, guard.cli; assert 'environment' in guard.__file__; guard.cli.main()"
    )
    python = place / "bin" / "python"

    def guard(*words: str) -> str:
        done = subprocess.run(
            [python, "-c", script, ROOT, *words], cwd=project, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "agent-registry" in guard("schema")
    guard("agent", "spawn", "--task", "T1", "--agent", "a1")
    workspace = Path(guard("where").strip())
    assert "1 file valid" in guard("validate", str(workspace / "T1" / "AGENT_REGISTRY.json"))
