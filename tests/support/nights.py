"""A night of real iterations: each session of the agent prints what was written down for it, and does it."""

from pathlib import Path
from typing import Any

from tests.streams import init, jsonl, refused, result, uses
from tests.support import Result, commit, run, write
from tests.support.sessions import QUICK

TOKEN = "ghp_" + "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW1xY2"
HOSTILE = "<script>alert(1)</script> **x** [l](javascript:1) $(touch pwned) `id` <img src=x onerror=alert(1)>"
PROOF = "test ! -e broken"
FILE = "<img src=x onerror=alert(2)>.py"
KEY = "\n".join(
    [
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        *(
            f"MIIEpAIBAAKCAQEA{number:02}qZ7xK3vP9sLw4Tn8RbYc2Hd6Jf1Mg5Ua0Eo"
            for number in range(12)
        ),
        "-----END RSA " + "PRIVATE KEY-----",
    ]
)


def spent(cost: float, model: str = "some-model") -> dict[str, Any]:
    """The usage that a result tells of."""
    used = {
        "inputTokens": 1000,
        "outputTokens": 100,
        "cacheReadInputTokens": 5000,
        "costUSD": cost,
    }
    return {"modelUsage": {model: used}, "total_cost_usd": cost}


def done(cost: float, text: str = "Done.") -> bytes:
    return jsonl(init(apiKeySource="env"), result(text, **spent(cost)))


class NightStory:
    """A repository, and an agent called `claude` that plays one session after the other."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self._sessions = 0
        commit(root, "first.txt")
        commit(root, "tests/test_old.py", "def test_old(): pass\n")
        script = (
            '#!/bin/sh\nd="$(dirname "$0")"\n'
            'n=$(cat "$d/count" 2>/dev/null || echo 0); echo $((n + 1)) > "$d/count"\n'
            'cat "$d/$n.jsonl"\n. "$d/$n.sh"\n'
        )
        self.agent = write(folder / "claude", script)
        self.agent.chmod(0o755)

    def session(self, stream: bytes, does: str = "") -> None:
        """Write down what the agent's next session prints and does."""
        write(self.folder / f"{self._sessions}.jsonl", stream)
        write(self.folder / f"{self._sessions}.sh", f"{does}\n")
        self._sessions += 1

    def loop(self, count: int, *words: str) -> Result:
        return run(
            "loop", "--max-iterations", str(count), "--no-probe", *QUICK, *words, "--", self.agent
        )

    def run(self, *words: str) -> Result:
        return run("run", "--no-probe", *QUICK, *words, "--", self.agent)


def work(name: str, subject: str, more: str = "") -> str:
    """A session's shell: a new file, committed."""
    quoted = subject.replace("'", "'\\''")
    return f"{more}\necho {name} >> '{name}'\ngit add -A\ngit commit -q -m '{quoted}'"


def _leak() -> str:
    """A session's shell: a file with a hostile name, and with secrets in it."""
    text = f"k = '{TOKEN}'\nkey = '{KEY}'\n</pre>{HOSTILE}"
    return f"echo t > tests/test_one.py\ncat > '{FILE}' <<'EOF'\n{text}\nEOF"


def play_night(root: Path, folder: Path) -> NightStory:
    """Play all that happens in a night: work, a refuted commit and its repair, a rescue, a hang, a limit and a question."""
    night = NightStory(root, folder)
    night.session(done(0.5), work("one.py", "feat: add one", _leak()))
    night.session(
        done(0.25),
        work("broken", f"feat: break it with {TOKEN} {HOSTILE}", "git rm -q tests/test_old.py"),
    )
    night.session(done(0.125), "git rm -q broken; git commit -q -m 'fix: repair it'")
    night.session(done(1.0), f"echo left > left.py; echo 'k = \"{TOKEN}\"' > keys.py")
    assert night.loop(4, "--prove", PROOF).out
    night.session(jsonl(init(), result("I think about it.")))
    assert night.run("--no-rescue").out
    night.session(jsonl(init(), refused(), result("", is_error=True, api_error_status=429)))
    night.run()
    ask = uses(
        "AskUserQuestion", arguments={"questions": [{"question": f"Which of {TOKEN}? {HOSTILE}"}]}
    )
    night.session(jsonl(init(), ask, result("I wait.", **spent(0.0625))))
    assert night.run().code == 14
    return night
