"""Secrets are taken out of what is shown: whole keys, and those that a diff spreads over lines."""

import pytest

from guard.core.rescue.redact import redact, redact_document, redact_patch
from tests.support.nights import KEY, TOKEN

LINES = KEY.splitlines()


def test_of_a_key_nothing_is_left() -> None:
    assert redact(f"a\n{KEY}\nb") == "a\n[redacted]\nb"


def test_of_a_key_without_an_end_all_that_follows_goes() -> None:
    assert redact("a\n" + "\n".join(LINES[:-1])) == "a\n[redacted]"


@pytest.mark.parametrize("sign", ["+", "-", " "])
def test_a_key_in_a_diff_goes_line_by_line(sign: str) -> None:
    patch = "".join(f"{sign}{line}\n" for line in ("def f():", *LINES, "    return 1"))
    shown = redact_patch(f"@@ -1 +1 @@\n{patch}")
    assert not [line for line in LINES if line in shown]
    assert shown.startswith(f"@@ -1 +1 @@\n{sign}def f():\n{sign}[redacted]\n")
    assert shown.endswith(f"{sign}    return 1\n")


def test_a_key_that_replaces_another_goes_with_it() -> None:
    old = [line.replace("MII", "XII") for line in LINES]
    patch = "".join(f"-{a}\n+{b}\n" for a, b in zip(old, LINES, strict=True))
    shown = redact_patch(patch)
    assert not [line for line in (*LINES[1:-1], *old[1:-1]) if line in shown]


def test_a_token_in_a_diff_goes_and_the_rest_of_its_line_stays() -> None:
    assert redact_patch(f" a\n+k = '{TOKEN}'\n") == " a\n+k = '[redacted]'\n"


def test_a_document_says_the_same_things_again() -> None:
    found = redact_document({"a": [TOKEN, TOKEN], "b": {"c": TOKEN, "d": 1}}, ())
    assert found == {"a": ["[redacted]"] * 2, "b": {"c": "[redacted]", "d": 1}}
