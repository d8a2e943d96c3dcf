"""Moves: the half that deletes is not committed without the half that adds, and moving much is not deleting much."""

from pathlib import Path

import pytest

from guard.core.snapshots.snapshot import Rescue
from tests.rescue.states import start
from tests.support import git, write
from tests.support.rescues import attempt_rescue

TEXT = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)
    write(repository / "old.py", TEXT)
    git(repository, "add", "old.py")
    git(repository, "commit", "-q", "-m", "old")


def held(result: Rescue) -> dict[str, str]:
    return {one.path: one.why for one in result.held_back}


def test_a_deletion_waits_for_the_other_half_of_its_move(repository: Path, workspace: Path) -> None:
    (repository / "old.py").unlink()
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6"
    write(repository / "new.py", TEXT + f'key = "{secret}"\n')
    result = attempt_rescue(repository, workspace, ["old.py", "new.py"])
    assert result.commits == ()
    found = held(result)
    assert found.pop("new.py").startswith("secret: github")
    assert found == {"old.py": "moved: to new.py, which is not committed"}


def test_a_move_to_where_nothing_is_committed_is_not_a_deletion(
    repository: Path, workspace: Path
) -> None:
    write(repository / ".git/info/exclude", "out/\n")
    (repository / "out").mkdir()
    (repository / "old.py").rename(repository / "out/old.py")
    result = attempt_rescue(repository, workspace, ["old.py"])
    assert held(result) == {"old.py": "moved: to out/old.py, which is not committed"}


def test_a_plain_deletion_is_committed(repository: Path, workspace: Path) -> None:
    (repository / "old.py").unlink()
    assert attempt_rescue(repository, workspace, ["old.py"]).reason == "rescued"
    assert git(repository, "ls-files", "old.py") == ""


def test_to_move_very_much_is_not_to_delete_it(repository: Path, workspace: Path) -> None:
    names = [f"module_{number}.py" for number in range(40)]
    for name in names:
        write(repository / name, f"{name}\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "many")
    (repository / "pkg").mkdir()
    for name in names:
        (repository / name).rename(repository / "pkg" / name)
    left = [*names, *(f"pkg/{name}" for name in names)]
    result = attempt_rescue(repository, workspace, left)
    assert result.reason == "rescued"
    assert "mass" not in result.detail
