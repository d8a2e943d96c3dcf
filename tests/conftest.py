"""States to start from. Determinism comes from the environment: home, identity, zone and language are the test's own."""

import gc
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from guard.store.file_store import FileStore
from tests.support import PATIENT, git
from tests.support.machines import free_port, why_not
from tests.support.postgres import PostgresServer, find_programs, postgres_server
from tests.support.tmux_server import TmuxServer, tmux_server
from tests.support.victims import Victims

settings.register_profile(
    "guard",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("guard")

# A shell without job control lets what it starts in the background ignore Ctrl-C, and all that starts from there inherits it;
# so it is with `nohup` and a hangup. A handler that does nothing is not inherited: what the tests start can be told to end.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

_KEPT = ("PATH", "LANG", "TMPDIR", "COVERAGE_PROCESS_START", "PYTHONPATH", "VIRTUAL_ENV")
_NUMBERS = itertools.count()


_START = shutil.which("python3")
if _START and Path(_START).read_bytes()[:2] == b"#!":
    # A script of a version manager, which starts fifty processes before Python and depends on the home.
    os.environ["PATH"] = f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: half of the time went into that, and what is collected here stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which looks through the folders of all tests before it for the next free number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{next(_NUMBERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, with nothing of the caller's environment but the search paths."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in list(os.environ):
        # The options of this run are not those of the test runners that tests start.
        is_own = name.startswith(("PYTEST_", "COV_", "HYPOTHESIS_")) and name != "PYTEST_ADDOPTS"
        if name not in _KEPT and not is_own:
            monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        # A pytest that a test starts needs none of the plugins of this one, and begins in half the time without them.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **PATIENT,
    }.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def usual_limits(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard's own limits, for tests of the configuration."""
    for name in PATIENT:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def empty_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `repository` is a copy of: three calls of git for all the tests, not for each."""
    folder = tmp_path_factory.mktemp("empty") / "project"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder.parent))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        git(folder, "init", "-q", "-b", "main")
        git(folder, "config", "user.name", "Test Author")
        git(folder, "config", "user.email", "author@example.com")
    for example in (folder / ".git" / "hooks").iterdir():
        example.unlink()
    return folder


@pytest.fixture
def repository(
    home: Path, empty_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A repository with an identity and no commit; the test stands in it."""
    folder = tmp_path / "project"
    shutil.copytree(empty_repository, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The path of a workspace that does not exist yet."""
    return tmp_path / "workspace"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing, in a session of its own."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not end when it is asked to."""
    ignores = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    words = [sys.executable, "-c", f"{ignores}; print('up', flush=True); time.sleep(600)"]
    with subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process
        process.kill()


@pytest.fixture
def server() -> Iterator[TmuxServer]:
    """A tmux server of the test's own."""
    with tmux_server() as made:
        yield made


@pytest.fixture
def victims() -> Iterator[Victims]:
    """A process that forks guards to be killed."""
    process = Victims()
    yield process
    process.end()


@pytest.fixture
def store(workspace: Path) -> FileStore:
    """A store in an empty workspace."""
    return FileStore(workspace)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that the tests of one process share."""
    programs = find_programs()
    if programs is None:
        if os.environ.get("GUARD_TESTS_REQUIRE_POSTGRES"):
            pytest.fail("PostgreSQL is not installed")
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    with postgres_server(programs) as server:
        yield server


@pytest.fixture(scope="session")
def shared_database(postgres: PostgresServer) -> str:
    """A database that many tests share, each with a workspace of its own."""
    return postgres.new_database("shared")


@pytest.fixture
def kept_in(request: pytest.FixtureRequest, workspace: Path) -> str:
    """What GUARD_WORKSPACE is set to: a folder, or a workspace in PostgreSQL for tests that run over both stores."""
    if getattr(request, "param", "files") == "files":
        return str(workspace)
    address = request.getfixturevalue("shared_database")
    return f"{address}&guard_workspace=test_{next(_NUMBERS)}"


@pytest.fixture
def dsn(postgres: PostgresServer) -> str:
    """The address of a database of the test's own."""
    return postgres.new_database(f"test_{next(_NUMBERS)}")


@pytest.fixture(scope="session")
def network_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that machines reach over the network, with a password."""
    programs, why = find_programs(), why_not()
    if programs is None or why is not None:
        if programs is None and os.environ.get("GUARD_TESTS_REQUIRE_POSTGRES"):
            pytest.fail("PostgreSQL is not installed")
        pytest.skip(why or "PostgreSQL is not installed (apt-get install postgresql)")
    with postgres_server(programs, "*", free_port()) as server:
        yield server
