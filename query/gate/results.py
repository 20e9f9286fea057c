"""Verdicts of the gate in the data directory, one file a generator: `gate/<fingerprint>.json`.

Those on the generators that come in packages are shipped (`shipped.json`), so that nobody has to
run the gate to learn what is known. A verdict of one's own goes first.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import regex
import structlog

from query.gate.judging import Outcome
from query.gate.suite import suite_version
from query.gate.thresholds import Figures

log = structlog.get_logger(__name__)

_SHIPPED = Path(__file__).with_name("shipped.json")
_SAFE = regex.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class GateResult:
    """
    fingerprint, model: of the generator. suite_version: what the verdict belongs to.
    failing: figures that missed their thresholds; `has_passed` exactly when there are none and all
    questions were asked. date: ISO 8601.
    """

    fingerprint: str
    model: str
    suite_version: str
    date: str
    has_passed: bool
    num_asked: int
    num_questions: int
    figures: Figures
    failing: tuple[str, ...]
    outcomes: tuple[Outcome, ...] = ()


def store_gate(data_dir: Path, result: GateResult) -> Path:
    """Replace the generator's verdict atomically. Raises OSError."""
    path = _path(data_dir, result.fingerprint)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".gate-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(result), file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return path


def read_gate(data_dir: Path, fingerprint: str) -> GateResult | None:
    """The generator's verdict, its own or the shipped one; None when it was never tried, or with
    another suite version. A file that cannot be read is no verdict either (logged)."""
    for result in (_stored(data_dir, fingerprint), shipped_results().get(fingerprint)):
        if result is not None and result.suite_version == suite_version():
            return result
    return None


@lru_cache(maxsize=1)
def shipped_results() -> dict[str, GateResult]:
    """Verdicts on packaged generators, by fingerprint; without their answers."""
    results = map(_result, json.loads(_SHIPPED.read_text(encoding="utf-8")))
    return {result.fingerprint: result for result in results}


def gate_reader(data_dir: Path) -> Callable[[str], bool | None]:
    """Fingerprint -> whether that generator passed; None when it was never tried. Reads the file
    each time: it is small, and a gate may be run beside a running service."""

    def has_passed(fingerprint: str) -> bool | None:
        result = read_gate(data_dir, fingerprint)
        return None if result is None else result.has_passed

    return has_passed


def _stored(data_dir: Path, fingerprint: str) -> GateResult | None:
    path = _path(data_dir, fingerprint)
    try:
        result = _result(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("gate.unreadable", path=path.name, error=type(error).__name__)
        return None
    return result if result.fingerprint == fingerprint else None


def _path(data_dir: Path, fingerprint: str) -> Path:
    name = fingerprint
    if not _SAFE.fullmatch(fingerprint):
        name = hashlib.sha256(fingerprint.encode()).hexdigest()
    return data_dir / "gate" / f"{name}.json"


def _result(data: dict[str, Any]) -> GateResult:
    return GateResult(
        fingerprint=data["fingerprint"],
        model=data["model"],
        suite_version=data["suite_version"],
        date=data["date"],
        has_passed=data["has_passed"] is True,
        num_asked=data["num_asked"],
        num_questions=data["num_questions"],
        figures=Figures(**data["figures"]),
        failing=tuple(data["failing"]),
        outcomes=tuple(
            Outcome(**{**item, "problems": tuple(item["problems"])}) for item in data["outcomes"]
        ),
    )
