"""Handle signals for a while: only in the main thread, and none that guard was told to ignore, as under `nohup`."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import NoReturn


def interrupt_on_termination() -> AbstractContextManager[None]:
    """Turn SIGTERM and SIGHUP into a KeyboardInterrupt inside: guard ends what it has started, as after Ctrl-C."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    return handle_signals((signal.SIGTERM, signal.SIGHUP), interrupt)


@contextmanager
def defer_signals() -> Iterator[None]:
    # A program that is just being started could not be ended, so a signal to stop guard waits until it has.
    waiting: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    with handle_signals(numbers, lambda number, _frame: waiting.append(number)):
        yield
    for number in waiting[:1]:
        signal.raise_signal(number)


@contextmanager
def handle_signals(
    numbers: Iterable[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled_numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in handled_numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
