"""`guard trust`: the project's settings count as the user has seen them in a commit, whatever an agent makes of the files."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.support import commit, git, run, write
from tests.support.sessions import QUICK, script

KEYS = '[prove]\ncommand = "{}"\n[breaker]\nstall_limit = 7\n[completion_check]\nmax_probes = 2\n'
FILE = KEYS.format("true")
EDITED = KEYS.format("exit 0 # edited")
TABLE = FILE.replace("[", "[tool.guard.")
BUILD = '[project]\nname = "calc"\n'
COMMIT = "git add -A && git commit -qm edit"
GUARD = f"{sys.executable} -m guard"


def trust(*words: str, code: int = 0, **told: Any) -> dict[str, Any]:
    result = run("trust", "--format", "json", *words, **told)
    assert result.code == code, result.err
    document: dict[str, Any] = json.loads(result.out)
    assert list(validator("trust").iter_errors(document)) == []
    return document


def in_force(key: str = "prove.command") -> tuple[Any, str]:
    found = run("config", "--format", "json").json["settings"]
    return next((line["value"], line["origin"]) for line in found if line["key"] == key)


def warnings() -> str:
    return "\n".join(run("config", "--format", "json").json["warnings"])


@pytest.fixture
def head(repository: Path) -> str:
    return commit(repository, "guard.toml", FILE)


def states(report: dict[str, Any]) -> dict[str, str]:
    return {file["file"]: file["state"] for file in report["files"]}


def test_keys_of_the_users_count_from_the_commit_that_the_user_trusts(head: str) -> None:
    assert in_force() == ("", "default")
    assert "only the user's own config may set it, or a file that the user trusts" in warnings()
    assert trust("--show")["state"] == "untrusted"
    report = trust()
    assert (report["state"], report["commit"], report["trusted_commit"]) == ("trusted", head, head)
    assert states(report) == {"pyproject.toml": "absent", "guard.toml": "trusted"}
    keys = {key["key"]: key["value"] for key in report["keys"]}
    assert keys == {"prove.command": "true", "breaker.stall_limit": 7}
    origin = f"guard.toml of {head[:12]}, trusted"
    assert (in_force(), in_force("breaker.stall_limit")) == (("true", origin), (7, origin))
    assert in_force("completion_check.max_probes") == (2, os.path.abspath("guard.toml"))
    assert (warnings(), trust("--show")["state"]) == ("", "trusted")
    shown = run("trust", "--show").out
    assert shown.startswith(f"trusted: guard.toml as in commit {head[:12]}, since ")
    assert '  prove.command = "true"  (guard.toml)\n' in shown
    health = run("doctor", "--format", "json").json["checks"]
    assert next(check["state"] for check in health if check["name"] == "trust") == "ok"
    # All other work trees of the repository go by it.
    git(Path(), "worktree", "add", "-q", "../other")
    assert (
        run("--repo", "../other", "trust", "--show", "--format", "json").json["state"] == "trusted"
    )


def test_the_users_own_settings_outweigh_the_trusted_ones(head: str, home: Path) -> None:
    trust()
    user = write(home / "config/guard/config.toml", '[prove]\ncommand = "own"\n')
    assert in_force() == ("own", str(user))


@pytest.mark.parametrize("name", ["guard.toml", "pyproject.toml"])
def test_an_edit_voids_it_until_the_user_trusts_again(name: str, repository: Path) -> None:
    text, edited = (FILE, EDITED) if name == "guard.toml" else (BUILD + TABLE, BUILD + TABLE + "#")
    edited = text.replace('"true"', '"exit 0"')
    first = commit(repository, name, text)
    trust()
    write(repository / name, edited)
    assert in_force() == ("true", f"{name} of {first[:12]}, trusted")
    assert warnings() == (
        f"{name} was edited since you trusted it; the edit does not count until you run `guard trust`"
    )
    assert trust("--show")["uncommitted"] == [name]
    second = commit(repository, name, edited)
    assert in_force() == ("", "default")
    assert f"{name} was edited since you trusted it: " in warnings()
    report = trust("--show")
    assert (report["state"], states(report)[name]) == ("edited", "edited")
    assert (report["commit"], report["trusted_commit"]) == (second, first)
    health = run("doctor", "--format", "json").json["checks"]
    found = next(check for check in health if check["name"] == "trust")
    assert (found["state"], "guard trust" in found["hint"]) == ("warning", True)
    # What was trusted before is trusted again as soon as the files hold it.
    git(repository, "revert", "--no-edit", "HEAD")
    assert in_force()[0] == "true"
    git(repository, "revert", "--no-edit", "HEAD")
    trust()
    assert in_force()[0] == "exit 0"
    git(repository, "revert", "--no-edit", "HEAD")
    assert in_force()[0] == ""


def test_the_rest_of_pyproject_toml_may_change(repository: Path) -> None:
    commit(repository, "pyproject.toml", BUILD + TABLE)
    trust()
    commit(repository, "pyproject.toml", BUILD + 'version = "2"\n' + TABLE)
    assert (in_force()[0], warnings()) == ("true", "")


def test_a_file_that_is_added_or_removed_voids_it_too(repository: Path) -> None:
    commit(repository, "pyproject.toml", BUILD + TABLE)
    commit(repository, "guard.toml", '[prove]\ncommand = "pytest"\n')
    trust()
    assert in_force()[0] == "pytest"
    git(repository, "rm", "-q", "guard.toml")
    git(repository, "commit", "-qm", "remove")
    # Else the weaker file behind it would decide.
    assert in_force()[0] == ""
    trust()
    assert in_force()[0] == "true"
    commit(repository, "guard.toml", "[completion_check]\nmax_probes = 1\n")
    assert in_force()[0] == ""
    assert "guard.toml was edited" in warnings()


def test_what_cannot_be_trusted_is_refused(repository: Path, tmp_path: Path) -> None:
    assert "there is no commit yet" in refusal()
    write(repository / "guard.toml", FILE)
    assert trust("--show")["state"] == "untrusted"
    commit(repository)
    assert "has no settings of guard" in refusal()
    (repository / "guard.toml").unlink()
    write(tmp_path / "elsewhere.toml", FILE)
    (repository / "guard.toml").symlink_to(tmp_path / "elsewhere.toml")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "link")
    assert "guard.toml is a link or a folder" in refusal()
    (repository / "guard.toml").unlink()
    commit(repository, "guard.toml", "[prove\n")
    assert "is not TOML" in refusal()
    commit(repository, "guard.toml", f"# {'x' * 1024 * 1024}\n")
    assert "is larger than" in refusal()
    commit(repository, "guard.toml", FILE)
    assert run("trust", "no-such-commit").code == 4
    assert run("trust", "--show", "--revoke").code == 2
    assert run("--config", tmp_path / "elsewhere.toml", "trust").code == 2
    assert in_force()[0] == ""


def refusal() -> str:
    result = run("trust")
    assert (result.code, result.out) == (1, "")
    assert "\nhint: " in result.err
    return result.err


def test_a_link_put_in_place_of_the_trusted_file_counts_for_nothing(
    head: str, repository: Path, tmp_path: Path
) -> None:
    trust()
    target = write(tmp_path / "elsewhere.toml", FILE)
    (repository / "guard.toml").unlink()
    (repository / "guard.toml").symlink_to(target)
    git(repository, "commit", "-qam", "link")
    assert in_force()[0] == ""
    assert "guard.toml was edited" in warnings()


def test_revoked_settings_do_not_count(head: str) -> None:
    trust()
    assert run("trust", "--revoke").out == "revoked: no settings of the project are trusted\n"
    assert in_force()[0] == ""
    assert trust("--revoke")["trusted_commit"] is None


def test_keys_that_find_the_state_are_never_the_projects(repository: Path, tmp_path: Path) -> None:
    place = f'workspace = "{tmp_path}/w"\n[store]\nlock_timeout_seconds = 1\n'
    commit(repository, "guard.toml", place)
    before = run("where").out
    assert trust()["keys"] == []
    assert "workspace is ignored: guard needs it before" in run("trust", "--show").err
    assert run("where").out == before


def test_wrong_values_that_the_user_trusts_are_warnings(repository: Path) -> None:
    commit(repository, "guard.toml", '[prove]\ncommand = "true"\nreruns = "many"\n')
    result = run("trust")
    assert result.code == 0
    assert "prove.reruns" in result.err
    assert (in_force(), in_force("prove.reruns")[0])[1] == 3
    assert "prove.reruns" in warnings()


def test_a_record_that_cannot_be_read_trusts_nothing(head: str) -> None:
    record = Path(trust()["record"])
    record.write_text("{}")
    assert in_force()[0] == ""
    assert "cannot be read, so nothing is trusted" in warnings()
    trust()
    other = record.with_name("other")
    record.rename(other)
    record.symlink_to(other)
    assert in_force()[0] == ""
    record.unlink()
    other.rename(record)
    assert in_force()[0] == "true"


def test_another_repository_at_the_same_path_is_not_trusted(
    head: str, repository: Path, tmp_path: Path
) -> None:
    trust()
    (repository / ".git").rename(tmp_path / "old")
    git(repository, "init", "-q")
    git(repository, "config", "user.name", "A")
    git(repository, "config", "user.email", "a@example.com")
    commit(repository, "guard.toml", FILE)
    assert in_force()[0] == ""


def iterate(folder: Path, does: str, *words: str, code: int = 0) -> dict[str, Any]:
    agent = script(folder / "agent", does)
    found = run(
        *("run", "--no-probe", "--format", "json", *QUICK, *words),
        *("--", agent),
    )
    assert found.code == code, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


PROVE = '[prove]\ncommand = "test ! -e broken"\nrequired = true\n'
WEAK = '[prove]\ncommand = "true"\n'


@pytest.mark.parametrize(
    "edit",
    [
        "true",
        f"printf '{WEAK}' > guard.toml",
        f"printf '{WEAK}' > guard.toml && {COMMIT}",
        f"git rm -q guard.toml && {COMMIT}",
        f"printf '{WEAK}' > guard.toml && {COMMIT} && git revert --no-edit HEAD",
    ],
    ids=["nothing", "edit", "commit", "removal", "edit and revert"],
)
def test_an_agent_that_edits_the_file_is_held_to_what_the_user_trusts(
    edit: str, repository: Path, tmp_path: Path
) -> None:
    commit(repository, "guard.toml", PROVE)
    trust()
    breaks = f"{edit}\ntouch broken && git add broken && git commit -qm 'all done' && git status -s"
    found = iterate(tmp_path, breaks, code=17)
    assert (found["status"], found["proof"]["command"]) == ("refuted", "test ! -e broken")
    # In the same run the next iteration is held to it, too, though its own baseline has the edit.
    git(repository, "add", "-A")
    found = iterate(tmp_path, breaks.replace("touch broken", "echo more >> broken"), code=17)
    assert found["proof"]["command"] == "test ! -e broken"


def test_an_edit_does_not_take_back_that_a_proof_is_required(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository, "guard.toml", PROVE)
    trust()
    commit(repository, "guard.toml", WEAK)
    found = iterate(tmp_path, f"echo work > work && {COMMIT}", code=15)
    assert (found["status"], found["reason"]) == ("error", "unverifiable")
    assert in_force("prove.required") == (True, "what you trusted last")
    trust()
    found = iterate(tmp_path, f"echo more > work && {COMMIT}")
    assert found["assurance"] == "proven"


def test_an_agent_cannot_trust_for_the_user(repository: Path, tmp_path: Path) -> None:
    commit(repository, "guard.toml", WEAK)
    does = f"""
    echo work > work && {COMMIT}
    {GUARD} trust > {tmp_path}/said 2>&1; echo "code $?" >> {tmp_path}/said
    env -u GUARD_ITERATION -u GUARD_RUN_REPO -u GUARD_RUN_WORKSPACE -u GUARD_SUPERVISOR \\
        {GUARD} trust >> {tmp_path}/said 2>&1; echo "code $?" >> {tmp_path}/said
    """
    found = iterate(tmp_path, does)
    assert found["assurance"] == "unproven"
    said = (tmp_path / "said").read_text()
    assert said.count("code 1\n") == 2
    assert "an agent of a run cannot trust" in said
    assert "an agent's session cannot trust" in said
    assert trust("--show")["state"] == "untrusted"


def test_what_the_user_trusts_in_an_open_iteration_counts_in_it(repository: Path) -> None:
    commit(repository, "guard.toml", PROVE)
    assert run("baseline").code == 0
    trust()
    commit(repository, "broken")
    words = ("check", "--no-probe", "--no-wait", "--format", "json")
    assert run(*words).json["status"] == "refuted"
    # A proof by hand takes its command from there as well, and not from HEAD.
    commit(repository, "guard.toml", WEAK)
    result = run("prove", "--format", "json")
    assert (result.code, result.json["command"]) == (17, "test ! -e broken")
