"""Secrets in the agent's own commits: found in every commit that counts, named without their value, and no news if known."""

from collections.abc import Callable
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.core.check.events import CommittedSecret
from guard.core.check.report import CheckReport
from guard.core.iteration.baseline import Baseline
from guard.core.work.count import commits_with_changes
from guard.git.history import read_history
from guard.git.reader import RepositoryReader
from guard.iteration.begin import begin
from guard.rescue import scan_commits as scans
from guard.rescue.scan_commits import CommitScan, scan_commits
from tests.support import commit, git, new_repository, run, write

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6"
OTHER = "ghp_" + "zY9xW8vU7tS6rQ5pO4nM3lK2jI1hG0fE9dC8"


@pytest.fixture
def baseline(repository: Path) -> Baseline:
    commit(repository, "known.py", f"value = '{TOKEN}'\n")
    commit(repository, ".env", "DEBUG=1\n")
    return begin(Invocation()).baseline


def scan(repository: Path, baseline: Baseline, allowed: str = "") -> CommitScan:
    reader = RepositoryReader(Invocation().repository, {})
    commits = commits_with_changes(read_history(reader, baseline))
    return scan_commits(reader, commits, baseline.head, allowed)


def found(scanned: CommitScan) -> list[tuple[str, str, int | None]]:
    return [(secret.path, secret.rule, secret.line) for secret in scanned.secrets]


def _later_removed(root: Path) -> None:
    commit(root, "a.py", f"x\nvalue = '{OTHER}'\n")
    commit(root, "a.py", "x\n")


def _amended(root: Path) -> None:
    write(root / "a.py", f"x\nvalue = '{OTHER}'\n")
    git(root, "add", "a.py")
    git(root, "commit", "-q", "--amend", "-m", "Another")


def _on_a_branch(root: Path) -> None:
    git(root, "switch", "-q", "-c", "side")
    _later_removed(root)
    git(root, "switch", "-q", "main")


def _in_a_merge(root: Path) -> None:
    git(root, "switch", "-q", "-c", "side")
    commit(root, "side.txt")
    git(root, "switch", "-q", "main")
    commit(root, "main.txt")
    git(root, "merge", "-q", "--no-commit", "side")
    write(root / "a.py", f"x\nvalue = '{OTHER}'\n")
    git(root, "add", "a.py")
    git(root, "commit", "-q", "-m", "Merge")


def _in_utf16(root: Path) -> None:
    write(root / "a.py", f"x\nvalue = '{OTHER}'\n".encode("utf-16"))
    git(root, "add", "a.py")
    git(root, "commit", "-q", "-m", "Add a.py")


def _in_a_known_file(root: Path) -> None:
    commit(root, "known.py", f"value = '{TOKEN}'\nother = '{OTHER}'\n")


def _in_a_new_env(root: Path) -> None:
    commit(root, "app/.env", "A=1\n")


def _moved_to_an_env(root: Path) -> None:
    commit(root, "settings.txt", "password: hunter2\n")
    git(root, "mv", "settings.txt", ".env.local")
    git(root, "commit", "-q", "-m", "Move")


FOUND: dict[str, tuple[Callable[[Path], None], list[tuple[str, str, int | None]]]] = {
    "removed by a later commit": (_later_removed, [("a.py", "github", 2)]),
    "in an amended commit": (_amended, [("a.py", "github", 2)]),
    "on another branch": (_on_a_branch, [("a.py", "github", 2)]),
    "in a merge itself": (_in_a_merge, [("a.py", "github", 2)]),
    "in another encoding": (_in_utf16, [("a.py", "github", 2)]),
    "beside one that was there": (_in_a_known_file, [("known.py", "github", 2)]),
    "a new file made for secrets": (_in_a_new_env, [("app/.env", "sensitive_name", None)]),
    "a move to such a name": (_moved_to_an_env, [(".env.local", "sensitive_name", None)]),
}


@pytest.mark.parametrize(("make", "expected"), FOUND.values(), ids=FOUND)
def test_a_new_secret_is_found(
    make: Callable[[Path], None],
    expected: list[tuple[str, str, int | None]],
    repository: Path,
    baseline: Baseline,
) -> None:
    make(repository)
    scanned = scan(repository, baseline)
    assert found(scanned) == expected
    assert scanned.not_scanned == []
    first = git(repository, "log", "--all", "--format=%H", "--diff-filter=AM", "-m", "--", "*.py")
    assert scanned.secrets[0].commit in first or expected[0][1] == "sensitive_name"
    assert OTHER not in repr(scanned)


def _moved(root: Path) -> None:
    git(root, "mv", "known.py", "moved.py")
    git(root, "mv", ".env", ".env.production")
    git(root, "commit", "-q", "-m", "Move")


def _edited_elsewhere(root: Path) -> None:
    commit(root, "known.py", f"# moved down\n\nvalue = '{TOKEN}'\n")
    commit(root, ".env", "DEBUG=0\n")


def _removed_and_put_back(root: Path) -> None:
    commit(root, "known.py", "\n")
    commit(root, "known.py", f"value = '{TOKEN}'\n")
    git(root, "rm", "-q", ".env")
    git(root, "commit", "-q", "-m", "Remove")
    commit(root, ".env", "DEBUG=1\n")


def _rewritten(root: Path) -> None:
    git(root, "commit", "-q", "--amend", "-m", "Another message")


def _pulled(root: Path) -> None:
    other = new_repository(root.parent / "other", "theirs.txt")
    commit(other, "theirs.py", f"value = '{OTHER}'\n")
    git(root, "remote", "add", "origin", str(other))
    git(root, "pull", "-q", "--no-rebase", "--allow-unrelated-histories", "origin", "main")


def _placeholder(root: Path) -> None:
    commit(root, "a.py", f"value = 'ghp_{'x' * 36}'\n")
    commit(root, ".env.example", "TOKEN=\n")


NO_NEWS: dict[str, Callable[[Path], None]] = {
    "renamed": _moved,
    "the lines around it": _edited_elsewhere,
    "removed and put back": _removed_and_put_back,
    "the message rewritten": _rewritten,
    "pulled from elsewhere": _pulled,
    "placeholders": _placeholder,
}


@pytest.mark.parametrize("make", NO_NEWS.values(), ids=NO_NEWS)
def test_what_was_there_before_or_is_not_the_agents_is_no_news(
    make: Callable[[Path], None], repository: Path, baseline: Baseline
) -> None:
    make(repository)
    assert scan(repository, baseline) == CommitScan()


def test_what_the_user_allows_is_not_found(repository: Path, baseline: Baseline) -> None:
    commit(repository, "tests/a.py", f"value = '{OTHER}'\n")
    commit(repository, "app/.env", "A=1\n")
    assert scan(repository, baseline, "github:tests/*,*:app/.env") == CommitScan()
    assert len(scan(repository, baseline, "github:src/*").secrets) == 2


def test_the_same_content_is_found_where_the_user_does_not_allow_it(
    repository: Path, baseline: Baseline
) -> None:
    for name in ("tests/a.py", "z.py"):
        write(repository / name, f"value = '{OTHER}'\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Add both")
    assert found(scan(repository, baseline, "github:tests/*")) == [("z.py", "github", 1)]


def test_what_is_too_large_is_named_as_not_searched(
    repository: Path, baseline: Baseline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "MOST_FILE_BYTES", 1024)
    commit(repository, "big.txt", "x" * 1025)
    commit(repository, "a.py", f"value = '{OTHER}'\n")
    scanned = scan(repository, baseline)
    assert found(scanned) == [("a.py", "github", 1)]
    (line,) = scanned.not_scanned
    assert line.startswith("big.txt in commit ")


def test_a_complete_verdict_keeps_its_class_and_names_the_file_everywhere(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    agent = f"echo \"k = '{OTHER}'\" > a.py; echo A=1 > .env; git add -A; git commit -qm all"
    script = write(tmp_path / "agent.sh", agent)
    result = run("loop", "--max-iterations", "1", "--no-wait", "--", "sh", str(script))
    assert result.code == 0, result.err
    assert "complete: commits" in result.out
    head = git(repository, "rev-parse", "HEAD").strip()
    for name, rule in ((".env", "sensitive_name"), ("a.py", "github, line 1")):
        assert f"secret committed: {name} ({rule}) in commit {head[:10]}" in result.out
    checked = run("check", "--no-probe", "--no-wait", "--format", "json")
    report = CheckReport.model_validate_json(checked.out)
    assert (report.status, report.complete) == ("complete", True)
    assert report.secrets == (
        CommittedSecret(path=".env", rule="sensitive_name", commit=head, line=None),
        CommittedSecret(path="a.py", rule="github", commit=head, line=1),
    )
    outputs = [result, checked, run("check", "--no-probe", "--no-wait"), run("status")]
    outputs += [run("status", "--format", "json"), run("log"), run("log", "--format", "json")]
    assert [output for output in outputs if "a.py" not in output.out] == []
    assert not any(OTHER in output.out + output.err for output in outputs)
    assert "secret committed: a.py" in run("status").out
    state = Path(run("where").out.strip())
    assert not any(
        OTHER.encode() in path.read_bytes() for path in state.rglob("*.json*") if path.is_file()
    )


def test_a_loop_says_what_was_held_back_and_that_it_is_not_to_be_committed(
    repository: Path,
) -> None:
    commit(repository)
    agent = "echo A=1 > .env; echo work > b.txt"
    words = ("loop", "--max-iterations", "1", "--no-probe", "--", "sh", "-c", agent)
    result = run(*words)
    assert "held back: .env (secret: sensitive_name): do not commit it" in result.out
    assert "held back: .env (secret: sensitive_name)" in run("status").out
