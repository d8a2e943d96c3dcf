"""A rollback killed anywhere: after the next command the repository is before it or after it, and never between."""

import os
import random
from pathlib import Path

import pytest

from tests.support import git, write
from tests.support.reverts import State, settled, state
from tests.support.series import times
from tests.support.victims import Victims

KILLS, STEP = times(8, full=50), times(2, full=1)
QUIET_CALLS = 60
"""Before these there is only a snapshot, and objects that nothing refers to."""


class Scene:
    """A task that changed, made, deleted and moved files, and a user who has work of another kind in the tree."""

    def __init__(self, victims: Victims, root: Path, workspace: Path) -> None:
        self.victims, self.root, self.workspace = victims, root, workspace
        for name in ("a/kept.txt", "a/gone.txt", "swapped", "mode.sh"):
            write(root / name, f"{name}\n" * 30)
        write(root / "users.txt", "committed\n")
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", "Begin")
        write(root / "a/kept.txt", "changed by the task\n")
        (root / "a/gone.txt").unlink()
        (root / "swapped").unlink()
        write(root / "swapped/inside.txt", "a folder now\n")
        write(root / "b/c/new.txt", "new\n")
        (root / "link").symlink_to("a/kept.txt")
        (root / "mode.sh").chmod(0o755)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Task")
        self.task = git(root, "rev-parse", "HEAD").strip()
        write(root / "users.txt", "staged\n")
        git(root, "add", "users.txt")
        write(root / "users.txt", "edited\n")
        write(root / "a/untracked.txt", "untracked\n")
        self.before = state(root)
        self.outcomes: list[str] = []

    def again(self) -> None:
        """Back to where the task was complete, for the next trial."""
        if git(self.root, "rev-parse", "HEAD").strip() != self.task:
            git(self.root, "reset", "-q", "--soft", self.task)
            tree = f"{self.task}^{{tree}}"
            git(self.root, "read-tree", tree)
            names = git(self.root, "ls-files", "-z", "--", ":!users.txt").split("\0")[:-1]
            (self.root / "swapped").unlink()
            git(self.root, "checkout-index", "-q", "-f", "--", *names)
            for name in ("a/gone.txt",):
                (self.root / name).unlink()
            write(self.root / "users.txt", "staged\n")
            git(self.root, "add", "users.txt")
            write(self.root / "users.txt", "edited\n")
        assert state(self.root) == self.before

    def killed(self, **how: object) -> bool:
        """One trial; whether it was killed at all."""
        self.again()
        answer = self.victims.serve(
            "rollback", self.root, self.workspace, commits=[self.task], **how
        )
        settled(self.root, self.workspace)
        self.assert_before_or_after()
        return answer["said"] is None

    def assert_before_or_after(self) -> None:
        now = state(self.root)
        moved = now[1] != self.task
        self.outcomes.append("after" if moved else "before")
        assert now == (self.after(now[1]) if moved else self.before)
        assert not list((self.root / ".git").glob("*guard*"))
        assert not list((self.root / ".git").rglob("*.lock"))
        assert git(self.root, "for-each-ref", "refs/guard") == ""
        assert list((self.workspace / "rollbacks.d").glob("*")) == []
        assert not (self.root / "b").exists() if moved else (self.root / "b/c").is_dir()

    def after(self, tip: str) -> State:
        """What a rollback that nobody killed has left."""
        assert git(self.root, "rev-parse", f"{tip}^").strip() == self.task
        assert self.whole is not None
        return (self.whole[0], tip, *self.whole[2:])

    def measure(self) -> float:
        answer = self.victims.serve("rollback", self.root, self.workspace, commits=[self.task])
        assert answer["said"]["to_sha"] == git(self.root, "rev-parse", "HEAD").strip()
        self.whole = state(self.root)
        assert self.whole[0][b"swapped"] == ("file", b"swapped\n" * 30)
        assert git(self.root, "diff", "--name-only", f"{self.task}^", "HEAD") == ""
        lasted: float = answer["lasted"]
        return lasted


@pytest.fixture
def scene(victims: Victims, repository: Path, workspace: Path) -> Scene:
    return Scene(victims, repository, workspace)


@pytest.mark.series
def test_killed_before_any_call(scene: Scene) -> None:
    """Calls of git, and all that writes, one after the other until it is not killed any more: every second, or each in full."""
    scene.measure()
    calls = 0
    while scene.killed(calls=calls):
        calls += STEP if calls >= QUIET_CALLS else 3 * STEP
        assert calls < 300
    assert len(scene.outcomes) > 60 // STEP
    assert {"before", "after"} == set(scene.outcomes)
    git(scene.root, "fsck", "--strict")


@pytest.mark.series
@pytest.mark.parametrize("everything", [False, True], ids=["alone", "with all it started"])
def test_killed_at_random(everything: bool, scene: Scene) -> None:
    chance = random.Random(int(everything))
    lasted = scene.measure()
    for _ in range(KILLS):
        scene.killed(after=lasted * chance.uniform(0.3, 1.05), everything=everything)
    git(scene.root, "fsck", "--strict")


def test_what_the_user_did_since_the_kill_is_kept(scene: Scene) -> None:
    """Half the files are reverted already when it is killed; then one of them is edited."""
    scene.measure()
    scene.again()
    index = scene.root / ".git/index.lock"
    calls = 85
    while True:
        scene.victims.serve(
            "rollback", scene.root, scene.workspace, commits=[scene.task], calls=calls
        )
        if (scene.root / "a/gone.txt").exists() and index.exists():
            break
        settled(scene.root, scene.workspace)
        calls += 1
    write(scene.root / "a/gone.txt", "the user's own words\n")
    done = settled(scene.root, scene.workspace)
    assert [(one.moved, len(one.left)) for one in done] == [(False, 1)]
    assert "a/gone.txt" in done[0].left[0]
    assert (scene.root / "a/gone.txt").read_text() == "the user's own words\n"
    os.unlink(scene.root / "a/gone.txt")
    assert state(scene.root) == scene.before
