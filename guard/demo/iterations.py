"""The play about iterations: what guard says of sessions that end in every way, and what it saves."""

import shlex
import sys

from guard.demo.stage import Stage

_AGENT = (sys.executable, "-m", "guard.demo.agent")


class IterationsPlay(Stage):
    """A scripted agent commits, forgets, delegates, meets a limit, stalls, and recovers."""

    def play(self) -> None:
        """All scenes in order; a scene that goes otherwise than it should ends the demo."""
        self._make_repository()
        self._git("commit", "-q", "--allow-empty", "-m", "chore: begin")
        self._scene("The agent commits: complete")
        self._iterate("commits")
        self._scene("It forgets to commit: its session is asked, and its work is committed")
        self._iterate("forgets", says="complete")
        self._scene("It leaves a helper at work: guard waits, until the helper's commit lands")
        self._iterate("delegates", says="waiting")
        self._scene("It meets a usage limit: no stall, and it is said when to go on")
        self._iterate("limited", agent="claude", code=13)
        self._scene("It stalls three times: only that opens the breaker")
        for _ in range(3):
            self._iterate("stalls", says="working", code=10)
        self._iterate("stalls", says="working", code=20)
        self._scene("A person commits: that earns a trial, the agent recovers, the breaker closes")
        self._git("commit", "-q", "--allow-empty", "-m", "chore: a hint for the agent")
        self._recover()
        self._guard("metrics")

    def _iterate(self, part: str, *, says: str = "", agent: str = "", code: int = 0) -> None:
        words = ["run", "--max-probes", "2", "--probe-interval", "0.2"]
        words = words if part == "delegates" else ["--quiet", *words]
        shown = ["run"]
        if says:
            words += ["--probe-command", shlex.join([*_AGENT, "answer", says])]
        if agent:
            words += ["--agent", agent]
            shown += ["--agent", agent]
        self._guard(
            *words, "--", *_AGENT, part, code=code, shown=f"{' '.join(shown)} -- agent {part}"
        )

    def _recover(self) -> None:
        (self._folder / "greeting.py").unlink()
        self._git("commit", "-q", "-a", "-m", "chore: start over")
        self._iterate("commits")
        shown = self._guard("breaker", "show", "--format", "json", shown="breaker show", quiet=True)
        self._expect('"state": "closed"' in shown, "the breaker did not close")
        self._tell("  closed")
