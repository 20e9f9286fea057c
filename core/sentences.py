# ruff: noqa: RUF001 - punctuation of many scripts
"""Where sentences end, for cutting chunks and for quoting.

Rules, not a model: they are the same for every language, and what they need to know of one is in
the lists below. A newline always ends a sentence, because page text has one only after a table
row, a list item or an element; printed lines of a paragraph are joined before (`ingest.layout`).
The ideas are those of the usual rule sets (Kiss & Strunk 2006 for abbreviations and initials).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import regex

from core.lexical.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLOSERS = r"[\"'”’“»›)\]}」』）】》〉]"
_OPENERS = "\"'“”‘’„«‹([{「『（【《〈¿¡*"
# A stop that needs nothing after it (CJK, danda and the like), or one that needs white space.
_STOP = regex.compile(
    rf"(?P<sure>[。！？｡।॥။។៕།۔؟።։]+{_CLOSERS}*)"
    rf"|(?P<likely>[.!?…‽]+(?:\s[.…]+)*{_CLOSERS}*(?:\s»)?(?:\[\d{{1,3}}\])*)(?=\s)"
)
_LINE = regex.compile(r"[^\n\r\u2028\u2029\f\v]+")
_LOOK_BACK_CHARS = 60  # two words; a bound keeps long texts without a sentence end linear
_WORD_BEFORE = regex.compile(r"[\p{L}\p{M}\p{N}.'’-]+$")
_WORD_AFTER = regex.compile(r"[\p{L}\p{M}]+|\p{N}+")
_MARKER = regex.compile(r"[(\[]?(?:§+\s*)?(?:\d{1,3}(?:\.\d{1,3})*|\p{L}|[ivxIVX]{1,5})")
_MARKER_AFTER = regex.compile(r"[(\[](?:\d{1,3}|\p{L}|[ivx]{1,5})[)\]]\s")
_ROMAN = regex.compile(r"[IVXLC]{1,6}|[ivxlc]{1,6}")
_DOTTED = regex.compile(r"\p{L}(?:\.\p{L})+")


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations that something always follows.
_NEVER_LAST = _listed(
    # English
    "dr mr mrs ms mx messrs prof rev hon gen col capt lt sgt maj adm gov sen rep pres st mt ft"
    " e.g i.e cf vs viz approx incl excl resp al ca"
    # German
    " hr fr frl dipl ing nr bzw vgl evtl ggf gem lt sog inkl exkl zzgl abzgl einschl u.a z.b d.h"
    " i.d.r o.ä u.ä m.e i.s.v z.t s.o s.u"
    " bspw insb bzgl betr entspr ggü lfd mind mtl allg zzt z.hd usw.a hrsg geb gest verh mio mrd"
    " tsd ehem"
    # French, Spanish, Italian, Dutch
    " mme mlle m.me p.ex c.-à-d sr sra srta ud uds sig dott ing bijv d.w.z t.a.v"
)
# Abbreviations of what is counted: a number or a letter follows ("No. 5", "Art. 12", "S. 4").
_BEFORE_NUMBER = _listed(
    "no nos nr fig figs tab art arts abs ziff sec secs sect ch chap chaps vol vols p pp s ss eq eqs"
    " ref refs app para paras par cl bd kap anl pos abb str n núm pág págs cap op lit"
)
# Abbreviations that may also end a sentence.
_MAYBE_LAST = _listed(
    "etc usw inc ltd corp co llc plc bros jr sr esq dept univ assn est ph.d m.d b.a m.a u.s u.k u.n"
    " e.u a.m p.m std min max tel ext jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed"
    " thu fri sat sun jg str u.dgl usf ff"
)
# A capital after these is a name: "Appendix B. The ..." ends, "J. Smith" does not.
_BEFORE_LETTER = _listed(
    "section appendix annex vitamin class type group grade figure table part point plan option"
    " hepatitis phase level schedule exhibit room building anlage teil klasse typ gruppe tabelle"
    " punkt variante stufe raum gebäude and und or oder"
)
_ORDINAL_NOUNS = _listed(
    "januar jänner februar märz april mai juni juli august september oktober november dezember"
    " jahrhundert jahrhunderts auflage quartal stock obergeschoss untergeschoss etage kapitel"
    " abschnitt absatz weltkrieg weltkriegs halbjahr lebensjahr lebensjahres tag tages woche monat"
    " monats jahr jahres klasse stufe platz runde generation"
)
_BEFORE_ORDINAL = _listed(
    "am vom zum beim der die das dem den des im bis ab seit jeder jede jedes jeden dieser diese"
    " dieses diesem und oder sowie ein eine einen einem einer"
)
# Words that begin a sentence far more often than they follow an abbreviation as a name.
_STARTERS = frozenset().union(
    *(STOP_WORDS[language] for language in ("en", "de", "fr", "es", "it", "pt", "nl"))
)


def sentences(text: str) -> list[tuple[int, int]]:
    """(start, end) of each sentence in code points, in order, without surrounding white space.

    Together they hold every character that is not white space.
    """
    return [bound for line in _LINE.finditer(text) for bound in _in_line(text, *line.span())]


def _in_line(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = _skip_space(text, start, end)
    for stop in _STOP.finditer(text, start, end):
        following = _skip_space(text, stop.end(), end)
        if following == end:
            break
        if stop.start() < first or (
            stop.lastgroup == "likely" and not _ends(text, first, stop, following)
        ):
            continue
        yield first, stop.end()
        first = following
    last = end
    while last > first and text[last - 1].isspace():
        last -= 1
    if first < last:
        yield first, last


def _skip_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _ends(text: str, first: int, stop: regex.Match[str], following: int) -> bool:
    """Whether a sentence that began at `first` ends at `stop`, with `following` the next text."""
    if _MARKER_AFTER.match(text, following):
        return True
    while following < len(text) and text[following] in _OPENERS:
        following += 1
    after = _WORD_AFTER.match(text, following)
    next_word = after[0] if after else ""
    if next_word[:1].islower():
        return False
    if stop[0][0] != "." or stop[0].startswith(".."):
        return True
    if _MARKER.fullmatch(text, first, stop.start()):
        return False
    before = text[max(first, stop.start() - _LOOK_BACK_CHARS) : stop.start()]
    word = _last_word(before)
    if not word:
        return True
    previous = _last_word(before.removesuffix(word).rstrip()).lower()
    return _word_ends(word.lstrip("'’-."), next_word, previous)


def _last_word(text: str) -> str:
    found = _WORD_BEFORE.search(text)
    return found[0] if found else ""


def _word_ends(word: str, next_word: str, previous: str) -> bool:
    """Whether "word." before `next_word` (capitalised, a number or nothing) is a sentence's end."""
    lower = word.lower()
    is_starter = next_word.lower() in _STARTERS and len(next_word) > 1
    if lower in _NEVER_LAST:
        return False
    if lower in _BEFORE_NUMBER and _is_number_like(next_word):
        return False
    if lower in _MAYBE_LAST or _DOTTED.fullmatch(word):
        return is_starter
    if len(word) == 1 and word.isalpha() and _has_case(word):
        return is_starter or previous in _BEFORE_LETTER
    if word.isdecimal() and len(word) <= 2:
        return not _is_ordinal(next_word, previous)
    return True


def _is_number_like(word: str) -> bool:
    return word[:1].isdecimal() or len(word) == 1 or _ROMAN.fullmatch(word) is not None


def _has_case(letter: str) -> bool:
    return letter.lower() != letter.upper()


def _is_ordinal(next_word: str, previous: str) -> bool:
    """German "am 3. Oktober", "die 2. Auflage": the point belongs to the number."""
    lower = next_word.lower()
    if lower in _ORDINAL_NOUNS:
        return True
    return previous in _BEFORE_ORDINAL and lower not in _STARTERS and not lower[:1].isdecimal()
