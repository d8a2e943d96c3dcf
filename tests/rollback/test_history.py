"""Which commits are a task's."""

import os
from pathlib import Path

import pytest

from guard.git.locate import find_repository
from guard.git.reader import RepositoryReader
from guard.rollback.history import commits_of_task
from guard.rollback.prepare import RollbackStopped
from tests.support import commit, git


@pytest.fixture
def reader(repository: Path) -> RepositoryReader:
    return RepositoryReader(find_repository(repository, lambda _: None), os.environ)


def test_those_after_the_base_and_after_what_passed_before(
    repository: Path, reader: RepositoryReader
) -> None:
    base, *oids = [commit(repository, f"{number}.txt") for number in range(5)]
    assert commits_of_task(reader, base, oids[3]) == tuple(reversed(oids))
    assert commits_of_task(reader, base, oids[3], earlier=[oids[1]]) == (oids[3], oids[2])
    assert commits_of_task(reader, base, oids[1], earlier=["0" * 40]) == (oids[1], oids[0])
    assert commits_of_task(reader, None, oids[1]) == (oids[1],)
    assert commits_of_task(reader, base, base) == ()


def test_of_a_merge_only_itself(repository: Path, reader: RepositoryReader) -> None:
    base = commit(repository, "base.txt")
    git(repository, "checkout", "-q", "-b", "side")
    commit(repository, "side.txt")
    git(repository, "checkout", "-q", "main")
    own = commit(repository, "own.txt")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    merge = git(repository, "rev-parse", "HEAD").strip()
    assert commits_of_task(reader, base, merge) == (merge, own)


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "left behind"])
def test_a_base_that_is_not_in_the_history(
    gone: bool, repository: Path, reader: RepositoryReader
) -> None:
    base = commit(repository, "base.txt")
    git(repository, "commit", "-q", "--amend", "-m", "Reworded")
    oid = commit(repository, "own.txt")
    with pytest.raises(RollbackStopped) as stopped:
        commits_of_task(reader, "1" * 40 if gone else base, oid)
    assert stopped.value.why == "not_in_history"
