"""What a proof says in a few words, for the records and reports of other rooms."""

from typing import Literal

from guard.core.base.fields import Frozen, Line

ProofResult = Literal["proven", "refuted", "review", "unverifiable"]


class ProofSummary(Frozen):
    """What a proof says, without what it rests on."""

    result: ProofResult
    reason: Line
    detail: Line


Assurance = Literal["proven", "review", "unproven"]
"""How sure it is that complete work passes the project's own checks."""


def assurance_of(proof: ProofSummary | None) -> Assurance:
    if proof is None or proof.result not in ("proven", "review"):
        return "unproven"
    return "proven" if proof.result == "proven" else "review"
