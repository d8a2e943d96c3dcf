"""Which names git ignores."""

from pathlib import Path

import pytest

from guard.git.locate import repository_at
from guard.git.reader import RepositoryReader
from guard.git.status import find_ignored
from tests.support import commit, write

NAMES = {
    "an ignored file": ("build/out.o", True),
    "an ignored folder": ("build/", True),
    "one by a pattern": ("deep/down/x.log", True),
    "a file that is there": ("file.txt", False),
    "a file that is nowhere": ("src/none.py", False),
    "above the work tree": ("../x.log", False),
    "an absolute path": ("/tmp/x.log", False),
    "nothing": ("", False),
    "magic of git": (":(top)x.log", True),
    "a pattern that also names a tracked file": ("*.log", False),
    "a name that git would quote": ("ü\n.log", True),
    "a tracked file that a pattern names": ("kept.log", False),
}


@pytest.fixture
def git(repository: Path) -> RepositoryReader:
    commit(repository)
    commit(repository, "kept.log")
    write(repository / ".gitignore", "build/\n*.log\n")
    return RepositoryReader(repository_at(repository), {"PATH": "/usr/bin:/bin:/usr/local/bin"}, 60)


@pytest.mark.parametrize("name", NAMES)
def test_names_one_by_one(git: RepositoryReader, name: str) -> None:
    text, is_ignored = NAMES[name]
    assert (text in find_ignored(git, [text])) == is_ignored


def test_all_names_at_once(git: RepositoryReader) -> None:
    texts = [text for text, _ in NAMES.values()]
    assert find_ignored(git, texts) == {text for text, is_ignored in NAMES.values() if is_ignored}
