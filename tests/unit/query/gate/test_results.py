"""Verdicts on disk: kept whole, read back, and only where they still hold."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from query.gate import GateResult, gate_reader, read_gate, store_gate
from query.gate.judging import judge
from query.gate.results import shipped_results
from query.gate.suite import read_questions, suite_version
from query.gate.thresholds import Figures


@pytest.fixture
def result() -> GateResult:
    question = read_questions()[0]
    return GateResult(
        fingerprint="sha256-0a1b",
        model="fake",
        suite_version=suite_version(),
        date="2026-11-30T00:00:00+00:00",
        has_passed=False,
        num_asked=1,
        num_questions=100,
        figures=Figures(0.5, 1.0, 0.5, 0.25, 1.0, 1.0, 0),
        failing=("answered_right", "supported", "unsupported"),
        outcomes=(judge(question, "No idea.\nPassages: [1]", is_complete=True),),
    )


def test_a_verdict_comes_back_as_it_was(tmp_path: Path, result: GateResult) -> None:
    path = store_gate(tmp_path, result)
    assert path == tmp_path / "gate" / "sha256-0a1b.json"
    assert read_gate(tmp_path, "sha256-0a1b") == result
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    later = replace(result, has_passed=True, failing=())
    store_gate(tmp_path, later)
    assert read_gate(tmp_path, "sha256-0a1b") == later


def test_a_fingerprint_that_is_no_file_name_has_its_own_file(
    tmp_path: Path, result: GateResult
) -> None:
    odd = replace(result, fingerprint="http://host:1/v1 ../../model")
    path = store_gate(tmp_path, odd)
    assert path.parent == tmp_path / "gate"
    assert read_gate(tmp_path, odd.fingerprint) == odd
    assert read_gate(tmp_path, "another") is None


def test_another_suite_version_is_no_verdict(tmp_path: Path, result: GateResult) -> None:
    store_gate(tmp_path, replace(result, suite_version="0" * 12))
    assert read_gate(tmp_path, result.fingerprint) is None
    assert gate_reader(tmp_path)(result.fingerprint) is None


def test_a_file_of_another_generator_is_no_verdict(tmp_path: Path, result: GateResult) -> None:
    path = store_gate(tmp_path, result)
    path.rename(path.with_name("other.json"))
    assert read_gate(tmp_path, "other") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"fingerprint": 1}', "null"])
def test_a_broken_file_is_no_verdict(tmp_path: Path, result: GateResult, text: str) -> None:
    store_gate(tmp_path, result).write_text(text)
    assert read_gate(tmp_path, result.fingerprint) is None


def test_the_reader_tells_passed_failed_and_never_tried(tmp_path: Path, result: GateResult) -> None:
    has_passed = gate_reader(tmp_path)
    assert has_passed(result.fingerprint) is None
    store_gate(tmp_path, result)
    assert has_passed(result.fingerprint) is False
    store_gate(tmp_path, replace(result, has_passed=True))
    assert has_passed(result.fingerprint) is True


def test_only_a_plain_true_is_a_pass(tmp_path: Path, result: GateResult) -> None:
    path = store_gate(tmp_path, result)
    path.write_text(json.dumps({**json.loads(path.read_text()), "has_passed": "yes"}))
    assert gate_reader(tmp_path)(result.fingerprint) is False


def test_the_suite_version_is_stable() -> None:
    assert suite_version() == suite_version()
    assert len(suite_version()) == 12


def test_shipped_verdicts_belong_to_this_suite(tmp_path: Path, result: GateResult) -> None:
    """After a change of prompt, questions or thresholds: run the gate on the packaged generators
    again, for both types of weights, and replace `shipped.json`."""
    shipped = shipped_results()
    assert {found.model for found in shipped.values()} == {"smollm2"}
    assert len(shipped) == 2  # bfloat16 and float32
    for fingerprint, found in shipped.items():
        assert found.suite_version == suite_version()
        assert gate_reader(tmp_path)(fingerprint) is found.has_passed is False
        own = replace(result, fingerprint=fingerprint, has_passed=True, failing=())
        store_gate(tmp_path, own)
        assert read_gate(tmp_path, fingerprint) == own
