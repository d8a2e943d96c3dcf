"""The wheel, installed into an empty environment and used."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pydantic
import pytest

from guard import __version__
from tests.support import ROOT, git

pytestmark = pytest.mark.long
_PIP_INSTALL = (
    *(sys.executable, "-m", "pip", "install", "-q"),
    *("--no-deps", "--no-build-isolation"),
)
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


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.tar.gz")
    return built


def test_both_have_the_version_of_the_package_in_their_names(wheel: Path, sdist: Path) -> None:
    assert wheel.name == f"completion_guard-{__version__}-py3-none-any.whl"
    assert sdist.name == f"completion_guard-{__version__}.tar.gz"


def test_the_source_has_what_the_repository_offers(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        ".claude-plugin/marketplace.json",
        ".agents/plugins/marketplace.json",
        "action.yml",
    ):
        assert name in names


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


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_works_where_only_it_and_its_dependencies_are(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, home: Path
) -> None:
    file: Path = request.getfixturevalue(kind)
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    libraries = next((place / "lib").glob("python*")) / "site-packages"
    subprocess.run(
        # The source is built by the hatchling of the tests' environment: a test needs no network for it.
        [*_PIP_INSTALL, "--target", str(libraries), str(file)],
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

    assert guard("--version") == f"guard, version {__version__}\n"
    assert "agent-registry" in guard("schema")
    guard("agent", "spawn", "--task", "T1", "--agent", "a1")
    workspace = Path(guard("where").strip())
    assert "1 file valid" in guard("validate", str(workspace / "T1" / "AGENT_REGISTRY.json"))
