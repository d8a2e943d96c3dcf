"""Settings: how sources are merged, and what is refused with which words."""

import tomllib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.config.resolve import (
    BadSetting,
    SettingSource,
    config_template,
    knobs,
    nest_keys,
    resolve,
    value_of,
)


def source(
    origin: str = "file", *, textual: bool = False, trusted: bool = True, **values: Any
) -> SettingSource:
    return SettingSource(origin, values, trusted=trusted, textual=textual)


def test_without_sources_everything_is_at_its_default() -> None:
    resolved = resolve([])
    assert (resolved.origins, resolved.warnings) == ({}, ())
    assert {k.key: value_of(resolved, k) for k in knobs()} == {k.key: k.default for k in knobs()}


def test_the_last_source_wins_key_by_key() -> None:
    resolved = resolve(
        [
            source("one", completion_check={"max_probes": 1, "probe_timeout_seconds": 1}),
            source("two", completion_check={"max_probes": 2}, registry={"keep_finished": 2}),
            source("three", registry={"keep_finished": 3}),
        ]
    )
    check = resolved.settings.completion_check
    assert (check.max_probes, check.probe_timeout_seconds, check.probe_interval_seconds) == (
        2,
        1,
        30,
    )
    assert resolved.settings.registry.keep_finished == 3
    assert resolved.origins == {
        "completion_check.max_probes": "two",
        "completion_check.probe_timeout_seconds": "one",
        "registry.keep_finished": "three",
    }


def test_a_value_at_its_default_has_an_origin_too() -> None:
    resolved = resolve([source("user", registry={"keep_finished": 100})])
    assert resolved.origins == {"registry.keep_finished": "user"}


def test_the_users_keys_are_taken_from_those_who_are_trusted() -> None:
    values: dict[str, Any] = {"workspace": "/w", "store": {"lock_timeout_seconds": 1}}
    project = source("project", trusted=False, registry={"keep_finished": 1}, **values)
    resolved = resolve([project])
    assert resolved.origins == {"registry.keep_finished": "project"}
    assert [warning.split(" is ignored")[0] for warning in resolved.warnings] == [
        "project: workspace",
        "project: store.lock_timeout_seconds",
    ]
    assert resolve([project, source("user", **values)]).settings.workspace == "/w"


def test_a_wrong_value_of_a_key_that_is_ignored_stops_nobody() -> None:
    resolved = resolve([source("project", trusted=False, workspace=7)])
    assert resolved.settings.workspace is None
    assert len(resolved.warnings) == 1


def test_a_project_cannot_leave_guard_without_time() -> None:
    values: dict[str, Any] = {
        "rescue": {"time_limit_seconds": 0.001},
        "completion_check": {"max_probes": 2},
    }
    resolved = resolve([source("project", trusted=False, **values)])
    assert resolved.settings.rescue.time_limit_seconds == 300
    assert resolved.origins == {"completion_check.max_probes": "project"}
    (warning,) = resolved.warnings
    assert warning.startswith("project: rescue.time_limit_seconds is ignored")
    assert resolve([source("user", **values)]).settings.rescue.time_limit_seconds == 0.001
    more = source("project", trusted=False, rescue={"time_limit_seconds": 301})
    assert resolve([more]).settings.rescue.time_limit_seconds == 301
    assert sum(knob.only_raised for knob in knobs()) == 3


REFUSED: dict[str, tuple[SettingSource, str]] = {
    "an unknown key": (source(colour=1), "file: unknown key 'colour'"),
    "a misspelt key": (
        source(registry={"keep_finish": 1}),
        "unknown key 'registry.keep_finish'; did you mean 'registry.keep_finished'?",
    ),
    "a key of another section": (
        source(store={"max_probes": 1}),
        "unknown key 'store.max_probes'; did you mean 'completion_check.max_probes'?",
    ),
    "a key outside its section": (
        source(segment_max_bytes=4096),
        "did you mean 'store.segment_max_bytes'?",
    ),
    "a misspelt table": (
        source(completion_chek={"max_probes": 1}),
        "file: unknown key 'completion_chek'; did you mean the table 'completion_check'?",
    ),
    "a section with a value": (source(store=1), "store is a section"),
    "a section with nothing": (source(store=None), "store is a section"),
    "a table for a value": (source(workspace={"a": 1}), "file: workspace: "),
    "a table in a section": (source(registry={"keep_finished": {"a": 1}}), "keep_finished: "),
    "text for a number": (source(registry={"keep_finished": "1"}), "(got '1')"),
    "true for a number": (source(registry={"keep_finished": True}), "(got True)"),
    "a fraction for a whole number": (source(registry={"keep_finished": 1.0}), "(got 1.0)"),
    "a number for text": (source(workspace=1), "(got 1)"),
    "an empty text": (source(workspace=""), "at least 1 character"),
    "a number for yes or no": (source(completion_check={"final_rescue_attempt": 1}), "(got 1)"),
    "too small": (source(store={"segment_max_bytes": 4095}), "or equal to 4096"),
    "too large": (source(registry={"keep_finished": 10**6 + 1}), "or equal to 1000000"),
    "infinity": (source(store={"lock_timeout_seconds": float("inf")}), "(got inf)"),
    "no number": (source(store={"lock_timeout_seconds": float("nan")}), "(got nan)"),
    "a requirement of what nobody counts": (
        source(claims={"requirements": "reviewer: files=1; fixer: stars=5"}),
        "file: claims.requirements: String should match pattern",
    ),
    "a type with two requirements": (
        source(claims={"requirements": "reviewer: files=1; Reviewer: tests=1"}),
        "the requirements of Reviewer are given twice",
    ),
    "text that is no number": (
        source("GUARD_X", textual=True, registry={"keep_finished": "many"}),
        "GUARD_X: registry.keep_finished: ",
    ),
    "a text without end": (source(registry={"keep_finished": "x" * 10**6}), "keep_finished"),
}


@pytest.mark.parametrize("table", ["max_probes", "zzz", "surprise", "x" * 1000])
def test_a_table_that_is_like_no_other_is_likened_to_no_key(table: str) -> None:
    values: dict[str, Any] = {table: {"max_probes": 1}}
    with pytest.raises(BadSetting) as caught:
        resolve([source(**values)])
    assert str(caught.value).startswith(f"file: unknown key '{table[:80]}")
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "meant"),
    [("breakr", "breaker"), ("Store", "store"), ("prover", "prove"), ("registy", "registry")],
)
def test_a_misspelt_table_is_likened_to_a_table(table: str, meant: str) -> None:
    values: dict[str, Any] = {table: {"max_probes": 1}}
    found = resolve([source("project", trusted=False, **values)])
    assert [text for text in found.warnings if f"did you mean the table '{meant}'?" in text]


@pytest.mark.parametrize(("bad", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(bad: SettingSource, said: str) -> None:
    with pytest.raises(BadSetting) as caught:
        resolve([bad])
    assert str(caught.value).startswith(f"{bad.origin}: ")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


TEXTS: dict[str, tuple[str, str, Any]] = {
    "a whole number": ("registry.keep_finished", "7", 7),
    "a fraction": ("store.lock_timeout_seconds", "0.25", 0.25),
    "true": ("completion_check.final_rescue_attempt", "true", True),
    "0 for no": ("completion_check.final_rescue_attempt", "0", False),
    "a path": ("workspace", "/w", "/w"),
    "a path that is a number": ("workspace", "7", "7"),
}


@pytest.mark.parametrize(("key", "text", "value"), TEXTS.values(), ids=TEXTS)
def test_texts_of_the_environment_are_converted(key: str, text: str, value: Any) -> None:
    section, _, name = key.rpartition(".")
    values = {section: {name: text}} if section else {name: text}
    resolved = resolve([SettingSource("VARIABLE", values, textual=True)])
    (knob,) = [knob for knob in knobs() if knob.key == key]
    assert value_of(resolved, knob) == value
    assert type(value_of(resolved, knob)) is type(value)


KNOBS: dict[str, tuple[Any, bool]] = {
    "workspace": (None, True),
    "completion_check.max_probes": (5, False),
    "completion_check.probe_interval_seconds": (30, False),
    "completion_check.probe_timeout_seconds": (60, False),
    "completion_check.final_rescue_attempt": (True, False),
    "completion_check.progress_window_seconds": (120, False),
    "completion_check.max_wait_seconds": (7200, False),
    "completion_check.git_timeout_seconds": (10, False),
    "completion_check.max_seconds": (900, False),
    "completion_check.agent": ("", False),
    "completion_check.probe_model": ("", False),
    "completion_check.probe_command": ("", True),
    "completion_check.task_file": ("specs/{spec}/tasks.md", False),
    "run.max_idle_seconds": (3600, True),
    "run.max_silence_seconds": (1800, True),
    "run.max_seconds": (0, True),
    "run.max_repeats": (20, True),
    "run.keep_output_mb": (256, True),
    "run.max_cost": (0, True),
    "run.max_tokens": (0, True),
    "run.max_cost_without_progress": (0, True),
    "run.budget_grace_seconds": (120, True),
    "rescue.command": ("", True),
    "rescue.time_limit_seconds": (300, False),
    "rescue.planner": ("rules", True),
    "rescue.rescue_hooks": ("skip", True),
    "rescue.snapshot_max_file_bytes": (1024**3, True),
    "rescue.commit_max_file_bytes": (50 * 1024**2, True),
    "rescue.keep_snapshots": (50, True),
    "rescue.keep_days": (14, True),
    "rescue.allow_secrets": ("", True),
    "breaker.stall_limit": (3, True),
    "breaker.same_error_limit": (5, True),
    "breaker.denied_limit": (2, True),
    "breaker.rescue_limit": (5, True),
    "breaker.refuted_limit": (5, True),
    "breaker.cooldown_seconds": (1800, True),
    "breaker.cooldown_max_seconds": (14400, True),
    "breaker.trial_lease_seconds": (14400, True),
    "registry.keep_finished": (100, False),
    "registry.kill_grace_seconds": (30, True),
    "registry.session_start_seconds": (30, True),
    "claims.min_message_length": (40, True),
    "claims.min_updates": (3, True),
    "claims.min_seconds": (60, True),
    "claims.requirements": ("", True),
    "claims.evidence_words": ("", True),
    "claims.suspicious_phrases": ("", True),
    "claims.strict": (False, True),
    "team.lease_seconds": (1800, True),
    "team.max_hold_seconds": (7200, True),
    "hooks.max_blocks": (2, True),
    "hooks.time_limit_seconds": (40, True),
    "hooks.baseline_seconds": (20, True),
    "hooks.refuse_secrets": (False, False),
    "activity.lookback_minutes": (60, False),
    "activity.min_confidence": (0.5, False),
    "activity.min_confidence_threshold": (None, False),
    "activity.tier1_window_seconds": (3600, False),
    "activity.tier2_window_seconds": (1800, False),
    "activity.tier3_window_seconds": (900, False),
    "activity.adaptive": (True, False),
    "activity.max_lookback_minutes": (480, False),
    "activity.agent_terms": ("", False),
    "activity.outage_agents": (3, False),
    "activity.outage_share": (0.5, False),
    "activity.outage_within_minutes": (5, False),
    "activity.outage_hold_minutes": (240, False),
    "activity.noise_patterns": ("", False),
    "activity.status_files": (
        "agent_workspaces/{agent}/status.json;.agents/{agent}/status.json",
        False,
    ),
    "activity.workspace_folders": ("agent_workspaces/{agent};.agents/{agent}", False),
    "activity.devlog_files": ("devlogs/{agent}*.md;agent_workspaces/{agent}/devlogs/*", False),
    "activity.inbox_files": (
        "agent_workspaces/{agent}/inbox/processed/*;agent_workspaces/{agent}/inbox/archive/*",
        False,
    ),
    "activity.queue_files": ("message_queue/*.json;message_queue/*.jsonl", False),
    "activity.event_files": ("runtime/activity/*.jsonl;.agents/{agent}/events.jsonl", False),
    "activity.contract_files": ("contracts/*.json;.agents/{agent}/contract.json", False),
    "activity.most_events": (200, False),
    "activity.collector_seconds": (2, False),
    "resume.validate_activity": (True, False),
    "resume.auto_claim_tasks": (True, False),
    "resume.max_per_stall": (2, True),
    "resume.pause_minutes": (15, True),
    "resume.priorities": ("", False),
    "resume.by": ("auto", True),
    "resume.inbox_folders": ("agent_workspaces/{agent}/inbox;.agents/{agent}/inbox", False),
    "resume.command": ("", True),
    "resume.command_seconds": (60, True),
    "resume.watch_seconds": (60, True),
    "coordinator.active_developers": (3, True),
    "coordinator.remediation_attempts": (3, True),
    "coordinator.agent_timeout_minutes": (15, True),
    "coordinator.redispatch_limit": (3, True),
    "coordinator.max_concurrent_per_agent": (2, True),
    "coordinator.audit_command": ("", True),
    "coordinator.audit_limit": (3, True),
    "coordinator.hold_on_question": ("all", True),
    "coordinator.usage_command": ("", True),
    "coordinator.plan_file": ("PLAN.md", False),
    "cost.prices": ({}, True),
    "notify.command": (None, True),
    "notify.url": (None, True),
    "notify.format": ("auto", True),
    "notify.services": ((), True),
    "notify.timeout_seconds": (10, True),
    "notify.limit_minutes": (60, True),
    "prove.command": ("", True),
    "prove.tests": ((), True),
    "prove.junit": ("", True),
    "prove.check": ((), True),
    "prove.up": ("", True),
    "prove.down": ("", True),
    "prove.setup": ("", True),
    "prove.setup_inputs": ((), True),
    "prove.share": ((), True),
    "prove.reruns": (3, True),
    "prove.timeout_seconds": (900, True),
    "prove.total_seconds": (3600, True),
    "prove.required": (False, True),
    "prove.on_review": ("accept", True),
    "prove.allow_test_changes": (False, True),
    "landing.mode": ("squash", True),
    "landing.union": (("CHANGELOG.md",), True),
    "landing.regenerate": ((), True),
    "landing.regenerate_seconds": (300, True),
    "landing.attempts": (2, True),
    "plan.setup": ("", True),
    "plan.setup_inputs": ((), True),
    "plan.copy": ((), True),
    "plan.max_cost_per_task": (0, True),
    "plan.min_free_bytes": (1073741824, True),
    "store.lock_timeout_seconds": (10, True),
    "store.segment_max_bytes": (16777216, True),
    "fleet.lease_seconds": (60, True),
    "fleet.account": ("", True),
    "fleet.wait_seconds": (600, True),
    "rescue.remote": ("", True),
}


def test_every_knob_has_its_default_and_those_that_only_the_user_may_turn() -> None:
    assert {knob.key: (knob.default, knob.user_only) for knob in knobs()} == KNOBS


def test_the_variable_of_a_knob_is_its_key() -> None:
    variables = {knob.key: knob.variable for knob in knobs()}
    assert variables["workspace"] == "GUARD_WORKSPACE"
    assert variables["completion_check.max_probes"] == "GUARD_COMPLETION_CHECK__MAX_PROBES"
    assert len(set(variables.values())) == len(variables)


@pytest.mark.parametrize("for_user", [True, False], ids=["user", "project"])
def test_the_template_is_a_configuration_that_changes_nothing(for_user: bool) -> None:
    template = tomllib.loads(config_template(for_user=for_user))
    assert resolve([SettingSource("template", template, trusted=for_user)]).origins == {}


keys = st.sampled_from([knob.key for knob in knobs()] + ["x", "registry", "store.x"])
anything = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())
)


@given(st.dictionaries(keys, anything), st.booleans(), st.booleans())
def test_any_values_are_taken_or_refused(
    values: dict[str, Any], trusted: bool, textual: bool
) -> None:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        table = nested.setdefault(section, {}) if section else nested
        if isinstance(table, dict):
            table[name] = value
    with suppress(BadSetting):
        resolved = resolve([SettingSource("any", nested, trusted=trusted, textual=textual)])
        # The settings that are in force can be set again, and are the same then.
        in_force = nest_keys({k.key: value_of(resolved, k) for k in knobs()})
        again = resolve([SettingSource("again", in_force)])
        assert nest_keys({k.key: value_of(again, k) for k in knobs()}) == in_force
