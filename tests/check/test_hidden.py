"""Work that the iteration hid from git: it is rescued or listed, and never taken for nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import commit, git, run, write
from tests.support.sessions import QUICK, answering, script


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    commit(repository)
    commit(repository, ".gitignore", "Build/\n*.log\n")
    return repository


def iterate(tmp_path: Path, text: str) -> dict[str, Any]:
    asking = ("--agent", "command", "--probe-command", answering(tmp_path, "complete"))
    agent = script(tmp_path / "agent", text)
    found: dict[str, Any] = run("run", "--format", "json", *asking, *QUICK, "--", agent).json
    return found


FILTERED = """
git config filter.x.clean 'git show HEAD:file.txt'
echo 'file.txt filter=x' > .git/info/attributes
sleep 0.02; echo hidden > file.txt; touch -d '1 hour ago' file.txt; git add file.txt
git config --remove-section filter.x; rm .git/info/attributes
"""
FILTERED_BY_OPTIONS = """
echo 'file.txt filter=x' > ../attributes
sleep 0.02; echo hidden > file.txt; touch -d '1 hour ago' file.txt
git -c core.attributesFile=$PWD/../attributes -c filter.x.clean='git show HEAD:file.txt' add file.txt
"""
HIDING = {
    "info/exclude": ("echo '*' > .git/info/exclude; echo x > work.py", "work.py"),
    "core.excludesFile": (
        "echo '*.py' > ../rules; git config core.excludesFile $PWD/../rules; echo x > work.py",
        "work.py",
    ),
    "core.excludesFile within .git, relative": (
        "echo '*.py' > .git/rules; git config core.excludesFile .git/rules; echo x > work.py",
        "work.py",
    ),
    "core.excludesFile within .git, absolute": (
        "echo '*.py' > .git/rules; git config core.excludesFile $PWD/.git/rules; echo x > work.py",
        "work.py",
    ),
    "core.excludesFile that names a committed file": (
        "git config core.excludesFile file.txt; cat file.txt; echo x > file",
        "file",
    ),
    "a .gitignore of everything": (
        "git update-index --assume-unchanged .gitignore; echo '*' >> .gitignore; echo x > work.py",
        "work.py",
    ),
    "a .gitignore that ignores itself": (
        "mkdir src; echo '*' > src/.gitignore; echo x > src/work.py",
        "src/work.py",
    ),
    "core.ignorecase": (
        "git config core.ignorecase true; mkdir build; echo x > build/work.py",
        "build/work.py",
    ),
    "core.ignorecase and a name that is tracked": (
        "git config core.ignorecase true; echo x > FILE.txt",
        "FILE.txt",
    ),
    "a mode, by core.fileMode": (
        "git config core.fileMode false; chmod +x file.txt",
        "file.txt",
    ),
    "assume-unchanged": (
        "git update-index --assume-unchanged file.txt; echo x > file.txt",
        "file.txt",
    ),
    "skip-worktree": ("git update-index --skip-worktree file.txt; echo x > file.txt", "file.txt"),
    "a repository in a new folder": (
        "mkdir new; cd new; git init -q; echo x > work.py; echo '*' > ../.git/info/exclude",
        "new/work.py",
    ),
    "a filter that is gone again": (FILTERED, "file.txt"),
    "a filter of one command": (FILTERED_BY_OPTIONS, "file.txt"),
}


def list_named(found: dict[str, Any]) -> set[str]:
    left, rescue = found["uncommitted"], found["rescue"] or {}
    held = {one["path"] for one in rescue.get("held_back", ())}
    return {*left["untracked"], *left["unstaged"]} | held


@pytest.mark.parametrize(("text", "path"), HIDING.values(), ids=HIDING)
def test_hidden_work_is_not_nothing(text: str, path: str, project: Path, tmp_path: Path) -> None:
    found = iterate(tmp_path, text)
    assert found["reason"] != "nothing_to_do"
    if path not in list_named(found):
        assert git(project, "show", f"HEAD:{path}") == (project / path).read_text()


def test_beside_commits_hidden_work_is_named(tmp_path: Path) -> None:
    text = (
        "echo a > a.py; git add a.py; git commit -qm A; echo '*' > .git/info/exclude; echo x > b.py"
    )
    found = iterate(tmp_path, text)
    assert (found["status"], found["uncommitted"]["untracked"]) == ("complete", ["b.py"])
    assert "the iteration hid 1 file from git: b.py" in str(found["evidence"])


def test_beside_commits_a_folder_that_hides_itself_is_named(tmp_path: Path) -> None:
    text = "echo a > a.py; git add a.py; git commit -qm A; mkdir b; echo '*' > b/.gitignore; echo x > b/b.py"
    found = iterate(tmp_path, text)
    assert "b/b.py" in found["uncommitted"]["untracked"]


def test_a_rescue_of_other_work_names_what_is_hidden(tmp_path: Path) -> None:
    text = "echo a > a.py; mkdir b; echo '*' > b/.gitignore; echo x > b/b.py"
    found = iterate(tmp_path, text)
    assert found["rescued"]
    assert "b/b.py" in {one["path"] for one in found["rescue"]["held_back"]}


OWN_RULES_COMMITTED = {
    "everything": "echo '*' > .gitignore; git add -f .gitignore; git commit -qm Rules; echo x > work.py",
    "a kind of file that is tracked": (
        "echo a > a.py; echo '*.py' >> .gitignore; git add -f .; git commit -qm Rules; echo x > work.py"
    ),
    "everything in a folder": (
        "mkdir b; echo '*' > b/.gitignore; git add -f b; git commit -qm Rules; echo x > b/work.py"
    ),
}


@pytest.mark.parametrize("text", OWN_RULES_COMMITTED.values(), ids=OWN_RULES_COMMITTED)
def test_a_committed_rule_that_names_tracked_files_too_hides_work(
    text: str, tmp_path: Path
) -> None:
    found = iterate(tmp_path, text)
    assert (found["status"], found["reason"]) == ("complete", "commits")
    assert any("work.py" in path for path in found["uncommitted"]["untracked"])


COMMIT = "echo a > a.py; git add -A; git commit -qm A"
HEALTHY = {
    "a committed rule": f"echo out/ >> .gitignore; mkdir out; echo x > out/x.js; {COMMIT}",
    "a committed rule for a folder of logs": (
        "mkdir logs; printf '*\\n!.gitignore\\n' > logs/.gitignore; echo x > logs/x; "
        f"git add logs; {COMMIT}"
    ),
    "a committed rule that has exceptions": (
        f"printf '/*\\n!*.py\\n!*.txt\\n!.gitignore\\n' > .gitignore; mkdir out; echo x > out/x; {COMMIT}"
    ),
    "a cache with its own rules": (
        f"mkdir .some_cache; echo '*' > .some_cache/.gitignore; echo x > .some_cache/x; {COMMIT}"
    ),
    "a virtual environment": (
        f"mkdir -p v/bin; echo > v/pyvenv.cfg; echo '*' > v/.gitignore; echo x > v/bin/x; {COMMIT}"
    ),
    "a report": f"mkdir htmlcov; echo '*' > htmlcov/.gitignore; echo x > htmlcov/i.html; {COMMIT}",
    "what was ignored before": f"echo x > run.log; {COMMIT}",
    "an unrelated rule beside": f"echo '*.tmp' > .git/info/exclude; echo x > run.log; {COMMIT}",
    "other line ends": f"git config core.autocrlf true; printf 'a\\r\\n' > file.txt; {COMMIT}",
}


@pytest.mark.parametrize("text", HEALTHY.values(), ids=HEALTHY)
def test_nothing_is_hidden(text: str, tmp_path: Path) -> None:
    found = iterate(tmp_path, text)
    assert (found["status"], found["reason"]) == ("complete", "commits")
    assert found["uncommitted"]["untracked"] == found["uncommitted"]["unstaged"] == []


def test_nothing_to_do_beside_caches_and_logs(project: Path, tmp_path: Path) -> None:
    write(project / "run.log", "before\n")
    text = "echo x > run.log; mkdir .some_cache; echo '*' > .some_cache/.gitignore; echo x > .some_cache/x"
    assert iterate(tmp_path, text)["reason"] == "nothing_to_do"


def test_a_rescue_by_hand_finds_hidden_work(project: Path) -> None:
    run("baseline")
    write(project / ".git/info/exclude", "*.py\n")
    write(project / "work.py", "x\n")
    found = run("rescue", "--format", "json")
    assert "the iteration hid 1 file from git: work.py" in found.err
    held = {one["path"] for one in found.json["held_back"]}
    if "work.py" not in held:
        assert git(project, "show", "HEAD:work.py") == "x\n"


def test_guard_says_if_it_cannot_look_for_hidden_work(project: Path) -> None:
    run("baseline")
    shadow = Path(run("where", "--format", "json").json["workspace"]) / "shadow.git"
    for ref in git(shadow, "for-each-ref", "--format=%(refname)", "refs/guard/snapshot").split():
        git(shadow, "update-ref", "-d", ref)
    write(project / ".git/info/exclude", "*.py\n")
    found = run("check", "--no-probe", "--no-wait")
    assert "guard cannot tell whether the iteration hid work from git" in found.err
    assert found.code == 5


def test_beside_commits_a_folder_hidden_from_below_is_named(tmp_path: Path) -> None:
    found = iterate(
        tmp_path,
        f"{COMMIT}; mkdir -p b/c; echo '*' > b/c/.gitignore; echo x > b/c/work.py",
    )
    assert "b/c/work.py" in found["uncommitted"]["untracked"]


def test_beside_commits_a_file_that_is_assumed_unchanged_is_named(tmp_path: Path) -> None:
    text = f"{COMMIT}; git update-index --assume-unchanged file.txt; echo x > file.txt"
    assert "file.txt" in iterate(tmp_path, text)["uncommitted"]["unstaged"]


def test_beside_commits_a_file_that_a_filter_hid_is_named(tmp_path: Path) -> None:
    found = iterate(tmp_path, f"{COMMIT}; {FILTERED_BY_OPTIONS}")
    assert "file.txt" in found["uncommitted"]["unstaged"]


def test_beside_commits_a_check_takes_no_snapshot_where_nothing_can_be_hidden(
    project: Path,
) -> None:
    write(project / "run.log", "ignored as before\n")
    write(project / "tools/cache/.gitignore", "*\n")
    write(project / "tools/cache/x", "hides itself as before\n")
    run("baseline")
    commit(project, "new.py", "x\n")
    found = run("check", "--no-probe", "--no-wait", "--format", "json").json
    assert (found["reason"], found["snapshot"]) == ("commits", None)
