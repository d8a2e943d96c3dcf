"""Projects of unusual kinds: their checkouts have what was committed, and notes say what is not at hand."""

import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from guard.errors import RepositoryProblem
from guard.prove.checkout import Checkout
from tests.prove.test_checkout import committed, head_of
from tests.support import commit, git, new_repository, run, write
from tests.support.checkouts import contents, open_checkouts, state_of

LFS = ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n"


def check(project: Path, expected: dict[bytes, bytes]) -> Checkout:
    """Open a checkout of HEAD and look whether it has this and git finds it clean; the project does not change."""
    before, checkouts, head = state_of(project), open_checkouts(project), head_of(project)
    for _ in ("new", "used again"):
        with checkouts.open("after", checkouts.tree_of(head), head) as checkout:
            assert contents(checkout.path) == expected
            assert git(checkout.path, "status", "--porcelain") == ""
    assert state_of(project) == before
    return checkout


def pointer(data: bytes) -> str:
    name = sha256(data).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize {len(data)}\n"


def keep_content(project: Path, data: bytes, name: bytes) -> None:
    digest = sha256(name).hexdigest()
    write(project / ".git/lfs/objects" / digest[:2] / digest[2:4] / digest, data)


def test_files_of_git_lfs_have_their_contents_as_far_as_the_project_has_them(
    repository: Path,
) -> None:
    write(repository / LFS[0], LFS[1])
    texts = {name: pointer(data) for name, data in (("a", b"here"), ("b", b"away"), ("c", b"good"))}
    for name, text in texts.items():
        write(repository / f"{name}.bin", text)
    write(repository / "plain.txt", texts["a"])
    keep_content(repository, b"here", b"here")
    keep_content(repository, b"evil", b"good")
    git(repository, "-c", "filter.lfs.clean=cat", "add", "-A")
    git(repository, "commit", "-qm", "files")
    found = committed(repository) | {b"a.bin": b"here", b"plain.txt": b"here"}
    checkout = check(repository, found)
    assert [note.partition(":")[0] for note in checkout.notes] == [
        "2 files of Git LFS are pointers"
    ]


def test_attributes_for_archives_do_not_count(repository: Path) -> None:
    write(
        repository / ".gitattributes",
        "tests export-ignore\nid.txt export-subst ident\n* crlf\n[attr]odd eol=crlf\n",
    )
    write(repository / "tests/test_a.py", "x = 1\n")
    write(repository / "id.txt", "$Format:%H$ $Id$\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "files")
    check(repository, committed(repository))


def test_links_stay_what_they_are(repository: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/file", "kept")
    links: dict[str, str | Path] = {
        "away": outside,
        "folder": outside.parent,
        "gone": "no/where",
        "up": "../../x",
    }
    for name, target in links.items():
        (repository / name).symlink_to(target)
    (repository / "self").symlink_to("self")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "links")
    check(repository, committed(repository))
    git(repository, "rm", "-q", "folder")
    git(repository, "commit", "-qm", "no link")
    commit(repository, "folder/file", "mine")
    check(repository, committed(repository))
    assert outside.read_text() == "kept"


def test_names_that_differ_in_case_only(repository: Path) -> None:
    for name in ("Readme", "README", "dir/a", "Dir/a"):
        write(repository / name, f"{name}\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "names")
    git(repository, "config", "core.ignoreCase", "true")
    check(repository, committed(repository))


def test_a_sparse_project_has_whole_checkouts(repository: Path) -> None:
    write(repository / "in/a", "a\n")
    write(repository / "out/b", "b\n").chmod(0o755)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "files")
    git(repository, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
    assert not (repository / "out").exists()
    check(repository, committed(repository))


def test_a_linked_worktree_is_a_project(repository: Path, tmp_path: Path) -> None:
    commit(repository, "main.txt")
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", "-b", "side", str(linked))
    commit(linked, "side.txt", "side\n")
    before = state_of(repository)
    check(linked, committed(linked))
    assert state_of(repository) == before


def test_a_repository_with_ids_of_sha256(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q", "--object-format=sha256")
    git(project, "config", "user.name", "a")
    git(project, "config", "user.email", "a@example.com")
    write(project / "run.sh", "#!/bin/sh\n").chmod(0o755)
    (project / "link").symlink_to("run.sh")
    commit(project, "deep/er/file", "x\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "all")
    check(project, committed(project))
    commit(project, "deep/er/file", "y\n")
    check(project, committed(project))


def test_a_submodule_is_filled_in_if_the_project_has_it(repository: Path, tmp_path: Path) -> None:
    library = new_repository(tmp_path / "library", "LICENSE")
    commit(library, "lib/code.py", "x = 1\n")
    for name in ("vendor/here", "vendor/away"):
        git(
            repository,
            *("-c", "protocol.file.allow=always", "submodule", "--quiet", "add"),
            *("--name", name.replace("/", "-"), str(library), name),
        )
    git(repository, "commit", "-qm", "submodules")
    # Another commit of it, which only its own project has.
    commit(library, "lib/code.py", "x = 2\n")
    new = head_of(library)
    git(repository, "update-index", "--cacheinfo", f"160000,{new},vendor/away")
    git(repository, "commit", "-qm", "newer")
    found = committed(repository) | {b"vendor/away/": b""}
    found |= {b"vendor/here/" + name: data for name, data in committed(library, "HEAD^").items()}
    checkout = check(repository, found)
    assert [new[:12] in note and "vendor/away" in note for note in checkout.notes] == [True]


def test_a_partial_clone_is_told_how_to_get_its_files(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "some/file.txt", "old\n")
    commit(repository, "some/file.txt", "new\n")
    git(repository, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    source = f"file://{repository}"
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", source, str(clone))
    before, head = state_of(clone), head_of(clone)
    checkouts = open_checkouts(clone)
    with (
        pytest.raises(RepositoryProblem) as raised,
        checkouts.open("after", checkouts.tree_of(head), head),
    ):
        pass
    assert "git fetch --refetch --no-filter" in str(raised.value.hint)
    assert state_of(clone) == before
    monkeypatch.chdir(clone)
    told = run("prove", "--baseline", "HEAD^", "--command", "true")
    assert told.code not in (0, 17)
    assert "git fetch --refetch --no-filter" in told.out


def make_tree(repository: Path, lines: str) -> str:
    words = ["git", "mktree"]
    made = subprocess.run(
        words, cwd=repository, input=lines, text=True, capture_output=True, check=True
    )
    return made.stdout.strip()


def test_a_tree_that_unfolds_without_end_is_an_error(repository: Path) -> None:
    commit(repository, "file.txt")
    tree = git(repository, "rev-parse", "HEAD^{tree}").strip()
    for _ in range(4):
        tree = make_tree(repository, "".join(f"040000 tree {tree}\t{n}\n" for n in range(200)))
    head = git(repository, "commit-tree", "-m", "endless", tree).strip()
    with pytest.raises(RepositoryProblem, match="more than"):
        open_checkouts(repository).tree_of(head)
