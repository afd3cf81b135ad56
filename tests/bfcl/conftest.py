from __future__ import annotations

import pytest

from stepdown.harnesses.bfcl import BFCL


@pytest.fixture(scope="session")
def bfcl() -> BFCL:
    return BFCL()
