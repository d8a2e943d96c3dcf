"""What work there is in a repository, what a careless commit makes of it, and what a snapshot has of it.

Work is every content (bytes, and whether they are a program or a link) in the work tree, in any stage of the index, or put
aside in a stash, that no commit has. It is lost when no ref leads to it afterwards.
"""

import hashlib
import json
import os
import stat
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from guard.core.base.paths import unspell
from guard.core.snapshots.snapshot import Snapshot
from tests.support import TIME_LIMIT
from tests.support.rescues import Contents, recovered

Work = frozenset[tuple[str, str]]
"""Contents by kind and by the id that git would give them."""

_PARTS = ("", "^2", "^3")
_EMPTY = {"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}
_MODES = {"100644": "file", "100755": "executable", "120000": "link"}
_QUIETLY = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
}
_SAFELY = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "diff.external="),
    *("-c", "core.pager=cat", "-c", "safe.directory=*"),
)


@dataclass(frozen=True)
class Loss:
    """How many contents are gone, of how many; in silence if nothing that was run said so."""

    lost: int
    of: int
    silent: bool = False

    def __str__(self) -> str:
        words = ", silently" if self.silent and self.lost else ""
        return f"{self.lost} of {self.of}{words}" if self.lost else "0"


def asked(git_dir: Path, *words: str, stdin: str = "", **variables: str) -> str | None:
    """What git says of a git directory, without running anything of its own; None if it refuses."""
    if not git_dir.is_dir():
        return None
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", f"--git-dir={git_dir}", *_SAFELY, *words],
        input=os.fsencode(stdin),
        capture_output=True,
        check=False,
        cwd=git_dir.parent,
        env={**kept, **_QUIETLY, "GIT_CONFIG_NOSYSTEM": "1", **variables},
        timeout=TIME_LIMIT,
    )
    return os.fsdecode(done.stdout) if done.returncode == 0 else None


def git_dir_of(root: Path) -> Path:
    """The git directory of a work tree, by a plain look at its `.git`."""
    dot_git = root / ".git"
    if dot_git.is_file():
        return root / dot_git.read_text().removeprefix("gitdir: ").rstrip("\n")
    return dot_git


def work_in(root: Path, files: Contents) -> Work:
    """All work, given what there is in the work tree."""
    git_dir = git_dir_of(root)
    every = as_blobs(files, _object_format(git_dir)) | _in_index(git_dir) | put_aside(git_dir)
    return frozenset(every - committed(git_dir, "HEAD"))


def committed(git_dir: Path, *more: str) -> set[tuple[str, str]]:
    """What the history of all refs has; where git cannot follow them, what any commit at all has."""
    refs = asked(git_dir, "for-each-ref", "--format=%(objectname)")
    tips = [*(refs or "").split(), *(name for name in more if asked(git_dir, "rev-parse", name))]
    found = _history(git_dir, tips, "--ignore-missing") if tips else None
    return found if found is not None else _in_any_commit(git_dir)


def _history(
    git_dir: Path, tips: Iterable[str], *options: str, **variables: str
) -> set[tuple[str, str]] | None:
    words = ("log", "--stdin", "-m", "--root", "--raw", "--no-abbrev", "--no-renames", "--format=")
    lines = asked(git_dir, *words, *options, stdin="\n".join(tips) + "\n", **variables)
    if lines is None:
        return None
    fields = (line.split() for line in lines.splitlines() if line.startswith(":"))
    return {(_MODES[one[1]], one[3]) for one in fields if one[1] in _MODES}


def _in_any_commit(git_dir: Path) -> set[tuple[str, str]]:
    """By a repository of its own that only borrows the objects."""
    objects = git_dir / "objects"
    if not objects.is_dir():
        return set()
    own = git_dir.parent.parent / "borrower.git"
    subprocess.run(["git", "init", "-q", "--bare", own], check=True, capture_output=True)
    lent = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": os.fspath(objects)}
    listed = asked(own, "cat-file", "--batch-all-objects", "--batch-check", **lent) or ""
    commits = [line.split()[0] for line in listed.splitlines() if " commit " in line]
    return _history(own, commits, "--no-walk", **lent) or set()


def _object_format(git_dir: Path) -> str:
    return (asked(git_dir, "rev-parse", "--show-object-format") or "sha1").strip()


def as_blobs(files: Contents, object_format: str) -> Work:
    """Files by the ids that git would give them."""
    found = set()
    for kind, data in files.values():
        digest = hashlib.new(object_format, b"blob %d\0" % len(data), usedforsecurity=False)
        digest.update(data)
        found.add((kind, digest.hexdigest()))
    return frozenset(found)


def _in_index(git_dir: Path) -> set[tuple[str, str]]:
    """All stages; what the index names and the repository has not is lost already, and an entry may be without content."""
    listed = asked(git_dir, "ls-files", "--stage", "-z") or ""
    entries = [line.partition("\t")[0].split() for line in listed.split("\0")[:-1]]
    named = {(_MODES[mode], oid) for mode, oid, _stage in entries if mode in _MODES}
    there = _there(git_dir, {oid for _kind, oid in named} - _EMPTY)
    return {(kind, oid) for kind, oid in named if oid in there}


def _there(git_dir: Path, oids: Iterable[str]) -> set[str]:
    lines = asked(git_dir, "cat-file", "--batch-check", stdin="\n".join(oids) + "\n") or ""
    return {line.split()[0] for line in lines.splitlines() if " blob " in line}


def put_aside(git_dir: Path) -> set[tuple[str, str]]:
    """What entries of the stash have, and what a merge or a rebase put aside, with what was staged and untracked then."""
    oids = [line.split()[1] for line in _lines(git_dir / "logs/refs/stash")]
    for name in ("MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash"):
        oids += _lines(git_dir / name)
    found: set[tuple[str, str]] = set()
    for oid in oids:
        listed = [asked(git_dir, "ls-tree", "-r", f"{oid}{part}") or "" for part in _PARTS]
        entries = (line.split() for lines in listed for line in lines.splitlines())
        found |= {(_MODES[entry[0]], entry[2]) for entry in entries if entry[0] in _MODES}
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.is_file() else []


def lost_by_snapshot(work: Work, shadow: Path) -> int:
    """How much of the work no ref of the shadow repository leads to."""
    listed = asked(shadow, "rev-list", "--objects", "--no-object-names", "--all") or ""
    return len({oid for _kind, oid in work} - set(listed.split()))


def naive_commit(root: Path, work: Work, environ: Mapping[str, str], patience: float) -> Loss:
    """Run `git add -A && git commit`, as a script does, and count what no ref leads to afterwards."""
    said_no = False
    for words in (["add", "-A"], ["commit", "-q", "-m", "Save the work"]):
        said_no = said_no or not _run(root, words, environ, patience)
    git_dir = git_dir_of(root)
    refs = asked(git_dir, "for-each-ref", "--format=%(objectname)") if git_dir.is_dir() else None
    kept = (_history(git_dir, refs.split()) or set()) if refs else set()
    return Loss(len(work - kept), len(work), silent=not said_no)


def _run(root: Path, words: list[str], environ: Mapping[str, str], patience: float) -> bool:
    process = subprocess.Popen(
        ["git", *words],
        cwd=root,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(patience) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


def brought_back(kept: Snapshot, shadow: Path, folder: Path) -> Contents:
    """What the printed command brings back, under the names that the manifest gives."""
    manifest = json.loads(asked(shadow, "cat-file", "blob", f"{kept.ref}:manifest.json") or "{}")
    named = {unspell(place): unspell(path) for place, path in manifest["escaped"].items()}
    return {named.get(path, path): what for path, what in recovered(kept, folder).items()}


Imprint = dict[bytes, tuple[int, int, str]]


def imprint(folder: Path, leave_out: Iterable[str] = ()) -> Imprint:
    """Mode, time of change and digest of everything below a folder; opens no special file.

    Git notes on an object that it would have written when that was last, which changes nothing.
    """
    found: Imprint = {}
    for here, folders, files in os.walk(os.fsencode(folder)):
        if here == os.fsencode(folder):
            folders[:] = [name for name in folders if os.fsdecode(name) not in leave_out]
        for name in (*folders, *files):
            path = os.path.join(here, name)
            status = os.lstat(path)
            time = 0 if b"/objects/" in path else status.st_mtime_ns
            found[path] = (status.st_mode, time, _digest(path, status.st_mode))
    return found


def _digest(path: bytes, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return os.fsdecode(os.readlink(path))
    if stat.S_ISREG(mode):
        return hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
    return ""
