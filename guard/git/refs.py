"""Read where HEAD and all refs stand, and pin commits by refs of guard's own.

A pin keeps commits from git's garbage collection, until the next baseline or for good.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

from guard.core.base.first_use import dataclass, late_pattern
from guard.core.base.paths import spell, unspell
from guard.errors import RepositoryProblem
from guard.git.gitdir_files import has_reftable, heads, read_portion
from guard.git.locate import Repository
from guard.git.obstacles import GitObstacle
from guard.git.reader import RepositoryReader
from guard.git.run import GitTimedOut

UNBORN = "empty"
OWN = "refs/guard/"
_COMMIT = """\
tree {tree}
{parents}author guard <guard@localhost> {seconds} +0000
committer guard <guard@localhost> {seconds} +0000

{subject}

Guard made this commit to keep its parents from being deleted. It is on no branch.
"""
_FORMAT = "%(objectname)%00%(objecttype)%00%(*objectname)%00%(*objecttype)%00%(refname)"
_MOST_PACKED = 64 * 1024 * 1024
_OID = late_pattern(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PARENT = late_pattern(rb"^parent ([0-9a-f]{40}(?:[0-9a-f]{24})?)$", re.MULTILINE)


@dataclass(frozen=True)
class Refs:
    """HEAD, and the commit of each ref; names are spelled."""

    head: str | None
    branch: str | None
    names: dict[str, str]
    """Without guard's own; the detached HEADs of other work trees are among them."""
    own: dict[str, str]
    """Guard's own."""


def has_guard_refs(common_dir: Path) -> bool:
    """Tell whether a repository has refs of guard's own, without asking git; with a reftable, False."""
    if any(files for _, _, files in os.walk(common_dir / OWN)):
        return True
    packed = read_portion(common_dir / "packed-refs", most=_MOST_PACKED)
    return packed is not None and f" {OWN}".encode() in packed.data


def read_refs(git: RepositoryReader) -> Refs:
    names: dict[str, str] = {}
    own: dict[str, str] = {}
    for name, oid in _list_refs(git):
        (own if name.startswith(OWN) else names)[name] = oid
    head, branch = _head(git, git.repository.git_dir / "HEAD", "HEAD", names)
    if head is None and branch is not None:
        _refuse_broken(git, branch)
    for name, path in heads(git.repository):
        if name != "HEAD":
            detached, symbolic = _head(git, path, name, names)
            if detached is not None and symbolic is None:
                names[spell(os.fsencode(name))] = detached
    return Refs(head, branch, names, own)


def _refuse_broken(git: RepositoryReader, branch: str) -> None:
    # A branch that exists and leads nowhere is damage; only one that does not exist yet is the empty beginning.
    name = os.fsdecode(unspell(branch))
    known = git.ask("for-each-ref", "--format=%(objectname)", name).strip()
    if known or os.path.lexists(git.repository.common_dir / name):
        raise RepositoryProblem(
            f"HEAD names {branch}, which does not lead to a commit",
            "find its last commit with `git reflog` or `git fsck`, then set it with `git update-ref`",
        )


def _list_refs(git: RepositoryReader) -> Iterator[tuple[str, str]]:
    try:
        lines = git.ask("for-each-ref", f"--format={_FORMAT}").splitlines()
    except (GitObstacle, GitTimedOut):
        raise
    except RepositoryProblem:
        yield from _list_refs_one_by_one(git)
        return
    for line in lines:
        oid, kind, peeled, peeled_kind, name = line.split(b"\0")
        if kind == b"commit":
            yield spell(name), oid.decode()
        elif peeled_kind == b"commit":
            yield spell(name), peeled.decode()


def _list_refs_one_by_one(git: RepositoryReader) -> Iterator[tuple[str, str]]:
    # For a repository where a ref leads to an object that is missing: git would refuse to name the kind of any.
    lines = git.ask("for-each-ref", "--format=%(objectname)%00%(refname)").splitlines()
    pairs = [(oid, name) for oid, _, name in (line.partition(b"\0") for line in lines)]
    wanted = b"".join(b"%s^{commit}\n" % oid for oid, _ in pairs)
    answers = git.ask("cat-file", "--batch-check=%(objectname)", stdin=wanted).splitlines()
    for (_, name), answer in zip(pairs, answers, strict=True):
        if _OID.fullmatch(answer):
            yield spell(name), answer.decode()


def _head(
    git: RepositoryReader, path: Path, name: str, refs: dict[str, str]
) -> tuple[str | None, str | None]:
    """The commit and the branch of a work tree's HEAD."""
    found = (
        read_portion(path) if not path.is_symlink() and not has_reftable(git.repository) else None
    )
    text = found.data.strip() if found else b""
    if text.startswith(b"ref: "):
        branch = spell(text.removeprefix(b"ref: ").strip())
        return refs.get(branch), branch
    if found is not None and name != "HEAD" and not text.strip(b"0"):
        # Git is just making this work tree.
        return None, None
    if _OID.fullmatch(text):
        return text.decode(), None
    symbolic = git.line("symbolic-ref", "--quiet", name)
    branch_now = spell(os.fsencode(symbolic)) if symbolic else None
    return git.line("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}"), branch_now


def read_head(git: RepositoryReader) -> str | None:
    """Return the commit that is checked out; `empty` before the first one; None if HEAD leads nowhere."""
    found = git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if found is not None:
        return found
    branch = git.line("symbolic-ref", "--quiet", "HEAD")
    known = branch and git.line("rev-parse", "--verify", "--quiet", branch)
    return UNBORN if branch and not known else None


def has_new_commits(git: RepositoryReader, since: str, now: str) -> bool:
    """Tell whether `now` leads to commits that `since` did not; going back to an old commit brings none."""
    if UNBORN in (since, now):
        return since == UNBORN != now
    return git.line("rev-list", "--count", "--max-count=1", now, f"^{since}") == "1"


def commit_of(git: RepositoryReader, revision: str) -> str:
    try:
        answer = git.ask("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except RepositoryProblem as error:
        if revision == "HEAD" and git.line("symbolic-ref", "--quiet", "HEAD"):
            raise RepositoryProblem(
                "there is no commit yet on this branch", "make the first one with `git commit`"
            ) from None
        hint = "name a commit that exists, such as HEAD~1, a branch, or an id from `git log`"
        if (git.repository.common_dir / "shallow").is_file():
            hint += "; this clone is shallow, and `git fetch --deepen 50` gets more history"
        raise RepositoryProblem(
            f"{revision!r} does not name a commit: {error.message}", hint
        ) from None
    return answer.decode().strip()


def first_parent(git: RepositoryReader, commit: str) -> str | None:
    """Return the first parent that the commit itself names, also if it is not here; None for a root commit.

    Git hides the parents of the commits that `.git/shallow` names, and an agent can write that file.
    """
    text = git.ask("cat-file", "commit", commit).partition(b"\n\n")[0]
    found = _PARENT.search(text)
    return found[1].decode() if found else None


def has_commit(git: RepositoryReader, commit: str) -> bool:
    found = git.ask("cat-file", "--batch-check=%(objecttype)", stdin=f"{commit}\n".encode())
    return found.strip() == b"commit"


def tree_of(git: RepositoryReader, commit: str) -> str:
    return git.ask("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()


def missing_commits(git: RepositoryReader, oids: Sequence[str]) -> list[str]:
    wanted = "".join(f"{oid}^{{commit}}\n" for oid in oids).encode()
    answers = git.ask("cat-file", "--batch-check=%(objectname)", stdin=wanted).splitlines()
    return [oid for oid, answer in zip(oids, answers, strict=True) if not _OID.fullmatch(answer)]


def head_and_refs_stamp(repository: Repository) -> str:
    """Return a value that changes when HEAD or any ref moves, in any work tree; cheap, and without running git.

    A ref that moves is a new file in place of the old one, so size, time and inode of all files tell, even of two moves within
    one tick of the clock. Guard's own refs are left out: they move when guard looks.
    """
    common = repository.common_dir
    digest = blake2b(digest_size=16)
    paths = [common / "packed-refs", common / "reftable", common / "reftable" / "tables.list"]
    for _, head in heads(repository):
        paths += [head, head.parent / "logs" / "HEAD"]
    for path in paths:
        digest.update(_stat(path))
    folders = [common / "refs"]
    while folders:
        for entry in _entries(folders.pop()):
            path = Path(entry.path)
            if not entry.is_dir(follow_symlinks=False):
                digest.update(os.fsencode(entry.name) + _stat(path))
            elif path != common / "refs" / "guard":
                folders.append(path)
    return digest.hexdigest()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []


def _stat(path: Path) -> bytes:
    try:
        status = os.lstat(path)
    except OSError:
        return b"-;"
    return b"%d %d %d;" % (status.st_size, status.st_mtime_ns, status.st_ino)


def baseline_ref(worktree: str) -> str:
    return f"{OWN}baseline/{worktree}"


def lost_ref(baseline: str) -> str:
    return f"{OWN}lost/{baseline}"


def pin(git: RepositoryReader, ref: str, tips: Iterable[str], now: datetime, subject: str) -> str:
    """Make the ref lead to all these commits, by a commit that has them as parents; return its id.

    Git walks history by date, so the date of the pin, not before that of its parents, keeps walks from it short.
    """
    tree = git.ask("hash-object", "-w", "-t", "tree", "--stdin", stdin=b"").decode().strip()
    text = _COMMIT.format(
        tree=tree,
        parents="".join(f"parent {oid}\n" for oid in dict.fromkeys(tips)),
        seconds=int(now.timestamp()),
        subject=subject,
    )
    made = git.ask("hash-object", "-w", "-t", "commit", "--stdin", stdin=text.encode())
    oid = made.decode().strip()
    quiet = git.with_settings({"core.logAllRefUpdates": "false"})
    quiet = quiet.with_variable("GIT_COMMITTER_NAME", "guard")
    quiet = quiet.with_variable("GIT_COMMITTER_EMAIL", "guard@localhost")
    quiet.ask("update-ref", "--no-deref", "-m", "guard: pin", ref, oid)
    return oid
