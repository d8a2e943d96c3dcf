"""What all states are made from: a first commit, a little work left in it, and what has to be known of a state."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import commit, git, write
from tests.support.rescues import Contents, contents

Left = list[bytes | str]
Build = Callable[[Path], Left]
PLENTY = 120.0
ANYTHING = ("…",)
"""What git shows in a state that it cannot tell much of."""


@dataclass(frozen=True)
class State:
    """How to get there, and what must come of it. A builder returns what the iteration left."""

    build: Build
    reason: str = "rescued"
    on_branch: bool = False
    """Whether the work ends up on a branch of its own."""
    naive_loses: bool = False
    """Whether `git add -A && git commit` leaves contents that no ref leads to."""
    held: Mapping[str, str] = field(default_factory=dict)
    """What a rescue holds back, and why."""
    remains: tuple[str, ...] = ()
    """What `git status` still shows after a rescue on the branch."""
    skipped: tuple[str, ...] = ()
    """What the snapshot says that it has not."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables of the process; {root} is the work tree."""
    branch: str = "main"
    """The branch of the baseline."""
    known: bool = False
    """Whether guard saw the work tree before it came into this state."""
    sound: bool = True
    """Whether git finds nothing wrong with it afterwards, given the chance."""
    patience: float = PLENTY
    """How long somebody waits for a naive commit."""
    runs: bool = False
    """Whether code of the repository's writes a file `ran` beside it when a careless git runs there."""

    def kept(self, root: Path, left: Sequence[bytes | str]) -> Contents:
        """What there is in the work tree, but for what a snapshot is said to leave out."""
        named = {os.fsencode(path) for path in left}
        left_out = tuple(os.fsencode(line.partition(": ")[0]) + b"/" for line in self.skipped)
        found = contents(root).items()
        return {
            path: what for path, what in found if path in named or not path.startswith(left_out)
        }


def start(root: Path) -> None:
    """A commit with a few files, one of them the user's to edit."""
    for name in ("kept.txt", "edited.txt", "deleted.txt", "tool.sh", "mine.txt"):
        write(root / name, f"{name}\n" * 3)
    write(root / "folder/inside.txt", "inside\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Start")


def dirty(root: Path) -> Left:
    write(root / "edited.txt", "edited\n")
    write(root / "new.txt", "new\n")
    return ["edited.txt", "new.txt"]


def stage_and_edit(root: Path, staged: str, edited: str) -> None:
    """A file whose staged text is another than the one on disk."""
    write(root / "edited.txt", staged)
    git(root, "add", "edited.txt")
    write(root / "edited.txt", edited)


def after(prepare: Callable[[Path], object]) -> Build:
    """The work is left in what was prepared."""

    def build(root: Path) -> Left:
        prepare(root)
        return dirty(root)

    return build


def before(spoil: Callable[[Path], object]) -> Build:
    """The work is left, then something happens."""

    def build(root: Path) -> Left:
        left = dirty(root)
        spoil(root)
        return left

    return build


def configured(**settings: str) -> Build:
    """The work is left in a repository with these settings; `__` stands for the dot in a name."""

    def build(root: Path) -> Left:
        for key, value in settings.items():
            git(root, "config", key.replace("__", "."), value)
        return dirty(root)

    return build


def attempted(root: Path, *words: str) -> None:
    """A git command that may stop in the middle."""
    subprocess.run(["git", *words], cwd=root, check=False, capture_output=True, timeout=PLENTY)


def stopped(root: Path, *words: str) -> Left:
    """Git stops at a conflict; a new file lies beside it."""
    attempted(root, *words)
    write(root / "new.txt", "new\n")
    return ["edited.txt", "new.txt"]


def two_sides(root: Path) -> str:
    """A commit on another branch that conflicts with one on main; its id."""
    git(root, "checkout", "-q", "-b", "side")
    side = commit(root, "edited.txt", "side\n")
    git(root, "checkout", "-q", "main")
    commit(root, "edited.txt", "main\n")
    return side


def set_aside(root: Path, name: str = "origin") -> Path:
    """Move the repository away, so that another can stand in its place."""
    place = root.parent / name
    root.rename(place)
    return place


def in_repository(folder: str) -> str:
    """Why a rescue holds back what lies in a repository of its own."""
    return f"nested_repository: commit it there; `git -C {folder} status` shows what changed"


def in_removed_repository(folder: str) -> str:
    return f"nested_repository: removed; `git commit -- {folder}` commits that"


def identify(root: Path) -> None:
    """Give a repository an author."""
    git(root, "config", "user.name", "Test Author")
    git(root, "config", "user.email", "author@example.com")
