"""Collectors of other packages, installed as a folder with metadata and a module on the search path."""

import json
import re
import sys
import time
from pathlib import Path

import pytest

from guard import spawn_agent
from guard.activity.collect import CollectedSigns, collect
from guard.activity.plugins import plugin_collectors
from guard.core.activity.assess import ActivityTerms, assess
from guard.core.activity.sources import SOURCES, window_seconds
from tests.activity.conftest import Look
from tests.support import ROOT, commit, run, write

HEAD = """
import os, sys, time
from datetime import datetime, timedelta
from guard.collectors import Sign, Subject, collector
"""
TELLING = """
@collector(tier={tier})
def told(subject):
    yield Sign(subject.now, f"saw {{subject.agent_id}} of {{subject.task_id}} at {{subject.root.name}}")
"""


def installed(site: Path, module: str, code: str, *names: str, offers: str = "told") -> Path:
    """A package with this module, that offers its function under these names."""
    write(site / f"{module}.py", HEAD + code)
    info = site / f"{module}-1.0.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [f"{name} = {module}:{offers}\n" for name in names or ["TICKETS"]]
    write(info / "entry_points.txt", "[guard.collectors]\n" + "".join(lines))
    return site


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, outside of the work tree."""
    folder = tmp_path_factory.mktemp("site")
    monkeypatch.syspath_prepend(folder)
    return folder


def asked(subject: Look, **settings: float) -> CollectedSigns:
    looked = subject(settings=settings)
    return collect(looked, ActivityTerms(), collectors=plugin_collectors(looked.root))


@pytest.mark.parametrize(("tier", "confidence"), [(1, 0.7), (2, 0.5), (3, 0.3)])
def test_its_tier_is_its_weight(site: Path, subject: Look, tier: int, confidence: float) -> None:
    installed(site, f"weighing{tier}", TELLING.format(tier=tier))
    seen = asked(subject)
    (sign,) = seen.signals
    assert (sign.source, sign.tier, seen.warnings) == ("X_TICKETS", tier, ())
    assert sign.detail.startswith("saw a1 of T1 at ")
    assert assess(seen.signals, sign.at, ActivityTerms()).confidence == confidence


def test_it_is_asked_beside_those_of_guard(site: Path, tmp_path: Path, subject: Look) -> None:
    installed(site, "beside", TELLING.format(tier=2))
    write(tmp_path / "agent_workspaces/a1/status.json", '{"current_task": "Write the form"}')
    seen = collect(subject(), ActivityTerms())
    assert {"X_TICKETS", "STATUS_UPDATE"} <= {one.source for one in seen.signals}


@pytest.mark.parametrize(
    ("code", "signs", "warning"),
    [
        ("def told(subject):\n    1 / 0\n", 0, "ZeroDivisionError: division by zero"),
        ("def told(subject):\n    sys.exit(7)\n", 0, "failed: SystemExit: 7"),
        ("sys.exit(7)\n", 0, "could not be loaded: SystemExit: 7"),
        ("import nothing_of_this_name\n", 0, "could not be loaded: ModuleNotFoundError"),
        ("told = 7\n", 0, "could not be loaded: TypeError: fails:told cannot be called"),
        ("def told(subject):\n    return None\n", 0, "TypeError"),
        ("def told(subject):\n    yield 'busy'\n", 0, "is not a `Sign` with a time zone"),
        (
            "def told(subject):\n    yield Sign(datetime.now(), 'x')\n",
            0,
            "is not a `Sign` with a time zone",
        ),
        ("def told(subject):\n    yield Sign(subject.now, 'x')\n    1 / 0\n", 1, "ZeroDivision"),
        (
            "def told(subject):\n    yield Sign(subject.now, 'x')\n    time.sleep(600)\n",
            1,
            "took more than 10 s",
        ),
    ],
)
def test_it_fails_alone_with_one_warning(
    site: Path, subject: Look, code: str, signs: int, warning: str
) -> None:
    sys.modules.pop("fails", None)
    installed(site, "fails", code)
    installed(site, "works", TELLING.format(tier=1), "OTHER")
    seen = asked(subject, collector_seconds=10)
    assert [one.source for one in seen.signals] == ["X_OTHER"] + ["X_TICKETS"] * signs
    assert len(seen.warnings) == 1
    assert seen.warnings[0].startswith("X_TICKETS: fails 1.0: ")
    assert warning in seen.warnings[0]


def test_one_that_hangs_while_it_is_loaded_fails_alone(
    site: Path, subject: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, "hangs_at_once", "time.sleep(600)\n", "FIRST")
    installed(site, "loads_later", TELLING.format(tier=1), "LATER")
    search = sys.path[:]
    seen = asked(subject)
    assert [one.source for one in seen.signals] == ["X_LATER"]
    assert seen.warnings == (
        "X_FIRST: hangs_at_once 1.0: took more than 10 s, and is not called again",
    )
    assert sys.path == search


def test_one_that_hangs_is_not_asked_again(site: Path, subject: Look, tmp_path: Path) -> None:
    note = f"with open({str(tmp_path / 'calls')!r}, 'a') as calls: calls.write('x')"
    installed(site, "hangs", f"def told(subject):\n    {note}\n    time.sleep(600)\n    yield\n")
    for _ in range(200):
        assert len(asked(subject, collector_seconds=5).warnings) == 1
    assert (tmp_path / "calls").read_text() == "x"


def test_one_without_end_is_cut_off(site: Path, subject: Look) -> None:
    code = "def told(subject):\n    while True:\n        yield Sign(subject.now, 'x' * 10_000)\n"
    installed(site, "endless", code)
    seen = asked(subject, collector_seconds=60)
    assert 0 < len(seen.signals) <= 20
    assert len(seen.signals[0].detail) == 512


def test_the_future_and_noise_prove_nothing(site: Path, subject: Look) -> None:
    code = """
@collector(tier=1)
def told(subject):
    yield Sign(subject.now + timedelta(days=1), "tomorrow")
    yield Sign(subject.now, "a message", "OK, resuming now")
    yield Sign(subject.since - timedelta(hours=1), "old")
"""
    installed(site, "noisy", code)
    looked = subject()
    found = assess(asked(subject).signals, looked.now, ActivityTerms())
    assert (found.is_active, found.confidence, len(found.passed_over)) == (False, 0, 2)


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("GIT_COMMIT", "a source of guard's own"),
        ("git_commit", "a source of guard's own"),
        ("a-b", "letters, digits"),
        ("Ä", "letters, digits"),
        ("A" * 61, "letters, digits"),
    ],
)
def test_a_name_that_is_taken_or_none_is_refused(
    site: Path, subject: Look, name: str, warning: str
) -> None:
    installed(site, "misnamed", TELLING.format(tier=1), name)
    seen = asked(subject)
    assert (len(seen.signals), len(seen.warnings)) == (0, 1)
    assert warning in seen.warnings[0]


def test_two_packages_cannot_have_one_name(site: Path, subject: Look) -> None:
    for module in ("first_of_two", "second_of_two"):
        installed(site, module, TELLING.format(tier=1))
    seen = asked(subject)
    assert (len(seen.signals), len(seen.warnings)) == (0, 1)
    assert "both offer it" in seen.warnings[0]


def test_broken_metadata_offers_nothing(site: Path, subject: Look) -> None:
    installed(site, "broken_one", TELLING.format(tier=1))
    write(site / "broken_one-1.0.dist-info/entry_points.txt", b"[guard.collectors\nno\xff\n")
    write(site / "empty-1.0.dist-info/entry_points.txt", "[guard.collectors]\nA = empty:told\n")
    installed(site, "sound_one", TELLING.format(tier=1), "SOUND")
    assert "X_SOUND" in [one.source for one in asked(subject).signals]


def test_nothing_in_the_projects_folder_is_loaded(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Path
) -> None:
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    commit(repository, "first.txt")
    spawn_agent("T1", "a1")
    ran = tmp_path / "ran"
    evil = f"open({str(ran)!r}, 'w').close()\n" + TELLING.format(tier=1)
    # As a package of its own, and as a module in the place of one that is installed.
    installed(repository, "planted", evil, "PLANTED")
    installed(repository / "src", "hidden", evil, "HIDDEN")
    installed(site, "shadowed", TELLING.format(tier=2))
    write(repository / "shadowed.py", evil)
    path = f"{repository}:{repository / 'src'}:{site}:{ROOT}"
    result = run("activity", "a1", "--all-sources", "--format", "json", env={"PYTHONPATH": path})
    assert {"X_TICKETS"} <= {one["source"] for one in result.json["signals"]}
    assert result.json["warnings"] == []
    assert not ran.exists()
    shown = run("doctor", env={"PYTHONPATH": path}).out
    assert "X_TICKETS (shadowed 1.0)" in shown
    assert not ran.exists()


def test_doctor_says_what_cannot_be_loaded(repository: Path, site: Path) -> None:
    installed(site, "unloadable", "import nothing_of_this_name\n")
    shown = run("doctor", env={"PYTHONPATH": f"{site}:{ROOT}"}).out
    assert "X_TICKETS (unloadable 1.0): could not be loaded: ModuleNotFoundError" in shown
    assert "only guard's own" in shown


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    page = (ROOT / "docs/guide/activity.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d) \| (\d+) min \| ([\d.]+) \|", page, re.MULTILINE)
    assert rows == [
        (name, str(one.tier), f"{window_seconds(one.tier, 60) / 60:g}", f"{one.confidence:g}")
        for name, one in SOURCES.items()
    ]


def test_the_example_of_the_docs_works(site: Path, tmp_path: Path, subject: Look) -> None:
    page = (ROOT / "docs/guide/activity.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    toml = re.search(r'^(\w+) = "our_builds:(\w+)"$', page, re.MULTILINE)
    assert code
    assert toml
    installed(site, "our_builds", code[1], toml[1], offers=toml[2])
    builds = [{"agent": name, "at": time.time(), "number": 7} for name in ("a1", "a2")]
    write(tmp_path / "builds.jsonl", "\n".join(map(json.dumps, builds)))
    (sign,) = asked(subject).signals
    assert (sign.source, sign.detail, sign.tier) == ("X_BUILDS", "build 7", 2)
