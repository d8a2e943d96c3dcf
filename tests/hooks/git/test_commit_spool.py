"""What lies in the spool of commits: taken in once, and whatever makes no sense is said and gone."""

import json
import os
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.core.hooks.event_kinds import MARK
from guard.core.hooks.git.state import COMMITS
from guard.hooks import spool
from guard.hooks.git import note, pre_push
from guard.hooks.git.commits import ingest_commits
from guard.hooks.git.work_tree import open_work_tree
from guard.hooks.ingest import ingest_hooks
from guard.system.private_files import Folder
from tests.support import commit, git, write
from tests.support.git_hooks import commits


def folder(root: Path) -> Path:
    return Path(os.environ["XDG_STATE_HOME"], "guard", note.FOLDER, spool.work_tree_key(str(root)))


def test_a_file_that_could_not_be_deleted_is_not_taken_in_again(repository: Path) -> None:
    commit(repository)
    note.note_commit(os.environ)
    (path,) = folder(repository).glob("*.json")
    data = path.read_bytes()
    assert len(commits().commits) == 1
    write(path, data)
    write(path.with_name("0-1.json"), data)
    assert len(commits().commits) == 1
    assert not list(folder(repository).glob("*.json"))


HOSTILE = {
    "no JSON": b"\x00\xff",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "no commit": b'{"schema":"guard/noted-commit/1","event":"post-commit","seconds":1.0,'
    b'"boot_seconds":1.0,"boot_id":null,"mark":null}',
    "an id that is none": b'{"oid":"../../x"}',
    "large": b" " * (2 * 1024 * 1024),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_makes_no_sense_is_said_and_deleted(name: str, repository: Path) -> None:
    write(folder(repository) / "1-1.json", HOSTILE[name])
    for parent in (folder(repository), *list(folder(repository).parents)[:2]):
        parent.chmod(0o700)
    guard = Invocation()
    opened = Folder.open(folder(repository))
    assert opened is not None
    with opened:
        assert len(list(ingest_commits(guard, None, opened))) == 1
        assert list(ingest_commits(guard, None, opened)) == []
    assert guard.store.view(COMMITS, guard.worktree_key) is None


def test_a_folder_in_the_place_of_a_file_holds_nothing_up(repository: Path) -> None:
    (folder(repository) / "1-1.json").mkdir(parents=True, mode=0o700)
    commit(repository)
    note.note_commit(os.environ)
    assert len(commits().commits) == 1


def test_a_repository_whose_refs_are_packed_or_gone_is_asked_of_git(repository: Path) -> None:
    made = commit(repository)
    git(repository, "pack-refs", "--all")
    note.note_commit(os.environ)
    assert commits().commits[0].oid == made
    write(repository / ".git" / "HEAD", "ref: refs/../../../etc/passwd\n")
    place = open_work_tree({}, str(repository))
    assert place is not None
    assert place.head() == (None, None)


def test_rewrites_that_make_no_sense_are_left_out(repository: Path) -> None:
    made = commit(repository)
    note.note_rewrites(
        os.environ, "re\udcffbase", f"{made} {'a' * 40} more\n../x y\n\n{made}\n".encode()
    )
    note.note_rewrites(os.environ, "rebase", b"\xff" * 1000)
    assert [(one.old, one.new) for one in commits().rewrites] == [(made, "a" * 40)]


def test_changes_that_a_program_above_has_put_aside(tmp_path: Path) -> None:
    pid = os.getppid()
    environ = {
        "PRE_COMMIT": "1",
        "PRE_COMMIT_HOME": str(tmp_path / "a"),
        "PREK_HOME": str(tmp_path),
    }
    assert not pre_push.has_hidden_changes(environ, 0)
    write(tmp_path / "a" / f"patch1-{pid}0", "")
    assert not pre_push.has_hidden_changes(environ, 0)
    write(tmp_path / "patches" / f"1-{pid}.patch", "")
    now = (tmp_path / "patches" / f"1-{pid}.patch").stat().st_mtime
    assert pre_push.has_hidden_changes(environ, now)
    assert not pre_push.has_hidden_changes(environ, now + 10 * 86400)
    assert not pre_push.has_hidden_changes({**environ, "PRE_COMMIT": ""}, now)


def test_the_notes_are_documents_of_their_own_schema(repository: Path) -> None:
    commit(repository)
    note.note_commit({**os.environ, MARK: "r\udcff" * 1000})
    (path,) = folder(repository).glob("*.json")
    assert json.loads(path.read_bytes())["schema"] == "guard/noted-commit/1"
    ingest_hooks(Invocation())
    assert commits().commits[0].run is None
