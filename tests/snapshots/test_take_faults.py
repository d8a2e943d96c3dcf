"""Kills, full disks, foreign files, time limits: no snapshot says that it is there unless it is, and the next one works."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from guard.core.snapshots.snapshot import Snapshot
from guard.errors import GuardError, RepositoryProblem, StateProblem, StoreUnavailable
from guard.git.locate import find_repository
from guard.git.run import feed_git
from guard.snapshots import shadow as shadows
from guard.snapshots.fast_import import ImportStream, TreeChanges
from guard.snapshots.inventory import open_shelf
from guard.snapshots.project import Project
from guard.snapshots.shadow import Shadow
from guard.snapshots.take import open_for_snapshot, take
from guard.system.clock import Deadline
from tests.rescue.states import start
from tests.support import ROOT, TIME_LIMIT, git, write
from tests.support.cost import cpu_limit
from tests.support.rescues import (
    BY_HAND,
    attempt_rescue,
    contents,
    fingerprint,
    recovered,
    take_snapshot,
)
from tests.support.sessions import until

CHILD = """
import sys
from contextlib import suppress
from pathlib import Path
from tests.support.rescues import take_snapshot
root, workspace = map(Path, sys.argv[1:])
print(take_snapshot(root, workspace).model_dump_json(), flush=True)
"""


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def child(root: Path, workspace: Path, before: str = "") -> "Child":
    words = [sys.executable, "-c", before + CHILD, str(root), str(workspace)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        words,
        env=environ,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


Child = subprocess.Popen[str]


def refs(workspace: Path) -> set[str]:
    if not (workspace / "shadow.git").exists():
        return set()
    listed = git(workspace / "shadow.git", "for-each-ref", "--format=%(refname)")
    return set(listed.split())


def _at_work_on(workspace: Path) -> bool:
    """Whether a git of a guard that was killed is still at its end."""
    name = os.fsencode(workspace / "shadow.git")
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and name in (entry / "cmdline").read_bytes():
                return True
    return False


@pytest.mark.parametrize("seed", range(2))
def test_a_kill_at_any_moment_leaves_nothing_half_done(
    seed: int, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    for number in range(300):
        write(repository / f"many/{number}.bin", os.urandom(20_000))
    before = fingerprint(repository / ".git")
    began = time.monotonic()
    child(repository, tmp_path / "measured").communicate()
    lasted = time.monotonic() - began
    victim = child(repository, workspace)
    time.sleep(lasted * (0.4 + 0.6 * random.Random(seed).random()))
    victim.kill()
    said, _ = victim.communicate()
    until(lambda: not _at_work_on(workspace))
    known = refs(workspace)
    assert all(ref in said for ref in known) or not said
    for ref in known:
        git(workspace / "shadow.git", "fsck", "--strict", ref)
    kept = take_snapshot(repository, workspace)
    assert recovered(kept, tmp_path / "back") == contents(repository)
    assert refs(workspace) == {*known, kept.ref}
    assert fingerprint(repository / ".git") == before
    assert not list(workspace.glob(".shadow.git.*"))
    assert not list((workspace / "shadow.git").rglob("tmp_*"))
    assert not list((workspace / "shadow.git").glob("fast_import_crash_*"))


@pytest.fixture
def shadow(repository: Path, workspace: Path) -> Iterator[Shadow]:
    workspace.mkdir(mode=0o700)
    project = Project(find_repository(repository, lambda _: None), os.environ, Deadline(120))
    with open_for_snapshot(project, workspace, BY_HAND) as opened:
        take(project, opened, BY_HAND)
        yield opened


def test_a_stream_that_ends_between_two_files_is_no_snapshot(
    shadow: Shadow, workspace: Path
) -> None:
    """As when guard is killed: git sees no more than the end of its input."""
    known = refs(workspace)
    words = (*shadows.OPTIONS, *shadows.IMPORT)
    with feed_git(*words, environ=os.environ, git_dir=shadow.path, time_limit=120) as program:
        stream = ImportStream(program, shadow.object_format)
        stream.begin("refs/guard/snapshot/cut")
        stream.put(b"worktree/one", b"100644", b"one")
        assert program.finish().code != 0
    assert refs(workspace) == known


def test_a_tree_that_is_not_what_was_written_is_found_out(shadow: Shadow, workspace: Path) -> None:
    [ref] = refs(workspace)
    base = {b"worktree": shadow.empty_tree}
    found = shadow.changes(ref, base)
    shadow.verify(ref, found, base)
    mode, oid = found.written[b"worktree/kept.txt"]
    for wrong in ({b"more": (mode, oid)}, {b"worktree/kept.txt": (b"100755", oid)}):
        with pytest.raises(StoreUnavailable, match="not what was written"):
            shadow.verify(ref, TreeChanges(found.written | wrong, set()), base)
    with pytest.raises(StoreUnavailable, match="not what was written"):
        shadow.verify(ref, TreeChanges(found.written, {b"worktree/gone.txt"}), base)


def test_a_pack_that_does_not_hold_what_was_written_is_found_out(
    shadow: Shadow, workspace: Path
) -> None:
    [ref], base = refs(workspace), {b"worktree": shadow.empty_tree}
    found = shadow.changes(ref, base)
    [pack] = (shadow.path / "objects/pack").glob("*.pack")
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(data)
    with pytest.raises(StoreUnavailable):
        shadow.verify(ref, found, base)


STOP_IN_THE_MIDDLE = """
import time
from guard.system.processes import FedProcess
whole = FedProcess.write

def half(self, data):
    if len(data) < 100_000:
        return whole(self, data)
    whole(self, data[: len(data) // 2])
    time.sleep(600)

FedProcess.write = half
"""


def test_a_stream_that_is_cut_off_is_no_snapshot(repository: Path, workspace: Path) -> None:
    take_snapshot(repository, workspace)
    known = refs(workspace)
    write(repository / "slow.bin", os.urandom(40_000_000))
    victim = child(repository, workspace, STOP_IN_THE_MIDDLE)
    pack = workspace / "shadow.git/objects/pack"
    until(lambda: list(pack.glob("tmp_pack_*")) != [])
    assert victim.poll() is None
    victim.kill()
    victim.communicate()
    until(lambda: not _at_work_on(workspace))
    assert refs(workspace) == known


LIMIT_FILE_SIZE = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
"""


def test_no_room_for_the_snapshot_is_an_error_that_says_so(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    take_snapshot(repository, workspace)
    write(repository / "large.bin", os.urandom(1_000_000))
    before, project = fingerprint(repository / ".git"), contents(repository)
    victim = child(repository, workspace, LIMIT_FILE_SIZE)
    _, trouble = victim.communicate()
    assert victim.returncode != 0
    assert "StoreUnavailable: cannot write a snapshot" in trouble
    assert f"signal {signal.SIGXFSZ}" in trouble
    assert (fingerprint(repository / ".git"), contents(repository)) == (before, project)
    assert not list((workspace / "shadow.git").rglob("tmp_*"))
    kept = take_snapshot(repository, workspace)
    assert recovered(kept, tmp_path / "back") == project


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB; only root may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(place)]
    if subprocess.run(words, check=False, capture_output=True).returncode != 0:
        pytest.skip("cannot mount a small file system here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_an_error_that_says_so(repository: Path, small_disk: Path) -> None:
    take_snapshot(repository, small_disk)
    write(repository / "large.bin", os.urandom(5_000_000))
    before = fingerprint(repository / ".git")
    with pytest.raises(StoreUnavailable, match="Out of diskspace") as error:
        attempt_rescue(repository, small_disk, ["large.bin"])
    assert "guard changed nothing in the project" in (error.value.hint or "")
    assert fingerprint(repository / ".git") == before
    (repository / "large.bin").unlink()
    assert take_snapshot(repository, small_disk).whole


def test_a_disk_that_is_full_from_the_start_is_an_error_too(
    repository: Path, small_disk: Path
) -> None:
    with pytest.raises(OSError, match="No space"):
        write(small_disk / "workspace/filler", bytes(5_000_000))
    (small_disk / "workspace").chmod(0o700)
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        take_snapshot(repository, small_disk / "workspace")
    assert not list((small_disk / "workspace").glob(".shadow.git.*"))


# Even root is refused what the mode of a file refuses, once DAC_OVERRIDE and DAC_READ_SEARCH are gone. What is dropped from
# the bounding set is gone with the next program.
WITHOUT_PRIVILEGE = """
import ctypes, os, sys
if not os.environ.get("DROPPED"):
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
    os.environ["DROPPED"] = "1"
    os.execv(sys.executable, sys.orig_argv)
"""


def test_what_cannot_be_read_is_named_and_the_rest_is_kept(
    repository: Path, workspace: Path
) -> None:
    write(repository / "closed.txt", "closed\n").chmod(0)
    write(repository / "shut/inside.txt", "inside\n")
    (repository / "shut").chmod(0)
    done = child(repository, workspace, WITHOUT_PRIVILEGE)
    said, trouble = done.communicate()
    (repository / "shut").chmod(0o700)
    assert done.returncode == 0, trouble
    kept = Snapshot.model_validate_json(said)
    assert kept.skipped == ("closed.txt: Permission denied", "shut: Permission denied")
    assert not kept.whole
    assert kept.files == len(contents(repository)) - 2


def test_a_workspace_that_cannot_be_written_is_an_error(repository: Path, workspace: Path) -> None:
    workspace.mkdir(mode=0o500)
    done = child(repository, workspace, WITHOUT_PRIVILEGE)
    _, trouble = done.communicate()
    assert "StoreUnavailable: cannot write a snapshot" in trouble
    assert "Permission denied" in trouble


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1, 0.3])
def test_a_time_limit_ends_it_and_is_said(
    seconds: float, repository: Path, workspace: Path
) -> None:
    for number in range(3000):
        write(repository / f"many/{number // 100}/{number}.txt", f"{number}\n")
    before = fingerprint(repository / ".git")
    began = time.monotonic()
    said = ""
    try:
        kept = take_snapshot(repository, workspace, time_limit=seconds)
        said = "whole" if kept.whole else " ".join(kept.skipped)
    except StoreUnavailable as error:
        said = error.message
    assert any(words in said for words in ("whole", "time limit", "took longer"))
    assert time.monotonic() - began < seconds + 120
    assert fingerprint(repository / ".git") == before
    assert take_snapshot(repository, workspace).whole


def _first_kept(repository: Path, workspace: Path) -> Snapshot:
    """With the shortest of ever longer times in which anything can be kept, up to 165 s for a busy machine."""
    for limit in (0.25 * 1.25**step for step in range(30)):
        with suppress(GuardError):
            return take_snapshot(repository, workspace, time_limit=limit, paths=[b"zz/left.txt"])
    pytest.fail("nothing was kept in any time")


def test_a_snapshot_cut_by_its_time_limit_has_the_paths_that_matter(
    repository: Path, workspace: Path
) -> None:
    write(repository / "zz/left.txt", "left\n")
    take_snapshot(repository, workspace)
    kept = None
    for thousands in range(
        0, 80, 8
    ):  # More and more files, until the time is too short for all of them.
        for number in range(8000):
            write(repository / f"many/{thousands}/{number // 100}/{number}.txt", f"{number}\n")
        kept = _first_kept(repository, workspace)
        if not kept.whole:
            break
    assert kept is not None
    assert not kept.whole
    shadow = workspace / "shadow.git"
    assert git(shadow, "cat-file", "blob", f"{kept.ref}:worktree/zz/left.txt") == "left\n"


def test_a_repository_that_hangs_is_kept_all_the_same(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    os.mkfifo(repository / ".git/pipe")
    git(repository, "config", "include.path", "pipe")
    left = write(repository / "new.txt", "new\n").name
    began = time.monotonic()
    try:
        result = attempt_rescue(repository, workspace, [left], time_limit=6)
    except StoreUnavailable:
        # On a busy machine what is left of six seconds may be too short for a snapshot.
        result = attempt_rescue(repository, workspace, [left], time_limit=45)
    assert time.monotonic() - began < 300
    assert (result.reason, result.commits) == ("not_plain:obstacle", ())
    assert result.snapshot is not None
    assert recovered(result.snapshot, tmp_path / "back") == contents(repository)


def test_without_git_it_is_an_error(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/proc/nowhere")
    with pytest.raises(RepositoryProblem, match="git is not installed"):
        take_snapshot(repository, workspace)


def test_ten_thousand_files_take_seconds(
    repository: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seconds, because git is started a few times and not once for each file."""
    for number in range(10_000):
        write(repository / f"many/{number // 100}/{number}.py", f"# {number}\n" * 20)
    counts = f'#!/bin/sh\necho x >> {tmp_path}/calls\nexec {shutil.which("git")} "$@"\n'
    write(tmp_path / "bin/git", counts).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with cpu_limit():
        assert take_snapshot(repository, workspace).files == 10_006
    assert 1 <= len((tmp_path / "calls").read_text().splitlines()) < 100


BEHIND = {
    "objects that are lent": ("objects/info/alternates", "{folder}\n", "info/alternates"),
    "packs that are lent": ("objects/info/alternates", "{folder}\n", "pack/pack-1.idx"),
    "settings": ("config", "[include]\n\tpath = {folder}/more\n", "more"),
    "a ref": ("refs/guard/snapshot/none", "", ""),
}


@pytest.mark.parametrize("named", BEHIND)
def test_a_pipe_behind_the_shadow_repository_is_not_waited_for(
    named: str, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    take_snapshot(repository, workspace)
    place, text, behind = BEHIND[named]
    folder = tmp_path / "lent"
    if text:
        with open(workspace / "shadow.git" / place, "a") as file:
            file.write(text.format(folder=folder))
    pipe = folder / behind if behind else workspace / "shadow.git" / place
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    with (
        pytest.raises(StateProblem, match="is a named pipe"),
        open_shelf(workspace, os.environ, time_limit=TIME_LIMIT) as shelf,
    ):
        shelf.references()
    with pytest.raises(StateProblem):
        take_snapshot(repository, workspace)
