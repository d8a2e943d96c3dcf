"""`pre-commit`: check guard's own files and search for secrets, as they would be committed, not as they are in the work tree.

Most commits have none of guard's files. Git is asked for the staged files in the hook's own environment, because a commit
with `-a` or of single paths has an index of its own.
"""

import os
import sys

from guard.hooks.git.note import note_passed_checks
from guard.hooks.git.secrets import list_staged, refuse_secrets
from guard.hooks.git.work_tree import ask_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMED = (b"guard.toml", b"pyproject.toml", b"AGENT_REGISTRY.json", b"GLOBAL_REGISTRY.json")
"""Files that are guard's by their name; other documents name their schema."""
_MAY_BE = (b".json", b".jsonl")
_MOST_FILES = 2000
_BYPASS = "skip it once: git commit --no-verify, or GUARD_SKIP=pre-commit"


def check_staged(environ: "Mapping[str, str]") -> int:
    """Return 1, which refuses the commit, if a staged file of guard's does not fit its schema, or an agent commits a secret."""
    staged = list_staged(environ)
    if staged is None:
        return 0
    names = [file.path for file in staged if not file.is_gone and _may_be_guards(file.path)]
    names.sort(key=lambda name: not _is_named(name))
    findings = _findings(environ, names[:_MOST_FILES]) if names else []
    if len(names) > _MOST_FILES:
        left = f"{len(names) - _MOST_FILES} of {len(names)} staged JSON files were not checked"
        sys.stderr.write(f"guard: {left}; check them with: guard validate FILE\n")
    for line in findings:
        sys.stderr.write(f"guard: {line}\n")
    if findings:
        sys.stderr.write(f"guard: commit refused; {_BYPASS}\n")
        return 1
    if refuse_secrets(environ, staged):
        return 1
    note_passed_checks(environ)
    return 0


def _may_be_guards(name: bytes) -> bool:
    return _is_named(name) or name.endswith(_MAY_BE)


def _is_named(name: bytes) -> bool:
    return name.rpartition(b"/")[2] in _NAMED


def _findings(environ: "Mapping[str, str]", names: list[bytes]) -> list[str]:
    data = {name: _content(environ, name) for name in names}
    ours = {
        name: text for name, text in data.items() if text is not None and _is_guards(name, text)
    }
    if not ours:
        return []
    from guard.core.base.text import escape
    from guard.schemas.validate import problems

    return [
        escape(f"{os.fsdecode(name)}: {f'{place} ' if place else ''}{problem}")
        for name, text in ours.items()
        for place, problem in problems(os.fsdecode(name), text)
    ]


def _content(environ: "Mapping[str, str]", name: bytes) -> bytes | None:
    return ask_git(environ, "cat-file", "blob", f":0:{os.fsdecode(name)}")


def _is_guards(name: bytes, text: bytes) -> bool:
    if _is_named(name):
        return True
    head = text[:4096].replace(b" ", b"")
    return b'"schema":"guard/' in head or (name.endswith(b".jsonl") and head.startswith(b'{"v":'))
