"""Eight rescues at once, while somebody else rewrites files and commits: all good, and no commit of anybody's is lost."""

from pathlib import Path

from tests.rescue.states import start
from tests.support import git, write
from tests.support.rescues import attempt_rescue
from tests.support.victims import Victims

MANY = 8
EXPECTED = (
    *("rescued", "refused", "nothing"),
    *("not_plain:index_lock", "not_plain:head_lock", "not_plain:branch_lock"),
)


def test_eight_rescues_at_once_while_files_are_rewritten_and_committed(
    repository: Path, workspace: Path
) -> None:
    start(repository)
    paths = [f"part-{number}.txt" for number in range(MANY)]
    for path in paths:
        write(repository / path, f"the work in {path}\n" * 200)
    write(repository / "rewritten.txt", "at first\n")
    workspace.mkdir(mode=0o700)
    victims = Victims()
    served = victims.serve("together", repository, workspace, paths=paths)
    victims.end()
    assert len(served["said"]) == MANY
    for path, said in zip(paths, served["said"], strict=True):
        assert said["reason"] in EXPECTED, said
        kept = git(workspace / "shadow.git", "show", f"{said['snapshot']['ref']}:worktree/{path}")
        assert kept == f"the work in {path}\n" * 200
    assert served["commits"]
    for path in paths:
        result = attempt_rescue(repository, workspace, [path])
        assert result.reason in ("rescued", "nothing")
        assert git(repository, "show", f"HEAD:{path}") == f"the work in {path}\n" * 200
    history = git(repository, "rev-list", "HEAD").split()
    assert set(served["commits"]) <= set(history)
    rescued = [oid for said in served["said"] if not said["branch"] for oid in said["commits"]]
    assert set(rescued) <= set(history)
    git(repository, "fsck", "--strict")
    git(workspace / "shadow.git", "fsck", "--strict")
    assert list((repository / ".git").rglob("*.lock")) == []
