"""`pincite eval gate`: the table, the exit status and the stored verdict."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import PinciteError, SettingsError
from core.settings import Settings
from pincite.cli import evaluation
from pincite.cli.app import app
from query.gate import gate_reader
from tests.fakes.gate import generator_for_gate
from tests.fakes.generator import FakeGenerator

RUNNER = CliRunner()


def use(generator: FakeGenerator | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(_settings: Settings) -> FakeGenerator | None:
        return generator

    monkeypatch.setattr(evaluation, "create_generator", create)
    monkeypatch.setenv("PINCITE_GENERATOR__URL", "http://127.0.0.1:9")


def test_a_pass_is_told_and_kept(monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    use(generator_for_gate(), monkeypatch)
    ran = RUNNER.invoke(app, ["eval", "gate", "--concurrency", "8"])
    assert ran.exit_code == 0, ran.output
    assert "PASS: fake (100 of 100 questions asked)" in ran.stdout
    assert "missed" not in ran.stdout
    assert "it writes the answers from now on" in ran.stdout
    assert gate_reader(data_dir)("fake-fingerprint") is True


def test_a_failure_is_status_1_and_says_what_follows(
    monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    use(FakeGenerator("It is 73 [1]."), monkeypatch)
    ran = RUNNER.invoke(app, ["eval", "gate"])
    assert ran.exit_code == 1
    assert "FAIL: fake (" in ran.stdout
    assert "answers are quotes" in ran.stdout
    assert [line.split()[-1] for line in ran.stdout.splitlines() if "at most 0 " in line] == ["ok"]
    assert gate_reader(data_dir)("fake-fingerprint") is False


def test_json_has_every_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    use(FakeGenerator("It is 73 [1]."), monkeypatch)
    ran = RUNNER.invoke(app, ["eval", "gate", "--all", "--json"])
    assert ran.exit_code == 1
    found = json.loads(ran.stdout)
    assert found["num_asked"] == len(found["outcomes"]) == 100
    assert found["has_passed"] is False
    assert {"date", "suite_version", "figures", "failing", "model"} <= set(found)


def test_without_a_generator_there_is_nothing_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    use(None, monkeypatch)
    ran = RUNNER.invoke(app, ["eval", "gate"])
    assert isinstance(ran.exception, SettingsError)
    assert "generator.url" in (ran.exception.hint or "")
    assert isinstance(ran.exception, PinciteError)
