"""The real agent CLIs, each test with a scripted model of its own; where they cannot be installed the tests are skipped.

With GUARD_TESTS_REQUIRE_AGENTS set, as in `.ci/run`, they fail instead.
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


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with the programs `claude` and `codex`."""
    try:
        return npm.install(_ENVIRON)
    except npm.Unavailable as error:
        reason = f"the agent CLIs cannot be installed: {error}"
    if _ENVIRON.get("GUARD_TESTS_REQUIRE_AGENTS"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


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


@pytest.fixture(params=["claude", "codex"])
def agent(request: pytest.FixtureRequest) -> AgentCli:
    """Each of them in turn."""
    found: AgentCli = request.getfixturevalue(request.param)
    return found
