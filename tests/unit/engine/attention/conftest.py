"""Parametrises the conformance suite by what each backend's class says."""

import pytest

from tests.unit.engine.attention.conformance import AttentionConformance


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    owner = metafunc.cls
    if owner is None or not issubclass(owner, AttentionConformance):
        return
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", owner.cases, ids=str)
    if "dtype" in metafunc.fixturenames:
        metafunc.parametrize("dtype", owner.dtypes, ids=str)
