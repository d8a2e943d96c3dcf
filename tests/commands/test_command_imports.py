"""What a command loads that agents and hooks call all day: a list, because one more import is easily overlooked."""

from pathlib import Path

import pytest

from tests.support import PATIENT, commit, run, write

ROOMS = """
import sys
from guard.cli import main
try:
    main()
finally:
    names = [name.split(".") for name in sys.modules if name.startswith("guard.")]
    rooms = {".".join(name[1 : 3 if name[1] == "core" else 2]) for name in names}
    heavy = {"asyncio", "concurrent.futures", "email", "http", "importlib.metadata", "jinja2", "jsonschema", "pydantic"}
    print(*sorted(rooms - {"cli", "commands", "core", "errors"}), "|", *sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
PLAIN = dict.fromkeys(PATIENT, "")
LEAST = "context core.base core.config git store system"
STATE = f"{LEAST} core.iteration core.log core.snapshots"
AGENTS = f"{STATE} agents core.agents core.claims"
ITERATION = f"{STATE} core.check core.classify core.cost core.hooks core.probe core.team core.tool_calls core.work iteration"
COMMANDS = {
    "where": ("where", LEAST, ""),
    "schema": ("schema run", f"{LEAST} schemas", ""),
    "completion": ("completion zsh", LEAST, ""),
    "breaker allow": ("breaker allow", f"{STATE} breaker core.breaker core.check", "pydantic"),
    "agent update": ("agent update --task t --agent a --status running", AGENTS, "pydantic"),
    "team spawn": ("team spawn --team x --member m", f"{ITERATION} hooks team", "pydantic"),
    "plan ready": (
        "plan ready t",
        f"{AGENTS} coordinator core.check core.coordinator core.failures core.plan landing rollback",
        "pydantic",
    ),
    "baseline": (
        "baseline",
        f"{ITERATION} core.prove core.rescue rescue rollback snapshots",
        "pydantic",
    ),
    "check": (
        "check --no-probe --no-wait",
        (
            f"{ITERATION} {AGENTS} breaker check core.breaker core.prove core.rescue core.run hooks rescue rollback snapshots"
            " team"
        ),
        "pydantic",
    ),
}
"""A call, the rooms that it may load, and the heavy packages."""


@pytest.fixture
def worked(repository: Path) -> Path:
    write(repository / "plan.json", '{"tasks": [{"id": "t", "title": "Write it"}]}')
    for words in (
        "baseline",
        "agent spawn --task t --agent a",
        "plan load plan.json",
        "plan dispatch t --agent b",
    ):
        assert run(*words.split(), cwd=repository).code == 0
    write(repository / "new.txt", "new\n")
    commit(repository, "Add a file")
    return repository


@pytest.mark.parametrize(("words", "rooms", "packages"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_loads_no_other_rooms_than_these(
    worked: Path, words: str, rooms: str, packages: str
) -> None:
    done = run(*words.split(), cwd=worked, env=PLAIN, fresh=True, script=ROOMS)
    assert done.code == 0, done.err
    loaded, _, heavy = done.err.splitlines()[-1].partition(" |")
    assert (set(loaded.split()) - set(rooms.split()), heavy.strip()) == (set(), packages)
