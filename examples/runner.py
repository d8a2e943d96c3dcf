"""A runner in Python: iterations of an agent, with the limits of the service waited out and the breaker obeyed.

python runner.py 10 codex exec --json "Do the next open task in tasks.md."
"""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from guard import run
from guard.errors import BreakerOpen


def tasks_are_open(file: Path = Path("tasks.md")) -> bool:
    return file.exists() and "[ ]" in file.read_text()


def main(most: int, command: list[str]) -> int:
    for number in range(1, most + 1):
        try:
            report = run(command)
        except BreakerOpen as stop:
            print(f"stopped: {stop.message}")
            return 20
        print(f"{number}: {report.status}: {report.reason}, {report.new_commits} new commits")
        if report.complete and not tasks_are_open():
            return 0
        if report.status == "blocked":
            return 14
        if report.status == "limited" and report.retry_at is not None:
            time.sleep(max(0.0, (report.retry_at - datetime.now(UTC)).total_seconds()))
    return 12


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
