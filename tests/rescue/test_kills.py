"""Killed at any moment, alone or with all that it started: nothing is lost, nothing is half done, the next command works."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from guard.core.snapshots.snapshot import Snapshot
from tests.rescue.states import start
from tests.support import git, write
from tests.support.rescues import Contents, contents, recovered
from tests.support.victims import Victims

KILLS = 10
LEFT = ["edited.txt", "new.txt", "deep/er.txt"]


class Scene:
    """A repository with work in it, which must be the same whatever happens to guard."""

    def __init__(self, victims: Victims, root: Path, workspace: Path) -> None:
        self.victims, self.root, self.workspace = victims, root, workspace
        self.shadow = workspace / "shadow.git"
        self.round = 0
        start(root)

    def leave_work(self) -> None:
        """New content each time, some of it staged, most of it not."""
        self.round += 1
        for name in LEFT:
            write(self.root / name, f"{name} {self.round}\n" * 500)
        self.project: Contents = contents(self.root)
        self.tip, self.index = self.read()

    def read(self) -> tuple[str, str]:
        tip = git(self.root, "rev-parse", "refs/heads/main").strip()
        return tip, git(self.root, "ls-files", "--stage")

    def killed(self, what: str, **how: Any) -> Any:
        answer = self.victims.serve(what, self.root, self.workspace, paths=LEFT, **how)
        if how.get("everything"):
            self.unlocked()
        self.assert_whole()
        return answer["said"]

    def unlocked(self) -> None:
        """A git that is killed itself leaves its lock; the next rescue knows it for what it is."""
        if self.locks():
            said = self.victims.serve("rescue", self.root, self.workspace, paths=LEFT)["said"]
            assert said["reason"] in ("rescued", "nothing"), said

    def locks(self) -> list[str]:
        """Those that block anybody's git: the one of an index of guard's own, which is swept later, blocks nobody."""
        names = (path.name for path in (self.root / ".git").rglob("*.lock"))
        return [name for name in names if not name.startswith("guard-index.")]

    def assert_whole(self) -> None:
        """The work tree untouched; no lock; the branch and the index before the rescue or after it, and nothing between."""
        assert contents(self.root) == self.project
        assert self.locks() == []
        tip, index = self.read()
        new = [self.tip, tip] if tip != self.tip else [self.tip]
        for branch in git(self.root, "for-each-ref", "--format=%(objectname)").split():
            assert branch in new, "a branch that is half made"
        if tip == self.tip:
            assert index == self.index
            return
        self.assert_rescued(tip)
        assert index in (self.index, git(self.root, "ls-tree", "-r", f"--format={FORMAT}", tip))

    def assert_rescued(self, tip: str) -> None:
        assert git(self.root, "rev-parse", f"{tip}^").strip() == self.tip
        assert "Guard-Rescue: r1/2" in git(self.root, "log", "-1", "--format=%B", tip)
        for name in LEFT:
            blob = git(self.root, "cat-file", "blob", f"{tip}:{name}")
            assert self.project[name.encode()] == ("file", blob.encode())

    def next_rescue(self) -> None:
        """Works as if nothing had been, and leaves nothing of what was."""
        said = self.victims.serve("rescue", self.root, self.workspace, paths=LEFT)["said"]
        assert said["reason"] in ("rescued", "nothing"), said
        self.assert_whole()
        self.assert_rescued(self.read()[0])
        assert git(self.root, "status", "--porcelain") == ""
        self.assert_swept()

    def next_snapshot(self, folder: Path) -> None:
        said = self.victims.serve("snapshot", self.root, self.workspace)["said"]
        assert recovered(Snapshot.model_validate_json(json.dumps(said)), folder) == self.project
        self.assert_swept()

    def assert_swept(self) -> None:
        assert list(self.workspace.glob(".shadow.git.*")) == []
        assert list(self.shadow.rglob("tmp_*")) == []
        assert list(self.shadow.rglob("*.lock.lock")) == []
        assert list(self.shadow.glob("fast_import_crash_*")) == []

    def assert_sound(self) -> None:
        git(self.root, "fsck", "--strict")
        git(self.shadow, "fsck", "--strict")


FORMAT = "%(objectmode) %(objectname) 0%x09%(path)"


@pytest.fixture
def scene(victims: Victims, repository: Path, workspace: Path) -> Scene:
    return Scene(victims, repository, workspace)


@pytest.mark.parametrize("everything", [False, True], ids=["alone", "with all it started"])
@pytest.mark.parametrize("seed", range(2))
def test_killed_in_a_rescue(seed: int, everything: bool, scene: Scene) -> None:
    chance = random.Random(seed)
    scene.leave_work()
    answer = scene.victims.serve("rescue", scene.root, scene.workspace, paths=LEFT)
    lasted = answer["lasted"]
    for _ in range(KILLS):
        scene.leave_work()
        scene.killed("rescue", after=lasted * chance.uniform(0, 1.1), everything=everything)
        scene.next_rescue()
    scene.assert_sound()


@pytest.mark.parametrize("everything", [False, True], ids=["alone", "with all it started"])
@pytest.mark.parametrize("seed", range(2))
def test_killed_in_a_snapshot(seed: int, everything: bool, scene: Scene, tmp_path: Path) -> None:
    chance = random.Random(100 + seed)
    scene.leave_work()
    lasted = scene.victims.serve("snapshot", scene.root, tmp_path / "measured")["lasted"]
    for _ in range(KILLS):
        scene.leave_work()
        scene.killed("snapshot", after=lasted * chance.uniform(0, 1.1), everything=everything)
        assert scene.read() == (scene.tip, scene.index)
        scene.next_snapshot(tmp_path / f"back-{scene.round}")
    scene.assert_sound()


@pytest.mark.parametrize("what", ["snapshot", "rescue"])
def test_killed_before_any_call_of_git(what: str, scene: Scene) -> None:
    """Every gap between two steps, one after the other, until a rescue is not killed any more."""
    calls, said = 0, None
    while said is None:
        scene.leave_work()
        said = scene.killed(what, calls=calls)
        scene.next_rescue()
        calls += 1
        assert calls < 100
    assert calls > 5
    scene.assert_sound()
