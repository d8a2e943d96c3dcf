"""The pictures of the docs show what guard shows now: the night behind them is played again, and compared as text."""

import json
import shutil
from pathlib import Path

import pytest

from tests.pictures.draw import FOLDER, PAGES, TERMINALS, outdated, play


@pytest.mark.long
def test_the_pictures_are_those_of_the_night_as_it_is_played_now(tmp_path: Path) -> None:
    played = play(tmp_path)
    old = outdated(played)
    assert not old, f"{', '.join(old)}: run `python -m tests.pictures`, and look at what it made"
    # The same comparison finds what differs.
    other = tmp_path / "pictures"
    shutil.copytree(FOLDER, other)
    for name in TERMINALS:
        text = (other / name).read_text()
        (other / name).write_text(text.replace("feat: discounts", "feat: gifts", 1))
    hashes = json.loads((other / PAGES.name).read_text())
    (other / PAGES.name).write_text(json.dumps({**hashes, "report": "0"}))
    assert outdated(played, other) == ["report.svg", "report.png"]
