"""A plan that is really worked off, by an agent that does what the test wrote down for each task and each session."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from guard.context.invocation import Invocation
from guard.coordinator.record import require_state
from guard.core.coordinator.state import Coordinator
from tests.support import Result, git, run, write

TARGET = "guard/plan/PLAN"
WORK = """\
echo "$GUARD_TASK" > "$GUARD_TASK.txt"
git add -A
git commit -q -m "feat: do $GUARD_TASK"
echo "READY FOR AUDIT: $GUARD_TASK"
"""
"""What the agent does by default."""
_AGENT = """\
#!/bin/sh
# Does what the script of this task, role and session says, else what that of the role says.
here="$1"
role=work
if [ -n "$GUARD_PROMPT" ]; then printf '%s' "$GUARD_PROMPT" > "$here/given.$$"; else cat > "$here/given.$$"; fi
case "$(head -n 1 "$here/given.$$")" in "# Audit of"*) role=audit ;; esac
key="$GUARD_TASK.$role"
number=$(( $(cat "$here/$key.count" 2>/dev/null || echo 0) + 1 ))
echo "$number" > "$here/$key.count"
mv "$here/given.$$" "$here/$key.prompt-$number"
for script in "$here/$key.$number" "$here/$role"; do
    if [ -f "$script" ]; then . "$script"; exit; fi
done
"""


class PlanRunStory:
    """A project with a plan, and the scripts of the agent that works it off."""

    def __init__(self, root: Path, *lines: str) -> None:
        self.root = root
        self.scripts = root.parent / "scripts"
        write(root / "base.txt", "base\n")
        write(root / "PLAN.md", "# Plan\n\n" + "".join(f"- [ ] {line}\n" for line in lines))
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Begin")
        self.agent = write(self.scripts / "agent.sh", _AGENT)
        self.agent.chmod(self.agent.stat().st_mode | stat.S_IXUSR)
        self.does("work", WORK)
        self.does("audit", 'echo "AUDIT PASS: $GUARD_TASK"\n')

    def does(self, what: str, script: str) -> None:
        """Write down what the agent does: for a role (`work`), or for one session (`1-1.work.2`)."""
        write(self.scripts / what, script)

    def run(self, *options: str, audit: str | None = "true", env: Any = None) -> Result:
        audits = ("--audit", audit) if audit is not None else ()
        words = ("plan", "run", *audits, *options, "--", self.agent, self.scripts)
        return run(*words, env=env)

    def start(self, *options: str, env: Any = None) -> "subprocess.Popen[bytes]":
        """Start a run that the test watches or kills; what it prints goes to `run.log`."""
        words = [sys.executable, "-m", "guard", "plan", "run", *options]
        with open(self.scripts / "run.log", "ab") as log:
            return subprocess.Popen(
                [*words, "--", self.agent, self.scripts],
                cwd=self.root,
                env={**os.environ, **(env or {})},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def report(self, *options: str, code: int = 0, audit: str | None = "true") -> dict[str, Any]:
        done = self.run("--format", "json", *options, audit=audit)
        assert done.code == code, (done.out, done.err)
        found: dict[str, Any] = json.loads(done.out)
        return found

    def sessions(self, task: str, role: str = "work") -> int:
        """How many sessions the agent had for a task."""
        count = self.scripts / f"{task}.{role}.count"
        return int(count.read_text()) if count.exists() else 0

    def prompt(self, task: str, number: int, role: str = "work") -> str:
        return (self.scripts / f"{task}.{role}.prompt-{number}").read_text()

    @property
    def state(self) -> Coordinator:
        return require_state(Invocation(repo=self.root, environ=os.environ))

    def landed(self, target: str = TARGET) -> list[str]:
        """The tasks that landed, in order, by the trailers of the target's commits."""
        form = "--format=%(trailers:key=Guard-Task,valueonly)"
        return git(self.root, "log", "--first-parent", "--reverse", form, target).split()

    def shown(self, path: str, target: str = TARGET) -> str:
        return git(self.root, "show", f"{target}:{path}")

    def branches(self) -> list[str]:
        return git(
            self.root, "branch", "--list", "--format=%(refname:short)", "guard/task/*"
        ).split()
