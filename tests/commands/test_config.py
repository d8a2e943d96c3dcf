"""`guard config` and every knob: where a value comes from, who may set it, and what it changes."""

import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guard.agents import registry
from guard.context import config
from guard.core.config.resolve import knobs, value_of
from guard.core.cost.settings import PriceTable
from guard.core.landing.settings import RegeneratedFile
from guard.core.prove.settings import ProveCheck
from guard.errors import ConfigProblem
from guard.schemas.validate import validator
from guard.store.file_store import FileStore
from tests.support import run, write
from tests.support.events import MOMENT

pytestmark = pytest.mark.usefixtures("usual_limits")

PROBES = "completion_check.max_probes"
VARIABLE = "GUARD_COMPLETION_CHECK__MAX_PROBES"
PYPROJECT = "[tool.guard.completion_check]\nmax_probes = {}\n"
FILE = "[completion_check]\nmax_probes = {}\n"


def lines(*words: str | Path, env: dict[str, str] | None = None) -> dict[str, Any]:
    result = run(*words, "config", "--format", "json", env=env)
    assert result.code == 0, result.err
    assert list(validator("config").iter_errors(result.json)) == []
    return {line["key"]: line for line in result.json["settings"]}


def refusal(project: Path, explicit: Path | None = None) -> str:
    """Why the configuration of a project cannot be used."""
    with pytest.raises(ConfigProblem) as caught:
        config.ConfigSources(os.environ, explicit).resolve(project)
    assert caught.value.hint
    return caught.value.message


def test_every_source_outweighs_the_one_before(
    repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = home / "config" / "guard" / "config.toml"
    steps: list[tuple[str, int, Callable[[], object]]] = [
        ("default", 5, lambda: None),
        (
            str(repository / "pyproject.toml"),
            1,
            lambda: write(repository / "pyproject.toml", PYPROJECT.format(1)),
        ),
        (
            str(repository / "guard.toml"),
            2,
            lambda: write(repository / "guard.toml", FILE.format(2)),
        ),
        (str(user), 3, lambda: write(user, FILE.format(3))),
        (VARIABLE, 4, lambda: monkeypatch.setenv(VARIABLE, "4")),
    ]
    for origin, value, add in steps:
        add()
        resolved = config.ConfigSources(os.environ).resolve(repository)
        assert resolved.origins.get(PROBES, "default") == origin
        assert resolved.settings.completion_check.max_probes == value


def as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def test_each_value_is_shown_with_its_origin(repository: Path, home: Path) -> None:
    project = write(repository / "guard.toml", FILE.format(7))
    user = write(home / "config" / "guard" / "config.toml", "[store]\nlock_timeout_seconds = 2.5\n")
    shown = lines(env={"GUARD_REGISTRY__KEEP_FINISHED": "3"})
    assert {key: line["value"] for key, line in shown.items()} == {
        **{knob.key: as_json(knob.default) for knob in knobs()},
        PROBES: 7,
        "registry.keep_finished": 3,
        "store.lock_timeout_seconds": 2.5,
    }
    origins = {key: line["origin"] for key, line in shown.items() if line["origin"] != "default"}
    assert origins == {
        PROBES: str(project),
        "registry.keep_finished": "GUARD_REGISTRY__KEEP_FINISHED",
        "store.lock_timeout_seconds": str(user),
    }
    text = run("config").out.splitlines()
    assert [line.split()[0] for line in text] == list(shown)
    assert text[1].split() == [PROBES, "7", str(project)]


def test_a_flag_and_a_variable_for_the_workspace_are_named(
    repository: Path, tmp_path: Path
) -> None:
    told = str(tmp_path / "w")
    assert lines("--workspace", told)["workspace"]["origin"] == "command line"
    assert lines(env={"GUARD_WORKSPACE": told})["workspace"]["origin"] == "GUARD_WORKSPACE"


WRONG: dict[str, tuple[str, str]] = {
    "a misspelt key": (
        "[completion_check]\nmax_probs = 1\n",
        "unknown key 'completion_check.max_probs'; did you mean 'completion_check.max_probes'?",
    ),
    "a key outside its section": ("keep_finished = 1\n", "did you mean 'registry.keep_finished'?"),
    "a key that is like no other": ("[q]\nzzz = 1\n", "unknown key 'q'"),
    "a section with a value": ("registry = 1\n", "registry is a section: it has keys, not a value"),
    "text for a number": ('[registry]\nkeep_finished = "1"\n', "registry.keep_finished: Input"),
    "a fraction for a whole number": ("[registry]\nkeep_finished = 1.5\n", "(got 1.5)"),
    "true for a number": ("[registry]\nkeep_finished = true\n", "(got True)"),
    "a number that is too small": (FILE.format(0), "greater than or equal to 1 (got 0)"),
    "a number that is none": ("[completion_check]\nprobe_interval_seconds = nan\n", "(got nan)"),
    "a list for a section": ("[[registry]]\n", "registry is a section"),
    "a quoted path of keys": ('"registry.keep_finished" = 1\n', "'registry.keep_finished'"),
    "a value without end": (
        f'[registry]\nkeep_finished = "{"x" * 9999}"\n',
        "registry.keep_finished",
    ),
    "half a file": ("[registry", "is not TOML"),
    "a huge file": ("# " + "x" * 1024 * 1024, "is larger than 1048576 bytes"),
    "a deep file": ("a = " + "[" * 50_000, "is not TOML"),
    "bytes that are no text": ("\udcff", "is not TOML"),
}


def user_file(home: Path) -> Path:
    return home / "config" / "guard" / "config.toml"


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_file_of_the_users_that_cannot_be_used_is_named_with_the_reason(
    text: str, said: str, repository: Path, home: Path
) -> None:
    path = write(user_file(home), os.fsencode(text))
    message = refusal(repository)
    assert message.startswith(str(path))
    assert said in message
    assert len(message) < 500


OTHER_KEY = "coordinator.plan_file"
"""A key that no wrong file has: a fault must not reach it."""
_PAIR = '[coordinator]\nplan_file = "TODO.md"\n'
UNREADABLE = {"half a file", "a huge file", "a deep file", "bytes that are no text", "a key twice"}
WRONG_IN_PROJECT: dict[str, tuple[str, str]] = {
    **WRONG,
    "an unknown table": ("[surprise]\nmax_probes = 1\n", "unknown key 'surprise'"),
    "a key twice": ("workspace = 'a'\nworkspace = 'b'\n", "is not TOML"),
    "a very deep table": (f"[registry.keep_finished{'.a' * 20_000}]\n", "registry.keep_finished"),
    "a very long number": (f"[registry]\nkeep_finished = 0x{'f' * 9999}\n", "keep_finished"),
    "a choice that is none": ('[completion_check]\nagent = "nobody"\n', "completion_check.agent"),
}


@pytest.mark.parametrize("name", ["guard.toml", "pyproject.toml"])
@pytest.mark.parametrize("case", WRONG_IN_PROJECT)
def test_a_fault_in_the_projects_file_is_a_warning_and_the_other_keys_count(
    case: str, name: str, repository: Path
) -> None:
    text, said = WRONG_IN_PROJECT[case]
    text = f"{text}\n{_PAIR}"
    if name == "pyproject.toml":
        text = re.sub(r"(?m)^(\[+)(?=\w)", r"\1tool.guard.", text)
        text = text if text.startswith("[") else f"[tool.guard]\n{text}"
    path = write(repository / name, os.fsencode(text))
    resolved = config.ConfigSources(os.environ).resolve(repository)
    assert [warning for warning in resolved.warnings if said in warning]
    assert all(warning.startswith(str(path)) for warning in resolved.warnings)
    assert max(map(len, resolved.warnings)) < 500
    origins = {} if case in UNREADABLE else {OTHER_KEY: str(path)}
    assert resolved.origins == origins
    assert resolved.from_project == ({OTHER_KEY: "TODO.md"} if origins else {})


def test_many_faults_are_not_all_told(repository: Path) -> None:
    write(repository / "guard.toml", "".join(f"k{number} = 1\n" for number in range(50_000)))
    warnings = config.ConfigSources(os.environ).resolve(repository).warnings
    assert len(warnings) == 21
    assert warnings[-1].endswith("49980 more keys are ignored")


def test_a_fault_in_the_users_file_is_exit_4_with_a_hint(repository: Path, home: Path) -> None:
    path = write(user_file(home), "[registry]\nkeep = 1\n")
    result = run("config", "--format", "json")
    assert (result.code, result.out) == (4, "")
    assert result.err == (
        f"guard: {path}: unknown key 'registry.keep'; did you mean 'registry.keep_finished'?\n"
        "hint: `guard config` lists every key\n"
    )


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("GUARD_COMPLETION_CHECK__MAX_PROBE", "1", "did you mean 'completion_check.max_probes'?"),
        (VARIABLE, "many", f"{VARIABLE}: {PROBES}: Input should be a valid integer"),
        (VARIABLE, "0", "greater than or equal to 1"),
    ],
    ids=["a misspelt variable", "text for a number", "a number that is too small"],
)
def test_a_variable_that_cannot_be_used_is_named(
    variable: str, value: str, said: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert said in refusal(repository)


def a_loop(path: Path) -> None:
    path.symlink_to(path.name)


def out_of_the_project(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_broken_link(path: Path) -> None:
    path.symlink_to("nowhere/at/all")


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to itself": a_loop,
    "a link to a device": out_of_the_project,
}


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_refused_at_once(
    make: Callable[[Path], object], repository: Path, home: Path
) -> None:
    path = user_file(home)
    path.parent.mkdir(parents=True)
    make(path)
    assert refusal(repository).startswith(str(path))


@pytest.mark.parametrize("name", ["guard.toml", "pyproject.toml"])
@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_in_the_project_is_a_warning(
    make: Callable[[Path], object], name: str, repository: Path
) -> None:
    make(repository / name)
    (warning,) = config.ConfigSources(os.environ).resolve(repository).warnings
    assert warning.startswith(str(repository / name))


def test_a_broken_link_is_no_file(repository: Path) -> None:
    a_broken_link(repository / "guard.toml")
    assert config.ConfigSources(os.environ).resolve(repository).warnings == ()


@pytest.mark.parametrize("name", ["guard.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("", "workspace", '"/elsewhere"'),
        ("breaker", "stall_limit", "99"),
        ("breaker", "cooldown_seconds", "0"),
        ("store", "lock_timeout_seconds", "1"),
        ("store", "segment_max_bytes", "4096"),
    ],
)
def test_what_is_the_users_alone_is_not_taken_from_the_project(
    name: str, section: str, key: str, value: str, repository: Path
) -> None:
    prefix = "tool.guard" if name == "pyproject.toml" else ""
    table = ".".join(part for part in (prefix, section) if part)
    path = write(repository / name, (f"[{table}]\n" if table else "") + f"{key} = {value}\n")
    resolved = config.ConfigSources(os.environ).resolve(repository)
    full = f"{section}.{key}".lstrip(".")
    assert full not in resolved.origins
    assert resolved.warnings == (
        f"{path}: {full} is ignored: only the user's own config may set it, or a file that the user trusts",
    )


def test_a_warning_is_said_once_and_stands_in_the_report(repository: Path) -> None:
    write(repository / "guard.toml", 'workspace = "/elsewhere"\n')
    result = run("config", "--format", "json")
    assert len(result.json["warnings"]) == 1
    assert result.err == f"guard: warning: {result.json['warnings'][0]}\n"


def test_the_named_file_replaces_both_others(repository: Path, home: Path, tmp_path: Path) -> None:
    write(repository / "guard.toml", FILE.format(2) + "[registry]\nkeep_finished = 2\n")
    write(home / "config" / "guard" / "config.toml", "[store]\nlock_timeout_seconds = 2\n")
    named = write(tmp_path / "named.toml", FILE.format(3) + "[store]\nsegment_max_bytes = 4096\n")
    shown = lines("--config", named)
    origins = {key: line["origin"] for key, line in shown.items() if line["origin"] != "default"}
    assert origins == {PROBES: str(named), "store.segment_max_bytes": str(named)}
    assert lines(env={"GUARD_CONFIG": str(named)}) == shown
    assert refusal(repository, tmp_path / "missing.toml").endswith("there is no such file")


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_origin_that_is_no_text_is_spelled_out(form: str, repository: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(repository) + b"/\xff.toml"))
    write(path, FILE.format(9))
    result = run("--config", path, "config", "--format", form)
    assert (result.code, result.err) == (0, "")
    assert result.out.isascii()


def test_every_knob_can_be_set_by_its_variable(repository: Path) -> None:
    values: dict[str, tuple[str, Any]] = {
        "workspace": ("/elsewhere", "/elsewhere"),
        PROBES: ("9", 9),
        "completion_check.probe_interval_seconds": ("0", 0),
        "completion_check.probe_timeout_seconds": ("0.5", 0.5),
        "completion_check.final_rescue_attempt": ("false", False),
        "completion_check.progress_window_seconds": ("0", 0),
        "completion_check.max_wait_seconds": ("0", 0),
        "completion_check.git_timeout_seconds": ("0.5", 0.5),
        "completion_check.max_seconds": ("90", 90.0),
        "completion_check.agent": ("codex", "codex"),
        "completion_check.probe_model": ("haiku", "haiku"),
        "completion_check.probe_command": ("ask me", "ask me"),
        "completion_check.task_file": ("{spec}.md", "{spec}.md"),
        "run.max_idle_seconds": ("60", 60.0),
        "run.max_silence_seconds": ("62", 62.0),
        "run.max_seconds": ("61.5", 61.5),
        "run.keep_output_mb": ("10", 10),
        "run.max_cost": ("5.5", 5.5),
        "run.max_tokens": ("5000", 5000),
        "run.max_cost_without_progress": ("2.5", 2.5),
        "run.budget_grace_seconds": ("30", 30),
        "run.max_repeats": ("9", 9),
        "notify.command": ("mail me", "mail me"),
        "notify.url": ("https://ntfy.sh/mine", "https://ntfy.sh/mine"),
        "notify.format": ("slack", "slack"),
        "notify.services": ("json://localhost", ("json://localhost",)),
        "notify.timeout_seconds": ("3", 3.0),
        "notify.limit_minutes": ("5", 5.0),
        "prove.command": ("pytest -q", "pytest -q"),
        "prove.check": (
            '[{"name": "lint", "command": "ruff check"}]',
            (ProveCheck(name="lint", command="ruff check"),),
        ),
        "prove.up": ("make up", "make up"),
        "prove.down": ("make down", "make down"),
        "prove.tests": ("a/**, b.py", ("a/**", "b.py")),
        "prove.junit": ("out/*.xml", "out/*.xml"),
        "prove.setup": ("npm ci", "npm ci"),
        "prove.setup_inputs": ("package-lock.json", ("package-lock.json",)),
        "prove.share": (".venv", (".venv",)),
        "prove.reruns": ("1", 1),
        "prove.timeout_seconds": ("0.5", 0.5),
        "prove.total_seconds": ("0.5", 0.5),
        "prove.required": ("true", True),
        "prove.on_review": ("refute", "refute"),
        "prove.allow_test_changes": ("true", True),
        "cost.prices": (
            '{"gpt-5": {"input": 1.25, "output": 10}}',
            {"gpt-5": PriceTable(input=1.25, output=10)},
        ),
        "plan.setup": ("npm ci", "npm ci"),
        "plan.setup_inputs": ("package-lock.json", ("package-lock.json",)),
        "plan.copy": (".env, conf/*", (".env", "conf/*")),
        "plan.max_cost_per_task": ("2.5", 2.5),
        "plan.min_free_bytes": ("0", 0),
        "rescue.command": ("save it", "save it"),
        "rescue.time_limit_seconds": ("0.5", 0.5),
        "rescue.planner": ("agent", "agent"),
        "rescue.rescue_hooks": ("run", "run"),
        "rescue.snapshot_max_file_bytes": ("1000", 1000),
        "rescue.commit_max_file_bytes": ("1000", 1000),
        "rescue.keep_snapshots": ("7", 7),
        "rescue.keep_days": ("0.5", 0.5),
        "rescue.allow_secrets": ("jwt:docs/*", "jwt:docs/*"),
        "breaker.stall_limit": ("9", 9),
        "breaker.same_error_limit": ("9", 9),
        "breaker.denied_limit": ("9", 9),
        "breaker.rescue_limit": ("9", 9),
        "breaker.refuted_limit": ("9", 9),
        "breaker.cooldown_seconds": ("0", 0),
        "breaker.cooldown_max_seconds": ("0.5", 0.5),
        "breaker.trial_lease_seconds": ("0.5", 0.5),
        "registry.keep_finished": ("0", 0),
        "registry.kill_grace_seconds": ("0.5", 0.5),
        "registry.session_start_seconds": ("0", 0),
        "claims.min_message_length": ("0", 0),
        "claims.min_updates": ("9", 9),
        "claims.min_seconds": ("0.5", 0.5),
        "claims.requirements": ("reviewer: findings=1", "reviewer: findings=1"),
        "claims.evidence_words": ("shipped", "shipped"),
        "claims.suspicious_phrases": ("yolo", "yolo"),
        "claims.strict": ("true", True),
        "team.lease_seconds": ("0.5", 0.5),
        "team.max_hold_seconds": ("0", 0),
        "hooks.max_blocks": ("1", 1),
        "hooks.time_limit_seconds": ("10", 10),
        "hooks.baseline_seconds": ("5", 5),
        "hooks.refuse_secrets": ("true", True),
        "activity.lookback_minutes": ("120", 120),
        "activity.min_confidence": ("0.6", 0.6),
        "activity.min_confidence_threshold": ("0.7", 0.7),
        "activity.tier1_window_seconds": ("60", 60),
        "activity.tier2_window_seconds": ("60", 60),
        "activity.tier3_window_seconds": ("60", 60),
        "activity.adaptive": ("false", False),
        "activity.max_lookback_minutes": ("600", 600),
        "activity.agent_terms": ("a1: min_confidence=0.6", "a1: min_confidence=0.6"),
        "activity.outage_agents": ("5", 5),
        "activity.outage_share": ("0.7", 0.7),
        "activity.outage_within_minutes": ("2", 2),
        "activity.outage_hold_minutes": ("60", 60),
        "activity.noise_patterns": ("wake up", "wake up"),
        "activity.status_files": ("{agent}.json", "{agent}.json"),
        "activity.workspace_folders": ("work/{agent}", "work/{agent}"),
        "activity.devlog_files": ("logs/{agent}.md", "logs/{agent}.md"),
        "activity.inbox_files": ("in/{agent}/*", "in/{agent}/*"),
        "activity.queue_files": ("queue.jsonl", "queue.jsonl"),
        "activity.event_files": ("events.jsonl", "events.jsonl"),
        "activity.contract_files": ("contracts/{task}.json", "contracts/{task}.json"),
        "activity.most_events": ("50", 50),
        "activity.collector_seconds": ("1", 1),
        "fleet.lease_seconds": ("90", 90),
        "fleet.account": ("team", "team"),
        "fleet.wait_seconds": ("30", 30),
        "rescue.remote": ("/srv/snapshots.git", "/srv/snapshots.git"),
        "resume.validate_activity": ("false", False),
        "resume.auto_claim_tasks": ("false", False),
        "resume.max_per_stall": ("1", 1),
        "resume.pause_minutes": ("5", 5),
        "resume.priorities": ("tests first", "tests first"),
        "resume.by": ("inbox", "inbox"),
        "resume.inbox_folders": ("in/{agent}", "in/{agent}"),
        "resume.command": ("bring", "bring"),
        "resume.command_seconds": ("10", 10),
        "resume.watch_seconds": ("30", 30),
        "coordinator.active_developers": ("5", 5),
        "coordinator.remediation_attempts": ("1", 1),
        "coordinator.agent_timeout_minutes": ("7.5", 7.5),
        "coordinator.redispatch_limit": ("0", 0),
        "coordinator.max_concurrent_per_agent": ("1", 1),
        "coordinator.audit_command": ("make check", "make check"),
        "coordinator.audit_limit": ("1", 1),
        "coordinator.hold_on_question": ("task", "task"),
        "coordinator.usage_command": ("usage --json", "usage --json"),
        "coordinator.plan_file": ("docs/plan.json", "docs/plan.json"),
        "landing.mode": ("merge", "merge"),
        "landing.union": ("NEWS, CHANGES/*", ("NEWS", "CHANGES/*")),
        "landing.regenerate": (
            '[{"file": "uv.lock", "command": "uv lock"}]',
            (RegeneratedFile(file="uv.lock", command="uv lock"),),
        ),
        "landing.regenerate_seconds": ("20", 20),
        "landing.attempts": ("0", 0),
        "store.lock_timeout_seconds": ("0", 0),
        "store.segment_max_bytes": ("4096", 4096),
    }
    environ = {knob.variable: values[knob.key][0] for knob in knobs()}
    resolved = config.ConfigSources(environ).resolve(repository)
    assert {k.key: value_of(resolved, k) for k in knobs()} == {k: v for k, (_, v) in values.items()}
    assert set(resolved.origins.values()) == set(environ)


def test_tables_are_shown_as_tables(repository: Path, home: Path) -> None:
    write(
        user_file(home),
        "[cost.prices.gpt-5]\ninput = 1.25\noutput = 10\n"
        '[[landing.regenerate]]\nfile = "uv.lock"\ncommand = "uv lock"\n',
    )
    shown = lines()
    prices = {"gpt-5": {"input": 1.25, "output": 10.0, "cached": None}}
    assert shown["cost.prices"]["value"] == prices
    assert shown["landing.regenerate"]["value"] == [{"file": "uv.lock", "command": "uv lock"}]
    assert '{"input": 1.25' in run("config").out


def test_every_knob_says_what_it_does() -> None:
    assert [knob.key for knob in knobs() if len(knob.description) < 20] == []


def test_workspace_is_where_the_state_goes(repository: Path, home: Path, tmp_path: Path) -> None:
    write(home / "config" / "guard" / "config.toml", f'workspace = "{tmp_path}/mine"\n')
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    assert (tmp_path / "mine" / "events.jsonl").exists()
    # Outside of it lies only what remembers that the log has begun.
    assert [path.name for path in (home / "state" / "guard").iterdir()] == ["logs.d"]


@pytest.mark.parametrize(("keep", "listed"), [("1", 1), ("2", 2)])
def test_keep_finished_is_how_many_finished_agents_are_listed(
    keep: str, listed: int, store: FileStore, workspace: Path
) -> None:
    for name in ("a1", "a2", "a3"):
        registry.spawn(store, MOMENT, task_id="T1", agent_id=name)
        registry.update(store, MOMENT, registry.AgentUpdate("T1", name, "completed"))
    env = {"GUARD_REGISTRY__KEEP_FINISHED": keep}
    words = ("agent", "spawn", "--task", "T2", "--agent", "b")
    assert run("--workspace", workspace, *words, env=env).code == 0
    report = run("--workspace", workspace, "agent", "list", "--format", "json").json
    assert len(report["agents"]) == listed + 1


@pytest.mark.parametrize("limit", ["0.1", "0.7"])
def test_lock_timeout_is_how_long_guard_waits_for_another(
    limit: str, store: FileStore, workspace: Path
) -> None:
    registry.spawn(store, MOMENT, task_id="T1", agent_id="a1")
    with open(workspace / "workspace.lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = ("--workspace", workspace, "agent", "spawn", "--task", "T1", "--agent", "a2")
        result = run(*words, env={"GUARD_STORE__LOCK_TIMEOUT_SECONDS": limit})
    assert (result.code, result.out) == (6, "")
    assert f"guard waited {limit} s for the lock " in result.err
    assert f", held by pid {os.getpid()}" in result.err


@pytest.mark.parametrize(("size", "segments"), [("4096", 2), ("1000000", 1)])
def test_segment_max_bytes_is_when_the_log_begins_a_new_segment(
    size: str, segments: int, workspace: Path
) -> None:
    for agent in ("a1", "a2"):
        words = ("agent", "spawn", "--task", "T1", "--agent", agent, "--message", "x" * 5000)
        env = {"GUARD_STORE__SEGMENT_MAX_BYTES": size}
        assert run("--workspace", workspace, *words, env=env).code == 0
    assert len(list(workspace.glob("events*.jsonl"))) == segments
