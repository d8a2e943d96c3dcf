"""A side question that git refuses holds back the paths that it was about, and nothing else."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from guard.errors import RepositoryProblem
from guard.git.ignore_rules import ask_by_parts, find_ignored_paths
from guard.git.locate import find_repository
from guard.git.reader import RepositoryReader
from guard.rescue.commits import write_selection
from guard.rescue.select import CommitSelection
from tests.rescue.states import start
from tests.rescue.states_places import submodule
from tests.rescue.states_start import dirty, in_repository
from tests.support import git, write
from tests.support.rescues import attempt_rescue, site_of

SECRET = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8" * 6


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def edited(inner: Path) -> None:
    write(inner / "code.c", "edited inside\n")


def new_file(inner: Path) -> None:
    write(inner / "new.c", "new inside\n")


def committed(inner: Path) -> None:
    edited(inner)
    git(inner, "commit", "-qam", "Inside")


def without_git_file(inner: Path) -> None:
    edited(inner)
    (inner / ".git").unlink()


def broken_inside(inner: Path) -> None:
    edited(inner)
    write(inner / ".git", "gitdir: nowhere\n")


@pytest.mark.parametrize("act", [edited, new_file, committed, without_git_file, broken_inside])
def test_work_in_a_submodule_holds_back_only_the_submodule(
    act: Callable[[Path], None], repository: Path, workspace: Path
) -> None:
    inner, since = submodule(repository), datetime.now(UTC)
    act(inner)
    result = attempt_rescue(repository, workspace, [*dirty(repository), "lib"], since=since)
    assert (result.reason, len(result.commits)) == ("rescued", 1), result.detail
    assert {one.path: one.why for one in result.held_back} == {"lib": in_repository("lib")}
    assert git(repository, "status", "--porcelain", "--ignore-submodules=all") == ""


def test_a_path_in_a_submodule_that_has_no_git_file_is_held_back(
    repository: Path, workspace: Path
) -> None:
    without_git_file(submodule(repository))
    result = attempt_rescue(repository, workspace, [*dirty(repository), "lib/code.c"])
    assert result.reason == "rescued"
    assert [one.path for one in result.held_back] == ["lib/code.c"]


def test_a_committed_object_that_is_missing_holds_back_no_other_path(
    repository: Path, workspace: Path
) -> None:
    oid = git(repository, "rev-parse", "HEAD:mine.txt").strip()
    (repository / ".git/objects" / oid[:2] / oid[2:]).unlink()
    write(repository / "mine.txt", f"key = {SECRET}\n")
    result = attempt_rescue(repository, workspace, [*dirty(repository), "mine.txt"])
    assert result.reason == "rescued", result.detail
    assert [one.path for one in result.held_back] == ["mine.txt"]
    assert result.held_back[0].why.startswith("secret: ")


def test_a_path_that_git_refuses_to_add_is_named_and_the_others_are_added(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    dirty(repository)
    own = site_of(repository, workspace).project().with_index(tmp_path / "index")
    own.call("read-tree", "HEAD")
    plan = CommitSelection((b"edited.txt", b"gone.txt", b"new.txt"), (), ())
    refused: dict[bytes, str] = {}
    tree = write_selection(own, plan, refused)
    assert list(refused) == [b"gone.txt"]
    changed = own.line("diff-tree", "-r", "--name-only", "HEAD", tree)
    assert changed.split() == ["edited.txt", "new.txt"]


@pytest.mark.parametrize("count", [1, 2, 7, 100])
@pytest.mark.parametrize("bad", [(), (0,), (0, 1), (3, 50, 99)])
def test_what_git_refuses_is_found_among_the_rest(count: int, bad: tuple[int, ...]) -> None:
    paths = [b"%d" % number for number in range(count)]
    refusing = {paths[number] for number in bad if number < count}
    refused: dict[bytes, str] = {}

    def ask(part: Sequence[bytes]) -> bytes:
        if refusing.intersection(part):
            raise RepositoryProblem("no")
        return b"".join(path + b"\0" for path in part)

    answers = b"".join(ask_by_parts(ask, paths, refused))
    assert answers.split(b"\0")[:-1] == [path for path in paths if path not in refusing]
    assert refused == dict.fromkeys(refusing, "no")


def test_a_git_that_refuses_everything_is_not_asked_for_ever() -> None:
    paths, asked, refused = [b"%d" % number for number in range(5000)], [0], dict[bytes, str]()

    def ask(_part: Sequence[bytes]) -> bytes:
        asked[0] += 1
        raise RepositoryProblem("no")

    assert list(ask_by_parts(ask, paths, refused)) == []
    assert refused.keys() == set(paths)
    assert asked[0] <= 64


def test_a_path_behind_a_link_is_refused_alone(repository: Path) -> None:
    write(repository / ".gitignore", "*.log\n")
    (repository / "way").symlink_to("folder")
    found = find_repository(repository, lambda _: None)
    reader = RepositoryReader(found, {}).with_variable("GIT_LITERAL_PATHSPECS", "0")
    answer = find_ignored_paths(reader.ask, [b"a.log", b"way/inside.txt", b"b.txt", b"c.log"])
    rule = (b".gitignore", b"*.log")
    assert answer.rules == {b"a.log": rule, b"c.log": rule}
    assert list(answer.refused) == [b"way/inside.txt"]
