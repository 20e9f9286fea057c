"""Fit the coefficients that decide `not_in_documents`, and say how good they are.

    python -m evals.calibrate_answerability [--models-dir DIR] [--cache DIR] [--write]

Groups (data set, or our paraphrases) count alike, and within a group answerable and unanswerable
questions do. The paraphrases are there because the public questions were written with the text in
view: without them the words of a question would count for too much. `mtrag-un` is never fitted to,
nor is anything under `examples/`. The threshold is the highest that still answers
`--min-answered` of the answerable questions, on average over the groups, when each question is
judged by coefficients that were fitted without it (five folds).
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

from core.settings import load_settings
from evals.conditions import (
    Example,
    foreign,
    labelled,
    paraphrases,
    swapped,
    with_and_without,
    with_and_without_passages,
)
from evals.datasets import read_beir, read_chunking_eval, read_mtrag_v1, with_titles
from evals.embedding import CachedEmbedder, open_embedder
from evals.logistic import Logistic, fit
from evals.metrics import auroc
from query.answers.answerability import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

RIDGE = 10.0  # the three cosines say much the same: a weak ridge plays them off against each other
FOLDS = 5
_EXAMPLE_WEIGHT = 100.0  # per group and label
_FITTED: dict[
    str, dict[str, tuple[str, ...]]
] = {  # calibration -> group -> conditions that are fitted to
    "en": {
        "xquad-en": ("cut", "gone", "topic", "swapped"),
        "chunking_eval": ("cut", "foreign"),
        "mtrag-v1-rewrite": ("gone", "foreign"),
        "paraphrases": ("named",),
    },
    "other": {"xquad-de": ("cut", "gone", "topic")},
}
# Fewer signals where fewer do: on our paraphrases, which are nearest to how people ask, these tell
# as well as all of them (AUROC .79, all: .78), and words alone are held against nobody. Other
# languages need the words: the embedder hardly speaks them.
_SIGNALS: dict[str, tuple[str, ...]] = {
    "en": ("focus_cosine", "dense_gap", "name_missing", "kind_missing"),
    "other": NAMES,
}
_OUTPUT = Path(__file__).resolve().parents[1] / "query" / "answers" / "calibration.py"
_HEADER = '"""Coefficients of `answerability`. Written by `python -m {name} --write`."""\n'


def main() -> None:
    options = _options()
    embedder = CachedEmbedder(open_embedder(options.models_dir), options.cache)
    examples = list(_examples(embedder, options.questions))
    results = {}
    for calibration, groups in _FITTED.items():
        chosen = [e for e in examples if _is_fitted(e, groups)]
        names = _SIGNALS[calibration]
        judged = _cross_validate(chosen, names)
        threshold = _threshold(judged, options.min_answered)
        results[calibration] = (_fit(chosen, names), threshold)
        others = [] if calibration == "other" else [e for e in examples if e.group == "mtrag-un"]
        held_out = [(e, results[calibration][0].logit(_values(e, names))) for e in others]
        _report(calibration, results[calibration], [*judged, *held_out])
    if options.write:
        _OUTPUT.write_text(_source(results, embedder.info().fingerprint), encoding="utf-8")


def _options() -> argparse.Namespace:
    settings = load_settings()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models-dir", type=Path, default=settings.models_dir / "minilm")
    parser.add_argument("--cache", type=Path, default=settings.data_dir / "evals")
    parser.add_argument("--questions", type=int, default=150, help="at most, a data set")
    # A wrong answer costs more than a refusal.
    parser.add_argument("--min-answered", type=float, default=0.85)
    parser.add_argument("--write", action="store_true", help="replace calibration.py")
    return parser.parse_args()


def _examples(embedder: CachedEmbedder, num_questions: int) -> Iterable[Example]:
    english, chunking = read_beir("xquad-en"), read_chunking_eval()
    german = read_beir("xquad-de", language="de")
    asked = [*chunking.questions, *read_mtrag_v1(rewritten=True).questions]
    yield from paraphrases(with_titles(read_beir("xquad-en")), embedder)
    yield from swapped(with_titles(read_beir("xquad-en")), embedder, num_questions // 3)
    yield from with_and_without(with_titles(english), embedder, num_questions, has_articles=True)
    yield from with_and_without(german, embedder, num_questions, has_articles=True)
    yield from with_and_without(chunking, embedder, num_questions)
    yield from foreign(read_chunking_eval(), embedder, english.questions, num_questions // 3)
    multi_turn = read_mtrag_v1(rewritten=True)
    yield from with_and_without_passages(multi_turn, embedder)
    yield from foreign(multi_turn, embedder, [*english.questions, *asked], num_questions // 3)
    labels = {"ANSWERABLE": "answerable", "UNANSWERABLE": "natural"}
    yield from labelled(read_beir("mtrag-un"), embedder, labels)


def _is_fitted(example: Example, groups: dict[str, tuple[str, ...]]) -> bool:
    if example.group not in groups:
        return False
    return example.is_answerable or example.condition in groups[example.group]


def _values(example: Example, names: Sequence[str]) -> tuple[float, ...]:
    return tuple(getattr(example.signals, name) for name in names)


def _fit(examples: Sequence[Example], names: Sequence[str]) -> Logistic:
    sizes: dict[tuple[str, str], int] = {}
    conditions: dict[str, set[str]] = {}
    for example in examples:
        key = (example.group, example.condition)
        sizes[key] = sizes.get(key, 0) + 1
        if not example.is_answerable:
            conditions.setdefault(example.group, set()).add(example.condition)
    weights = [
        _EXAMPLE_WEIGHT
        / sizes[e.group, e.condition]
        / (1 if e.is_answerable else len(conditions[e.group]))
        for e in examples
    ]
    features = [_values(e, names) for e in examples]
    return fit(features, [e.is_answerable for e in examples], weights, ridge=RIDGE)


def _cross_validate(
    examples: Sequence[Example], names: Sequence[str]
) -> list[tuple[Example, float]]:
    """Each example with its logit under coefficients fitted without its question."""
    questions = sorted({(e.group, e.question_id) for e in examples})
    generator = random.Random(0)
    folds = {question: generator.randrange(FOLDS) for question in questions}
    judged: list[tuple[Example, float]] = []
    for fold in range(FOLDS):
        model = _fit([e for e in examples if folds[e.group, e.question_id] != fold], names)
        judged.extend(
            (e, model.logit(_values(e, names)))
            for e in examples
            if folds[e.group, e.question_id] == fold
        )
    return judged


def _threshold(judged: Sequence[tuple[Example, float]], min_answered: float) -> float:
    """The highest logit, to a twentieth, at which enough of the answerable are answered."""
    groups = sorted({example.group for example, _ in judged})

    def answered(logit: float) -> float:
        shares = [
            _share(judged, group, "answerable", lambda value: value >= logit) for group in groups
        ]
        return sum(shares) / len(shares)

    logit = 4.0
    while answered(logit) < min_answered:
        logit -= 0.05
    return logit


def _share(
    judged: Iterable[tuple[Example, float]],
    group: str,
    condition: str,
    holds: Callable[[float], bool],
) -> float:
    values = [v for e, v in judged if (e.group, e.condition) == (group, condition)]
    return sum(holds(value) for value in values) / len(values)


def _report(
    calibration: str, result: tuple[Logistic, float], judged: Sequence[tuple[Example, float]]
) -> None:
    model, threshold = result
    print(f"\n## {calibration}: answered when the logit is at least {threshold:.2f}")
    for name, value in zip(_SIGNALS[calibration], model.coefficients, strict=True):
        print(f"{name:>16} {value:8.3f}")
    print(f"{'intercept':>16} {model.intercept:8.3f}\n")
    print("| group | condition | questions | AUROC | answered | quote | page | quotes |")
    print("|---|---|---|---|---|---|---|---|")
    keys = dict.fromkeys((example.group, example.condition) for example, _ in judged)
    for group, condition in sorted(keys):
        examples = [e for e, _ in judged if (e.group, e.condition) == (group, condition)]
        own = [v for e, v in judged if (e.group, e.condition) == (group, condition)]
        answerable = [v for e, v in judged if e.group == group and e.is_answerable]
        area = "" if condition == "answerable" else f"{auroc(answerable, own):.3f}"
        answered = sum(value >= threshold for value in own) / len(own)
        right = "| | |"
        if condition == "answerable":
            right = (
                f"| {_mean(e.has_answer for e in examples):.3f}"
                f" | {_mean(e.has_page for e in examples):.3f}"
                f" | {_mean(e.num_quotes for e in examples):.2f} |"
            )
        print(f"| {group} | {condition} | {len(own)} | {area} | {answered:.3f} {right}")


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def _source(results: dict[str, tuple[Logistic, float]], fingerprint: str) -> str:
    intercepts = {name: round(model.intercept, 4) for name, (model, _) in results.items()}
    coefficients = {
        name: {
            feature: round(value, 4)
            for feature, value in zip(_SIGNALS[name], model.coefficients, strict=True)
        }
        for name, (model, _) in results.items()
    }
    thresholds = {name: round(_sigmoid(logit), 4) for name, (_, logit) in results.items()}
    lines = [
        _HEADER.format(name="evals.calibrate_answerability"),
        f'EMBEDDER_FINGERPRINT = "{fingerprint}"',
        f"INTERCEPTS = {_braced(intercepts)}",
        "COEFFICIENTS = {",
        *(
            line
            for name, found in coefficients.items()
            for line in (f'    "{name}": {{', *_entries(found, 8), "    },")
        ),
        "}",
        f"THRESHOLDS = {_braced(thresholds)}",
        "",
    ]
    return "\n".join(lines)


def _braced(values: dict[str, float]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def _entries(values: dict[str, float], indent: int) -> list[str]:
    return [f'{" " * indent}"{name}": {value},' for name, value in values.items()]


def _sigmoid(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


if __name__ == "__main__":
    main()
