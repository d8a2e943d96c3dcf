"""The spool: where what a hook was told goes, and that it stays small and the user's own."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from guard.context.config import state_home
from guard.context.workspace import INDEX, choose, ensure
from guard.core.base.fields import parse_document
from guard.core.config.resolve import Resolved
from guard.core.config.settings import Settings
from guard.core.hooks.payload import HookCall
from guard.git.locate import repository_at
from guard.hooks import faults, spool
from guard.hooks.agent import payload
from guard.hooks.spool import NotSpooled
from tests.hooks.agent.documents import DOCUMENTS, data
from tests.support import git, write


def put(agent: str, event: str, cwd: Path, **more: Any) -> Path | None:
    stdin = data(agent, event, cwd=str(cwd), **more)
    path = spool.put(os.environ, payload.read_payload(agent, event, stdin, os.environ))
    return Path(path) if path is not None else None


def spooled(home: Path) -> list[Path]:
    return sorted((home / "state/guard/spool.d").glob("*/*"))


def test_a_call_is_one_file_that_reads_back(repository: Path, home: Path) -> None:
    path = put("claude", "SubagentStart", repository)
    assert path is not None
    assert spooled(home) == [path]
    heard = parse_document(HookCall, path.read_bytes())
    assert (heard.kind, heard.helper) == ("helper_started", "a0000000000000001")
    assert path.parent.name == spool.work_tree_key(str(repository))


def test_every_document_can_be_spooled(repository: Path, home: Path) -> None:
    for agent, events in DOCUMENTS.items():
        for event in events:
            path = put(agent, event, repository)
            assert path is not None
            assert parse_document(HookCall, path.read_bytes()).event == event


def test_signs_of_life_replace_each_other(repository: Path, home: Path) -> None:
    for _ in range(3):
        for helper in (None, "a", "b"):
            for session in ("s", "t"):
                put("claude", "PostToolUse", repository, agent_id=helper, session_id=session)
                put("claude", "PreToolUse", repository, agent_id=helper, session_id=session)
        put("claude", "SubagentStart", repository)
    alive = [path for path in spooled(home) if path.name.startswith(spool.ALIVE)]
    assert (len(alive), len(spooled(home))) == (12, 15)


def test_a_name_split_in_another_place_is_another(repository: Path, home: Path) -> None:
    for session, helper in (("a", "bc"), ("ab", "c"), ('a","b', "c"), ("a", 'b","c')):
        put("claude", "PostToolUse", repository, session_id=session, agent_id=helper)
    assert len(spooled(home)) == 4


def test_folders_below_and_links_lead_to_the_work_tree(repository: Path, tmp_path: Path) -> None:
    inside = write(repository / "a/b/file", "").parent
    link = tmp_path / "link"
    link.symlink_to(inside)
    homes = {put("claude", "SubagentStart", folder) for folder in (repository, inside, link)}
    assert {path.parent.name for path in homes if path} == {spool.work_tree_key(str(repository))}


def test_a_linked_work_tree_and_a_nested_repository_have_their_own(repository: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", "-q", "../linked")
    git(repository, "init", "-q", "nested")
    for root in (repository.parent / "linked", repository / "nested"):
        path = put("claude", "SubagentStart", root)
        assert path is not None
        assert path.parent.name == spool.work_tree_key(str(root))


def test_a_work_tree_whose_git_folder_is_gone_is_still_itself(repository: Path) -> None:
    git(repository, "init", "-q", "nested")
    nested = repository / "nested"
    before = put("claude", "SubagentStart", nested)
    (nested / ".git").rename(nested / "gone")
    (nested / "deep").mkdir()
    after = put("claude", "SubagentStart", nested / "deep")
    assert before is not None
    assert after is not None
    assert before.parent == after.parent


def test_a_work_tree_that_guard_knows_is_itself_without_git_folder_and_spool(
    repository: Path, home: Path
) -> None:
    nested = known(repository / "nested")
    deep = write(nested / "a/b/file", "").parent
    (nested / ".git").rename(nested / "gone")
    assert key_for(deep) == key_for(nested) == spool.work_tree_key(str(nested))
    assert key_for(repository) == spool.work_tree_key(str(repository))


def test_another_folder_in_the_place_of_a_known_one_is_not_it(repository: Path, home: Path) -> None:
    nested = known(repository / "nested")
    nested.rename(repository / "moved")
    nested.mkdir()
    assert key_for(nested) == spool.work_tree_key(str(repository))


@pytest.mark.parametrize("entry", [b"", b"{", b"[]", b'{"device": 1}', b"[" * 60_000, b"\xff"])
def test_an_index_that_makes_no_sense_is_passed_over(
    entry: bytes, repository: Path, home: Path
) -> None:
    nested = known(repository / "nested")
    (file,) = (home / "state/guard" / INDEX).iterdir()
    file.write_bytes(entry)
    (nested / ".git").rename(nested / "gone")
    assert key_for(nested) == spool.work_tree_key(str(repository))


def known(root: Path) -> Path:
    """A repository that guard has in its index of work trees."""
    git(root.parent, "init", "-q", root.name)
    ensure(choose(repository_at(root), None, Resolved(Settings(), {}, ()), os.environ), os.environ)
    return root


def key_for(folder: Path) -> str | None:
    path = put("claude", "SubagentStart", folder)
    return path.parent.name if path else None


def test_outside_of_every_work_tree_nothing_is_kept(home: Path, tmp_path: Path) -> None:
    assert put("claude", "SubagentStart", tmp_path) is None
    assert spooled(home) == []


def test_it_is_the_users_alone(repository: Path) -> None:
    path = put("claude", "SubagentStart", repository)
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_link_or_a_folder_open_to_others_is_refused(repository: Path, tmp_path: Path) -> None:
    path = put("claude", "SubagentStart", repository)
    assert path is not None
    folder, elsewhere = path.parent, tmp_path / "elsewhere"
    folder.chmod(0o777)
    with pytest.raises(NotSpooled, match="may be changed by other users"):
        put("claude", "SubagentStart", repository)
    folder.chmod(0o700)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    with pytest.raises(OSError):
        put("claude", "SubagentStart", repository)
    assert [one.name for one in elsewhere.iterdir()] == [path.name]


def test_without_a_state_home_it_says_so(repository: Path) -> None:
    heard = payload.read_payload("claude", "Stop", b"{}", {})
    with pytest.raises(NotSpooled, match="absolute path"):
        spool.put({"XDG_STATE_HOME": "relative", "HOME": "also"}, heard)


def test_a_spool_that_nobody_takes_in_does_not_grow_for_ever(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_MANY_BYTES", 0)
    monkeypatch.setattr(spool, "MOST_FILES", 3)
    for _ in range(3):
        put("claude", "SubagentStart", repository)
    with pytest.raises(NotSpooled, match="full"):
        put("claude", "SubagentStart", repository)


def test_a_spool_is_full_at_ten_thousand_files(repository: Path) -> None:
    path = put("claude", "SubagentStart", repository)
    assert path is not None
    for number in range(9_998):
        name = f"{number:019d}-1000000.json"
        os.close(os.open(path.parent / name, os.O_CREAT | os.O_WRONLY))
    put("claude", "SubagentStart", repository)
    for _ in range(3):
        with pytest.raises(NotSpooled, match="full"):
            put("claude", "SubagentStart", repository)
    assert len(list(path.parent.iterdir())) == 10_000


def test_where_folders_have_no_size_files_are_counted_now_and_then(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_MANY_BYTES", 2**40)
    monkeypatch.setattr(spool, "MOST_FILES", 3)
    for _ in range(3):
        put("claude", "SubagentStart", repository)

    def put_many() -> None:
        for _ in range(10_000):
            put("claude", "PostToolUse", repository)

    with pytest.raises(NotSpooled, match="full"):
        put_many()


def test_a_failed_write_leaves_nothing_behind(
    repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("claude", "SubagentStart", repository)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        put("claude", "SubagentStart", repository)
    assert len(list((home / "state/guard/spool.d").glob("*/.*"))) == 0


def test_faults_are_kept_in_one_line_each(home: Path) -> None:
    faults.note(os.environ, "first\nand \x1b[31m more \ud800")
    faults.note(os.environ, "second" * 1000)
    first, second = (home / "state/guard/hooks.log").read_text().splitlines()
    assert first.endswith("first\\nand \\x1b[31m more \\ud800")
    assert len(second) < 2100


def test_the_log_of_faults_keeps_the_newer_half(home: Path) -> None:
    log = write(home / "state/guard/hooks.log", b"old\n" * 65_500 + b"newest\n")
    faults.note(os.environ, "x" * 500)
    lines = log.read_text().splitlines()
    assert log.stat().st_size < 140_000
    assert lines[-2] == "newest"
    assert lines[-1].endswith("xxx")
    assert set(lines[:-2]) == {"old"}


@pytest.mark.parametrize("state", ["a file", "a link", "relative"])
def test_noting_a_fault_never_fails(
    state: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    match state:
        case "a file":
            write(home / "state", "")
        case "a link":
            (home / "state/guard").mkdir(parents=True)
            (home / "state/guard/hooks.log").symlink_to(write(home / "target", ""))
        case _:
            monkeypatch.setenv("XDG_STATE_HOME", "relative")
            monkeypatch.setenv("HOME", "relative")
    faults.note(os.environ, "text")
    if state == "a link":
        assert (home / "target").read_text() == ""


def test_the_state_home_is_that_of_the_workspaces(home: Path) -> None:
    for environ in ({"HOME": "/h"}, {"HOME": "/h", "XDG_STATE_HOME": "/x"}, dict(os.environ)):
        assert faults.state_home(environ) == str(state_home(environ))
    relative = {"HOME": "/h", "XDG_STATE_HOME": "x"}
    assert faults.state_home(relative) == str(state_home(relative)) == "/h/.local/state/guard"
