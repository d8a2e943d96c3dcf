"""`guard plan run` with the real CLIs: they work a plan off, audit each other's work, and ask a person."""

from pathlib import Path

import pytest

from tests.support import git, run, write
from tests.support.agent_clis import AgentCli
from tests.support.model import Model, say

_LINES = (
    *("T1: the schema", "T2: the loader (depends: T1)", "T3: the printer"),
    *("T4: the command (depends: T2, T3)", "T5: the page"),
)


@pytest.mark.long
def test_five_tasks_are_worked_off_audited_and_landed(
    agent: AgentCli, model: Model, repository: Path
) -> None:
    write(repository / "PLAN.md", "".join(f"- [ ] {line}\n" for line in _LINES))
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Begin")
    for number, line in enumerate(_LINES, 1):
        name = f"T{number}"
        title = line.partition(" (")[0]
        work = f"echo {name} > {name}.txt && git add -A && git commit -q -m 'feat: {name}'"
        model.script(f"# Task {title}", agent.shell(work), say(f"Done.\n\nREADY FOR AUDIT: {name}"))
        passed = f"AUDIT PASS: {name}\nEvidence: the file is there"
        look = agent.shell(f"cat {name}.txt")
        model.script(f"# Audit of task {title}", look, say(passed))
    options = ("--agents", "2", "--format", "json")
    words = agent.command if agent.name == "claude" else (*agent.command, "-")
    done = run("plan", "run", *options, "--", *words, env=agent.environ)
    assert done.code == 0, done.err
    report = done.json
    assert (report["ended"], report["landed"], report["sessions"]) == ("complete", 5, 10), done.err
    form = "--format=%(trailers:key=Guard-Task,valueonly)"
    landed = git(repository, "log", "--first-parent", form, "guard/plan/PLAN").split()
    assert sorted(landed) == ["T1", "T2", "T3", "T4", "T5"]
    assert git(repository, "status", "--porcelain") == ""
    assert model.unscripted == []
