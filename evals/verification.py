"""How well the verifier tells supported sentences from others.

    python -m evals.verification [--data DIR] [--models-dir DIR]

Three sets: WiCE's claims with cited articles (`wice/claim_dev.jsonl`, when it is there), our
hand-made pairs, and the gate's labelled sentences. For WiCE the quotes are the five sentences of
the article that have the most of the claim's words (as the product quotes sentences, not
articles), with the article's title as heading; positives are `supported`, negatives
`partially_supported` and `not_supported`. With `--models-dir` the embedder's similarity is added.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.answers import Verdict
from core.lexical.analysis import index_terms
from evals.datasets import DATA
from evals.embedding import CachedEmbedder, open_embedder
from evals.metrics import auroc
from evals.verification_pairs import lexical_overlap, read_pairs
from query.answers.verification import verify
from query.answers.verification.verifier import SUPPORTED_COVERAGE
from query.gate.verifier_check import check_verifier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from query.answers.verification.verifier import Similarity

NUM_QUOTES = 5
_TITLE = "(meta data) TITLE: "


@dataclass(frozen=True, slots=True)
class Claim:
    """`label`: WiCE's own word."""

    text: str
    quotes: tuple[str, ...]
    headings: tuple[str, ...]
    label: str


def read_wice(path: Path) -> list[Claim]:
    claims = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        sentences = [sentence for sentence in row["evidence"] if sentence.strip()]
        titles = tuple(s.removeprefix(_TITLE) for s in sentences if s.startswith(_TITLE))
        quotes = tuple(best_sentences(row["claim"], sentences))
        claims.append(Claim(row["claim"], quotes, titles, row["label"]))
    return claims


def best_sentences(claim: str, sentences: Sequence[str]) -> list[str]:
    """Greedily those that add most of the claim's terms, in the order of the article."""
    wanted = set(index_terms(claim, "en"))
    terms = [set(index_terms(sentence, "en")) for sentence in sentences]
    left = set(wanted)
    chosen: list[int] = []
    while len(chosen) < min(NUM_QUOTES, len(sentences)):
        best = max(
            (number for number in range(len(sentences)) if number not in chosen),
            key=lambda number: (len(left & terms[number]), len(wanted & terms[number]), -number),
        )
        chosen.append(best)
        left -= terms[best]
    return [sentences[number] for number in sorted(chosen)]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--models-dir", type=Path, help="of the embedder")
    parser.add_argument("--cache", type=Path, default=Path(".pincite/evals"))
    options = parser.parse_args()
    wice = options.data / "wice" / "claim_dev.jsonl"
    if wice.exists():
        report_wice(read_wice(wice), options.models_dir, options.cache)
    else:
        print(f"{wice} is not there: WiCE left out")
    report_pairs()
    figures = check_verifier()
    print(
        f"gate's 100 sentences: supported kept {figures.kept:.2f}, others caught"
        f" {figures.caught:.2f}, others told to be supported {figures.misled:.2f}"
    )


def report_wice(claims: Sequence[Claim], models_dir: Path | None, cache: Path) -> None:
    print(f"WiCE dev, {len(claims)} claims: {dict(Counter(claim.label for claim in claims))}")
    _report_auroc("lexical overlap", claims, lambda c: lexical_overlap(c.text, c.quotes, "en"))
    _report_auroc("verify", claims, _support_score)
    if models_dir is not None:
        embedder = CachedEmbedder(open_embedder(models_dir), cache)
        embedder.embed_passages([text for c in claims for text in (c.text, *c.quotes)])
        similar = partial(_cosine, embedder)
        _report_auroc("verify + similarity", claims, partial(_support_score, similarity=similar))
    for verdict in Verdict:
        labels = Counter(c.label for c in claims if _verdict(c) is verdict)
        print(f"  {verdict.value}: {dict(labels)}")


def report_pairs() -> None:
    kinds: dict[str, Counter[str]] = {}
    for pair in read_pairs():
        counts = kinds.setdefault(pair.kind, Counter())
        support = verify(pair.sentence, pair.quotes, pair.language)
        is_right = (support.verdict is not Verdict.UNSUPPORTED) is pair.is_supported
        overlap = lexical_overlap(pair.sentence, pair.quotes, pair.language)
        counts["pairs"] += 1
        counts["verify"] += is_right
        counts["overlap"] += (overlap >= SUPPORTED_COVERAGE) is pair.is_supported
    for kind, counts in kinds.items():
        print(
            f"pairs, {kind}: verify {counts['verify']}/{counts['pairs']} right,"
            f" overlap {counts['overlap']}/{counts['pairs']}"
        )


def _report_auroc(name: str, claims: Sequence[Claim], measure: Callable[[Claim], float]) -> None:
    values = [(measure(claim), claim.label) for claim in claims]
    positives = [value for value, label in values if label == "supported"]
    others = [value for value, label in values if label != "supported"]
    none = [value for value, label in values if label == "not_supported"]
    print(
        f"  {name}: AUROC supported against the rest {auroc(positives, others):.3f},"
        f" against not supported {auroc(positives, none):.3f}"
    )


def _support_score(claim: Claim, similarity: Similarity | None = None) -> float:
    support = verify(claim.text, claim.quotes, "en", headings=claim.headings, similarity=similarity)
    return support.support_score


def _verdict(claim: Claim) -> Verdict:
    return verify(claim.text, claim.quotes, "en", headings=claim.headings).verdict


def _cosine(embedder: CachedEmbedder, one: str, other: str) -> float:
    first, second = embedder.embed_passages([one, other])
    return sum(a * b for a, b in zip(first, second, strict=True))


if __name__ == "__main__":
    main()
