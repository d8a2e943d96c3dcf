"""The text of a verdict, as a person reads it."""

import pytest

from guard.check.verdict_text import verdict_text
from tests.support.steps import checked, proof


@pytest.mark.parametrize("result", ["refuted", "review", "unverifiable"])
def test_it_names_the_command_that_shows_a_proof_again(result: str) -> None:
    report = checked(proof=proof("pytest -q", result=result))
    lines = verdict_text(report).splitlines()
    shown = f"guard prove --baseline {'a' * 12} --head {'a' * 12} --no-cache --command 'pytest -q'"
    assert f"  show it again: {shown}" in lines


def test_proven_work_needs_no_command() -> None:
    assert "show it again" not in verdict_text(checked(proof=proof(result="proven")))


def test_new_work_that_no_command_proved_is_told_how_to_name_one() -> None:
    found = verdict_text(checked(proof=None, new_commits=1, assurance="unproven"))
    assert ", not proven" in found.splitlines()[0]
    assert found.count("prove.command") == 1
    assert "prove.command" not in verdict_text(checked(proof=proof(result="proven"), new_commits=1))
