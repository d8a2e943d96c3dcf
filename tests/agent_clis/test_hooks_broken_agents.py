"""A guard that does not work holds up no session of the real CLIs, although there is uncommitted work."""

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent_clis.hook_install import SETTINGS, guard, installed
from tests.support import commit, write
from tests.support.agent_clis import AgentCli
from tests.support.model import Model, say
from tests.support.sessions import script

_BROKEN_TOML = "[hooks\nmax_blocks = "
_HANGS = "sleep 15"


def _state(agent: AgentCli) -> Path:
    return Path(agent.environ["HOME"], ".local", "state", "guard")


def _bad_user_config(agent: AgentCli) -> None:
    write(Path(agent.environ["HOME"], ".config", "guard", "config.toml"), _BROKEN_TOML)


def _damaged_log(agent: AgentCli) -> None:
    assert guard(agent, "baseline").code == 0
    (log,) = _state(agent).rglob("events.jsonl")
    log.write_bytes(log.read_bytes().replace(b'"', b"'"))
    assert guard(agent, "log").code == 5


def _no_room_for_state(agent: AgentCli) -> None:
    shutil.rmtree(_state(agent), ignore_errors=True)
    write(_state(agent), "a file in the place of the folder")


BROKEN: dict[str, Callable[[AgentCli], None]] = {
    "bad config of the user": _bad_user_config,
    "damaged log": _damaged_log,
    "no room for state": _no_room_for_state,
}


@pytest.fixture(autouse=True)
def begun(repository: Path) -> None:
    """There is something to go on from."""
    commit(repository)


def _ends_at_its_first_stop(agent: AgentCli, model: Model) -> None:
    model.script("make the page", agent.shell("echo page > page.html"), say("The page is made."))
    done = agent.run("make the page")
    assert done.code == 0, done
    assert "The page is made." in done.out


@pytest.mark.parametrize("how", BROKEN)
def test_a_session_ends_with(how: str, agent: AgentCli, model: Model) -> None:
    agent = installed(agent)
    BROKEN[how](agent)
    _ends_at_its_first_stop(agent, model)


def test_what_went_wrong_is_noted(claude: AgentCli, model: Model) -> None:
    claude = installed(claude)
    _damaged_log(claude)
    _ends_at_its_first_stop(claude, model)
    assert "Stop" in (_state(claude) / "hooks.log").read_text()


def test_a_session_ends_without_any_guard(any_agent: AgentCli, model: Model) -> None:
    hooked = installed(any_agent)
    _ends_at_its_first_stop(replace(hooked, environ=any_agent.environ), model)


def test_a_session_ends_with_a_guard_that_hangs(
    agent: AgentCli, model: Model, tmp_path: Path
) -> None:
    agent = installed(agent)
    script(tmp_path / "bin" / "guard", _HANGS)
    path = f"{tmp_path / 'bin'}:{agent.environ['PATH']}"
    _give_each_hook_one_second(agent)
    began = time.monotonic()
    _ends_at_its_first_stop(replace(agent, environ={**agent.environ, "PATH": path}), model)
    assert time.monotonic() - began > 1, "the hooks were called"


def _give_each_hook_one_second(agent: AgentCli) -> None:
    file = Path(SETTINGS[agent.name])
    settings = json.loads(file.read_text())
    for groups in settings["hooks"].values():
        for group in groups:
            for hook in group["hooks"]:
                hook["timeout"] = 1
    write(file, json.dumps(settings))
