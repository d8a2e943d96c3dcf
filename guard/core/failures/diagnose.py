"""Tell the kind and the cause of a failure from its report, by the words of compilers, checkers and test runners."""

import re

from guard.core.base.first_use import late_pattern

MOST_CHARACTERS = 64 * 1024
OTHER = "other"


def _any_of(*patterns: str) -> re.Pattern[str]:
    # In any case; `^` is the beginning of a line.
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return late_pattern(joined, re.IGNORECASE | re.MULTILINE)


def _tail(details: str) -> str:
    return details[-MOST_CHARACTERS:]  # The tools sum up at the end.


_KINDS = {
    "timeout": _any_of(
        r"\btimed out\b",
        r"\btime-?out(?: of| after|:| \(|Error)",
        r"\bETIMEDOUT\b",
        r"deadline exceeded",
        r"panic: test timed out",
        r"exceeded timeout of",
    ),
    "environment_disagreement": _any_of(
        r"environments? (?:disagree|differ)",
        r"(?:passes|works|passed|worked) (?:locally|on (?:my|one|linux|macos|windows))",
        r"\b(?:fails|failed) (?:only )?(?:in CI|on (?:linux|macos|windows))",
        r"path separators?",
        r"case[- ](?:in)?sensitiv(?:e|ity)",
        r"differs from .{1,200} only in casing",
    ),
    "missing_dependency": _any_of(
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
    "type_errors": _any_of(
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
    "lint_errors": _any_of(
        r"\b(?:ruff|flake8|pylint|eslint|clippy|golangci-lint|prettier|black|gofmt)\b.{0,80}"
        r"\b(?:errors?|failed|fails|warnings?|problems?|found)\b",
        r"^\S{1,300}:\d{1,9}:\d{1,9}: [A-Z]{1,4}\d{3,4} ",
        r"\d{1,9} problems? \(\d{1,9} errors?",
        r"would reformat",
        r"\blint(?:er|ing)? errors?\b",
        r"clippy::",
    ),
    "test_failures": _any_of(
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
    "build_errors": _any_of(
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
}
KINDS = (*_KINDS, OTHER)


def failure_kind(details: str) -> str:
    """Return the kind of the failure, one of KINDS."""
    text = _tail(details)
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), OTHER)


_MOST_CAUSE = 160
_CAUSES = {
    "Missing module: {}": _any_of(
        r"No module named ['\"]?([\w.-]{1,100})",
        r"Cannot find module ['\"]([^'\"\n]{1,100})",
        r"Can't resolve ['\"]([^'\"\n]{1,100})",
        r"Could not find a declaration file for module ['\"]([^'\"\n]{1,100})",
        r"unresolved import `([^`\n]{1,100})",
        r"can't find crate for `([^`\n]{1,100})",
        r"no required module provides package ([^\s;]{1,100})",
        r"package ([^\s;]{1,100}) is not in (?:GOROOT|std)",
    ),
    "Missing command: {}": _any_of(r"(?<!\S)([\w./-]{1,60}): (?:command )?not found\b"),
    "Missing fixture: {}": _any_of(r"fixture ['\"]([\w-]{1,100})['\"] not found"),
    "Missing fixture": _any_of(r"missing (?:a )?fixture", r"fixture \S{1,60} (?:is )?missing"),
    "Missing type annotation": _any_of(
        r"missing (?:a |an )?(?:return |parameter )?(?:type|type annotation)s?\b(?! argument)",
        r"need type annotation",
        r"\[no-untyped-def\]",
        r"implicitly has an? 'any' type",
        r"\bTS70\d\d\b",
        r"type annotations needed",
    ),
    "Wrong return type": _any_of(
        r"incompatible return value type",
        r"assignable to return type",
        r"wrong return type",
        r"\[return-value\]",
        r"reportReturnType",
        r"in return statement",
    ),
    "Incompatible types": _any_of(
        r"incompatible types? in assignment",
        r"is not assignable to (?:parameter|argument|type)",
        r"has incompatible type",
        r"mismatched types",
        r"cannot use .{1,200} as .{1,200} value",
    ),
    "Missing attribute": _any_of(
        r"has no attribute ['\"]\w",
        r"does not exist on type",
        r"no (?:method|field) (?:named )?`",
        r"undefined \(type .{1,100} has no field or method",
    ),
    "Value missing (None, null or nil)": _any_of(
        r"is possibly ['\"]?(?:null|undefined)",
        r"Item \"None\" of",
        r"'NoneType' object",
        r"nil pointer dereference",
        r"Cannot read propert(?:y|ies) of (?:null|undefined)",
    ),
    "Case sensitivity": _any_of(
        r"case[- ](?:in)?sensitiv(?:e|ity)",
        r"differs from .{1,200} only in casing",
        r"case mismatch",
    ),
    "Path separator": _any_of(
        r"path separators?",
        r"\bbackslash(?:es)?\b.{0,80}\bpath",
        r"\b[A-Za-z]:\\\\?\w.{0,200}(?:!=|==|expected|to equal).{0,200}/\w",
        r"/\w.{0,200}(?:!=|==|expected|to equal).{0,200}\b[A-Za-z]:\\",
    ),
    "Line endings": _any_of(r"\bCRLF\b", r"line endings?"),
    "Time zone": _any_of(r"time ?zone", r"\btzdata\b"),
    "Text encoding": _any_of(r"UnicodeDecodeError", r"codec can't (?:de|en)code", r"\blocale\b"),
    "Permission denied": _any_of(r"permission denied", r"\bEACCES\b", r"operation not permitted"),
    "Port in use": _any_of(r"address already in use", r"\bEADDRINUSE\b"),
    "No space left": _any_of(r"no space left on device", r"\bENOSPC\b"),
    "Network not available": _any_of(
        r"connection (?:refused|reset)", r"\bECONN(?:REFUSED|RESET)\b", r"\bENOTFOUND\b"
    ),
    "Out of memory": _any_of(r"out of memory", r"\bMemoryError\b", r"\bOOM\b", r"heap limit"),
    "Time limit reached": _any_of(
        r"timed? ?-?out\b",
        r"\bETIMEDOUT\b",
        r"deadline exceeded",
        r"exceeded timeout of",
        r"TimeoutError",
    ),
    "Syntax error": _any_of(
        r"SyntaxError", r"syntax error", r"expected one of `", r"\bTS1\d\d\d\b"
    ),
    "Unknown name: {}": _any_of(
        r"NameError: name ['\"](\w{1,100})",
        r"ReferenceError: (\w{1,100}) is not defined",
        r"cannot find (?:value|function|type|macro) `(\w{1,100})",
        r"Cannot find name '(\w{1,100})",
        r"undefined: (\w{1,100})",
    ),
    "Missing file": _any_of(r"No such file or directory", r"FileNotFoundError", r"\bENOENT\b"),
    "Unused name": _any_of(r"unused (?:variable|import)", r"\bF401\b", r"declared and not used"),
    "Not formatted": _any_of(r"would reformat", r"not formatted", r"\bprettier/prettier\b"),
    "Snapshot out of date": _any_of(r"snapshots? .{0,40}(?:failed|obsolete|mismatch)"),
    "Assertion wrong": _any_of(
        r"AssertionError",
        r"assertion .{0,80}failed",
        r"^E\s+assert\b",
        r"expect\(.{0,200}\)\.",
        r"wrong assertion",
        r"assertion wrong",
        r"got .{1,200}[,;] want ",
    ),
}


def failure_cause(details: str) -> str | None:
    """Return the cause that a report names, in the same words for the same cause; None if it names none."""
    text = _tail(details)
    for cause, pattern in _CAUSES.items():
        found = pattern.search(text)
        if found:
            named = next((group for group in found.groups() if group), "")
            return cause.format(named.strip())[:_MOST_CAUSE]
    return None
