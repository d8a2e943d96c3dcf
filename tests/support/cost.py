"""A bound on the processor time of a piece of work, so wide that no slow or busy machine breaks it."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time


@contextmanager
def cpu_limit(seconds: float = 60) -> Iterator[None]:
    """Fail if the block takes this much processor time: many times its normal cost, and less than that of its square."""
    begun = process_time()
    yield
    assert process_time() - begun < seconds
