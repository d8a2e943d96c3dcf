"""For all tests of snapshots."""

import pytest

from guard.snapshots import stat_cache as remembered


@pytest.fixture
def no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been written long ago: what happens between two snapshots here takes more than a tick."""
    monkeypatch.setattr(remembered, "_RACY_NS", 0)
