"""Run the repository's own hooks where the user allows it: `pre-commit` once, `commit-msg` for each commit."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from guard.core.base.text import escape, fit_line
from guard.git.run import read_config
from guard.snapshots.project import Project
from guard.system.processes import run

_SHARE = 0.5
_MOST_WORDS = 4096
_MOST_MESSAGE = 64 * 1024


class HookRefused(Exception):
    """A hook said no; the message has what it printed."""


class RepositoryHooks:
    """Asks the hooks about an index of guard's own; they cannot add to the project's index."""

    def __init__(self, project: Project, index: Path) -> None:
        self._project, self._index = project, index
        self.ran: list[str] = []

    def allow(self) -> None:
        self._run("pre-commit")

    def edit_messages(self, messages: Sequence[bytes], mark: str) -> list[bytes]:
        """Ask `commit-msg` about each message; return them as the hook leaves them, unless that removes guard's own mark."""
        path = self._index.with_name("COMMIT_EDITMSG")
        found = []
        for message in messages:
            path.write_bytes(message)
            self._run("commit-msg", os.fspath(path))
            edited = path.read_bytes() if path.is_file() else b""
            found.append(edited if self._is_marked(edited, mark) else message)
        return found

    def _is_marked(self, message: bytes, mark: str) -> bool:
        if len(message) > _MOST_MESSAGE or b"\0" in message:
            return False
        trailers = self._project.call("interpret-trailers", "--parse", stdin=message)
        return mark.encode() in trailers.splitlines()

    def _run(self, name: str, *words: str) -> None:
        program = _program(self._project, name)
        if program is None:
            return
        self.ran.append(name)
        try:
            done = run(
                [program, *words],
                environ=_environ(self._project, self._index),
                time_limit=self._project.deadline.left() * _SHARE,
                cwd=self._project.repository.root,
                most_stderr=_MOST_WORDS,
                leaves_nothing=True,
                chosen=True,
            )
        except OSError as error:
            raise HookRefused(f"{name} does not start: {error.strerror}") from None
        if done.code != 0:
            message = escape(
                " ".join((done.stderr or done.stdout).decode(errors="replace").split())
            )
            ended = "did not end in time" if done.code is None else f"said no ({done.code})"
            raise HookRefused(
                fit_line(f"{name} {ended}: {message[-300:]}" if message else f"{name} {ended}")
            )


def _program(project: Project, name: str) -> str | None:
    repository = project.repository
    path = read_config("core.hooksPath", repository.git_dir, project.environ, "path")
    folder = repository.root / path if path else repository.common_dir / "hooks"
    program = os.fspath(folder / name)
    return program if os.path.isfile(program) and os.access(program, os.X_OK) else None


def _environ(project: Project, index: Path) -> Mapping[str, str]:
    """As git would call it: with the index that is to be committed, and with no editor.

    The repository is where it runs. Were it named here, whatever a hook does in another repository (a test that makes one)
    would be done to this one.
    """
    callers = project.environ.items()
    plain = {name: text for name, text in callers if not name.startswith("GIT_")}
    return {**plain, "GIT_INDEX_FILE": os.fspath(index), "GIT_EDITOR": ":", "GIT_PREFIX": ""}
