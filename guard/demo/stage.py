"""Give the demo a scratch repository with a clean environment, and show commands as they run."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from guard.errors import Refused
from guard.git.run import git_environment
from guard.system.processes import Finished, run
from guard.system.programs import own_python

SECONDS = 60.0


class Stage:
    """One play in a folder; all its output goes through `tell`."""

    _seconds = SECONDS
    """How long one command may take."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder = folder / "project"
        self._tell = tell
        self._workspace = Path()
        self._environ = {
            name: value
            for name, value in git_environment(os.environ).items()
            if not name.startswith("GUARD_")
        }
        self._environ.update(
            HOME=os.fspath(folder),
            XDG_STATE_HOME=os.fspath(folder / "state"),
            XDG_CACHE_HOME=os.fspath(folder / "cache"),
            XDG_CONFIG_HOME=os.fspath(folder / "config"),
        )
        (folder / ".gitconfig").write_text("[user]\nname = Demo\nemail = demo@localhost\n")

    def _make_repository(self) -> None:
        self._folder.mkdir()
        self._git("init", "-q", "-b", "main", ".")

    def _git(self, *words: str) -> None:
        done = run(["git", *words], environ=self._environ, time_limit=SECONDS, cwd=self._folder)
        self._expect(done.code == 0, f"git {words[0]}: {done.stderr.decode(errors='replace')}")

    def _scene(self, title: str) -> None:
        self._tell(f"\n== {title}")

    def _guard(
        self, *words: str, code: int = 0, shown: str | None = None, quiet: bool = False
    ) -> str:
        # `shown` is the command as people would type it.
        self._tell(f"$ guard {shown or shlex.join(words)}")
        done = self._call(*words)
        for line in (
            () if quiet else (done.stderr + done.stdout).decode(errors="replace").splitlines()
        ):
            self._tell(f"  {line}")
        if code:
            self._tell(f"  (exit code {done.code})")
        self._expect(done.code == code, f"`guard {words[0]}` ended with {done.code}, not {code}")
        return done.stdout.decode(errors="replace")

    def _call(self, *words: str) -> Finished:
        argv = own_python("-m", "guard", *words)
        return run(argv, environ=self._environ, time_limit=self._seconds, cwd=self._folder)

    @staticmethod
    def _expect(condition: bool, otherwise: str) -> None:
        if not condition:
            raise Refused(f"the demo went wrong: {otherwise}", "run `guard doctor`, and report it")
