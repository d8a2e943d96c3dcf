"""The repository's own hooks: none runs unless the user says so, and then they can refuse and reformat, and no more."""

import os
from pathlib import Path
from typing import Any

import pytest

from guard.core.snapshots.snapshot import Rescue
from tests.rescue.states import start
from tests.support import git, write
from tests.support.rescues import attempt_rescue, fingerprint, recovered
from tests.support.sessions import script
from tests.support.shelves import refs

BRANCH = "guard/rescue/r1-2"


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)
    write(repository / "new.py", "x = 1\n")
    write(repository / "docs/guide.md", "# guide\n")


def hook(root: Path, text: str, name: str = "pre-commit") -> None:
    script(root / ".git/hooks" / name, text)


def rescued(root: Path, workspace: Path, **options: Any) -> Rescue:
    options = {"hooks": True, **options}
    return attempt_rescue(root, workspace, ["new.py", "docs/guide.md"], **options)


def unpromoted(workspace: Path) -> set[str]:
    return {ref.rpartition("/")[2] for ref in refs(workspace) if "/unpromoted/" in ref}


def on_the_branch(root: Path, result: Rescue, words: str) -> None:
    """It was not to be committed here, so it is there; nothing else has changed."""
    assert (result.reason, result.branch) == ("not_plain:hook_refused", BRANCH)
    assert words in result.detail
    assert git(root, "show", f"{BRANCH}:new.py") == "x = 1\n"
    assert git(root, "log", "-1", "--format=%s") == "Start\n"


def test_by_default_none_runs(repository: Path, workspace: Path, tmp_path: Path) -> None:
    for name in ("pre-commit", "commit-msg", "prepare-commit-msg", "post-commit"):
        hook(repository, f"touch {tmp_path}/ran; exit 1", name)
    result = rescued(repository, workspace, hooks=False)
    assert result.reason == "rescued"
    assert "no hook was run" in result.detail
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("told", [None, ".githooks", "absolute"])
def test_one_that_passes_sees_what_is_to_be_committed(
    told: str | None, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    folder = repository / ".git/hooks"
    if told is not None:
        folder = repository / told if told != "absolute" else tmp_path / "hooks"
        git(repository, "config", "core.hooksPath", told if told != "absolute" else str(folder))
    write(repository / "users.txt", "the user's\n")
    text = f"git diff --cached --name-only > {tmp_path}/seen; git diff-files --quiet; echo $? >> {tmp_path}/seen"
    script(folder / "pre-commit", text)
    result = rescued(repository, workspace)
    assert result.reason == "rescued"
    assert "pre-commit was run" in result.detail
    assert (tmp_path / "seen").read_text() == "docs/guide.md\nnew.py\n0\n"
    assert unpromoted(workspace) == set()


def test_with_none_there_that_is_said(repository: Path, workspace: Path) -> None:
    assert "no hook was run" in rescued(repository, workspace).detail


def test_one_that_is_not_executable_does_not_run(repository: Path, workspace: Path) -> None:
    hook(repository, "exit 1")
    (repository / ".git/hooks/pre-commit").chmod(0o644)
    assert rescued(repository, workspace).reason == "rescued"


def test_one_that_refuses_leaves_a_branch_of_its_own(repository: Path, workspace: Path) -> None:
    hook(repository, "echo 'lint: line 1 is bad' >&2; exit 1")
    before = fingerprint(repository / ".git")
    result = rescued(repository, workspace)
    on_the_branch(repository, result, "pre-commit said no (1): lint: line 1 is bad")
    after = fingerprint(repository / ".git")
    for name in ("HEAD", "index", "refs/heads/main"):
        assert after[name] == before[name]
    assert result.snapshot is not None
    assert unpromoted(workspace) == {result.snapshot.id}


@pytest.mark.long
def test_one_that_hangs_is_ended_in_time_for_the_branch(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    hook(repository, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    result = rescued(repository, workspace, time_limit=60)
    on_the_branch(repository, result, "pre-commit did not end in time")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_one_that_cannot_start_refuses(repository: Path, workspace: Path) -> None:
    write(repository / ".git/hooks/pre-commit", "#!/proc/nowhere/at/all\n").chmod(0o755)
    on_the_branch(repository, rescued(repository, workspace), "pre-commit does not start")


@pytest.mark.parametrize("code", [0, 1], ids=["and agrees", "and says no once"])
def test_one_that_reformats_is_asked_once_more(
    code: int, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    text = f"echo asked >> {tmp_path}/asked\ngrep -q '# formatted' new.py && exit 0\necho '# formatted' >> new.py; exit {code}"
    hook(repository, text)
    result = rescued(repository, workspace)
    assert result.reason == "rescued", result.detail
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"
    assert git(repository, "show", "HEAD:new.py") == "x = 1\n# formatted\n"
    assert git(repository, "status", "--porcelain") == ""
    assert "before a hook rewrote files: snapshot r1-2-" in result.detail
    assert unpromoted(workspace) == set()


def test_one_that_reformats_each_time_refuses(repository: Path, workspace: Path) -> None:
    hook(repository, "echo '# more' >> new.py")
    result = rescued(repository, workspace)
    assert (result.reason, result.branch) == ("not_plain:hook_refused", BRANCH)
    assert "rewrites files each time" in result.detail
    assert git(repository, "show", f"{BRANCH}:new.py") == "x = 1\n# more\n"
    assert git(repository, "log", "-1", "--format=%s") == "Start\n"


@pytest.mark.parametrize("path", ["new.py", "kept.txt"], ids=["new", "changed"])
def test_what_one_deletes_is_not_committed_as_deleted(
    path: str, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write(repository / "kept.txt", "changed\n")
    hook(repository, f"rm {path}")
    result = attempt_rescue(repository, workspace, ["new.py", "kept.txt"], hooks=True)
    on_the_branch(repository, result, f"a hook deleted {path}")
    assert git(repository, "show", f"{BRANCH}:kept.txt") == "changed\n"
    assert result.snapshot is not None
    back = recovered(result.snapshot, tmp_path / "back")
    assert {b"new.py", b"kept.txt"} <= set(back)
    assert unpromoted(workspace) == {result.snapshot.id}


def test_what_one_adds_besides_is_neither_committed_nor_staged(
    repository: Path, workspace: Path
) -> None:
    write(repository / "users.txt", "the user's\n")
    write(repository / "staged.txt", "staged by the user\n")
    git(repository, "add", "staged.txt")
    hook(repository, "git add -A")
    result = rescued(repository, workspace)
    assert result.reason == "rescued"
    assert git(repository, "status", "--porcelain") == "A  staged.txt\n?? users.txt\n"
    assert "users.txt" not in git(repository, "ls-tree", "-r", "--name-only", "HEAD")


def test_one_that_works_in_another_repository_does_not_meet_this_one(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    """As the tests do that some hooks run; git itself leaves them its index alone."""
    text = f"unset GIT_INDEX_FILE; git init -q {tmp_path}/made && cd {tmp_path}/made && echo x > x && git add x"
    hook(repository, text + " && git -c user.name=x -c user.email=x commit -q -m theirs")
    assert rescued(repository, workspace).reason == "rescued"
    assert "theirs" not in git(repository, "log", "--format=%s")
    assert git(tmp_path / "made", "log", "--format=%s") == "theirs\n"


def test_each_message_is_asked_about(repository: Path, workspace: Path, tmp_path: Path) -> None:
    hook(repository, f'head -1 "$1" >> {tmp_path}/heads', "commit-msg")
    write(repository / "tasks.md", "- [ ] `new.py`\n")
    git(repository, "add", "tasks.md")
    git(repository, "commit", "-q", "-m", "tasks")
    (tmp_path / "heads").unlink()
    result = rescued(repository, workspace, tasks=b"tasks.md")
    assert result.ticked
    assert (tmp_path / "heads").read_text().splitlines() == [one.subject for one in result.plan]


def test_a_message_that_is_refused(repository: Path, workspace: Path) -> None:
    hook(repository, "echo no ticket >&2; exit 3", "commit-msg")
    on_the_branch(repository, rescued(repository, workspace), "commit-msg said no (3): no ticket")


def test_boxes_are_not_ticked_where_a_hook_refuses(repository: Path, workspace: Path) -> None:
    write(repository / "tasks.md", "- [ ] `new.py`\n")
    git(repository, "add", "tasks.md")
    git(repository, "commit", "-q", "-m", "tasks")
    hook(repository, "exit 1")
    result = rescued(repository, workspace, tasks=b"tasks.md")
    assert (result.reason, result.ticked) == ("not_plain:hook_refused", ())
    assert len(result.plan) == len(result.commits)
    assert (repository / "tasks.md").read_text() == "- [ ] `new.py`\n"


@pytest.mark.parametrize(
    ("edit", "subject"),
    [
        ('sed -i "1s/^/[T-1] /" "$1"', "[T-1] "),
        ('echo "Reviewed-by: nobody" >> "$1"', ""),
        ('echo "feat: mine" > "$1"', ""),
        ('printf "x: Guard-Rescue: r1/2\\n\\nno trailer\\n" > "$1"', ""),
        ('rm "$1"', ""),
    ],
    ids=["a prefix", "a trailer", "the mark taken away", "the mark elsewhere", "the file gone"],
)
def test_an_edited_message_is_taken_if_the_mark_stays(
    edit: str, subject: str, repository: Path, workspace: Path
) -> None:
    hook(repository, edit, "commit-msg")
    result = rescued(repository, workspace)
    assert result.reason == "rescued"
    for oid, planned in zip(result.commits, result.plan, strict=True):
        said = git(repository, "show", "-s", "--format=%s%n%(trailers:key=Guard-Rescue)", oid)
        assert said.split("\n")[:2] == [subject + planned.subject, "Guard-Rescue: r1/2"]
    reviewed = git(repository, "log", "-1", "--format=%(trailers:key=Reviewed-by)").strip()
    assert bool(reviewed) == ("Reviewed" in edit)


def test_where_the_state_is_not_plain_none_runs(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    hook(repository, f"touch {tmp_path}/ran")
    git(repository, "checkout", "-q", "--detach")
    result = rescued(repository, workspace)
    assert result.reason == "not_plain:detached"
    assert "no hook was run" in result.detail
    assert not (tmp_path / "ran").exists()
