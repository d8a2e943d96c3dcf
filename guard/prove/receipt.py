"""Write the receipt of a proof, and check one against the tree that is there."""

import json
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.base.text import harmless_json
from guard.core.prove.receipt import (
    MOST_BYTES,
    ReceiptReport,
    make_receipt,
    parse_receipt,
    weigh_receipt,
)
from guard.core.prove.report import Proof
from guard.errors import StoreUnavailable, WrongUsage
from guard.git.dirty import read_dirty
from guard.git.refs import commit_of, tree_of
from guard.prove.work import reader_of
from guard.system.foreign_files import read_regular, write_anew


def refuse_unwritable(file: Path) -> None:
    """Raise before the checks run if the receipt could not be written after them."""
    if not file.absolute().parent.is_dir():
        raise WrongUsage(
            f"--receipt: {file.parent} is not a folder", "create the folder, or name another file"
        )


def write_receipt(proof: Proof, file: Path) -> None:
    text = harmless_json(json.dumps(make_receipt(proof), indent=2, ensure_ascii=False))
    try:
        write_anew(file, text.encode() + b"\n")
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write the receipt {file}: {error.strerror}",
            "name another file; the proof is recorded, and the next one takes little time",
        ) from None


def check_receipt(guard: Invocation, file: Path) -> ReceiptReport:
    """Tell whether the receipt holds for HEAD and for what lies in the work tree."""
    try:
        receipt = parse_receipt(read_regular(file, MOST_BYTES))
    except OSError as error:
        raise WrongUsage(f"cannot read {file}: {error.strerror}", "name a file") from None
    except ValueError as error:
        raise WrongUsage(
            f"{file} is no receipt of guard's: {error}",
            "`guard prove --receipt FILE` writes one",
        ) from None
    git = reader_of(guard)
    head = commit_of(git, "HEAD")
    root, own = guard.repository.root, file.resolve()
    changed = [each for each in read_dirty(git).files if (root / each.path).resolve() != own]
    return weigh_receipt(receipt, head, tree_of(git, head), len(changed))
