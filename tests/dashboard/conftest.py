"""The night of the report, and a dashboard of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.conftest import night
from tests.support.dashboards import Served, serve

__all__ = ["night"]


@pytest.fixture
def served(night: Path) -> Iterator[Served]:
    with serve(night) as served:
        yield served
