"""Code planted in a repository: a careless git runs it, as controls show; baseline, check, snapshot and rescue don't."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from guard.errors import GuardError, RepositoryProblem
from guard.git import run as run_module
from guard.git.locate import find_repository
from guard.git.reader import RepositoryReader
from guard.iteration.baseline import prepare
from guard.rescue import rescue
from guard.rescue.order import Orders
from guard.snapshots.project import Site
from tests.rescue.states import start
from tests.support import TIME_LIMIT, commit, git, run, write
from tests.support.rescues import NOW, attempt_rescue, take_snapshot
from tests.support.reverts import rolled_back
from tests.support.sessions import QUICK, answering, script


def terminal(command: str) -> str:
    """A command that believes that somebody looks on."""
    return f"script -qec '{command}' /dev/null"


STATUS, ADD, COMMIT = "git status", "git add -A", "git add -A; git commit -m x"


def nothing_more(root: Path, program: str) -> None:
    pass


@dataclass(frozen=True)
class Planted:
    """How it gets there, and a careless command that runs it. `{ran}` is the file that shows that it ran."""

    control: str
    settings: Mapping[str, str] = field(default_factory=dict)
    hook: str = ""
    attributes: str = ""
    more: Callable[[Path, str], object] = nothing_more
    environ: Mapping[str, str] = field(default_factory=dict)
    alone: bool = False
    """Whether it keeps others from being tried at the same time."""
    broken: bool = False
    """Whether git cannot read the last commit then."""


def include(root: Path, program: str) -> None:
    write(root / "planted.cfg", f'[core]\n\tfsmonitor = "{program}"\n')
    git(root, "config", "include.path", "../planted.cfg")


def include_if(root: Path, program: str) -> None:
    write(root / "planted.cfg", f'[core]\n\tfsmonitor = "{program}"\n')
    git(root, "config", f"includeIf.gitdir:{root}/.path", "../planted.cfg")


def embedded_bare(root: Path, program: str) -> None:
    """Whoever steps into the folder is in another repository."""
    git(root, "init", "-q", "--bare", "docs")
    git(root / "docs", "config", "core.bare", "false")
    git(root / "docs", "config", "core.worktree", "..")
    git(root / "docs", "config", "core.fsmonitor", program)


def embedded(root: Path, program: str) -> None:
    (root / "inner").mkdir()
    git(root / "inner", "init", "-q")
    git(root / "inner", "config", "core.fsmonitor", program)


def replaced_git_dir(root: Path, program: str) -> None:
    elsewhere = root.parent / "elsewhere.git"
    subprocess.run(["cp", "-a", root / ".git", elsewhere], check=True)
    git(elsewhere, "config", "core.fsmonitor", program)
    (root / ".git").rename(root.parent / "real.git")
    write(root / ".git", f"gitdir: {elsewhere}\n")


def lazy_fetch(root: Path, program: str, missing: str = "HEAD:kept.txt") -> None:
    """A missing object is fetched from a remote, whose helper is a program."""
    for key, value in {
        "remote.origin.url": str(root),
        "remote.origin.promisor": "true",
        "remote.origin.partialCloneFilter": "blob:none",
        "remote.origin.uploadpack": f"{program};false",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
    }.items():
        git(root, "config", key, value)
    oid = git(root, "rev-parse", missing).strip()
    (root / ".git/objects" / oid[:2] / oid[2:]).unlink()


def lazy_fetch_by_url(root: Path, program: str, missing: str = "HEAD:kept.txt") -> None:
    lazy_fetch(root, "false", missing)
    git(root, "config", "remote.origin.url", f"ext::{program}")
    git(root, "config", "protocol.ext.allow", "always")


def lazy_fetch_of_a_tree(root: Path, program: str) -> None:
    lazy_fetch_by_url(root, program, "HEAD^{tree}")


def lazy_fetch_of_a_changed_file(root: Path, program: str) -> None:
    lazy_fetch_by_url(root, program, "HEAD:edited.txt")


def lazy_fetch_by_helper(root: Path, program: str) -> None:
    """The protocol is not in the address."""
    lazy_fetch(root, "false", "HEAD^{tree}")
    git(root, "config", "remote.origin.url", program)
    git(root, "config", "remote.origin.vcs", "ext")
    git(root, "config", "protocol.ext.allow", "always")


def lazy_fetch_by_upload_pack(root: Path, program: str) -> None:
    lazy_fetch(root, program, "HEAD^{tree}")
    git(root, "config", "protocol.file.allow", "always")


def lazy_fetch_of_a_pinned_commit(root: Path, program: str) -> None:
    """A tag leads to a commit that is not there."""
    git(root, "tag", "old", git(root, "commit-tree", "-m", "Old", "HEAD^{tree}").strip())
    lazy_fetch_by_url(root, program, "refs/tags/old")


def instead_of(root: Path, program: str) -> None:
    lazy_fetch(root, "false")
    git(root, "config", "remote.origin.url", "https://example.com/x")
    git(root, "config", f"url.ext::{program} .insteadOf", "https://example.com/")
    git(root, "config", "protocol.ext.allow", "always")


def submodule(root: Path, program: str) -> None:
    library = root.parent / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "config", "user.name", "x")
    git(library, "config", "user.email", "x@example.com")
    commit(library)
    git(root, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(library), "lib")
    git(root, "commit", "-q", "-m", "Add lib")
    git(root, "config", "submodule.lib.update", f"!{program};true")
    git(root / "lib", "config", "user.name", "x")
    git(root / "lib", "config", "user.email", "x@example.com")
    commit(root / "lib", "another.txt")


def submodule_settings(root: Path, program: str) -> None:
    submodule(root, "true")
    git(root / "lib", "config", "core.fsmonitor", program)


def merge_driver(root: Path, program: str) -> None:
    git(root, "checkout", "-q", "-b", "side")
    commit(root, "edited.txt", "side\n")
    git(root, "checkout", "-q", "main")
    commit(root, "edited.txt", "main\n")


def without_a_file(root: Path, program: str) -> None:
    (root / "kept.txt").unlink()


def attributes_elsewhere(root: Path, program: str) -> None:
    write(root / ".git/planted", "* filter=own\n")


def planted_git(root: Path, program: str) -> None:
    write(root / "bin/git", f"#!/bin/sh\n{program}\nexit 1\n").chmod(0o755)


def signed(root: Path, program: str) -> None:
    text = git(root, "cat-file", "commit", "HEAD")
    head, _, message = text.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    data = f"{head}\n{signature}\n\n{message}"
    words = ["git", "hash-object", "-w", "-t", "commit", "--stdin"]
    done = subprocess.run(words, cwd=root, input=data, text=True, check=True, capture_output=True)
    git(root, "update-ref", "refs/heads/main", done.stdout.strip())


def filter_of(kind: str) -> Planted:
    return Planted(ADD, {f"filter.own.{kind}": "{program};cat"}, attributes="* filter=own\n")


VECTORS = {
    "pre-commit": Planted(COMMIT, hook="pre-commit"),
    "commit-msg": Planted(COMMIT, hook="commit-msg"),
    "prepare-commit-msg": Planted(COMMIT, hook="prepare-commit-msg"),
    "post-commit": Planted(COMMIT, hook="post-commit"),
    "reference-transaction": Planted("git update-ref refs/x HEAD", hook="reference-transaction"),
    "post-index-change": Planted(ADD, hook="post-index-change"),
    "post-checkout": Planted("git checkout -q -b x", hook="post-checkout"),
    "pre-push": Planted("git init -q --bare ../r.git; git push -q ../r.git main", hook="pre-push"),
    "core.hooksPath": Planted(
        COMMIT,
        {"core.hooksPath": "planted"},
        more=lambda root, program: write(
            root / "planted/pre-commit", f"#!/bin/sh\n{program}\n"
        ).chmod(0o755),
        alone=True,
    ),
    "core.fsmonitor": Planted(STATUS, {"core.fsmonitor": "{program}"}),
    "filter clean": filter_of("clean"),
    "filter process": filter_of("process"),
    "filter smudge": Planted(
        "git checkout -q HEAD -- kept.txt",
        {"filter.own.smudge": "{program};cat"},
        attributes="* filter=own\n",
        more=without_a_file,
    ),
    "attributes of the user's": Planted(
        ADD,
        {"filter.own.clean": "{program};cat", "core.attributesFile": ".git/planted"},
        more=attributes_elsewhere,
    ),
    "textconv": Planted(
        "git diff", {"diff.own.textconv": "{program};cat"}, attributes="* diff=own\n"
    ),
    "driver of a diff": Planted(
        "git diff", {"diff.own.command": "{program}"}, attributes="* diff=own\n"
    ),
    "diff.external": Planted("git diff", {"diff.external": "{program}"}),
    "GIT_EXTERNAL_DIFF": Planted("git diff", environ={"GIT_EXTERNAL_DIFF": "{program}"}),
    "pager": Planted(terminal("git log"), {"core.pager": "{program}"}),
    "pager of a command": Planted(terminal("git log"), {"pager.log": "{program}"}),
    "GIT_PAGER": Planted(terminal("git log"), environ={"GIT_PAGER": "{program}"}),
    "core.editor": Planted("git add -A; git commit", {"core.editor": "{program}"}),
    "sequence.editor": Planted(
        "git stash -q; git rebase -i --root", {"sequence.editor": "{program}"}
    ),
    "alias": Planted("git snap", {"alias.snap": "!{program}"}),
    "include.path": Planted(STATUS, more=include),
    "includeIf": Planted(STATUS, more=include_if),
    "bare repository inside": Planted("cd docs; git status", more=embedded_bare),
    "repository inside": Planted("cd inner; git status", more=embedded),
    "replaced .git file": Planted(STATUS, more=replaced_git_dir, alone=True),
    "core.sshCommand": Planted("git ls-remote ssh://host/x", {"core.sshCommand": "{program}"}),
    "GIT_SSH_COMMAND": Planted("git ls-remote ssh://h/x", environ={"GIT_SSH_COMMAND": "{program}"}),
    "core.gitProxy": Planted("git ls-remote git://host/x", {"core.gitProxy": "{program}"}),
    "credential.helper": Planted(
        "printf 'protocol=https\\nhost=h\\n\\n' | git credential fill",
        {"credential.helper": "!{program};true"},
    ),
    "core.askPass": Planted(
        "printf 'protocol=https\\nhost=h\\n\\n' | git credential fill",
        {"core.askPass": "{program}"},
    ),
    "gpg.program": Planted(
        COMMIT, {"commit.gpgSign": "true", "gpg.program": "{program}", "user.signingKey": "x"}
    ),
    "log.showSignature": Planted(
        "git log",
        {"gpg.program": "{program}", "log.showSignature": "true"},
        more=signed,
    ),
    "driver of a merge": Planted(
        "git merge -q side",
        {"merge.own.driver": "{program}"},
        attributes="* merge=own\n",
        more=merge_driver,
    ),
    "lazy fetch": Planted("git cat-file blob HEAD:kept.txt", more=lazy_fetch, alone=True),
    "lazy fetch by ext::": Planted(
        "git cat-file blob HEAD:kept.txt", more=lazy_fetch_by_url, alone=True
    ),
    "lazy fetch of a tree": Planted(
        "git cat-file -p HEAD^{tree}", more=lazy_fetch_of_a_tree, alone=True, broken=True
    ),
    "lazy fetch of a changed file": Planted(
        "git cat-file blob HEAD:edited.txt; git cat-file blob HEAD~1:edited.txt",
        more=lazy_fetch_of_a_changed_file,
        alone=True,
    ),
    "lazy fetch by remote.vcs": Planted(
        "git cat-file -p HEAD^{tree}", more=lazy_fetch_by_helper, alone=True, broken=True
    ),
    "lazy fetch by remote.uploadpack": Planted(
        "git cat-file -p HEAD^{tree}", more=lazy_fetch_by_upload_pack, alone=True, broken=True
    ),
    "lazy fetch of a tag's commit": Planted(
        "git cat-file -p old", more=lazy_fetch_of_a_pinned_commit, alone=True
    ),
    "trailer.command": Planted(
        "echo x | git interpret-trailers", {"trailer.own.command": "{program}"}
    ),
    "trailer.cmd": Planted(
        "echo x | git interpret-trailers --trailer other:x", {"trailer.other.cmd": "{program}"}
    ),
    "gpg.ssh.defaultKeyCommand": Planted(
        COMMIT,
        {
            "commit.gpgSign": "true",
            "gpg.format": "ssh",
            "gpg.ssh.defaultKeyCommand": "{program}",
        },
        alone=True,
    ),
    "interactive.diffFilter": Planted(
        terminal("git -c color.ui=always add -p"),
        {"interactive.diffFilter": "{program}"},
    ),
    "url.insteadOf": Planted("git cat-file blob HEAD:kept.txt", more=instead_of, alone=True),
    "submodule.update": Planted("git submodule update", more=submodule, alone=True),
    "settings of a submodule": Planted(STATUS, more=submodule_settings, alone=True),
    "settings by variables": Planted(
        STATUS,
        environ={
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": "{program}",
        },
    ),
    "GIT_CONFIG_PARAMETERS": Planted(
        STATUS, environ={"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='{program}'"}
    ),
    "GIT_CONFIG_GLOBAL": Planted(
        STATUS,
        more=lambda root, program: write(
            root / "global.cfg", f'[core]\n\tfsmonitor = "{program}"\n'
        ),
        environ={"GIT_CONFIG_GLOBAL": "{root}/global.cfg"},
    ),
    "GIT_EXEC_PATH": Planted(
        "git planted",
        more=lambda root, program: write(
            root / "exec/git-planted", f"#!/bin/sh\n{program}\n"
        ).chmod(0o755),
        environ={"GIT_EXEC_PATH": "{root}/exec"},
    ),
    "trace": Planted(STATUS, environ={"GIT_TRACE": "{ran}"}),
    "trace2": Planted(STATUS, environ={"GIT_TRACE2_EVENT": "{ran}"}),
}


def plant(root: Path, *many: Planted) -> dict[str, str]:
    """Plant all of them; the variables that belong to them."""
    ran = root.parent / "ran"
    program = write(root.parent / "program", f"#!/bin/sh\necho ran >> '{ran}'\n")
    program.chmod(0o755)
    words = {"program": str(program), "ran": str(ran), "root": str(root)}
    for planted in sorted(many, key=lambda planted: planted.more is not merge_driver):
        planted.more(root, str(program))
    for planted in many:
        for key, value in planted.settings.items():
            git(root, "config", key, value.format(**words))
        if planted.attributes:
            with open(root / ".git/info/attributes", "a") as file:
                file.write(planted.attributes)
        if planted.hook:
            write(root / f".git/hooks/{planted.hook}", f"#!/bin/sh\n{program}\n").chmod(0o755)
    ran.unlink(missing_ok=True)
    variables = {name: value for planted in many for name, value in planted.environ.items()}
    return {name: value.format(**words) for name, value in variables.items()}


@pytest.fixture
def begun(repository: Path) -> Path:
    start(repository)
    return repository


def left(root: Path) -> list[bytes | str]:
    write(root / "edited.txt", "edited\n")
    write(root / "new.txt", "new\n")
    return ["edited.txt", "new.txt"]


@pytest.mark.parametrize("planted", VECTORS.values(), ids=VECTORS.keys())
def test_it_runs_in_a_careless_git_and_not_in_a_snapshot_or_a_rescue(
    planted: Planted, begun: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = plant(begun, planted)
    paths = left(begun)
    with monkeypatch.context() as scene:
        for name, value in variables.items():
            scene.setenv(name, value)
        kept = take_snapshot(begun, workspace)
        result = attempt_rescue(begun, workspace, paths)
    assert not (tmp_path / "ran").exists()
    assert kept.files
    assert result.snapshot is not None
    write(begun / "edited.txt", "edited once more\n")
    subprocess.run(
        ["sh", "-c", planted.control],
        cwd=begun,
        env={**os.environ, "TERM": "xterm", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert (tmp_path / "ran").exists(), "the control shows nothing"


TOGETHER = [name for name, planted in VECTORS.items() if not planted.alone]
BATCHES = [[*TOGETHER], *([name] for name, planted in VECTORS.items() if planted.alone)]


@pytest.mark.parametrize(
    "names", BATCHES, ids=lambda names: names[0] if names[1:] == [] else "many"
)
def test_none_runs_in_a_baseline_or_a_check(
    names: list[str], begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check rescues what was left, by the default settings."""
    for key, value in plant(begun, *(VECTORS[name] for name in names)).items():
        monkeypatch.setenv(key, value)
    broken = any(VECTORS[name].broken for name in names)
    assert run("baseline").code == (4 if broken else 0)
    left(begun)
    done = run("check", *QUICK, "--probe-command", answering(tmp_path, "complete"))
    assert done.code in ((4,) if broken else (0, 10, 11, 12, 13, 14, 15, 16)), done.err
    assert not (tmp_path / "ran").exists()


LAZY = [name for name in VECTORS if name.startswith("lazy") or name == "url.insteadOf"]


@pytest.mark.parametrize("name", LAZY)
def test_no_protocol_is_allowed_where_git_fetches_what_is_missing(
    name: str, begun: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a git does that is older than 2.45, which does not know the variable that forbids it."""
    monkeypatch.delitem(run_module._ENVIRONMENT, "GIT_NO_LAZY_FETCH")
    done = commit(begun, "done.txt")
    plant(begun, VECTORS[name])
    paths = left(begun)
    reader = RepositoryReader(find_repository(begun, lambda _: None), os.environ, TIME_LIMIT)
    for missing in ("HEAD^{tree}", "HEAD:kept.txt", "HEAD:edited.txt"):
        with suppress(RepositoryProblem):
            reader.ask("cat-file", "-p", missing)
    for attempt in (
        lambda: take_snapshot(begun, workspace),
        lambda: attempt_rescue(begun, workspace, paths),
        lambda: rolled_back(begun, workspace, [done]),
        lambda: prepare(reader, "w", NOW, run="r1", iteration=1),
    ):
        with suppress(GuardError):
            attempt()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("gone", [False, True], ids=["there", "without its git directory"])
def test_a_git_in_the_work_tree_does_not_run(
    gone: bool, begun: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a virtual environment of the project's that is first in PATH."""
    plant(begun, Planted(STATUS, more=planted_git))
    monkeypatch.setenv("PATH", f"{begun}/bin:{os.environ['PATH']}")
    known = find_repository(begun, lambda _: None)
    paths = [os.fsencode(path) for path in left(begun)]
    if gone:
        shutil.rmtree(begun / ".git")
    workspace.mkdir(mode=0o700)
    orders = Orders("r1", 2, "main", paths)
    result = rescue(Site(known, workspace, os.environ, TIME_LIMIT), orders, NOW)
    assert result.reason == ("not_plain:no_git_dir" if gone else "rescued")
    assert not (tmp_path / "ran").exists()


def test_a_filter_does_not_run_for_files_that_git_looks_at_again(
    begun: Path, workspace: Path, tmp_path: Path
) -> None:
    """An index older than its files: git reads them all again when it writes one."""
    program = script(tmp_path / "filter", f"touch {tmp_path}/ran; cat")
    for key in ("clean", "process"):
        git(begun, "config", f"filter.x.{key}", program)
    write(begun / ".gitattributes", "kept.txt filter=x\n")
    os.utime(begun / ".git/index", (1_000_000_000, 1_000_000_000))
    result = attempt_rescue(begun, workspace, [*left(begun), ".gitattributes"])
    assert result.reason == "rescued"
    assert not (tmp_path / "ran").exists()


def test_there_are_many() -> None:
    assert len(VECTORS) >= 25
