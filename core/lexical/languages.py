"""Which language a document is in: script first, then stop words, then py3langid.

Most documents are settled by their script or by counting stop words, which costs nothing. Only
where those are not clear (short texts, languages without a list, close relatives) is py3langid's
model loaded: it takes 100 MB and half a second, once per process.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

import regex

from core.lexical.analysis import SCRIPT_LANGUAGES, UNKNOWN_LANGUAGE
from core.lexical.stop_words import STOP_WORDS
from core.lexical.words import normal_form, words

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_SAMPLES = 4
_SAMPLE_CHARS = 2_500
_MIN_LETTERS = 12
# A language is clear when this share of the words are its stop words, by this factor over the next.
_CLEAR_SHARE = 0.15
_CLEAR_LEAD = 1.3
_MIN_CLEAR_WORDS = 30
_MIN_CLEAR_STOP_WORDS = 5  # different ones: a list of Spanish place names is not Spanish

# Latin-script languages told apart; rarer ones would only attract short English texts.
_LATIN = frozenset({
    "af", "az", "bs", "ca", "cs", "cy", "da", "de", "en", "eo", "es", "et", "eu", "fi", "fr", "ga",
    "gl", "hr", "hu", "id", "is", "it", "lt", "lv", "ms", "mt", "nl", "nn", "no", "pl", "pt", "ro",
    "sk", "sl", "sq", "st", "sv", "sw", "tl", "tr", "vi",
})  # fmt: skip

# Scripts with one language that we tell apart no further.
_ONE_LANGUAGE = {
    "hangul": "ko", "thai": "th", "lao": "lo", "khmer": "km", "myanmar": "my", "greek": "el",
    "armenian": "hy", "georgian": "ka", "tamil": "ta", "telugu": "te", "kannada": "kn",
    "malayalam": "ml", "bengali": "bn", "gujarati": "gu", "gurmukhi": "pa", "sinhala": "si",
}  # fmt: skip
_SCRIPTS = ("latin", "cyrillic", "arabic", "devanagari", "hebrew", "han", "kana", *_ONE_LANGUAGE)
_SCRIPT = regex.compile(
    "|".join(
        rf"(?P<{script}>[\p{{Hiragana}}\p{{Katakana}}]+)"
        if script == "kana"
        else rf"(?P<{script}>\p{{{script}}}+)"
        for script in _SCRIPTS
    )
)
# A Japanese text may be mostly Han; kana in this share of it make the difference.
_KANA_SHARE = 0.05
_LETTERS_PER_CHARACTER = 3  # a Han or kana character is about as much text as three letters


def detect_language(text: str) -> str:
    """The main language of a document as ISO 639-1, or `und` when there are too few letters.

    Samples from the whole length are judged, so that an English cover page does not decide.
    """
    sample = _sample(text)
    letters = _letters_by_script(sample)
    letters["han"] *= _LETTERS_PER_CHARACTER
    letters["kana"] *= _LETTERS_PER_CHARACTER
    if letters.total() < _MIN_LETTERS:
        return UNKNOWN_LANGUAGE
    script = _main_script(letters)
    if script in _ONE_LANGUAGE:
        return _ONE_LANGUAGE[script]
    if script in {"kana", "han"}:
        return "ja" if script == "kana" else "zh"
    candidates = _candidates(script)
    return _by_stop_words(sample, candidates) or _by_model(sample, candidates)


def _sample(text: str) -> str:
    if len(text) <= _SAMPLES * _SAMPLE_CHARS:
        return text
    stride = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
    return "\n".join(text[i * stride : i * stride + _SAMPLE_CHARS] for i in range(_SAMPLES))


def _letters_by_script(text: str) -> Counter[str]:
    letters: Counter[str] = Counter()
    for match in _SCRIPT.finditer(text):
        letters[str(match.lastgroup)] += len(match[0])
    return letters


def _main_script(letters: Counter[str]) -> str:
    """The script with the most letters; Han and kana count together."""
    han, kana = letters.pop("han", 0), letters.pop("kana", 0)
    script, most = max(letters.items(), key=lambda item: (item[1], item[0]), default=("latin", 0))
    if han + kana <= most:
        return script
    return "kana" if kana >= _KANA_SHARE * (han + kana) else "han"


def _candidates(script: str) -> frozenset[str]:
    """The languages of a script that we tell apart."""
    return SCRIPT_LANGUAGES[script][1] if script in SCRIPT_LANGUAGES else _LATIN


def _by_stop_words(sample: str, candidates: frozenset[str]) -> str | None:
    """The language whose stop words are frequent, varied and clearly ahead, or None."""
    counts = Counter(words(normal_form(sample)))
    num_words = counts.total()
    if num_words < _MIN_CLEAR_WORDS:
        return None
    hits = sorted(
        (sum(counts[word] for word in STOP_WORDS[language]), language)
        for language in candidates
        if language in STOP_WORDS
    )
    (second, _), (most, language) = hits[-2:] if len(hits) > 1 else [(0, ""), *(hits or [(0, "")])]
    num_distinct = sum(word in counts for word in STOP_WORDS.get(language, ()))
    is_clear = (
        most >= max(1.0, _CLEAR_SHARE * num_words)
        and most >= _CLEAR_LEAD * second
        and num_distinct >= _MIN_CLEAR_STOP_WORDS
    )
    return language if is_clear else None


def _by_model(sample: str, candidates: frozenset[str]) -> str:
    """py3langid's best language among the candidates."""
    ranked = (str(language) for language, _ in _identifier().rank(sample))
    return next((language for language in ranked if language in candidates), UNKNOWN_LANGUAGE)


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import LanguageIdentifier

    return LanguageIdentifier.from_model_file("data/model.npz.xz")
