"""Signatures: as the user's own configuration says, made by the user's own program; the repository has no say in it."""

import subprocess
from pathlib import Path

import pytest

from guard.core.snapshots.snapshot import Rescue
from tests.rescue.states import start
from tests.support import git, write
from tests.support.rescues import attempt_rescue
from tests.support.sessions import script


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)
    write(repository / "new.py", "x = 1\n")
    write(repository / "README.md", "# x\n")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """An ssh key, and a list of signers that has it."""
    path = tmp_path / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)]
    subprocess.run(words, check=True, timeout=90, stdin=subprocess.DEVNULL)
    public = path.with_suffix(".pub").read_text()
    write(tmp_path / "signers", f"author@example.com {public}")
    user("gpg.ssh.allowedSignersFile", tmp_path / "signers")
    return path


def user(name: str, value: object) -> None:
    """Set something in the user's own configuration."""
    git(Path.cwd(), "config", "--global", name, str(value))


def signs(key: Path) -> None:
    user("commit.gpgSign", "true")
    user("gpg.format", "ssh")
    user("user.signingKey", key)


def rescued(root: Path, workspace: Path, **options: float) -> Rescue:
    result = attempt_rescue(root, workspace, ["new.py", "README.md"], **options)
    assert result.reason == "rescued", result.detail
    assert len(result.commits) == 2
    return result


def signed(root: Path, result: Rescue) -> list[bool]:
    return ["gpgsig" in git(root, "cat-file", "commit", oid) for oid in result.commits]


def test_each_commit_is_signed_as_the_user_signs(
    repository: Path, workspace: Path, key: Path
) -> None:
    signs(key)
    result = rescued(repository, workspace)
    for oid in result.commits:
        git(repository, "verify-commit", oid)
    assert "not signed" not in result.detail


def test_the_commit_that_ticks_is_signed_too(repository: Path, workspace: Path, key: Path) -> None:
    write(repository / "tasks.md", "- [ ] `new.py`\n")
    git(repository, "add", "tasks.md")
    git(repository, "commit", "-q", "-m", "tasks")
    signs(key)
    result = attempt_rescue(repository, workspace, ["new.py"], tasks=b"tasks.md")
    assert len(result.commits) == 2
    git(repository, "verify-commit", "HEAD")


def test_a_key_that_the_users_command_names(repository: Path, workspace: Path, key: Path) -> None:
    signs(key)
    git(repository, "config", "--global", "--unset", "user.signingKey")
    public = key.with_suffix(".pub")
    agent = script(key.with_name("default-key"), f'echo "key::$(cat {public})"')
    user("gpg.ssh.defaultKeyCommand", agent)
    user("gpg.ssh.program", script(key.with_name("signer"), _SIGNER.format(key=key)))
    for oid in rescued(repository, workspace).commits:
        assert "gpgsig" in git(repository, "cat-file", "commit", oid)


_SIGNER = 'for last; do :; done; exec ssh-keygen -Y sign -n git -f {key} "$last"'
"""There is no ssh-agent in a test that would have the private half."""


def test_without_the_users_wish_nothing_is_signed(repository: Path, workspace: Path) -> None:
    result = rescued(repository, workspace)
    assert signed(repository, result) == [False, False]
    assert "signed" not in result.detail


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpg.ssh.program", "/proc/nowhere/keygen"),
        ("gpg.ssh.program", "false"),
        ("user.signingKey", "/proc/nowhere/key"),
        ("gpg.format", "openpgp"),
    ],
    ids=["no program", "a program that fails", "no key", "no key of that kind"],
)
def test_what_cannot_be_signed_is_committed_all_the_same(
    name: str, value: str, repository: Path, workspace: Path, key: Path
) -> None:
    signs(key)
    user(name, value)
    result = rescued(repository, workspace)
    assert signed(repository, result) == [False, False]
    assert "not signed: " in result.detail


def test_no_key_is_set(repository: Path, workspace: Path) -> None:
    user("commit.gpgSign", "true")
    user("gpg.format", "ssh")
    result = rescued(repository, workspace)
    assert "not signed: no key is set" in result.detail


@pytest.mark.long
def test_a_program_that_waits_for_a_person_is_not_waited_for(
    repository: Path, workspace: Path, key: Path
) -> None:
    signs(key)
    times = key.with_name("times")
    user("gpg.ssh.program", script(key.with_name("asks"), f"echo x >> {times}; exec sleep 600"))
    result = rescued(repository, workspace, time_limit=60)
    assert signed(repository, result) == [False, False]
    assert "not signed: `git commit-tree` took longer than " in result.detail
    waited = result.detail.partition("took longer than ")[2].partition(" s")[0]
    assert 0 < float(waited) < 30
    assert times.read_text() == "x\n"


PROGRAMS = ("gpg.program", "gpg.openpgp.program", "gpg.ssh.program", "gpg.x509.program")
PLANTED = {
    "the same format": {"gpg.ssh.defaultKeyCommand": "{evil}"},
    "another format": {"gpg.format": "x509", "user.signingKey": "/proc/nowhere"},
}


@pytest.mark.parametrize("user_signs", ["not", "by ssh", "by ssh without a key", "by gpg"])
@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_program_that_the_repository_names_never_runs(
    planted: dict[str, str], user_signs: str, repository: Path, workspace: Path, key: Path
) -> None:
    evil = script(key.with_name("evil"), f"touch {key}.ran; exec false")
    if user_signs != "not":
        signs(key)
    if user_signs == "by ssh without a key":
        git(repository, "config", "--global", "--unset", "user.signingKey")
    if user_signs == "by gpg":
        user("gpg.format", "openpgp")
    programs = dict.fromkeys(PROGRAMS, "{evil}")
    for name, value in {"commit.gpgSign": "true", **programs, **planted}.items():
        git(repository, "config", name, value.format(evil=evil))
    result = rescued(repository, workspace)
    assert not Path(f"{key}.ran").exists()
    assert signed(repository, result) == [user_signs == "by ssh"] * 2


def test_signed_by_gpg(repository: Path, workspace: Path, tmp_path: Path, home: Path) -> None:
    (home / ".gnupg").mkdir(mode=0o700)
    words = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key"]
    who = "Test Author <author@example.com>"
    done = subprocess.run(
        [*words, who, "ed25519", "sign", "never"], check=False, timeout=90, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    user("commit.gpgSign", "true")
    try:
        for oid in rescued(repository, workspace).commits:
            git(repository, "verify-commit", oid)
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], check=False, timeout=90)
