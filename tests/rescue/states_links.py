"""Links and special files below `.git`, where git writes: it would write outside the repository, or wait for ever."""

from pathlib import Path

from tests.rescue.states_start import Build, Left, State, dirty
from tests.support.planted_links import outside, plant

_OBSTACLE = "not_plain:obstacle"
_PATIENCE = 2.0
"""How long somebody waits for a git that waits for a pipe."""


def planted(place: str, kind: str) -> Build:
    """The work is left, and something stands where git would write."""

    def build(root: Path) -> Left:
        left = dirty(root)
        plant(root / ".git", place, kind, outside(root))
        return left

    return build


def linked(place: str, kind: str = "link to a folder") -> State:
    return State(planted(place, kind), _OBSTACLE)


def waiting(place: str) -> State:
    return State(
        planted(place, "pipe"),
        _OBSTACLE,
        naive_loses=True,
        skipped=(f".git/{place}: a special file",),
        sound=False,
        patience=_PATIENCE,
    )


LINKS = {
    "logs is a link": linked("logs"),
    "logs/refs is a link": linked("logs/refs"),
    "logs/HEAD is a link": linked("logs/HEAD", "link to a file"),
    "logs/HEAD has a second name": linked("logs/HEAD", "second name"),
    "logs/HEAD is a pipe": waiting("logs/HEAD"),
    "the branch's reflog is a dangling link": linked("logs/refs/heads/main", "dangling link"),
    "refs is a link": linked("refs"),
    "objects is a link": linked("objects"),
    "folders of objects are links": linked("objects/??"),
    "objects/pack is a link": linked("objects/pack"),
    "index is a link": linked("index", "dangling link"),
}
