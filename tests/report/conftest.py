"""A night that was really played, once in each process for all the tests that only look at it."""

import os
from pathlib import Path

import pytest

from tests.support.nights import play_night

_PLAYED: dict[Path, dict[str, str]] = {}
_PLACES = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")


@pytest.fixture
def night(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository of the night; a test may add to it, and changes nothing of what was recorded."""
    if not _PLAYED:
        play_night(repository, tmp_path / "night")
        _PLAYED[repository] = {name: os.environ[name] for name in _PLACES}
    [(root, places)] = _PLAYED.items()
    for name, path in places.items():
        monkeypatch.setenv(name, path)
    monkeypatch.chdir(root)
    return root
