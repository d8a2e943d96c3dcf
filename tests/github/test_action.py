"""The action, executed by a runner: what its steps say, what they leave, and what an agent in them cannot do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.test_run import LIMIT
from tests.support import ROOT, git, write
from tests.support.npm import Unavailable, install
from tests.support.workflows import (
    ACTION,
    CACHE,
    Ran,
    act,
    definition,
    prepared,
    shipped,
    surroundings,
)

FORK = {
    "pull_request": {
        "number": 7,
        "head": {"sha": "0" * 40, "ref": "$(touch /tmp/x)", "repo": {"full_name": "else/project"}},
        "base": {"ref": "main"},
    }
}
OUTPUTS = {
    *("complete", "status", "reason", "new-commits", "rescued", "rescue-ref", "breaker"),
    *("retry-at", "report-path", "json", "proof", "cost-usd", "cost-basis", "tokens"),
}


@pytest.fixture(scope="module")
def library() -> Path:
    try:
        folder = install(CACHE, os.environ).parent
    except Unavailable as error:
        if os.environ.get("GUARD_TESTS_REQUIRE_AGENTS"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    return folder / "@actions" / "cache"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("act")
    prepared(folder, LIMIT)
    shipped(folder)
    return folder


@pytest.fixture(scope="module")
def runs(place: Path, library: Path) -> dict[str, Ran]:
    environ = surroundings(place)
    first = act(place, "push", {}, library, environ)
    assert first.steps, first.log
    second = act(place, "pull_request", FORK, library, environ)
    assert second.steps, second.log
    return {"push": first, "fork": second}


def outputs(ran: Ran, step: str) -> dict[str, str]:
    found: dict[str, str] = ran.steps[step]["outputs"]
    return found


EXPECTED = {
    "passing": ("success", "true", "complete", "commits", "1", "false"),
    "failing": ("failure", "false", "timeout", "no_commits", "0", "false"),
    "tolerated": ("success", "false", "timeout", "no_commits", "0", "false"),
    "limited": ("success", "false", "limited", "usage_limit", "0", "false"),
    "rescued": ("success", "true", "complete", "rescued", "0", "true"),
    "begun": ("success", "false", "begun", "baseline", "0", "false"),
    "shallow": ("success", "true", "complete", "commits", "1", "false"),
    "detached": ("failure", "false", "timeout", "rescued", "0", "true"),
    "unbegun": ("failure", "false", "fault", "repository_problem", "0", "false"),
    "hostile": ("failure", "false", "timeout", "no_commits", "0", "false"),
    "refuted": ("failure", "false", "refuted", "new_failures", "1", "false"),
}


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_action_as_a_runner_executes_it(runs: dict[str, Ran], place: Path) -> None:
    pushed, forked = runs["push"], runs["fork"]
    found = {}
    for name in EXPECTED:
        said = outputs(pushed, name)
        words = ("complete", "status", "reason", "new-commits", "rescued")
        found[name] = (pushed.steps[name]["outcome"], *(said.get(word) for word in words))
    assert found == EXPECTED
    for name in EXPECTED:
        assert set(outputs(pushed, name)) - {"save"} == OUTPUTS, name
        document = json.loads(outputs(pushed, name)["json"])
        assert document["status"] == outputs(pushed, name)["status"]
    assert (outputs(pushed, "refuted")["proof"], outputs(pushed, "shallow")["proof"]) == (
        "refuted",
        "proven",
    )
    assert outputs(pushed, "passing")["proof"] == ""
    assert outputs(pushed, "limited")["retry-at"].endswith("Z")
    ref = outputs(pushed, "detached")["rescue-ref"]
    assert ref.startswith("refs/heads/guard/rescue/")
    assert git(place / "checkout" / "detached", "show", f"{ref}:forgotten.txt") == "forgotten\n"

    # What the hostile agent printed and wrote set nothing.
    assert (pushed.environment, forked.environment) == ("planted=\n", "planted=\n")
    # The page is there although the step failed.
    assert "### guard: stalled" in pushed.log

    # The state of the first run is a hint for the second: its stall is the second in a row.
    assert "saved: " in pushed.log
    assert "restored: guard-state-1-" in forked.log
    again = json.loads(outputs(forked, "failing")["json"])
    assert (again["breaker"]["streak"], again["check"]["iteration"]) == (2, 2)

    # A fork may not write: what was rescued stays here, the step passes all the same.
    assert outputs(forked, "rescued")["reason"] == "rescued"
    assert forked.steps["rescued"]["outcome"] == "success"
    assert "the rescued commits were not pushed: the pull request comes from a fork" in forked.log


def test_what_an_earlier_step_found_is_forgotten_first(tmp_path: Path) -> None:
    place = tmp_path / "completion-guard"
    write(place / "venv" / "bin" / "guard", "").chmod(0o755)
    report = write(place / "report.json", '{"complete": true}')
    script = definition()["runs"]["steps"][0]["run"]
    environ = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path)}
    for _ in range(2):
        subprocess.run(["bash", "-e", "-c", script], env=environ, check=True)
        assert not report.exists()


def test_no_value_stands_in_a_script() -> None:
    for step in definition()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "INPUT_" not in json.dumps(step)


def test_every_input_is_used_and_every_output_comes_from_the_last_word() -> None:
    text, action = (ROOT / "action.yml").read_text(), definition()
    for name, one in action["inputs"].items():
        assert f"inputs.{name}" in text
        assert name == name.lower()
        assert "_" not in name
        assert one["description"]
    assert set(action["outputs"]) == OUTPUTS
    for name, one in action["outputs"].items():
        assert one["value"] == f"${{{{ steps.publish.outputs.{name} }}}}"
    assert set(action["branding"]) == {"icon", "color"}


def test_every_variable_of_a_step_is_an_option_of_its_command() -> None:
    from guard.commands import github as commands

    known = {
        "step": {f"GUARD_ACTION_{(p.name or '').upper()}" for p in commands.step.params},
        "publish": {f"GUARD_ACTION_{(p.name or '').upper()}" for p in commands.publish.params},
        "prepare": {f"GUARD_ACTION_{(p.name or '').upper()}" for p in commands.prepare.params},
    }
    for step in definition()["runs"]["steps"]:
        verb = step.get("run", "").rpartition(" ")[2]
        if verb in known:
            variables = set(step["env"]) - {"BASH_ENV", "GUARD_ACTION_TOKEN"}
            assert variables <= known[verb], verb


def test_the_token_is_nowhere_where_an_agent_runs() -> None:
    with_token = [s["id"] for s in definition()["runs"]["steps"] if "inputs.token" in json.dumps(s)]
    assert with_token == ["publish"]


def test_other_actions_are_githubs_own_and_pinned() -> None:
    used = [step["uses"] for step in definition()["runs"]["steps"] if "uses" in step]
    for name in used:
        owner, _, pin = name.partition("@")
        assert owner.startswith("actions/")
        assert len(pin) == 40
        assert set(pin) <= set("0123456789abcdef")


def test_linters_find_nothing(tmp_path: Path) -> None:
    for words in (
        ["zizmor", "--offline", "--no-progress", "--persona=pedantic", str(ROOT / "action.yml")],
        [
            *("check-jsonschema", "--builtin-schema", "vendor.github-actions"),
            str(ROOT / "action.yml"),
        ],
        [
            *("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
            str(ACTION / "workflow.yml"),
        ],
    ):
        program = Path(sys.executable).with_name(words[0])
        done = subprocess.run([program, *words[1:]], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
