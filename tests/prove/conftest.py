"""A checkout to run commands in."""

from pathlib import Path

import pytest

from tests.support.checks import Checkout, make_checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_checkout(tmp_path)
