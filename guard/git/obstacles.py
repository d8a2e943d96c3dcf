"""Find what an agent can plant in a git directory to make git write elsewhere, or wait for ever.

Git follows a link in the place of a folder of its own, and appends to a reflog through a link or under a second name of the
file: so a link in `.git/logs` makes it write outside the repository. Opening a named pipe it waits for a writer. So guard looks
before each call: at every place that git may write if the call writes, and at the places that git reads if it does not.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from guard.core.base.first_use import late_pattern
from guard.core.base.text import escape
from guard.errors import RepositoryProblem
from guard.git.locate import Repository, read_common_dir
from guard.system.foreign_files import BoundedWalk, read_regular

_READERS = frozenset(
    {
        *("cat-file", "check-attr", "check-ignore", "config", "diff-index", "diff-tree"),
        *("for-each-ref", "interpret-trailers", "log", "ls-files", "ls-tree", "merge-base"),
        *("rev-list", "rev-parse", "status"),
    }
)
"""The commands that write nothing, as guard calls them; every other one is taken to write."""
_WRITE_ONLY_WITH = {"hash-object": "-w", "symbolic-ref": "-m", "worktree": "add"}
"""Of the other ones, the word without which guard only reads by them."""
_READ = (
    *("HEAD", "commondir", "config", "config.worktree", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout"),
    # Git reads these to tell which operation is in progress.
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_START", "rebase-merge/head-name"),
    *("rebase-merge/onto", "rebase-apply/head-name", "rebase-apply/onto", "sequencer/todo"),
)
_READ_IN_WORK_TREES = ("HEAD", "commondir", "gitdir", "locked")
RULE_FILES = (".gitattributes", ".gitignore", ".gitmodules", ".mailmap")
"""Files of a work tree that git opens by itself, in the top folder and, but for the last two, in every other."""
_OBJECTS = late_pattern("[0-9a-f]{2}")
_SETTING = late_pattern(rb"^[^#;=\n]*=[ \t]*([^#;\n]+)", re.MULTILINE)
_MOST_CONFIG_BYTES = 1024**2
_HOOKS = late_pattern(rb"\[\s*(?:hook|include)", re.IGNORECASE)
_MOST_CONFIGS = 20
_MOST_VALUES = 1000
_MOST_FOLDERS = 20_000
_MOST_REFS = 100
_MOST_LENDERS = 100
_SETTLED_NS = 50_000_000
_SEARCH_SECONDS = 2.0
_SEARCH_ENTRIES = 200_000
_LINK = "a symbolic link"
_PIPE = "a named pipe"
_DEVICE = "a device"
_SOCKET = "a socket"
_KINDS = {
    stat.S_IFLNK: _LINK,
    stat.S_IFIFO: _PIPE,
    stat.S_IFSOCK: _SOCKET,
    stat.S_IFCHR: _DEVICE,
    stat.S_IFBLK: _DEVICE,
}


_NO_VARIABLES: Mapping[str, str] = {}


class GitObstacle(RepositoryProblem):
    """Something stands where git would write or read, through which it would write elsewhere or wait for ever."""


def refuse_obstacles(
    repository: Repository, words: Sequence[str], variables: Mapping[str, str] = _NO_VARIABLES
) -> None:
    """Raise `GitObstacle` if this git command, under these variables, must not be run in the repository as it is now."""
    _refuse_elsewhere(repository)
    _refuse_to_wait(repository)
    if not is_writer(words):
        return
    command, *rest = _without_settings(words)
    if command == "worktree":
        # Git deletes the one that is registered at the same place, through a link too.
        _refuse_odd_entries(repository.common_dir / "worktrees")
    moves = command in ("update-ref", "symbolic-ref")
    objects = "GIT_OBJECT_DIRECTORY" not in variables
    refuse_to_write(repository, _refs_in(rest) if moves else (), objects)


def is_writer(words: Sequence[str]) -> bool:
    """Tell whether a git command may write, as guard calls it."""
    command, *rest = _without_settings(words)
    if command in _WRITE_ONLY_WITH:
        return _WRITE_ONLY_WITH[command] in rest
    return command not in _READERS


def _without_settings(words: Sequence[str]) -> Sequence[str]:
    while words[0] == "-c":
        words = words[2:]
    return words


def _refs_in(words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith("refs/") or word == "HEAD"]


def refuse_to_write(repository: Repository, refs: Iterable[str] = (), objects: bool = True) -> None:
    """Raise `GitObstacle` if git would write elsewhere, or wait, when it makes objects and moves these refs."""
    own, common = repository.git_dir, repository.common_dir
    _refuse_led_away(repository.root)
    for folder in (common, *_folders_between(common, own), own):
        _refuse_odd(folder)
    if objects:
        _refuse_objects(common / "objects")
    named = set(refs)
    if not named:
        return
    _refuse_odd(common / "packed-refs")
    _refuse_head(own)
    _refuse_way(own, "logs/HEAD", appended=True)
    _refuse_odd_entries(common / "reftable")
    for ref in _with_their_targets(common, {*named, _named_by(own / "HEAD")} - {"HEAD", ""}):
        _refuse_way(common, ref, appended=False)
        _refuse_way(common, f"logs/{ref}", appended=True)


def refuse_to_write_index(repository: Repository) -> None:
    """Raise `GitObstacle` if the index is a link or a special file."""
    _refuse_odd(repository.git_dir / "index")


def refuse_to_read_index(repository: Repository) -> None:
    """Raise `GitObstacle` if a part of the index that git keeps apart is a link or a special file.

    Git sets the time of that part when it reads it, through a link too.
    """
    for name in _scan(repository.git_dir).others:
        if name.startswith("sharedindex."):
            _refuse_odd(repository.git_dir / name)


def _folders_between(top: Path, below: Path) -> Iterator[Path]:
    # The git directory of a linked work tree lies in that of the repository.
    if below.is_relative_to(top):
        yield from (folder for folder in below.parents if folder != top and top in folder.parents)


def _refuse_head(own: Path) -> None:
    # A link to a branch is an old way to write which one is checked out: git reads the link, and never writes through it.
    head = own / "HEAD"
    with suppress(OSError):
        if re.fullmatch(r"refs/heads/[\w/-]+", os.readlink(head)):
            return
    _refuse_odd(head)


def _with_their_targets(common: Path, refs: Iterable[str]) -> set[str]:
    """The refs and those to which they lead: git moves the last one, and writes its log."""
    found, ahead = set[str](), list(refs)
    while ahead and len(found) < _MOST_REFS:
        ref = ahead.pop()
        if ref and ref not in found:
            found.add(ref)
            ahead.append(_named_by(common / ref))
    return found


def _named_by(path: Path) -> str:
    """The ref that a symbolic one names, as HEAD does the branch; empty if it is none."""
    with suppress(OSError):
        return os.readlink(path)
    with suppress(OSError, ValueError):
        line = os.fsdecode(read_regular(path, 4096))
        return line.removeprefix("ref:").strip() if line.startswith("ref:") else ""
    return ""


def _refuse_way(top: Path, name: str, *, appended: bool) -> None:
    *folders, last = name.split("/")
    here = top
    for folder in folders:
        here = here / folder
        _refuse_odd(here)
    _refuse_odd(here / last, appended=appended)


def _refuse_objects(objects: Path) -> None:
    _refuse_odd(objects)
    for name in ("info", "pack"):
        _refuse_odd(objects / name)
    for name in _scan(objects).others:
        if _OBJECTS.fullmatch(name):
            _refuse_odd(objects / name)
    # Of an object that is there already git sets the time, through a link too.
    for folder in object_folders(objects):
        for path in _list_others(folder):
            _refuse_odd(path)


def refuse_to_lend(repository: Repository) -> None:
    """Raise `GitObstacle` if another repository that reads this one's objects would wait for ever."""
    _refuse_waiting_objects(repository, _list_others)


def _refuse_waiting_objects(
    repository: Repository, list_others: Callable[[Path], Iterator[Path]]
) -> None:
    for objects in object_folders(repository.common_dir / "objects"):
        for path in list_others(objects):
            _refuse_special(path)


def object_folders(objects: Path) -> Iterator[Path]:
    """The folder of objects and those from which it borrows, which may borrow in turn; a file that names them is no pipe."""
    ahead, seen = [objects], set[str]()
    while ahead and len(seen) < _MOST_LENDERS:
        folder = ahead.pop(0)
        if os.fspath(folder) in seen:
            continue
        seen.add(os.fspath(folder))
        yield folder
        alternates = folder / "info" / "alternates"
        _refuse_special(alternates)
        with suppress(OSError, ValueError):
            lines = read_regular(alternates, _MOST_CONFIG_BYTES).split(b"\n")
            named = (os.fsdecode(_unquoted(line)) for line in lines if line[:1] not in (b"", b"#"))
            ahead.extend(Path(os.path.normpath(folder / name)) for name in named)


def _unquoted(line: bytes) -> bytes:
    """A path as git reads it; one that it does not understand stays as it is."""
    if line[:1] != b'"' or line[-1:] != b'"' or len(line) < 2:
        return line
    with suppress(ValueError):
        return line[1:-1].decode("unicode_escape").encode("latin-1")
    return line


def _list_odd_packs(objects: Path) -> Iterator[Path]:
    pack = objects / "pack"
    yield from (pack / other for other in _scan(pack).others)


def _list_others(objects: Path) -> Iterator[Path]:
    """Yield the objects and packs that are no files."""
    top = os.fspath(objects)
    for name in _scan(objects).folders:
        if _OBJECTS.fullmatch(name) or name == "pack":
            yield from (objects / name / other for other in _scan(f"{top}/{name}").others)


def _refuse_odd_entries(folder: Path) -> None:
    _refuse_odd(folder)
    for name in _scan(folder).others:
        _refuse_odd(folder / name)


def _refuse_odd(path: Path, *, appended: bool = False) -> None:
    # Git itself refuses a file where it needs a folder, and a folder with something in it where it needs a file.
    try:
        status = os.lstat(path)
    except OSError:
        return
    kind = stat.S_IFMT(status.st_mode)
    if kind in _KINDS:
        raise _obstacle_to_write(path, _KINDS[kind])
    if appended and kind == stat.S_IFREG and status.st_nlink > 1:
        raise _obstacle_to_write(path, "a file with a second name elsewhere (a hard link)")


def _obstacle_to_write(path: Path, what: str) -> GitObstacle:
    return GitObstacle(
        f"{escape(os.fspath(path))} is {what}, so guard lets git write nothing there",
        "find out what put it there and remove it, then try again",
    )


def _refuse_elsewhere(repository: Repository) -> None:
    """Raise `GitObstacle` if the git directory leads to another repository than when guard found it."""
    _refuse_led_away(repository.git_dir)
    named = read_common_dir(repository.git_dir)
    if named != repository.common_dir:
        raise GitObstacle(
            f"{escape(os.fspath(repository.git_dir / 'commondir'))} leads to {escape(os.fspath(named))},"
            f" and not to {escape(os.fspath(repository.common_dir))} any more",
            "restore the file; in a repository that is no linked work tree, delete it",
        )


def _refuse_led_away(folder: Path) -> None:
    # Guard found it without a link on the way.
    real = os.path.realpath(folder)
    if real != os.fspath(folder):
        raise GitObstacle(
            f"{escape(os.fspath(folder))} leads to {escape(real)} by a symbolic link, and did not when guard found it",
            "find out what put the link there and restore the folder, then try again",
        )


def _refuse_to_wait(repository: Repository) -> None:
    """Raise `GitObstacle` for a pipe or a device among the files that git reads in almost every call."""
    own, common = repository.git_dir, repository.common_dir
    for folder in dict.fromkeys((own, common)):
        for name in _READ:
            _refuse_special(folder / name)
        for ref in _list_odd_refs(folder / "refs"):
            _refuse_special(ref)
    _refuse_waiting_work_trees(common / "worktrees")
    refuse_to_read_index(repository)
    _refuse_waiting_objects(repository, _list_odd_packs)
    for name in RULE_FILES:
        _refuse_special(repository.root / name)
    for path in _named_in_settings(repository):
        _refuse_special(path)
    culprit = _CULPRITS.get(own)
    if culprit is not None:
        _refuse_special(culprit)


def _refuse_waiting_work_trees(folder: Path) -> None:
    # Git reads where every linked work tree stands, whichever of them it runs in.
    for name in _scan(folder).folders:
        for other in _scan(folder / name).others:
            if other in _READ_IN_WORK_TREES:
                _refuse_special(folder / name / other)


def _refuse_special(path: Path) -> None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return
    kind = stat.S_IFMT(status.st_mode)
    if kind in (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK) and not _is_null(status):
        raise obstacle_to_read(path, _KINDS[kind])


def _is_null(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev


def obstacle_to_read(path: Path, what: str) -> GitObstacle:
    """Return the error that names a file which git would wait for."""
    return GitObstacle(
        f"{escape(os.fspath(path))} is {what}, which git would wait for, so guard runs no git here",
        "find out what put it there and remove it, then try again",
    )


def _list_odd_refs(refs: Path) -> Iterator[Path]:
    """Yield what is neither file nor folder: git opens all that it finds below this folder, through links too."""
    ahead, seen = [refs], set[tuple[int, int]]()
    while ahead:
        folder = ahead.pop()
        found = _scan(folder)
        if found == _Scanned():
            continue
        if found.place in seen or len(seen) > _MOST_FOLDERS:
            raise obstacle_to_read(
                folder, "a folder among the refs in which git goes round and round"
            )
        seen.add(found.place)
        ahead.extend(folder / name for name in found.folders)
        for name in found.others:
            if os.path.isdir(folder / name):
                ahead.append(folder / name)
            else:
                yield folder / name


class _Scanned(NamedTuple):
    """The names in a folder that are no regular files."""

    stamp: tuple[int, int, int] = (0, 0, 0)
    folders: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Links and special files."""

    @property
    def place(self) -> tuple[int, int]:
        return self.stamp[:2]


_SCANNED: dict[str, _Scanned] = {}


def _scan(path: Path | str) -> _Scanned:
    # A folder whose time is as it was has the same names in it, unless it changed within a tick of the clock. The time of the
    # last change is meant: anyone can set that of the last write.
    folder = os.fspath(path)
    try:
        status = os.stat(folder)
    except OSError:
        return _Scanned()
    stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
    known = _SCANNED.get(folder)
    if known is not None and known.stamp == stamp:
        return known
    folders, others = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif not entry.is_file(follow_symlinks=False):
                    others.append(entry.name)
    except OSError:
        return _Scanned()
    found = _Scanned(stamp, tuple(folders), tuple(others))
    if time.time_ns() - status.st_ctime_ns > _SETTLED_NS:
        _SCANNED[folder] = found
    return found


class _Settings(NamedTuple):
    """What one configuration file has, as far as it matters here."""

    stamp: tuple[int, int, int] = (0, 0, 0)
    paths: tuple[str, ...] = ()
    """The values that may be paths."""
    hooks: bool = False
    """Whether it may name a hook, or include a file that does."""


_SETTINGS: dict[Path, _Settings] = {}


def may_name_hooks(repository: Repository) -> bool:
    """Tell whether the repository's configuration may name commands as hooks."""
    return any(_read_settings(config).hooks for config in _configs(repository))


def _configs(repository: Repository) -> tuple[Path, Path]:
    return repository.common_dir / "config", repository.git_dir / "config.worktree"


def _named_in_settings(repository: Repository) -> Iterator[Path]:
    """Every file that the repository's configuration, or a file that it includes, may name."""
    ahead = [*_configs(repository)]
    seen = set(ahead)
    while ahead:
        config = ahead.pop()
        for value in _read_settings(config).paths:
            for base in (config.parent, repository.root):
                path = base / os.path.expanduser(value)
                yield path
                if path not in seen and len(seen) < _MOST_CONFIGS:
                    seen.add(path)
                    ahead.append(path)


def _read_settings(config: Path) -> _Settings:
    try:
        status = os.stat(config)
        stamp = (status.st_ino, status.st_size, status.st_ctime_ns)
        known = _SETTINGS.get(config)
        if known is not None and known.stamp == stamp:
            return known
        data = read_regular(config, _MOST_CONFIG_BYTES)
    except (OSError, ValueError):
        return _Settings()
    plain = data.replace(b"\\\n", b"").replace(b'"', b"").replace(b"\0", b"")
    values = dict.fromkeys(match[1].strip() for match in _SETTING.finditer(plain))
    hooks = _HOOKS.search(plain) is not None or len(data) > _MOST_CONFIG_BYTES
    found = _Settings(stamp, tuple(map(os.fsdecode, islice(values, _MOST_VALUES))), hooks)
    if time.time_ns() - status.st_ctime_ns > _SETTLED_NS:
        _SETTINGS[config] = found
    return found


_CULPRITS: dict[Path, Path] = {}
"""For a git directory, the special file for which a git waited until its time was over."""


def explain_timeout(repository: Repository, error: RepositoryProblem) -> RepositoryProblem:
    """Return the error of a git that ran out of its time: naming the special file that it waited for, if there is one.

    While that file is there no git is run in the repository: each would wait for it again.
    """
    for path in _list_suspects(repository):
        try:
            _refuse_special(path)
        except GitObstacle as obstacle:
            _CULPRITS[repository.git_dir] = path
            return obstacle
    return error


def _list_suspects(repository: Repository) -> Iterator[Path]:
    for folder in dict.fromkeys((repository.git_dir, repository.common_dir, repository.root)):
        walk = BoundedWalk(
            folder, lambda found: found.folders, _SEARCH_ENTRIES, 100, _SEARCH_SECONDS
        )
        for found in walk:
            if folder == repository.root:
                yield from (found.folder / name for name in RULE_FILES)
            else:
                yield from (found.folder / name for name in _scan(found.folder).others)
