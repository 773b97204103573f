"""Engines that several modules look at."""

import pytest

from agspec.engine.phase import run_phase
from tests.engine import jobs


@pytest.fixture(scope="session")
def outcome():
    return run_phase(jobs.contract)
