"""Guard's hooks as pre-commit, prek, lefthook and husky call them: the real programs, from their packages.

Without a network they are skipped; with GUARD_TESTS_REQUIRE_AGENTS set, as in `.ci/run`, they fail instead.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.core.base.text import shorten
from guard.core.hooks.git.state import MissedCommits
from guard.hooks.git.commits import find_missed_commits
from tests.support import ROOT, commit, git, write
from tests.support.git_hooks import commits, tried
from tests.support.npm import Packages, Unavailable, install

pytestmark = pytest.mark.long
_ENVIRON = dict(os.environ)
_SECONDS = 400
_HUSKY = Packages("npm-husky", ("husky",), {"husky": "9.1.7"})
_IDS = ("guard-validate-state", "guard-commit-msg", "guard-record", "guard-check")
_STAGES = ("pre-commit", "prepare-commit-msg", "post-commit", "post-rewrite", "pre-push")


def unavailable(why: str) -> None:
    if _ENVIRON.get("GUARD_TESTS_REQUIRE_AGENTS"):
        pytest.fail(why)
    pytest.skip(why)


def called(repository: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """One of the programs, in the environment that the tests were started in: it may install packages."""
    return subprocess.run(
        words,
        cwd=repository,
        env={**_ENVIRON, "GIT_CONFIG_NOSYSTEM": "1", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def program(name: str) -> str:
    found = shutil.which(name, path=os.path.dirname(sys.executable))
    assert found is not None, f"{name} is not installed beside this interpreter"
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Guard's own sources as they are, as a repository to install hooks from."""
    folder = tmp_path / "source"
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    kept = ("guard/", "hooks/", "schemas/", "pyproject", "README", "LICENSE", ".pre-commit-hooks")
    for name in listed:
        if name.startswith(kept) and (ROOT / name).is_file():
            write(folder / name, (ROOT / name).read_bytes())
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    git(folder, *identity, "commit", "-q", "-m", "As it is")
    return folder


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    bin_folder = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")


def live(repository: Path, tmp_path: Path) -> None:
    """What a person does in a repository whose hooks call guard."""
    first = commit(repository)
    write(repository / "guard.toml", "[registry]\nkeep_finished = -1\n")
    git(repository, "add", "guard.toml")
    refused = tried(repository, "commit", "-qm", "Wrong")
    assert refused.returncode == 1
    assert "keep_finished" in refused.stdout + refused.stderr
    git(repository, "commit", "-q", "--no-verify", "-m", "Wrong all the same")
    git(repository, "rm", "-q", "guard.toml")
    git(repository, "commit", "-q", "-m", "Right again")
    git(repository, "commit", "-q", "--amend", "-m", "Put right")
    view = commits()
    assert [one.how for one in view.commits][-3:] == ["commit", "commit", "amend"]
    assert [one.verified for one in view.commits][-4:-1] == [True, False, True]
    assert find_missed_commits(Invocation()) == MissedCommits(unverified=(view.commits[-3].oid,))
    assert view.commits[-4].oid == first
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", str(linked), "-b", "side", first)
    old = commit(linked, "side.txt")
    git(linked, "rebase", "-q", "main")
    new = git(linked, "rev-parse", "HEAD").strip()
    assert old != new
    assert {old, new} <= commits(linked).known_oids()
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    place = str(tmp_path / "remote.git")
    git(repository, "push", "-q", place, f"{first}:refs/heads/main")
    write(repository / "file.txt", "not committed\n")
    held = tried(repository, "push", "-q", place, "main")
    assert held.returncode != 0
    assert (
        "not committed" in held.stdout + held.stderr or "unverifiable" in held.stdout + held.stderr
    )
    assert (repository / "file.txt").read_text() == "not committed\n"
    git(repository, "checkout", "-q", "file.txt")
    git(repository, "push", "-q", place, "main")


def framework(name: str, home: str, repository: Path, source: Path, tmp_path: Path) -> None:
    """Pre-commit, and what reads its files: tried, then installed, then gone."""
    folder = tmp_path / "environments"
    variables = {home: str(folder), "HOME": _ENVIRON.get("HOME", "")}
    write(repository / "guard.toml", "[registry]\nkeep_finished = -1\n")
    git(repository, "add", "guard.toml")
    revision = git(source, "rev-parse", "HEAD").strip()
    hooks = "".join(f"  - id: {one}\n" for one in _IDS)
    config = f"repos:\n- repo: {source}\n  rev: {revision}\n  hooks:\n{hooks}"
    write(repository / ".pre-commit-config.yaml", config)
    words = ("install-hooks",) if name == "pre-commit" else ("prepare-hooks",)
    ready = called(repository, program(name), *words, **variables)
    if ready.returncode:
        unavailable(shorten(f"{name}: {ready.stdout}{ready.stderr}", 400))
    tried_out = called(repository, program(name), "try-repo", str(source), _IDS[0], **variables)
    assert tried_out.returncode == 1, tried_out
    assert "keep_finished" in tried_out.stdout
    git(repository, "rm", "-q", "--cached", "-f", "guard.toml")
    (repository / "guard.toml").unlink()
    git(repository, "add", "-A")
    before = sorted(os.listdir(repository / ".git/hooks"))
    stages = [word for stage in _STAGES for word in ("-t", stage)]
    assert called(repository, program(name), "install", *stages, **variables).returncode == 0
    os.environ[home] = str(folder)
    live(repository, tmp_path)
    assert called(repository, program(name), "uninstall", *stages, **variables).returncode == 0
    assert sorted(os.listdir(repository / ".git/hooks")) == before


@pytest.mark.parametrize(
    ("name", "home"), [("pre-commit", "PRE_COMMIT_HOME"), ("prek", "PREK_HOME")]
)
def test_pre_commit_and_prek(
    name: str,
    home: str,
    repository: Path,
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(home, "")
    framework(name, home, repository, source, tmp_path)


_LEFTHOOK = "".join(
    f"{stage}:\n  commands:\n    guard:\n      run: guard hook git {stage} {{0}}\n"
    + ("      use_stdin: true\n" if stage in ("post-rewrite", "pre-push") else "")
    for stage in _STAGES
)


@pytest.mark.usefixtures("on_path")
def test_lefthook(repository: Path, tmp_path: Path) -> None:
    write(repository / "lefthook.yml", _LEFTHOOK)
    git(repository, "add", "-A")
    done = tried(repository, "config", "--get", "core.hooksPath")
    assert done.returncode == 1
    subprocess.run(
        [program("lefthook"), "install"], cwd=repository, check=True, capture_output=True
    )
    live(repository, tmp_path)


@pytest.mark.usefixtures("on_path")
def test_husky(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        programs = install(_HUSKY, _ENVIRON)
    except Unavailable as error:
        unavailable(str(error))
        return
    subprocess.run([programs / "husky"], cwd=repository, check=True, capture_output=True)
    for stage in _STAGES:
        write(repository / ".husky" / stage, f'guard hook git {stage} "$@"\n')
    git(repository, "add", "-A")
    # In a linked work tree husky's folder is not there until it is set up again: the hooks of the first one serve.
    hooks = git(repository, "config", "core.hooksPath").strip()
    git(repository, "config", "core.hooksPath", str(repository / hooks))
    live(repository, tmp_path)
