"""The cause that a report of a failure tells of: by the words that compilers, checkers and test runners use."""

import re
from collections.abc import Sequence

from guard.core.failures.kinds import any_of, end_of

_MOST_CAUSE = 160


_CAUSES: Sequence[tuple[re.Pattern[str], str]] = (
    (
        any_of(
            r"No module named ['\"]?([\w.-]{1,100})",
            r"Cannot find module ['\"]([^'\"\n]{1,100})",
            r"Can't resolve ['\"]([^'\"\n]{1,100})",
            r"Could not find a declaration file for module ['\"]([^'\"\n]{1,100})",
            r"unresolved import `([^`\n]{1,100})",
            r"can't find crate for `([^`\n]{1,100})",
            r"no required module provides package ([^\s;]{1,100})",
            r"package ([^\s;]{1,100}) is not in (?:GOROOT|std)",
        ),
        "Missing module: {}",
    ),
    (any_of(r"(?<!\S)([\w./-]{1,60}): (?:command )?not found\b"), "Missing command: {}"),
    (any_of(r"fixture ['\"]([\w-]{1,100})['\"] not found"), "Missing fixture: {}"),
    (any_of(r"missing (?:a )?fixture", r"fixture \S{1,60} (?:is )?missing"), "Missing fixture"),
    (
        any_of(
            r"missing (?:a |an )?(?:return |parameter )?(?:type|type annotation)s?\b(?! argument)",
            r"need type annotation",
            r"\[no-untyped-def\]",
            r"implicitly has an? 'any' type",
            r"\bTS70\d\d\b",
            r"type annotations needed",
        ),
        "Missing type annotation",
    ),
    (
        any_of(
            r"incompatible return value type",
            r"assignable to return type",
            r"wrong return type",
            r"\[return-value\]",
            r"reportReturnType",
            r"in return statement",
        ),
        "Wrong return type",
    ),
    (
        any_of(
            r"incompatible types? in assignment",
            r"is not assignable to (?:parameter|argument|type)",
            r"has incompatible type",
            r"mismatched types",
            r"cannot use .{1,200} as .{1,200} value",
        ),
        "Incompatible types",
    ),
    (
        any_of(
            r"has no attribute ['\"]\w",
            r"does not exist on type",
            r"no (?:method|field) (?:named )?`",
            r"undefined \(type .{1,100} has no field or method",
        ),
        "Missing attribute",
    ),
    (
        any_of(
            r"is possibly ['\"]?(?:null|undefined)",
            r"Item \"None\" of",
            r"'NoneType' object",
            r"nil pointer dereference",
            r"Cannot read propert(?:y|ies) of (?:null|undefined)",
        ),
        "Value missing (None, null or nil)",
    ),
    (
        any_of(
            r"case[- ](?:in)?sensitiv(?:e|ity)",
            r"differs from .{1,200} only in casing",
            r"case mismatch",
        ),
        "Case sensitivity",
    ),
    (
        any_of(
            r"path separators?",
            r"\bbackslash(?:es)?\b.{0,80}\bpath",
            r"\b[A-Za-z]:\\\\?\w.{0,200}(?:!=|==|expected|to equal).{0,200}/\w",
            r"/\w.{0,200}(?:!=|==|expected|to equal).{0,200}\b[A-Za-z]:\\",
        ),
        "Path separator",
    ),
    (any_of(r"\bCRLF\b", r"line endings?"), "Line endings"),
    (any_of(r"time ?zone", r"\btzdata\b"), "Time zone"),
    (any_of(r"UnicodeDecodeError", r"codec can't (?:de|en)code", r"\blocale\b"), "Text encoding"),
    (any_of(r"permission denied", r"\bEACCES\b", r"operation not permitted"), "Permission denied"),
    (any_of(r"address already in use", r"\bEADDRINUSE\b"), "Port in use"),
    (any_of(r"no space left on device", r"\bENOSPC\b"), "No space left"),
    (
        any_of(r"connection (?:refused|reset)", r"\bECONN(?:REFUSED|RESET)\b", r"\bENOTFOUND\b"),
        "Network not available",
    ),
    (any_of(r"out of memory", r"\bMemoryError\b", r"\bOOM\b", r"heap limit"), "Out of memory"),
    (
        any_of(
            r"timed? ?-?out\b",
            r"\bETIMEDOUT\b",
            r"deadline exceeded",
            r"exceeded timeout of",
            r"TimeoutError",
        ),
        "Time limit reached",
    ),
    (
        any_of(r"SyntaxError", r"syntax error", r"expected one of `", r"\bTS1\d\d\d\b"),
        "Syntax error",
    ),
    (
        any_of(
            r"NameError: name ['\"](\w{1,100})",
            r"ReferenceError: (\w{1,100}) is not defined",
            r"cannot find (?:value|function|type|macro) `(\w{1,100})",
            r"Cannot find name '(\w{1,100})",
            r"undefined: (\w{1,100})",
        ),
        "Unknown name: {}",
    ),
    (any_of(r"No such file or directory", r"FileNotFoundError", r"\bENOENT\b"), "Missing file"),
    (any_of(r"unused (?:variable|import)", r"\bF401\b", r"declared and not used"), "Unused name"),
    (any_of(r"would reformat", r"not formatted", r"\bprettier/prettier\b"), "Not formatted"),
    (any_of(r"snapshots? .{0,40}(?:failed|obsolete|mismatch)"), "Snapshot out of date"),
    (
        any_of(
            r"AssertionError",
            r"assertion .{0,80}failed",
            r"^E\s+assert\b",
            r"expect\(.{0,200}\)\.",
            r"wrong assertion",
            r"assertion wrong",
            r"got .{1,200}[,;] want ",
        ),
        "Assertion wrong",
    ),
)


def cause_of(details: str) -> str | None:
    """The cause that a report of a failure names, in words that are the same for the same cause."""
    text = end_of(details)
    for pattern, cause in _CAUSES:
        found = pattern.search(text)
        if found:
            named = next((one for one in found.groups() if one), "")
            return cause.format(named.strip())[:_MOST_CAUSE]
    return None
