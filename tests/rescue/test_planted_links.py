"""Links and special files below `.git`: a careless git writes through them, or waits for ever; guard keeps a snapshot only."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from guard.core.snapshots.snapshot import Occasion
from guard.errors import RepositoryProblem
from guard.git.locate import find_repository
from guard.git.obstacles import GitObstacle
from guard.git.reader import RepositoryReader
from guard.git.refs import baseline_ref, pin
from guard.rescue import rescue
from guard.rescue.order import Orders
from guard.rollback.prepare import RollbackStopped
from guard.snapshots.take import take_and_prune
from tests.rescue.states_start import identify
from tests.support import TIME_LIMIT, commit, git, run, write
from tests.support.losses import brought_back
from tests.support.planted_links import (
    KINDS,
    LINK_TO_OWN,
    OTHER_FOLDERS,
    OTHER_PLACES,
    PLACES,
    begin,
    imprint,
    is_planted,
    outside,
    plant,
)
from tests.support.rescues import BY_HAND, NOW, attempt_rescue, contents, site_of
from tests.support.reverts import rolled_back
from tests.support.sessions import QUICK, answering, script

WHOLE = ("link to a file", "link to a folder", "pipe", "second name")
"""The kinds that a rescue is tried with too."""
CARELESS = "git update-ref -m x refs/guard/baseline/w HEAD; git commit -q -a -m x"
WRITES_OUTSIDE = {
    *((place, "link to a file") for place in ("logs/HEAD", "logs/refs/heads/main")),
    ("logs/refs/guard/baseline/w", "link to a file"),
    *((place, "second name") for place in ("logs/HEAD", "logs/refs/heads/main")),
    ("logs/refs/guard/baseline/w", "second name"),
    *((place, "link to a folder") for place in ("logs", "logs/refs", "logs/refs/heads")),
    *((place, "link to a folder") for place in ("refs", "refs/heads", "refs/guard")),
    *((place, "link to a folder") for place in ("refs/guard/baseline", "objects", "objects/??")),
    *((place, "dangling link") for place in ("logs/HEAD", "logs/refs/heads/main")),
    ("index", "dangling link"),
}
"""Where a careless git does it, measured with git 2.39; a newer one may do less."""


@pytest.fixture
def begun(repository: Path, home: Path) -> Path:
    begin(repository)
    return repository


def left(root: Path) -> list[bytes | str]:
    write(root / "edited.txt", "edited\n")
    write(root / "new.txt", "new\n")
    return ["edited.txt", "new.txt"]


def restored(root: Path, saved: Path) -> None:
    shutil.rmtree(root / ".git")
    subprocess.run(["cp", "-a", saved, root / ".git"], check=True)
    shutil.rmtree(root.parent / "outside", ignore_errors=True)
    shutil.rmtree(root.parent / "was_folder", ignore_errors=True)


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_written_outside_and_the_work_is_in_a_snapshot(
    place: str, begun: Path, workspace: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.git"
    subprocess.run(["cp", "-a", begun / ".git", saved], check=True)
    head = git(begun, "rev-parse", "HEAD").strip()
    repository = find_repository(begun, lambda _: None)
    paths = left(begun)
    for kind in (kind for kind in KINDS if is_planted(place, kind)):
        beside = outside(begun)
        plant(begun / ".git", place, kind, beside)
        before = imprint(beside)
        reader = RepositoryReader(repository, os.environ, TIME_LIMIT)
        stopped = False
        try:
            pin(reader, baseline_ref("w"), [head], NOW, "Baseline")
        except RepositoryProblem as error:
            stopped = isinstance(error, GitObstacle)
        assert imprint(beside) == before, kind
        if kind not in WHOLE and place != "index":
            assert stopped or (place, kind) not in WRITES_OUTSIDE, kind
            restored(begun, saved)
            continue
        result = attempt_rescue(begun, workspace, paths)
        assert imprint(beside) == before, kind
        assert result.snapshot is not None
        if (place, kind) in WRITES_OUTSIDE:
            assert stopped or result.reason == "not_plain:obstacle", (kind, result.detail)
        back = tmp_path / f"back-{kind.replace(' ', '-')}"
        assert brought_back(result.snapshot, workspace / "shadow.git", back) == contents(begun)
        restored(begun, saved)


@pytest.mark.parametrize("place", OTHER_PLACES)
def test_nothing_is_written_outside_wherever_else_git_writes(
    place: str, begun: Path, workspace: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.git"
    subprocess.run(["cp", "-a", begun / ".git", saved], check=True)
    paths = left(begun)
    link = "link to a folder" if place in OTHER_FOLDERS else LINK_TO_OWN
    for kind in (link, "pipe", "socket"):
        beside = outside(begun)
        plant(begun / ".git", place, kind, beside)
        before = imprint(beside)
        result = attempt_rescue(begun, workspace, paths)
        assert imprint(beside) == before, kind
        assert result.snapshot is not None, kind
        back = tmp_path / f"back-{kind.replace(' ', '-')}"
        assert brought_back(result.snapshot, workspace / "shadow.git", back) == contents(begun)
        restored(begun, saved)


def test_a_careless_git_writes_outside_in_most_of_these_places(begun: Path, tmp_path: Path) -> None:
    saved, wrote = tmp_path / "saved.git", set()
    subprocess.run(["cp", "-a", begun / ".git", saved], check=True)
    for place in PLACES:
        for kind in sorted({kind for _, kind in WRITES_OUTSIDE}):
            if not is_planted(place, kind):
                continue
            left(begun)
            beside = outside(begun)
            plant(begun / ".git", place, kind, beside)
            before = imprint(beside)
            subprocess.run(
                ["sh", "-c", CARELESS],
                cwd=begun,
                capture_output=True,
                timeout=TIME_LIMIT,
                check=False,
            )
            if imprint(beside) != before:
                wrote.add((place, kind))
            restored(begun, saved)
    assert wrote >= WRITES_OUTSIDE, (WRITES_OUTSIDE - wrote, wrote - WRITES_OUTSIDE)


def test_a_careless_git_waits_for_a_pipe(begun: Path) -> None:
    left(begun)
    plant(begun / ".git", "logs/HEAD", "pipe", outside(begun))
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(["git", "commit", "-q", "-a", "-m", "x"], cwd=begun, check=False, timeout=1)


COMMANDS = {
    "logs": "link to a folder",
    "logs/HEAD": "pipe",
    "logs/refs/heads/main": "second name",
    "refs/heads": "link to a folder",
    "refs/guard": "link to a folder",
    "objects/??": "link to a folder",
}
PLANTED_FIRST = ("logs", "refs/guard", "objects/??")


@pytest.mark.parametrize(("place", "kind"), COMMANDS.items(), ids=COMMANDS)
def test_no_command_writes_outside(place: str, kind: str, begun: Path, tmp_path: Path) -> None:
    """Whether it stood there before the baseline, or was planted in the iteration."""
    beside = outside(begun)
    if place not in PLANTED_FIRST:
        assert run("baseline").code == 0
    plant(begun / ".git", place, kind, beside)
    before = imprint(beside)
    if place in PLANTED_FIRST:
        assert run("baseline").code == 0
    left(begun)
    work = contents(begun)
    done = run("check", *QUICK, "--probe-command", answering(tmp_path, "complete"))
    expected = 0 if place == "refs/guard" else 10
    assert done.code == expected, done.err
    assert run("rescue").code in (0, 1)
    assert run("snapshot").code == (1 if kind == "pipe" else 0)
    write(begun / "new.txt", "overwritten\n")
    assert run("restore", "latest", "--in-place").code == 0
    assert contents(begun) == work
    assert imprint(beside) == before


@pytest.mark.parametrize(("place", "kind"), COMMANDS.items(), ids=COMMANDS)
def test_a_rollback_stops_before_anything_is_touched(
    place: str, kind: str, begun: Path, workspace: Path
) -> None:
    done, beside = commit(begun, "done.txt"), outside(begun)
    plant(begun / ".git", place, kind, beside)
    before = imprint(beside)
    with pytest.raises(RollbackStopped, match="lets git write nothing there") as stopped:
        rolled_back(begun, workspace, [done])
    assert stopped.value.why == "not_ready"
    assert imprint(beside) == before
    assert (begun / "done.txt").exists()


def test_rules_in_a_folder_that_are_a_pipe_cost_no_time(begun: Path, workspace: Path) -> None:
    """The snapshot has found them before git is asked for what they say."""
    os.mkdir(begun / "deep")
    os.mkfifo(begun / "deep/.gitattributes")
    write(begun / "deep/new.txt", "new\n")
    result = attempt_rescue(begun, workspace, ["deep/new.txt"])
    assert result.reason == "not_plain:obstacle"
    assert "deep/.gitattributes" in result.detail
    assert result.snapshot is not None


UNREADABLE = (
    *("HEAD", "commondir", "config", "index", "packed-refs", "shallow", "refs/heads/main"),
    *("info/exclude", "info/attributes", "objects/info/alternates", "objects/pack/pack-x.idx"),
    *("../.gitignore", "../.gitattributes", "../folder/.gitignore"),
    "sharedindex",
)


@pytest.mark.parametrize("place", UNREADABLE)
def test_a_pipe_that_git_reads_keeps_no_snapshot_from_being_taken(
    place: str, begun: Path, workspace: Path, tmp_path: Path
) -> None:
    """Not even a snapshot that has to ask git for what may be left out."""
    write(begun / "node_modules/mine.js", "mine\n")
    write(begun / "folder/kept.txt", "kept\n")
    paths = left(begun)
    site = site_of(begun, workspace)
    workspace.mkdir(mode=0o700)
    take_and_prune(site, Occasion("baseline", NOW))
    pipe = begun / ".git" / place
    if place == "sharedindex":
        git(begun, "update-index", "--split-index")
        (pipe,) = (begun / ".git").glob("sharedindex.*")
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    for occasion in (Occasion("baseline", NOW), BY_HAND):
        kept = take_and_prune(site, occasion)
    orders = Orders("r1", 2, "refs/heads/main", [os.fsencode(path) for path in paths])
    result = rescue(site, orders, NOW)
    assert result.reason.startswith("not_plain:"), result
    assert not result.commits
    for number, snapshot in enumerate((kept, result.snapshot)):
        assert snapshot is not None
        back = brought_back(snapshot, workspace / "shadow.git", tmp_path / f"back{number}")
        assert back == contents(begun)


def test_commits_that_are_lost_and_cannot_be_pinned_are_named(begun: Path, tmp_path: Path) -> None:
    commit(begun, "thrown-away.txt")
    assert run("baseline").code == 0
    git(begun, "reset", "-q", "--hard", "HEAD~1")
    left(begun)
    beside = outside(begun)
    plant(begun / ".git", "logs/HEAD", "link to a file", beside)
    before = imprint(beside)
    done = run("check", *QUICK, "--probe-command", answering(tmp_path, "complete"))
    assert "guard cannot keep 1 commit that the iteration threw away" in done.err
    assert imprint(beside) == before


@pytest.fixture
def linked(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A linked work tree, whose git directory lies in that of the repository."""
    git(begun, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    monkeypatch.chdir(tmp_path / "linked")
    return tmp_path / "linked"


@pytest.mark.parametrize("place", ["worktrees/linked", "worktrees", "worktrees/linked/logs"])
def test_the_git_directory_of_a_linked_work_tree_may_be_no_link(
    place: str, linked: Path, begun: Path, workspace: Path
) -> None:
    site, beside = site_of(linked, workspace), outside(begun)
    workspace.mkdir(mode=0o700)
    plant(begun / ".git", place, "link to a folder", beside)
    before = imprint(beside)
    left(linked)
    orders = Orders("r1", 2, "refs/heads/side", [b"edited.txt", b"new.txt"])
    result = rescue(site, orders, NOW)
    assert (result.reason, result.commits) == ("not_plain:obstacle", ()) or (
        place == "worktrees/linked" and result.reason == "not_plain:no_git_dir"
    ), result.detail
    assert result.snapshot is not None
    assert imprint(beside) == before


@pytest.mark.parametrize("file", [".git", "commondir"])
def test_a_work_tree_that_was_led_to_another_repository_is_not_followed(
    file: str, linked: Path, begun: Path, tmp_path: Path
) -> None:
    """Not by another process either, which finds the repository anew."""
    assert run("baseline").code == 0
    git(tmp_path, "init", "-q", "other")
    identify(tmp_path / "other")
    commit(tmp_path / "other", "other.txt")
    other = tmp_path / "other/.git"
    if file == ".git":
        write(linked / ".git", f"gitdir: {other}\n")
    else:
        write(begun / ".git/worktrees/linked/commondir", f"{other}\n")
    left(linked)
    before = imprint(other)
    done = run("check", *QUICK, "--probe-command", answering(tmp_path, "complete"))
    assert done.code == 4
    assert "does not lead to" in done.err
    assert "the work tree is safe" in done.err
    assert run("rescue").code == 1
    assert run("snapshot").code in (0, 1)
    assert imprint(other) == before


def test_a_link_below_the_git_directory_is_no_stall_of_the_agent(begun: Path) -> None:
    """However often the work cannot be committed because of it."""
    plant(begun / ".git", "logs", "link to a folder", outside(begun))
    agent = script(begun.parent / "agent", "date +%N >> new.txt")
    words = ("--probe-command", answering(begun.parent, "complete"))
    for _ in range(3):
        assert run("run", *QUICK, *words, "--", agent).code == 10
    assert run("breaker", "show", "--format", "json").json["state"] == "closed"
