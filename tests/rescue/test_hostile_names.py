"""Names and kinds of files that programs stumble over: saved, or named as not saved; no hang, and the rest is saved."""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.core.snapshots.snapshot import Rescue, Snapshot
from tests.rescue.states import start
from tests.support import ROOT, TIME_LIMIT, write
from tests.support.losses import brought_back
from tests.support.rescues import Contents, attempt_rescue, contents, take_snapshot

NAMES = {
    "newline": b"new\nline.txt",
    "newline at the end": b"end\n",
    "carriage return": b"carriage\rreturn",
    "tab": b"\ttab\t",
    "invalid UTF-8": b"\xff\xfe\x80",
    "half of a surrogate": b"\xed\xa0\x80",
    "leading dash": b"-rf",
    "leading dashes": b"--force",
    "a pathspec": b":(exclude)*",
    "a pattern": b"**",
    "quotes": b"\"'`$(touch ran)",
    "backslashes": b"a\\nb\\x41",
    "escape sequence": b"\x1b]0;title\x07",
    "only spaces": b"   ",
    "255 bytes": b"x" * 255,
    "85 characters of three bytes": ("\u20ac" * 85).encode(),
    "a path of 4000 bytes": b"/".join([b"y" * 200] * 19) + b"/" + b"z" * 150,
    "dots": b"...",
    "percent": b"escaped%.git",
    "colon": b"c:colon",
    "bidirectional": "\u202egnp.exe".encode(),
    "of a ref": b"HEAD",
    "of an option file": b"@file",
}
REFUSED = {
    "git~1": b"git~1",
    "GIT~1": b"sub/GIT~1",
    ".GIT": b".GIT",
    ".Git folder": b".Git/hooks/pre-commit",
    ".git with a stream": b".git::$INDEX_ALLOCATION",
    ".git with a dot": b".git.",
}


def made(root: Path, path: bytes) -> None:
    """A file at this path, which may be longer than the system takes in one piece."""
    here = os.open(root, os.O_RDONLY)
    *folders, name = path.split(b"/")
    for folder in folders:
        if folder not in os.listdir(os.fsencode(f"/proc/self/fd/{here}")):
            os.mkdir(folder, dir_fd=here)
        here, above = os.open(folder, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    with open(os.open(name, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here), "wb") as file:
        file.write(path)
    os.close(here)


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)
    write(repository / "zz-last.txt", "the rest\n")


def rescued_with(name: bytes, repository: Path, workspace: Path) -> tuple[Rescue, Contents]:
    """The rescue of a file of this name and one beside it; the snapshot has every byte, and all of it is brought back."""
    made(repository, name)
    result = attempt_rescue(repository, workspace, [name, "zz-last.txt"])
    assert result.reason == "rescued"
    assert result.snapshot is not None
    back = brought_back(result.snapshot, workspace / "shadow.git", workspace.with_name("back"))
    assert back == contents(repository)
    return result, back


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_name_is_kept_and_committed(
    name: bytes, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    result, back = rescued_with(name, repository, workspace)
    assert result.held_back == ()
    assert result.snapshot is not None
    assert result.snapshot.whole
    assert back[name] == ("file", name)
    words = ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"]
    done = subprocess.run(words, cwd=repository, check=True, capture_output=True)
    assert {name, b"zz-last.txt"} <= set(done.stdout.split(b"\0"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED.keys())
def test_a_name_that_git_refuses_is_kept_and_held_back(
    name: bytes, repository: Path, workspace: Path
) -> None:
    result, _ = rescued_with(name, repository, workspace)
    assert [(one.path, one.why) for one in result.held_back] == [
        (name.decode(), "name: git refuses it")
    ]


def test_names_that_fold_into_each_other_are_all_kept(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    names = [
        b"case",
        b"Case",
        b"CASE",
        b"caf\xc3\xa9",
        b"cafe\xcc\x81",
        b"git~1",
        b"GIT~1",
        b".GIT",
    ]
    for name in names:
        made(repository, name)
    kept = take_snapshot(repository, workspace)
    assert kept.whole
    back = brought_back(kept, workspace / "shadow.git", tmp_path / "back")
    assert {name: back[name] for name in names} == {name: ("file", name) for name in names}


def pipe(root: Path) -> None:
    os.mkfifo(root / "odd")


def plug(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(root, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/odd")
        os.close(here)


def device(root: Path) -> None:
    """Reading it would never end. Only root can make one; for anybody else a pipe stands in."""
    if os.geteuid() == 0:
        os.mknod(root / "odd", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    else:
        pipe(root)


@pytest.mark.parametrize("make", [pipe, plug, device])
@pytest.mark.parametrize("tracked", [False, True], ids=["new", "in place of a file"])
def test_a_special_file_is_named_and_the_rest_is_saved(
    make: Callable[[Path], None], tracked: bool, repository: Path, workspace: Path
) -> None:
    make(repository)
    name = "odd"
    if tracked:
        (repository / "odd").replace(repository / "edited.txt")
        name = "edited.txt"
    result = attempt_rescue(repository, workspace, [name, "zz-last.txt"])
    assert result.reason == "rescued"
    assert [(one.path, one.why) for one in result.held_back] == [
        (name, "not_saved: a special file")
    ]
    assert result.snapshot is not None
    assert result.snapshot.skipped == (f"{name}: a special file",)
    assert result.snapshot.files == len(contents(repository))


def test_three_hundred_folders_deep(repository: Path, workspace: Path, tmp_path: Path) -> None:
    """Saved, or named as not saved."""
    path = b"/".join([b"d"] * 300) + b"/x"
    made(repository, path)
    result = attempt_rescue(repository, workspace, [path, "zz-last.txt"])
    assert result.reason == "rescued"
    for number, kept in enumerate((result.snapshot, take_snapshot(repository, workspace))):
        assert kept is not None
        back = brought_back(kept, workspace / "shadow.git", tmp_path / f"back-{number}")
        assert back[b"zz-last.txt"] == ("file", b"the rest\n")
        named = [line for line in kept.skipped if line.startswith("d/d/d")]
        assert path in back or named
        assert kept.whole != bool(named)


# What the modes of files refuse is refused to root as well, once these two capabilities are gone.
UNPRIVILEGED = """
import ctypes, json, os, sys
from pathlib import Path
if not os.environ.get("DROPPED"):
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
    os.environ["DROPPED"] = "1"
    os.execv(sys.executable, sys.orig_argv)
from tests.support.rescues import attempt_rescue
result = attempt_rescue(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
print(result.model_dump_json())
"""


def unprivileged(root: Path, workspace: Path, left: list[str]) -> Rescue:
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, str(root), str(workspace), json.dumps(left)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Rescue.model_validate_json(done.stdout)


def saved(kept: Snapshot | None) -> int:
    assert kept is not None
    return kept.files


def test_what_cannot_be_read_is_named_and_the_rest_is_committed(
    repository: Path, workspace: Path
) -> None:
    write(repository / "closed.txt", "closed\n").chmod(0)
    write(repository / "edited.txt", "closed too\n").chmod(0)
    write(repository / "shut/inside.txt", "inside\n")
    (repository / "shut").chmod(0)
    left = ["closed.txt", "edited.txt", "shut/inside.txt", "zz-last.txt"]
    result = unprivileged(repository, workspace, left)
    (repository / "shut").chmod(0o700)
    assert result.reason == "rescued"
    assert {one.path for one in result.held_back} == {*left[:3], "shut"}
    assert result.snapshot is not None
    assert {line.partition(":")[0] for line in result.snapshot.skipped} >= {
        *("closed.txt", "edited.txt", "shut"),
    }
    assert saved(result.snapshot) == len(contents(repository)) - 3


def test_a_git_directory_that_cannot_be_written_leaves_the_snapshot(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    """As on a file system that is read-only."""
    folders = [repository / ".git", *(repository / ".git").rglob("*")]
    for folder in (path for path in folders if path.is_dir()):
        folder.chmod(0o500)
    result = unprivileged(repository, workspace, ["zz-last.txt"])
    assert (result.reason, result.commits) == ("refused", ())
    assert result.snapshot is not None
    back = brought_back(result.snapshot, workspace / "shadow.git", tmp_path / "back")
    assert back == contents(repository)
