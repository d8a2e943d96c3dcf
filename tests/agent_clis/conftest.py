"""The real agent CLIs, each test with a scripted model of its own; where they cannot be installed the tests are skipped.

With GUARD_TESTS_REQUIRE_AGENTS set, as in `.ci/run`, those with Claude Code and Codex fail instead.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import agent_clis, npm
from tests.support.agent_clis import AgentCli
from tests.support.model import Model
from tests.support.model.server import serving

# As the test run was started; inside a test it is the test's own.
_ENVIRON = dict(os.environ)


def _installed(packages: npm.Packages, *, required: bool) -> Path:
    try:
        return npm.install(packages, _ENVIRON)
    except npm.Unavailable as error:
        reason = f"{' and '.join(packages.pins)} cannot be installed: {error}"
    if required and _ENVIRON.get("GUARD_TESTS_REQUIRE_AGENTS"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with the programs `claude` and `codex`."""
    return _installed(npm.CLAUDE_AND_CODEX, required=True)


@pytest.fixture(scope="session")
def gemini_programs() -> Path:
    """The folder with the program `gemini`."""
    return _installed(npm.GEMINI, required=False)


@pytest.fixture(scope="session")
def qwen_programs() -> Path:
    """The folder with the program `qwen` and the Node that it needs."""
    return _installed(npm.QWEN, required=False)


@pytest.fixture
def model() -> Iterator[Model]:
    """A model that the test scripts; what it was not told to answer fails the test."""
    model = Model()
    with serving(model):
        yield model
    assert model.unscripted == []


@pytest.fixture
def claude(programs: Path, home: Path, model: Model, repository: Path) -> AgentCli:
    """Claude Code in a repository."""
    return agent_clis.claude(programs, home, model.url)


@pytest.fixture
def codex(programs: Path, home: Path, model: Model, repository: Path) -> AgentCli:
    """Codex in a repository."""
    return agent_clis.codex(programs, home, model.url)


@pytest.fixture
def gemini(gemini_programs: Path, home: Path, model: Model, repository: Path) -> AgentCli:
    """Gemini CLI in a repository."""
    return agent_clis.gemini(gemini_programs, home, model.url)


@pytest.fixture
def qwen(qwen_programs: Path, home: Path, model: Model, repository: Path) -> AgentCli:
    """Qwen Code in a repository."""
    return agent_clis.qwen(qwen_programs, home, model.url)


@pytest.fixture(params=["claude", "codex", "gemini", "qwen"])
def any_agent(request: pytest.FixtureRequest) -> AgentCli:
    """Each CLI in turn."""
    found: AgentCli = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["claude", "codex"])
def agent(request: pytest.FixtureRequest) -> AgentCli:
    """Claude Code and Codex in turn."""
    found: AgentCli = request.getfixturevalue(request.param)
    return found
