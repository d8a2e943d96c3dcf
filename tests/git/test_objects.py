"""Single commits read by GitPython: what they say and change; and nothing that the repository plants runs."""

import os
import subprocess
from pathlib import Path

import pytest
from git import Repo

from guard.core.report.details import CommitDetails
from guard.errors import RepositoryProblem
from guard.git.commit_stats import read_commit_stats
from guard.git.locate import repository_at
from guard.git.objects import open_objects
from guard.git.reader import RepositoryReader
from tests.support import TIME_LIMIT, commit, git, run, write
from tests.support.baselines import taken
from tests.support.sessions import script

VECTORS = {
    "core.fsmonitor": "git status",
    "diff.external": "git diff",
    "diff.planted.command": "git diff",
    "diff.planted.textconv": "git show",
    "filter.planted.clean": "touch x.txt; git status",
    "filter.planted.smudge": "rm x.txt; git checkout x.txt",
    "core.hooksPath": "git commit --allow-empty -m x",
    "core.pager": "script -qec 'git log' /dev/null",
    "core.sshCommand": "git fetch ssh://example.invalid/x",
    "gpg.program": "git log --show-signature",
    "trailer.planted.command": "git log --format='%(trailers)'; git interpret-trailers x.txt",
}
"""What git can be told to run, and a careless call that shows that it would."""


def reader(repository: Path) -> RepositoryReader:
    return RepositoryReader(repository_at(repository), os.environ)


def read(repository: Path, oid: str) -> CommitDetails | None:
    with open_objects(reader(repository)) as objects:
        return objects.read(oid)


def plant(repository: Path, ran: Path) -> str:
    """Plant every vector, and return the commit that is to be read."""
    write(repository / ".gitattributes", "*.txt diff=planted filter=planted\n")
    commit(repository, "x.txt", "one\n")
    program = script(
        repository.parent / "planted", f'echo "$0 $*" >> {ran}\ncat 2>/dev/null || true'
    )
    git(repository, "add", "-A")
    git(
        repository, "commit", "-q", "-m", "Change\n\nPlanted: yes\nSigned-off-by: A <a@example.com>"
    )
    write(repository / "x.txt", "two\n")
    git(repository, "commit", "-qam", "Change it\n\nPlanted: yes\nSigned-off-by: A <a@example.com>")
    oid = git(repository, "rev-parse", "HEAD").strip()
    hooks = repository.parent / "hooks"
    for name in ("pre-commit", "post-index-change", "reference-transaction"):
        script(hooks / name, f"echo {name} >> {ran}")
    for key in VECTORS:
        git(repository, "config", key, str(hooks) if key == "core.hooksPath" else program)
    git(repository, "config", "log.showSignature", "true")
    git(repository, "config", "core.alternateRefsCommand", program)
    git(repository, "config", "trailer.planted.key", "Planted")
    write(repository / "x.txt", "three\n")
    return oid


def test_none_of_the_planted_programs_runs(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    oid = plant(repository, ran)
    ran.unlink(missing_ok=True)
    details = read(repository, oid)
    stats = list(read_commit_stats(reader(repository), [oid]))
    assert not ran.exists(), ran.read_text()
    assert details is not None
    assert [(file.path, file.text) for file in details.files] == [
        ("x.txt", "@@ -1 +1 @@\n-one\n+two\n")
    ]
    assert details.trailers == (("Planted", "yes"), ("Signed-off-by", "A <a@example.com>"))
    assert [(file.path, file.insertions, file.deletions) for file in stats[0].files] == [
        ("x.txt", 1, 1)
    ]


@pytest.mark.parametrize(
    "key", ["core.fsmonitor", "diff.external", "diff.planted.textconv", "core.hooksPath"]
)
def test_a_careless_git_would_run_them(key: str, repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    plant(repository, ran)
    for other in ({*VECTORS} if key != "core.hooksPath" else {"gpg.program"}) - {key}:
        git(repository, "config", "--unset", other)
    ran.unlink(missing_ok=True)
    done = ["sh", "-c", VECTORS[key]]
    subprocess.run(done, cwd=repository, capture_output=True, timeout=TIME_LIMIT, check=False)
    assert ran.exists()


def test_a_commit_is_read_whole(repository: Path) -> None:
    first = commit(repository, "a.txt", "one\ntwo\n")
    git(repository, "mv", "a.txt", "ü b.txt")
    write(repository / "new.bin", b"\0\1")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Move it\n\nBecause.\n\nGuard-Run: r1/2")
    second = git(repository, "rev-parse", "HEAD").strip()
    root, moved = read(repository, first), read(repository, second)
    assert root is not None
    assert moved is not None
    assert [(f.path, f.kind, f.text) for f in root.files] == [
        ("a.txt", "added", "@@ -0,0 +1,2 @@\n+one\n+two\n")
    ]
    assert {(f.path, f.kind) for f in moved.files} == {
        ("a.txt", "removed"),
        ("new.bin", "added"),
        ("ü b.txt", "added"),
    }
    assert (moved.author, moved.email) == ("Test Author", "author@example.com")
    assert moved.message.startswith("Move it\n\nBecause.")
    assert moved.trailers == (("Guard-Run", "r1/2"),)


def test_what_is_not_here_is_none_and_merges_have_no_files(repository: Path) -> None:
    commit(repository, "a.txt")
    git(repository, "switch", "-q", "-c", "side")
    commit(repository, "b.txt")
    git(repository, "switch", "-q", "main")
    commit(repository, "c.txt")
    git(repository, "merge", "-q", "--no-edit", "side")
    merge = read(repository, git(repository, "rev-parse", "HEAD").strip())
    assert merge is not None
    assert merge.files == ()
    assert read(repository, "1" * 40) is None


def test_of_a_repository_with_sha256_only_the_statistics_are_read(
    tmp_path: Path, home: Path
) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    git(folder, "init", "-q", "--object-format=sha256")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.com")
    oid = commit(folder, "a.txt")
    assert read(folder, oid) is None
    [stat] = read_commit_stats(reader(folder), [oid])
    assert [file.path for file in stat.files] == ["a.txt"]


def test_it_goes_to_no_other_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(repository)
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    with pytest.raises(RepositoryProblem), open_objects(reader(repository)):
        pass


def test_no_process_stays_and_no_folder(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert read(repository, commit(repository)) is not None
    assert list(temporary.iterdir()) == []
    pids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    mine = f"PPid:\t{os.getpid()}\n"
    children = [pid for pid in pids if mine in _status(pid)]
    assert not any("git" in Path(f"/proc/{pid}/comm").read_text() for pid in children)


def _status(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""


def test_commands_load_git_python_only_for_a_page(repository: Path) -> None:
    commit(repository)
    script_text = (
        "import sys; from guard.cli import guard; sys.argv = ['guard', 'report', *sys.argv[1:]]\n"
        "try: guard()\n"
        "except SystemExit: pass\n"
        "print('loaded' if {'git', 'jinja2'} & set(sys.modules) else 'not loaded')"
    )
    assert run("--format", "json", script=script_text, fresh=True).out.endswith("not loaded\n")


STORIES = ("linear", "merge", "amend", "unrelated")


@pytest.mark.parametrize("story", STORIES)
def test_git_python_reads_the_same_history(story: str, repository: Path) -> None:
    commit(repository, "first.txt")
    commit(repository, "second.txt")
    baseline = taken(repository)
    before = git(repository, "rev-parse", "HEAD").strip()
    commit(repository, "a.txt", "a\n")
    if story == "merge":
        git(repository, "switch", "-q", "-c", "side", "HEAD~1")
        commit(repository, "b.txt", "b\n")
        git(repository, "switch", "-q", "main")
        git(repository, "merge", "-q", "--no-edit", "side")
    elif story == "amend":
        git(repository, "commit", "-q", "--amend", "-m", "ümlaut: other words")
    elif story == "unrelated":
        git(repository, "switch", "-q", "--orphan", "island")
        commit(repository, "c.txt", "c\n")
        git(repository, "switch", "-q", "main")
    from guard.git.history import read_history

    found = read_history(reader(repository), baseline)
    with Repo(repository) as repo:
        expected = {each.hexsha: each for each in repo.iter_commits(f"^{before}", branches=True)}
        assert found.commits.keys() == expected.keys()
        for oid, mine in found.commits.items():
            theirs = expected[oid]
            assert mine.tree == theirs.tree.hexsha
            assert mine.parents == tuple(parent.hexsha for parent in theirs.parents)
            assert mine.subject == theirs.summary
            assert mine.author == (theirs.author.email, theirs.authored_date)
            assert mine.committed == theirs.committed_date
        stats = {each.oid: each for each in read_commit_stats(reader(repository), list(expected))}
        assert stats.keys() == expected.keys()
        for oid, stat in stats.items():
            counted = {} if stat.is_merge else expected[oid].stats.files
            assert {f.path: (f.insertions, f.deletions) for f in stat.files} == {
                str(path): (each["insertions"], each["deletions"]) for path, each in counted.items()
            }
