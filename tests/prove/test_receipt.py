"""The receipt of a proof is about one tree, and what is in the file is not trusted."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import git, run, write

GREEN = ("prove", "--command", "grep -q good code.txt")


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    write(repository / "code.txt", "good\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "good")
    return repository


def check(file: Path, code: int = 0) -> dict[str, Any]:
    found = run("prove", "--check-receipt", file, "--format", "json")
    assert found.code == code, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def test_a_receipt_holds_for_the_tree_that_it_is_about(project: Path) -> None:
    file = project / "receipt.json"
    assert run(*GREEN, "--receipt", file).code == 0
    statement = json.loads(file.read_text())
    head = git(project, "rev-parse", "HEAD").strip()
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0]["digest"] == {"gitCommit": head}
    assert statement["predicate"]["result"] == "PASSED"
    assert statement["predicate"]["guard"]["result"] == "proven"
    assert check(file)["reason"] == "holds"
    assert "holds: the tree that is there is proven" in run("prove", "--check-receipt", file).out
    git(project, "commit", "-q", "--amend", "-m", "other words, same tree")
    found = check(file)
    assert (found["holds"], found["head"] == found["receipt_head"]) == (True, False)
    write(project / "code.txt", "good, and not committed\n")
    assert check(file, code=1)["reason"] == "uncommitted"
    git(project, "commit", "-qam", "more")
    assert check(file, code=1)["reason"] == "another_tree"
    write(project / "code.txt", "bad\n")
    git(project, "commit", "-qam", "bad")
    assert run(*GREEN, "--receipt", file).code == 17
    assert json.loads(file.read_text())["predicate"]["result"] == "FAILED"
    assert check(file, code=1)["reason"] == "not_proven"


def test_what_is_no_receipt_is_refused(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "receipt.json"
    assert run(*GREEN, "--receipt", file).code == 0
    good = json.loads(file.read_text())

    def changed(*place: str | int, to: object) -> bytes:
        document = json.loads(json.dumps(good))
        part = document
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = to
        return json.dumps(document).encode()

    hostile = {
        "no JSON": b"\x1b[31m\x00",
        "too deep": b"[" * 100_000,
        "too large": b" " * (5 * 1024 * 1024),
        "another type": changed("_type", to="https://in-toto.io/Statement/v0.1\x1b[2J"),
        "another predicate": changed("predicateType", to="https://slsa.dev/provenance/v1"),
        "no subject": changed("subject", to=[]),
        "the subject of another tree": changed("subject", 1, "digest", "gitTree", to="a" * 40),
        "a tree that is no id": changed("predicate", "guard", "head_tree", to="../../etc"),
        "a result of no kind": changed("predicate", "guard", "result", to="fine"),
        "a better result than the proof's": changed("predicate", "guard", "result", to="refuted"),
    }
    for name, data in hostile.items():
        file.write_bytes(data)
        found = run("prove", "--check-receipt", file)
        assert (found.code, found.out) == (2, ""), name
        assert "is no receipt of guard's: " in found.err, name
        assert len(found.err) < 2000, name
        assert "\x1b" not in found.err, name
    file.unlink()
    os.mkfifo(file)
    assert "cannot read" in run("prove", "--check-receipt", file).err
    assert "cannot read" in run("prove", "--check-receipt", tmp_path / "none").err
    missing = run(*GREEN, "--receipt", tmp_path / "none" / "receipt.json")
    assert (missing.code, "is not a folder" in missing.err) == (2, True)
