"""Lend the terminal that guard was started on to an agent that wants to read keys."""

import os
import signal
from contextlib import suppress


class Terminal:
    """Which process group reads the terminal."""

    def __init__(self) -> None:
        self.lent = False

    @property
    def is_there(self) -> bool:
        return os.isatty(0)

    def lend_to_reader(self, pid: int) -> bool:
        """Lend it to a child that read from the background and was stopped for it; return whether it was lent just now."""
        if not self.is_there or not hasattr(os, "waitid"):
            return False
        with suppress(ChildProcessError):
            news = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
            if news is not None and news.si_status in (signal.SIGTTIN, signal.SIGTTOU):
                _give_to(pid)
                self.lent = True
                return True
        return False

    def take_back(self) -> None:
        if self.lent:
            _give_to(os.getpgrp())


def _give_to(group: int) -> None:
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with suppress(OSError):
        os.tcsetpgrp(0, group)
    signal.signal(signal.SIGTTOU, before)
