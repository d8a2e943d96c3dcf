"""`guard baseline`: what it prints, what it records in one change, and its refusals."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.support import NOW, TIME_LIMIT, commit, git, run, write
from tests.support.rescues import contents


@pytest.fixture(autouse=True)
def chosen(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace in the environment, and a clock that stands."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    monkeypatch.setenv("GUARD_NOW", NOW)


def report(*words: str) -> Any:
    result = run(*words, "baseline", "--format", "json")
    assert (result.code, result.err) == (0, "")
    assert list(validator("baseline-report").iter_errors(result.json)) == []
    return result.json


def events(workspace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (workspace / "events.jsonl").read_text().splitlines()]


def test_where_the_repository_stands(repository: Path) -> None:
    head = commit(repository)
    git(repository, "branch", "other")
    write(repository / "mine.txt", "mine\n")
    found = report()
    assert (found["head"], found["branch"]) == (head, "refs/heads/main")
    assert (found["refs"], found["dirty"], found["left_by_iterations"]) == (2, 1, 0)
    assert (found["stashes"], found["shallow"], found["warnings"]) == (0, False, [])
    assert found["pin"] == f"refs/guard/baseline/{found['worktree']}"
    assert git(repository, "cat-file", "-t", found["pin"]) == "commit\n"


def test_in_words(repository: Path) -> None:
    head = commit(repository)
    said = run("baseline").out
    assert said.startswith("iteration 1 of run ")
    assert f"begins at {head} (main); 1 ref; 0 dirty files; pinned by refs/guard/baseline/" in said
    write(repository / "file.txt", "stashed\n")
    git(repository, "stash")
    git(repository, "checkout", "-q", "--detach")
    said = run("baseline").out
    assert f"begins at {head} (detached HEAD); 2 refs; 0 dirty files; 1 stashed change; " in said


def test_before_the_first_commit(repository: Path) -> None:
    found = report()
    assert (found["head"], found["branch"], found["pin"]) == ("empty", "refs/heads/main", None)
    assert "begins at empty (main); 0 refs; 0 dirty files; not pinned" in run("baseline").out


def test_the_start_of_an_iteration_is_one_change(repository: Path, workspace: Path) -> None:
    commit(repository)
    first, second = report(), report()
    assert first["run"] == second["run"]
    assert (first["iteration"], second["iteration"]) == (1, 2)
    told = [(event["type"], event["more"]) for event in events(workspace)]
    assert told == [
        *(("segment_opened", 3), ("run_started", 2)),
        *(("iteration_started", 1), ("baseline_recorded", 0)),
        *(("iteration_started", 1), ("baseline_recorded", 0)),
    ]
    view = json.loads(
        (workspace / "worktrees.d" / first["worktree"] / "baseline.json").read_bytes()
    )
    assert (view["schema"], view["baseline"]) == ("guard/baseline/2", second["baseline"])
    assert list(validator("baseline").iter_errors(view)) == []
    assert run("verify").code == 0
    assert (
        run("validate", str(workspace / "worktrees.d" / first["worktree"] / "baseline.json")).code
        == 0
    )


def test_each_work_tree_has_its_own(repository: Path) -> None:
    commit(repository)
    git(repository, "worktree", "add", "-q", "../linked", "-b", "helper")
    here, there = report(), report("--repo", str(repository.parent / "linked"))
    assert here["worktree"] != there["worktree"]
    assert (here["run"] == there["run"], here["iteration"], there["iteration"]) == (False, 1, 1)
    assert there["branch"] == "refs/heads/helper"


def test_a_pin_that_cannot_be_made_is_a_warning(repository: Path) -> None:
    commit(repository)
    write(repository / ".git" / "refs" / "guard", "in the way\n")
    result = run("baseline", "--format", "json")
    assert (result.code, result.json["pin"]) == (0, None)
    assert result.err.startswith("guard: warning: guard could not pin the baseline: ")
    assert len(result.json["warnings"]) == 1


def test_without_a_repository(tmp_path: Path, workspace: Path) -> None:
    result = run("baseline", cwd=tmp_path)
    assert (result.code, result.out) == (4, "")
    first, hint = result.err.splitlines()
    assert first.endswith("is not in a git repository")
    assert hint.startswith("hint: ")
    assert not (workspace / "events.jsonl").exists()


def test_in_a_bare_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    result = run("baseline", cwd=tmp_path / "bare.git")
    assert (result.code, result.out) == (4, "")
    assert "it has no work tree" in result.err.splitlines()[0]


def test_damage_is_refused_and_nothing_recorded(repository: Path, workspace: Path) -> None:
    commit(repository)
    write(repository / ".git" / "refs" / "heads" / "main", "")
    result = run("baseline")
    assert (result.code, result.out, len(result.err.splitlines())) == (4, "", 2)
    assert not (workspace / "events.jsonl").exists()


def kept_now(tmp_path: Path) -> dict[bytes, tuple[str, bytes]]:
    """What the newest baseline's own command brings back."""
    [*_, event] = run("log", "--type", "baseline_recorded", "--format", "json").json["events"]
    folder = tmp_path / f"back-{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    command = event["kept"].replace("-C DIR", f"-C {folder}")
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, timeout=TIME_LIMIT)
    return contents(folder)


def test_every_baseline_keeps_all_that_is_there(repository: Path, tmp_path: Path) -> None:
    commit(repository, "a.txt")
    write(repository / ".gitignore", ".env\n")
    write(repository / ".env", "SECRET=1\n")
    write(repository / "a.txt", "edited\n")
    report()
    assert kept_now(tmp_path) == contents(repository)
    (repository / ".env").unlink()
    (repository / "a.txt").chmod(0o755)
    report()
    assert kept_now(tmp_path) == contents(repository)


def test_a_baseline_that_cannot_keep_it_says_so(repository: Path) -> None:
    commit(repository)
    place = Path(run("where").out.strip())
    report()
    shutil.rmtree(place / "shadow.git")
    write(place / "shadow.git", "in the way\n")
    result = run("baseline")
    assert result.code == 0
    assert "guard: warning: guard could not keep a snapshot of the work tree: " in result.err
