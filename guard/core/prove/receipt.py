"""The receipt of a proof: an in-toto Statement about a tree, and whether a tree is the one that it is about."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from guard.core.base.fields import Line, Oid, Report, first_problem
from guard.core.base.text import escape, fit_line
from guard.core.prove.proofs import check_digest
from guard.core.prove.report import Proof
from guard.core.prove.settings import ProveCheck
from guard.core.prove.summary import ProofResult

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
MOST_BYTES = 4 * 1024 * 1024
_RESULTS: dict[ProofResult, str] = {"proven": "PASSED", "review": "WARNED"}
_Short = Annotated[str, StringConstraints(max_length=1024)]


def make_receipt(proof: Proof) -> dict[str, Any]:
    """Return the Statement: its subjects are the commit and its tree, its predicate is a test result with the whole proof."""
    checks = [
        ProveCheck(name=each.name, command=each.command, kind=each.kind)
        for each in proof.checks
        if each.result is not None
    ]
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": "commit", "digest": {"gitCommit": proof.head}},
            {"name": "tree", "digest": {"gitTree": proof.head_tree}},
        ],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": _RESULTS.get(proof.result, "FAILED"),
            "configuration": [
                {"name": check.name, "digest": {"sha256": check_digest(check)}} for check in checks
            ],
            "failedTests": list(dict.fromkeys((*proof.new_failures, *proof.weakened))),
            "warnedTests": list(proof.rewritten),
            "guard": proof.model_dump(mode="json"),
        },
    }


class _Loose(BaseModel):
    # By in-toto's rules a reader ignores the fields that it does not know.
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _Digest(_Loose):
    git_tree: Oid | None = Field(None, alias="gitTree")
    git_commit: Oid | None = Field(None, alias="gitCommit")


class _Subject(_Loose):
    digest: _Digest


class _ProofPart(_Loose):
    result: ProofResult
    reason: _Short
    head: Oid
    head_tree: Oid


class _Predicate(_Loose):
    result: Literal["PASSED", "WARNED", "FAILED"]
    guard: _ProofPart


class Receipt(_Loose):
    """What guard reads of a receipt."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    predicate_type: Literal["https://in-toto.io/attestation/test-result/v0.1"] = Field(
        alias="predicateType"
    )
    subject: Annotated[tuple[_Subject, ...], Field(min_length=1, max_length=20)]
    predicate: _Predicate


def parse_receipt(data: bytes) -> Receipt:
    """Parse a receipt; ValueError says what is wrong with it, without its words."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES:,} bytes")
    try:
        receipt = Receipt.model_validate_json(data)
    except ValidationError as error:
        raise ValueError(fit_line(escape(first_problem(error)))) from None
    proof = receipt.predicate.guard
    trees = {each.digest.git_tree for each in receipt.subject} - {None}
    commits = {each.digest.git_commit for each in receipt.subject} - {None}
    if trees != {proof.head_tree} or not commits <= {proof.head}:
        raise ValueError("its subjects are not what its proof is about")
    if receipt.predicate.result != _RESULTS.get(proof.result, "FAILED"):
        raise ValueError("its result is not the result of its proof")
    return receipt


class ReceiptReport(Report):
    """What `guard prove --check-receipt` prints."""

    schema_: Literal["guard/receipt-check/1"] = Field("guard/receipt-check/1", alias="schema")
    holds: bool
    """Whether the receipt is about the tree that is there, and says proven or review."""
    reason: Literal["holds", "another_tree", "uncommitted", "not_proven"]
    result: ProofResult
    head: Oid
    tree: Oid
    receipt_head: Oid
    receipt_tree: Oid
    detail: Line


def weigh_receipt(receipt: Receipt, head: str, tree: str, uncommitted: int) -> ReceiptReport:
    """Tell whether the receipt holds for a commit's tree, and for the files that lie there."""
    proof = receipt.predicate.guard
    reason: Literal["holds", "another_tree", "uncommitted", "not_proven"] = "holds"
    said = f"the tree that is there is {proof.result}: {escape(proof.reason)}"
    if proof.head_tree != tree:
        reason = "another_tree"
        said = f"the receipt is about the tree {proof.head_tree[:12]}, and HEAD has {tree[:12]}"
    elif proof.result not in _RESULTS:
        reason, said = "not_proven", f"the receipt says {proof.result}: {escape(proof.reason)}"
    elif uncommitted:
        files = "1 file differs" if uncommitted == 1 else f"{uncommitted:,} files differ"
        reason, said = "uncommitted", f"{files} from HEAD, and the receipt is about HEAD"
    return ReceiptReport(
        holds=reason == "holds",
        reason=reason,
        result=proof.result,
        head=head,
        tree=tree,
        receipt_head=proof.head,
        receipt_tree=proof.head_tree,
        detail=fit_line(said),
    )
