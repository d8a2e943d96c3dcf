"""An installation that is killed: the old file or the new one, and the next call finishes the work."""

import os
import signal
from pathlib import Path

import pytest

from guard.install import settings_file
from guard.install.agents import AGENT_CLIS
from guard.install.apply import put_piece, take_piece
from guard.install.files import settings_piece
from tests.support import write

CALLS = ("mkdir", "open", "write", "fchmod", "fsync", "replace", "unlink", "rename")
OLD = '{\n  "a": 1\n}\n'


def killed_at(number: int, path: Path, take_out: bool) -> bool:
    """Whether a child that changes the file was killed before this call of the operating system; else it was done before."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(name: str) -> None:
            original = getattr(os, name)

            def call(*args: object, **options: object) -> object:
                nonlocal count
                count += 1
                if count == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return original(*args, **options)

            setattr(os, name, call)

        for name in CALLS:
            counted(name)
        change = take_piece if take_out else put_piece
        change(
            settings_piece(path, AGENT_CLIS["claude"], "guard"),
            None,
            dict(os.environ),
            dry_run=False,
        )
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("take_out", [False, True], ids=["install", "uninstall"])
@pytest.mark.parametrize("existing", [False, True], ids=["no file", "a file"])
def test_killed_before_every_call(take_out: bool, existing: bool, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    piece = settings_piece(path, AGENT_CLIS["claude"], "guard")
    environ = dict(os.environ)

    def reset() -> str | None:
        take_piece(piece, None, environ, dry_run=False)
        if existing:
            write(path, OLD)
        if take_out:
            put_piece(piece, None, environ, dry_run=False)
        return settings_file.read_text(path)

    before = reset()
    whole = (take_piece if take_out else put_piece)(piece, None, environ, dry_run=True).after
    number = 1
    while killed_at(number, path, take_out):
        assert settings_file.read_text(path) in (before, whole)
        (take_piece if take_out else put_piece)(piece, None, environ, dry_run=False)
        assert settings_file.read_text(path) == whole
        assert {entry.name for entry in path.parent.glob("*")} <= {"settings.json"}
        assert reset() == before
        number += 1
    assert number > 5
