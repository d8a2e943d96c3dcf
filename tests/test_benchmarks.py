"""The benchmarks run; what they measure is for people to read, not for a test to judge."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import NAMES, ONLY_BY_NAME, with_part
from benchmarks.coordinator import rows as coordinator_rows
from benchmarks.hook import rows as hook_rows
from benchmarks.kills import rows as kills_rows
from benchmarks.measure import at_least, at_most, table
from benchmarks.peers import NotInstalled, Peer, install
from benchmarks.postgres import rows as postgres_rows
from benchmarks.proof import HONEST, TAMPERED, Outcome, matrix
from benchmarks.proof_cases.case import apply
from benchmarks.proof_cost import rows as proof_cost_rows
from benchmarks.question_set import ASKS, GOES_ON
from benchmarks.secrets import rows
from benchmarks.snapshots import rows as snapshot_rows
from benchmarks.startup import CALLS
from benchmarks.startup import rows as startup_rows
from benchmarks.status import rows as status_rows
from benchmarks.streams import rows as stream_rows
from benchmarks.truth import Score, share, wilson
from benchmarks.truth import table as truth_table
from tests.core.classify import closing_messages
from tests.support import ROOT

pytestmark = pytest.mark.long
TRUTH = "truth --alone --sessions 60 --most 1"


@pytest.mark.parametrize("words", ["claims", "verdicts --sessions 60", "proof --most 1", TRUTH])
def test_a_benchmark_prints_a_table(words: str) -> None:
    assert words.split()[0] in (*NAMES, *ONLY_BY_NAME)
    command = [sys.executable, "-m", "benchmarks", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| what | target | measured | reached | detail |" in done.stdout


def test_each_history_of_the_proof_benchmark_can_be_made(tmp_path: Path) -> None:
    failed = []
    for number, (name, case) in enumerate([*TAMPERED.items(), *HONEST.items()]):
        project = tmp_path / str(number)
        try:
            for change in (case.project.files, case.project.outside, *case.changes):
                apply(change, project)
        except (OSError, ValueError) as error:
            failed.append(f"{name}: {error}")
    assert failed == []


def test_a_proof_is_measured_beside_its_command_and_a_checkout_beside_git() -> None:
    measured = [row.what for row in proof_cost_rows(files=150, rounds=1, run_seconds=0.1)]
    assert measured == [
        "a proof beside one run of its command, no test changed",
        "a proof beside one run of its command, tests changed",
        "a checkout of 150 files beside `git worktree add`, the first time",
        "a checkout of 150 files beside `git worktree add`, for the next commit",
    ]


def test_a_stream_is_measured_beside_the_parsing_of_its_lines() -> None:
    measured = list(stream_rows(megabytes=2, rounds=1))
    assert [row.what for row in measured if "claude" in row.what] == [
        "2 MB of claude through `guard run`",
        "memory for 2 MB of claude beyond that for a tenth of it",
        "reading claude with a look for loops, to without",
    ]
    assert all(row.value > 0 for row in measured if row.unit != " MB")


@pytest.mark.usefixtures("postgres")
def test_writers_kills_and_many_agents_are_measured_on_a_server_of_its_own() -> None:
    measured = list(postgres_rows(processes=3, updates=5, kills=6, restarts=1, agents=200))
    assert [row.value for row in measured[:2]] == [0, 0]
    assert measured[2].what == "one update on PostgreSQL, 200 agents beside 100"


def test_whole_processes_are_measured_beside_others() -> None:
    measured = list(startup_rows(rounds=1))
    assert [row.what.split(" beside ")[0] for row in measured] == list(CALLS)
    assert all(row.value > 0 for row in measured)


def test_secrets_are_counted_by_scanning_files() -> None:
    recall, fooled, clean = rows(rounds=1, every=200)
    assert recall.reached, recall.detail
    assert fooled.value == 0, fooled.detail
    assert clean.what.startswith("files of installed packages")


def test_snapshots_are_measured_beside_git() -> None:
    first, later = snapshot_rows(files=150, firsts=1, nexts=1)
    assert first.what == "first snapshot of 150 files beside `git add -A`"
    assert later.what == "next snapshot of 150 files beside `git status`"
    assert "in CPU time" in later.detail


def test_a_hook_is_measured_beside_python_alone() -> None:
    row, of_git = hook_rows(rounds=1)
    assert "commit" in of_git.what
    assert row.target == "at most 1.8 ×"
    assert row.value > 0


def test_the_status_of_many_agents_is_measured_beside_that_of_few() -> None:
    (row,) = status_rows(many=20, few=2, rounds=1)
    assert row.what == "`guard status`, 20 active agents beside 2"
    assert row.value > 0


@pytest.fixture
def with_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a person who runs the tests of guard."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")


@pytest.mark.usefixtures("with_plugins")
def test_a_series_is_played_in_full_length_and_a_failed_one_is_named(tmp_path: Path) -> None:
    lines = (
        "import pytest\nfrom tests.support.series import times\npytestmark = pytest.mark.series\n"
    )
    good, bad = "def test_full(): assert times(1, full=7) == 7\n", "def test_bad(): assert 0\n"
    (tmp_path / "test_good.py").write_text(lines + good)
    (tmp_path / "test_bad.py").write_text(lines + good + bad)
    found = {row.what.split()[2]: row for row in kills_rows([str(tmp_path)])}
    assert {Path(name).name: row.value for name, row in found.items()} == {
        "test_good.py": 0,
        "test_bad.py": 1,
    }
    assert [row.detail.partition("; ")[2] for row in found.values() if row.value] == [
        "failed: test_bad"
    ]


@pytest.mark.usefixtures("with_plugins")
def test_without_a_series_there_is_no_figure(tmp_path: Path) -> None:
    (tmp_path / "test_none.py").write_text("def test_none(): pass\n")
    with pytest.raises(RuntimeError, match="played no series"):
        list(kills_rows([str(tmp_path)]))


def test_an_unknown_name_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nonsense"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "growth" in done.stderr


def test_a_figure_that_is_not_reached_says_so() -> None:
    text = table([at_least("a", 0.8, 0.5, ""), at_most("b", 2, 1.5, "")])
    assert "| a | at least 0.8 × | 0.50 × | NO |" in text
    assert "| b | at most 2 × | 1.50 × | yes |" in text


def test_the_coordinator_is_measured_beside_json() -> None:
    folded, ticked = coordinator_rows(events=300, tasks=200, rounds=1)
    assert folded.what == "300 events of the coordinator beside json.loads"
    assert folded.value > 0
    assert ticked.value > 0


def test_the_sets_of_proof_are_large_and_reach_every_runner() -> None:
    assert len(TAMPERED) >= 150
    assert len(HONEST) >= 80
    for cases in (TAMPERED, HONEST):
        runners = {case.project.runner for case in cases.values()}
        assert runners == {"pytest", "unittest", "node"}
        assert all(name.startswith(f"{case.project.runner}: ") for name, case in cases.items())


def test_a_case_that_is_judged_wrong_is_named() -> None:
    wrong = Outcome("pytest: a way", "proven", "green", "", counts=True, exits=True)
    right = Outcome("node: a change", "proven", "green", "", counts=True, exits=False)
    text = matrix([wrong], [right])
    assert "| broken | 1 | 0 | 0 | 0 | 1 | 1 |" in text
    assert "| honest | 1 | 0 | 0 | 0 | 1 | 0 |" in text


def test_a_share_has_the_interval_of_wilson() -> None:
    low, high = wilson(29, 30)
    assert (round(low, 4), round(high, 4)) == (0.8333, 0.9941)
    assert wilson(0, 0) == (0.0, 1.0)
    assert share(0, 0) == "-"


def test_a_score_counts_what_was_true_and_what_was_said() -> None:
    score = Score.of("a way", [(True, True), (True, False), (False, True), (False, False)])
    assert (score.right, score.wrong, score.missed, score.passed) == (1, 1, 1, 1)
    assert "| a way | 1 | 1 | 1 | 1 | 50 % (9.5 to 90.5) | 50 % (9.5 to 90.5) |  |" in truth_table(
        [score]
    )


def test_the_set_of_last_messages_has_sixty_that_no_other_set_has() -> None:
    assert (len(ASKS), len(GOES_ON)) == (30, 30)
    known = {*closing_messages.ASKS, *closing_messages.GOES_ON}
    assert known.isdisjoint({*ASKS, *GOES_ON})


def test_a_peer_that_needs_another_python_says_so() -> None:
    with pytest.raises(NotInstalled, match=r"^needs Python 3.99, which is not here$"):
        install(Peer("no-such-package", "1.0", (3, 99)))


def test_a_part_of_the_results_is_replaced_and_the_others_stay() -> None:
    before = "# Results\n\nWhat they are.\n\n## hook\n\nold\n\n## gate\n\nkept\n"
    after = (
        "# Results\n\nWhat they are.\n\n## startup\n\nfirst\n\n## hook\n\nnew\n\n## gate\n\nkept\n"
    )
    assert with_part(with_part(before, "hook", "new\n"), "startup", "first\n") == after
