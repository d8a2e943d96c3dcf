"""A program that reads a terminal as agents do: raw, with bracketed paste, and everything that it got in a file.

Started as `python -m tests.support.terminal_program FILE [SECONDS]`: it ends after that time, or when it reads `q` alone.
"""

import os
import select
import sys
import time
import tty
from pathlib import Path

BEGIN, END = b"\x1b[200~", b"\x1b[201~"


def main() -> None:
    file = Path(sys.argv[1])
    deadline = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 300)
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h")
    with open(file, "ab", buffering=0) as got:
        Path(f"{file}.ready").write_text(str(os.getpid()))
        while time.monotonic() < deadline:
            if select.select([0], [], [], 0.1)[0]:
                data = os.read(0, 65536)
                got.write(data)
                if data in (b"q", b""):
                    break
    os.write(1, b"\x1b[?2004l")


if __name__ == "__main__":
    main()
