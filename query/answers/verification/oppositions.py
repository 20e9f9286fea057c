# ruff: noqa: E501 - one line is one pair
"""Words that contradict each other although a lexical overlap may not even see them.

Poles ("open" / "closed") behave like a negation: "not closed" is "open". Scales ("must" / "may",
"before" / "after") do not: "must not" is not "may".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from core.lexical.analysis import word_terms
from query.answers.verification.tokens import Token, listed, terms_of_word

_POLES = {
    "en": """
increase increased rise risen rose grow grew growth higher raise raised | decrease decreased fall fallen fell decline declined drop dropped reduce reduced lower lowered
open opened | closed close shut
on | off
inside indoor indoors internal inner | outside outdoor outdoors external outer
start started begin begins began | stop stopped end ended finish finished
accept accepted approve approved | reject rejected
include included including | excluded exclude
enable enabled activate activated | disable disabled deactivate deactivated
mandatory obligatory compulsory required | optional voluntary
high highest | low lowest
long longer longest | short shorter shortest
early earlier earliest | late later latest
upper top | lower bottom
left | right
maximum maximal | minimum minimal
import imported imports | export exported exports
buy bought purchase purchased | sell sold
win won | lose lost
positive | negative
success successful succeeded | failure
hot warm | cold cool
full | empty
wet | dry
public | private
present | absent
profit gain | loss
arrive arrives arrived arrival | depart departs departed departure leave leaves left
gross | net
remove removed detach | attach attached install installed insert inserted
tighten tightened | loosen loosened
faster fast quicker | slower slow
more | less fewer
cheaper cheap cheapest | expensive dearer
strengthen strengthened | weaken weakened
""",
    "de": """
steigen steigt stieg gestiegen erhöhen erhöht erhöhte zunahme | sinken sinkt sank gesunken senken senkt gesenkt abnahme verringert reduziert
öffnen geöffnet offen | schließen geschlossen zu
ein eingeschaltet | aus ausgeschaltet
innen innerhalb | außen außerhalb
beginnt begonnen beginn start | endet beendet ende stopp
angenommen genehmigt bewilligt | abgelehnt
einschließlich inklusive | exklusive
aktiviert | deaktiviert
verpflichtend obligatorisch pflicht erforderlich | freiwillig optional
hoch höher | niedrig niedriger
lang länger | kurz kürzer
früh früher | spät später
obere oberer oben | untere unterer unten
links linke linken | rechts rechte rechten
maximal höchstens | minimal mindestens
kaufen gekauft | verkaufen verkauft
gewonnen gewinn | verloren verlust
heiß warm | kalt kühl
voll | leer
nass feucht | trocken
öffentlich | privat
anwesend | abwesend
brutto | netto
mehr | weniger
schneller schnell | langsamer langsam
""",
}
_SCALES = {
    "en": """
must shall have_to has_to | may might can could
all every each always | some several few sometimes occasionally rarely most many
before prior | after following
above over | below under beneath
first | last
north northern | south southern | east eastern | west western
""",
    "de": """
muss müssen musste mussten | darf dürfen kann können konnte könnten
alle allen jeder jede jedes jeden sämtliche stets immer | einige manche wenige manchmal selten viele meisten
vor bevor vorher | nach nachdem nachher danach
über oberhalb | unter unterhalb
norden nördlich | süden südlich | osten östlich | westen westlich
""",
}
_FREQUENCIES = {
    "hourly": "h", "stündlich": "h", "daily": "day", "täglich": "day", "weekly": "week",
    "wöchentlich": "week", "monthly": "month", "monatlich": "month", "quarterly": "quarter",
    "vierteljährlich": "quarter", "yearly": "year", "annually": "year", "annual": "year",
    "jährlich": "year",
}  # fmt: skip
_MODALS = frozenset({"must", "muss"})
# Before a date: up to it, or from it on.
TIMING = (
    frozenset({"until", "till", "by", "before", "bis", "vor", "spätestens"}),
    frozenset({"from", "since", "after", "starting", "beginning", "ab", "seit", "nach"}),
)
_PREFIXES = (("non-", 4), ("nicht-", 4), ("un", 4), ("non", 4), ("nicht", 4), ("in", 5), ("im", 5),
             ("ir", 5), ("il", 5), ("dis", 5))  # fmt: skip
_SUFFIXES = ("less", "-free", "los", "frei")
# Said of the same thing, one of these is the other with a negation.
_PERMITTED = frozenset(listed("allow permit erlaubt gestattet zulässig"))
_FORBIDDEN = frozenset(listed("forbidden prohibit prohibited banned verboten untersagt unzulässig"))
EXCLUSIVE = frozenset({"only", "solely", "exclusively", "nur", "lediglich"})


@dataclass(frozen=True, slots=True)
class Opposition:
    """Sides of words that exclude each other: for poles two, for scales more. Each side holds the
    words and their stems."""

    sides: tuple[frozenset[str], ...]

    @property
    def is_modal(self) -> bool:
        return any(side & _MODALS for side in self.sides)

    def side_of(self, spoken: Iterable[str]) -> set[int]:
        return {i for i, side in enumerate(self.sides) if not side.isdisjoint(spoken)}


def frequency_of(normal: str) -> str | None:
    """The period of "daily" and the like, as a unit's name."""
    return _FREQUENCIES.get(normal)


def negated_base(normal: str, language: str, other_terms: Collection[str]) -> frozenset[str]:
    """Terms of the word without its negating prefix or suffix ("unsafe", "lead-free"), if the other
    text has them."""
    bases = [
        normal[len(prefix) :]
        for prefix, least in _PREFIXES
        if normal.startswith(prefix) and len(normal) >= len(prefix) + least
    ]
    bases += [normal.removesuffix(s) for s in _SUFFIXES if normal.endswith(s) and len(normal) > 7]
    for base in bases:
        terms = frozenset(terms_of_word(base, language))
        if terms and terms.issubset(other_terms):
            return terms
    return frozenset()


def is_opposed(token: Token, language: str, other_terms: Collection[str]) -> bool:
    """Whether the other text has the word's opposite. Whether it negates it, too, and so means the
    same, is for `polarity` to say."""
    spoken = {token.normal, *token.terms}
    for pole in poles(language):
        mine = pole.side_of(spoken)
        if len(mine) == 1 and not pole.sides[1 - next(iter(mine))].isdisjoint(other_terms):
            return True
    if negated_base(token.normal, language, other_terms):
        return True
    pairs = ((_PERMITTED, _FORBIDDEN), (_FORBIDDEN, _PERMITTED))
    return any(spoken & own and not other.isdisjoint(other_terms) for own, other in pairs)


@lru_cache(maxsize=8)
def poles(language: str) -> tuple[Opposition, ...]:
    return tuple(_read(_POLES["de" if language == "de" else "en"], language))


@lru_cache(maxsize=8)
def scales(language: str) -> tuple[Opposition, ...]:
    return tuple(_read(_SCALES["de" if language == "de" else "en"], language))


def _read(lines: str, language: str) -> Iterator[Opposition]:
    for line in lines.strip().splitlines():
        sides = [frozenset(_forms(side.split(), language)) for side in line.split("|")]
        # A stem that two sides share ("low", "lower") tells nothing.
        yield Opposition(tuple(
            side - frozenset().union(*(other for other in sides if other is not side))
            for side in sides
        ))  # fmt: skip


def _forms(words: Iterable[str], language: str) -> Iterator[str]:
    for word in words:
        normal = word.replace("_", " ").casefold()
        yield normal
        if terms_of_word(normal, language):
            yield from word_terms(normal, language)
