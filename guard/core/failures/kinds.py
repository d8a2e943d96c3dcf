"""The type of failure that a report tells of: by the words that compilers, checkers and test runners use."""

import re
from collections.abc import Sequence

MOST_CHARACTERS = 64 * 1024
OTHER = "other"


def any_of(*patterns: str) -> re.Pattern[str]:
    """Whichever of the patterns comes first, in any case; `^` is the beginning of a line."""
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(joined, re.IGNORECASE | re.MULTILINE)


def end_of(details: str) -> str:
    """What is read of a report: its end, where the tools sum up."""
    return details[-MOST_CHARACTERS:]


_KINDS: Sequence[tuple[str, re.Pattern[str]]] = (
    (
        "timeout",
        any_of(
            r"\btimed out\b",
            r"\btime-?out(?: of| after|:| \(|Error)",
            r"\bETIMEDOUT\b",
            r"deadline exceeded",
            r"panic: test timed out",
            r"exceeded timeout of",
        ),
    ),
    (
        "environment_disagreement",
        any_of(
            r"environments? (?:disagree|differ)",
            r"(?:passes|works|passed|worked) (?:locally|on (?:my|one|linux|macos|windows))",
            r"\b(?:fails|failed) (?:only )?(?:in CI|on (?:linux|macos|windows))",
            r"path separators?",
            r"case[- ](?:in)?sensitiv(?:e|ity)",
            r"differs from .{1,200} only in casing",
        ),
    ),
    (
        "missing_dependency",
        any_of(
            r"ModuleNotFoundError",
            r"No module named",
            r"Cannot find module",
            r"Can't resolve '",
            r"can't find crate",
            r"no required module provides",
            r"is not in (?:GOROOT|std)\b",
            r": (?:command )?not found\b",
            r"could not find `[^`\n]{1,100}` in registry",
        ),
    ),
    (
        "type_errors",
        any_of(
            r"\.pyi?:\d{1,9}(?::\d{1,9})?: error: .{0,400}\[[a-z-]{1,60}\]",
            r"\.pyi?:\d{1,9}:\d{1,9} - error",
            r"\berror TS2\d\d\d\b",
            r"\berror TS70\d\d\b",
            r"error\[E0308\]",
            r"\b(?:mypy|pyright|pyre|tsc)\b.{0,80}\b(?:errors?|failed|fails)\b",
            r"\btype errors?\b",
            r"\bmismatched types\b",
            r"cannot use .{1,200} as .{1,200} value",
            r"Found \d{1,9} errors? in \d{1,9} files?",
            r"type annotation",
            r"wrong return type",
        ),
    ),
    (
        "lint_errors",
        any_of(
            r"\b(?:ruff|flake8|pylint|eslint|clippy|golangci-lint|prettier|black|gofmt)\b.{0,80}"
            r"\b(?:errors?|failed|fails|warnings?|problems?|found)\b",
            r"^\S{1,300}:\d{1,9}:\d{1,9}: [A-Z]{1,4}\d{3,4} ",
            r"\d{1,9} problems? \(\d{1,9} errors?",
            r"would reformat",
            r"\blint(?:er|ing)? errors?\b",
            r"clippy::",
        ),
    ),
    (
        "test_failures",
        any_of(
            r"^FAILED ",
            r"^E\s{2,}",
            r"\b\d{1,9} (?:tests? )?fail(?:ed|ing|ures?)\b(?<!\b0 failed)",
            r"--- FAIL:",
            r"^FAIL\b",
            r"test result: FAILED",
            r"AssertionError",
            r"assertion .{0,80}failed",
            r"\btests? (?:failed|fails|failures?|are failing)\b",
            r"fixture .{1,120} not found",
            r"expect\(.{0,200}\)\.",
        ),
    ),
    (
        "build_errors",
        any_of(
            r"error: could not compile",
            r"^error(?:\[E\d{4}\])?: ",
            r"\bbuild (?:failed|error)",
            r"\bcompil(?:ation|er) (?:failed|error)",
            r"\berror TS\d{4}\b",
            r"\.go:\d{1,9}:\d{1,9}: ",
            r"SyntaxError",
            r"\bfatal error: ",
            r"undefined reference to",
            r"npm ERR!",
            r"^make: \*\*\* ",
        ),
    ),
)
KINDS = (*(kind for kind, _ in _KINDS), OTHER)


def kind_of(details: str) -> str:
    """The type of the failure, one of KINDS."""
    text = end_of(details)
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), OTHER)
