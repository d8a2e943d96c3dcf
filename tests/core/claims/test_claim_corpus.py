"""The labelled claims: false ones about files and tests are always found, and honest ones believed."""

from collections import Counter

import pytest

from benchmarks.claim_corpus import LABELS, PARTS, claims
from benchmarks.claims import Judged, judged
from guard.core.claims.settings import ClaimsSettings
from guard.core.claims.validate import validate


@pytest.fixture(scope="module", params=PARTS)
def result(request: pytest.FixtureRequest) -> Judged:
    return judged(str(request.param))


@pytest.mark.parametrize("label", ["files", "tests"])
def test_a_false_claim_is_always_found(label: str, result: Judged) -> None:
    assert result.share(label) == 1


@pytest.mark.parametrize("part", PARTS)
def test_it_is_found_for_what_is_false_in_it(part: str) -> None:
    settings = ClaimsSettings()
    for label, evidence in claims(part):
        said = validate(evidence, settings).evidence_summary.message_validation
        if label == "tests":
            assert said.claimed_tests, evidence.message
        if label == "files":
            told = [line.why for line in said.score if line.why.startswith(("Claims", "Names"))]
            assert told, evidence.message


def test_most_others_are_found_and_honest_ones_are_believed(result: Judged) -> None:
    assert result.recall >= 0.95
    assert result.precision >= 0.98


def test_the_set_is_large_and_varied() -> None:
    both = [claim for part in PARTS for claim in claims(part)]
    assert len(both) >= 240
    assert min(Counter(claim.label for claim in both).values()) >= 10
    assert {claim.label for claim in both} == set(LABELS)
    assert len({claim.evidence.agent_type for claim in both}) >= 10
    assert len({claim.evidence.message for claim in both}) == len(both)


def test_the_figures_are_what_their_names_say() -> None:
    made = Judged(Counter(honest=10, files=8, thin=2), Counter(honest=1, files=3, thin=0))
    assert (made.precision, made.recall, made.share("files")) == (0.75, 0.3, 0.375)
