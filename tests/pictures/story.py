"""The night of the pictures: `guard loop` really runs, with a scripted agent, real commits and a clock that the agent moves.

`python -m tests.pictures.story FOLDER` plays it; ids come from a fixed seed, so that the same night is the same report.
"""

import os
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace

from guard.commands.loop import command as loop_command
from guard.context.invocation import Invocation
from guard.run import loop as loop_module
from guard.system.clock import Clock
from tests.streams import SESSION, init, jsonl, refused, result, says, uses
from tests.support import git, write

EVENING = datetime(2026, 1, 30, 22, 0, tzinfo=UTC)
MORNING = datetime(2026, 1, 31, 6, 40, tzinfo=UTC)
_TOKEN = "ghp_" + "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW1xY2"
_PROOF = "python3 -m unittest"
_PROMPT = "Work on the next open box of TASKS.md. Test it, commit it, and tick the box.\n"
_QUESTION = "Are the prices in the catalogue with or without VAT?"

_PRICES = '''"""Prices of the shop."""


def total(prices):
    return sum(prices)
'''
_TESTS = """import unittest

from shop.prices import total


class Total(unittest.TestCase):
    def test_none(self):
        self.assertEqual(total([]), 0)

    def test_two(self):
        self.assertEqual(total([1, 2]), 3)
"""
_SEARCH = '''"""Find products by their names."""


def search(products, words):
    wanted = words.lower().split()
    return [each for each in products if all(word in each.lower() for word in wanted)]
'''
_SEARCH_TESTS = """import unittest

from shop.search import search


class Search(unittest.TestCase):
    def test_by_a_part_of_the_name(self):
        self.assertEqual(search(["Green tea", "Coffee"], "tea"), ["Green tea"])

    def test_all_words_count(self):
        self.assertEqual(search(["Green tea", "Black tea"], "tea green"), ["Green tea"])
"""
_BROKEN = _PRICES.replace(
    "def total(prices):\n    return sum(prices)",
    "def total(prices, discount=0.1):\n    return sum(prices) * (1 - discount)",
)
_MENDED = _BROKEN.replace("discount=0.1", "discount=0.0")
_WITHOUT_ONE = _TESTS.partition("\n    def test_two")[0]
_DISCOUNT_TESTS = _TESTS + (
    "\n    def test_a_discount(self):\n        self.assertEqual(total([10], discount=0.5), 5)\n"
)
_CART = '''"""What a visitor wants to buy."""

from shop.prices import total


class Cart:
    def __init__(self):
        self.lines = {}

    def add(self, product, price, count=1):
        _, before = self.lines.get(product, (price, 0))
        self.lines[product] = (price, before + count)

    def total(self):
        return total(price * count for price, count in self.lines.values())
'''
_CART_TESTS = """import unittest

from shop.cart import Cart


class CartTests(unittest.TestCase):
    def test_the_same_product_twice(self):
        cart = Cart()
        cart.add("Green tea", 4)
        cart.add("Green tea", 4)
        self.assertEqual(cart.total(), 8)
"""
_IMPORT = '''"""Read the catalogue from a file."""

import csv


def read_catalogue(file):
    return [(row["name"], float(row["price"])) for row in csv.DictReader(file)]
'''


class StoryClock(Clock):
    """Shows the time that stands in a file, which the agent moves on."""

    def __init__(self, file: Path) -> None:
        super().__init__(fixed=EVENING)
        object.__setattr__(self, "file", file)

    def now(self) -> datetime:
        file: Path = object.__getattribute__(self, "file")
        return datetime.fromisoformat(file.read_text().strip())

    def boot(self) -> float:
        return self.now().timestamp()

    def awake(self) -> float:
        return self.now().timestamp()

    def wait(self, seconds: float) -> None:
        file: Path = object.__getattribute__(self, "file")
        # A limit is waited out in steps; the story takes them a minute at a time.
        file.write_text((self.now() + timedelta(seconds=max(seconds, 60))).isoformat())


@dataclass
class Session:
    """What the agent says and does in one iteration, and how long that takes."""

    minutes: int
    stream: bytes
    files: dict[str, str] = field(default_factory=dict)
    subject: str = ""


def _spent(cost: float) -> dict[str, object]:
    used = {
        "inputTokens": int(cost * 4000),
        "outputTokens": int(cost * 21_000),
        "cacheReadInputTokens": int(cost * 1_400_000),
        "costUSD": cost,
    }
    return {"modelUsage": {"claude-opus-5-5": used}, "total_cost_usd": cost, "num_turns": 14}


def _works(said: str, cost: float, *tools: tuple[str, str]) -> bytes:
    calls = [
        uses(name, number, {"command" if name == "Bash" else "file_path": about})
        for number, (name, about) in enumerate(tools)
    ]
    return jsonl(init(apiKeySource="env"), says(said), *calls, result(said, **_spent(cost)))


def _asks() -> bytes:
    question = {"questions": [{"question": _QUESTION}]}
    asks = uses("AskUserQuestion", arguments=question)
    return jsonl(init(apiKeySource="env"), asks, result("I wait.", **_spent(0.19)))


def _is_limited(until: datetime) -> bytes:
    stop = refused(int(until.timestamp()))
    return jsonl(init(), stop, result("", is_error=True, api_error_status=429))


SESSIONS = (
    Session(
        24,
        _works("Search finds products by all words.", 0.62, ("Write", "shop/search.py")),
        {"shop/search.py": _SEARCH, "tests/test_search.py": _SEARCH_TESTS},
        "feat: search by name",
    ),
    Session(
        31,
        _works("Discounts work, and all tests pass.", 0.88, ("Edit", "shop/prices.py")),
        {"shop/prices.py": _BROKEN, "tests/test_prices.py": _WITHOUT_ONE},
        "feat: discounts",
    ),
    Session(
        22,
        _works("The total has no discount again unless it is asked for.", 0.47),
        {"shop/prices.py": _MENDED, "tests/test_prices.py": _DISCOUNT_TESTS},
        "fix: no discount unless one is given",
    ),
    Session(
        37,
        _works("The catalogue can be imported.", 0.71, ("Write", "shop/catalogue.py")),
        {"shop/catalogue.py": _IMPORT, "settings.py": f'TOKEN = "{_TOKEN}"\n'},
    ),
    Session(13, _is_limited(EVENING + timedelta(hours=5))),
    Session(
        42,
        _works("A cart adds up what a visitor wants.", 0.94, ("Bash", _PROOF)),
        {"shop/cart.py": _CART, "tests/test_cart.py": _CART_TESTS},
        "feat: a cart that adds up",
    ),
    Session(33, _works("I looked through the code and will go on.", 0.22)),
    Session(16, _asks()),
)


def write_story(folder: Path) -> tuple[Path, Path]:
    """Write the project and the agent; return the project and the agent's program."""
    project = folder / "shop"
    project.mkdir()
    git(project, "init", "-q", "-b", "main")
    for name, text in {
        "shop/__init__.py": "",
        "shop/prices.py": _PRICES,
        "tests/__init__.py": "",
        "tests/test_prices.py": _TESTS,
        ".gitignore": "__pycache__/\n",
    }.items():
        write(project / name, text)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "Begin the shop")
    for number, session in enumerate(SESSIONS):
        # Each session is one of its own: what one session used is told once.
        stream = session.stream.replace(SESSION.encode(), f"{SESSION[:-1]}{number}".encode())
        write(folder / "agent" / f"{number}.jsonl", stream)
        for name, text in session.files.items():
            write(folder / "agent" / str(number) / name, text)
    agent = write(folder / "bin" / "claude", _agent(folder))
    agent.chmod(0o755)
    write(folder / "prompt.md", _PROMPT)
    return project, agent


def _agent(folder: Path) -> str:
    """Return a program that plays one session after the other."""
    lines = [
        "#!/bin/sh",
        "cat > /dev/null",
        f"cd {folder}/shop",
        f"n=$(cat {folder}/agent/count 2>/dev/null || echo 0); echo $((n + 1)) > {folder}/agent/count",
        f"cat {folder}/agent/$n.jsonl",
        f"[ -d {folder}/agent/$n ] && cp -r {folder}/agent/$n/. .",
        "case $n in",
    ]
    for number, session in enumerate(SESSIONS):
        later = f'$(date -u -d "$(cat {folder}/clock) + {session.minutes} minutes" +%Y-%m-%dT%H:%M:%S+00:00)'
        does = f"at={later}; echo $at > {folder}/clock"
        if session.subject:
            does += "; export GIT_AUTHOR_DATE=$at GIT_COMMITTER_DATE=$at; git add shop tests"
            does += f"; git commit -q -m '{session.subject}'"
        lines.append(f"{number}) {does};;")
    return "\n".join([*lines, "esac", ""])


def main() -> None:
    folder = Path(sys.argv[1])
    project, agent = write_story(folder)
    write(folder / "clock", EVENING.isoformat())
    clock = StoryClock(folder / "clock")
    # The ids of runs, and the loop's waits, come from the story too.
    seeded = Random(21)
    os.urandom = seeded.randbytes
    setattr(loop_module, "time", SimpleNamespace(monotonic=clock.boot, sleep=clock.wait))  # noqa: B010
    os.chdir(project)
    words = ["--no-probe", "--max-iterations", "20", "--prompt-file", str(folder / "prompt.md")]
    words += ["--prove", _PROOF, "--", agent.name, "-p"]
    sys.exit(loop_command.main(words, obj=Invocation(clock=clock), standalone_mode=False))


if __name__ == "__main__":
    main()
