"""Find what is already known of a commit or a tree, from proofs that were recorded."""

from collections.abc import Iterator

from guard.core.prove.proofs import ProofEntry, Proofs, check_digest
from guard.core.prove.settings import ProveSettings


def proof_of_tree(proofs: Proofs | None, tree: str, settings: ProveSettings) -> ProofEntry | None:
    known = _users_proofs(proofs, settings)
    return next((proof for proof in known if proof.head_tree == tree), None)


def proof_of_commit(
    proofs: Proofs | None, commit: str, settings: ProveSettings
) -> ProofEntry | None:
    known = _users_proofs(proofs, settings)
    return next((proof for proof in known if proof.head == commit), None)


def _users_proofs(proofs: Proofs | None, settings: ProveSettings) -> Iterator[ProofEntry]:
    """Yield the proofs by the user's checks, the newest first; all of them if the user names none.

    What a check of an iteration ran is always the user's: an option may have named it.
    """
    wanted = {check_digest(check) for check in settings.checks_at("end")}
    for proof in reversed(proofs.proofs if proofs is not None else ()):
        if not wanted or proof.run is not None or wanted & {one.command for one in proof.checks}:
            yield proof
