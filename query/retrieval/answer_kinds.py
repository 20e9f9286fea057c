"""What kind of thing a question asks for, and whether a text holds one.

"How much does it cost" wants an amount of money, "how long" a time or a length. A text without one
cannot answer, however much it is about the matter. Recognised in English and German; questions in
other languages have kind OTHER, which decides nothing.
"""

from __future__ import annotations

from enum import StrEnum

import regex


class AnswerKind(StrEnum):
    MONEY = "money"
    WEIGHT = "weight"
    LENGTH = "length"
    DURATION = "duration"
    AGE = "age"
    FREQUENCY = "frequency"
    TEMPERATURE = "temperature"
    SHARE = "share"
    COUNT = "count"
    QUANTITY = "quantity"  # some number, of what is not clear
    DATE = "date"
    PERSON = "person"
    PLACE = "place"
    OTHER = "other"

    @property
    def is_numeric(self) -> bool:
        return self not in {AnswerKind.PERSON, AnswerKind.PLACE, AnswerKind.OTHER}


def _words(pattern: str) -> regex.Pattern[str]:
    return regex.compile(rf"\b(?:{pattern})\b", regex.IGNORECASE)


# "Who" asks at the beginning, or after a preposition or "and": "staff who drive" asks for nobody.
_OPENING = (
    r"(?:(?<=^\W*)|(?<=\b(?:at|by|for|from|of|on|since|to|until|with|and|seit|bis|ab|von|für|mit|und)\s)"
    r"|(?<=[,;]\s))"
)
_MONEY_NOUN = (
    r"prices?|costs?|fees?|salary|salaries|wages?|rent|pay|fines?|penalty|penalties|allowances?"
    r"|budgets?|bonus(?:es)?|deposits?|surcharges?|compensation|premiums?|tax(?:es)?|grants?|refunds?"
)
_GERMAN_MONEY_NOUN = (
    r"preis|kosten|gebühr\w*|gehalt|lohn|miete|honorar|strafe|vertragsstrafe|bußgeld|zuschlag"
    r"|pauschale|budget|kaution|steuer|prämie|entschädigung"
)

# Tried in order: the first that fits decides.
_ASKING: tuple[tuple[AnswerKind, regex.Pattern[str]], ...] = (
    (
        AnswerKind.MONEY,
        _words(
            r"how much (?:money|does [^?]{1,80} cost|do [^?]{1,80} cost|did [^?]{1,80} cost"
            r"|will [^?]{1,80} cost|is the (?:price|fee|rent|salary))|how expensive"
            rf"|wh(?:at|ich) (?:is|are|was|were)(?: [^?]{{1,60}})? (?:{_MONEY_NOUN})"
            rf"|wh(?:at|ich) (?:{_MONEY_NOUN})"
            r" (?:is|are|was|were|do|does|did|must|will|can|applies|apply)"
            r"|what (?:does|do|did|will) [^?]{1,80} (?:cost|earn)|how much (?:does|do|did)"
            r" [^?]{1,80} (?:earn|pay|charge)"
            r"|was kostet|was kosten|wie teuer|wie ?viel (?:kostet|kosten|verdient|zahlt|bezahlt)"
            rf"|wie hoch (?:ist|sind|war|waren) [^?]{{0,40}}(?:{_GERMAN_MONEY_NOUN})"
        ),
    ),
    (
        AnswerKind.WEIGHT,
        _words(
            r"how heavy|how much (?:does|do|did|may) [^?]{1,80} weigh|weight of|wie schwer|wiegt"
        ),
    ),
    (
        AnswerKind.TEMPERATURE,
        _words(
            r"how (?:hot|cold|warm)|wh(?:at|ich) temperature|boiling point"
            r"|wie (?:heiß|kalt|warm)"
        ),
    ),
    (AnswerKind.AGE, _words(r"how old|what age|wie alt|welche[mns]? alter")),
    (
        AnswerKind.FREQUENCY,
        _words(r"how (?:often|frequently|many times)|wie (?:oft|häufig)|in welchen abständen"),
    ),
    (
        AnswerKind.SHARE,
        _words(r"wh(?:at|ich) (?:percentage|percent|share|proportion)|wie ?viel prozent"),
    ),
    (
        AnswerKind.LENGTH,
        _words(r"how (?:tall|wide|deep|far|thick)|wie (?:breit|tief|weit|dick|groß)"),
    ),
    (AnswerKind.DURATION, _words(r"how (?:long|soon|quickly|fast)|wie (?:lange?|schnell|bald)")),
    (
        AnswerKind.COUNT,
        _words(r"how many|(?:what|which) number|what is the (?:total )?number|wie ?viele[rn]?"),
    ),
    (
        AnswerKind.QUANTITY,
        _words(
            r"how (?:much|large|big|high|late|early)|what amount|wie ?viel|wie (?:hoch|spät|früh)"
        ),
    ),
    (
        AnswerKind.DATE,
        _words(
            rf"{_OPENING}(?:when|wann)"
            r"|(?:what|which) (?:year|date|day|month|century|decade|time|week|quarter)"
            r"|welche[mnrs]? (?:jahr|datum|tag|monat|jahrhundert|uhrzeit|woche)|um wie ?viel uhr"
        ),
    ),
    (AnswerKind.PERSON, _words(rf"{_OPENING}(?:who|whom|whose|wer|wem|wen|wessen)")),
    (AnswerKind.PLACE, _words(rf"{_OPENING}(?:where|wo|wohin|woher)")),
)

_SPELLED = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty"
    r"|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|half"
    r"|single|both|none|unlimited|eine?[nmrs]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf"
    r"|zwölf|zwanzig|dreißig|vierzig|fünfzig|hundert|tausend|millionen|milliarden|keine[nr]?"
)
_COUNTED = rf"(?:\p{{N}}[\p{{N}}.,/–-]*|{_SPELLED})"
_TIME_UNIT = (
    r"seconds?|minutes?|min|hours?|hrs?|h|days?|nights?|weeks?|months?|quarters?|years?|decades?"
    r"|century|centuries|sekunden?|minuten?|stunden?|std|tage?n?|werktage?n?|arbeitstage?n?|wochen?"
    r"|monate?n?|quartale?n?|jahre?n?"
)
_COUNTED_UNIT = regex.compile(
    r"\b(?:how many|wie ?viele[rn]?) (?:\p{L}+ )?"
    r"(seconds?|minutes?|hours?|days?|nights?|weeks?|months?|quarters?|years?|sekunden?|minuten?"
    r"|stunden?|tage?n?|wochen?|monate?n?|jahre?n?)\b",
    regex.IGNORECASE,
)
_UNIT_ENDING = regex.compile(r"(?:en|n|e|s)$")
_BETWEEN = r"[\s-]*(?:\p{L}+[\s-]+){0,2}?"  # "five working days", "14-day"
_EVIDENCE: dict[AnswerKind, regex.Pattern[str]] = {
    AnswerKind.MONEY: regex.compile(
        r"[€$£¥%]|\b(?:EUR|USD|GBP|CHF|JPY|euros?|dollars?|pounds?|francs?|yen|cents?|percent"
        r"|per cent|prozent|free of charge|kostenlos|kostenfrei)\b",
        regex.IGNORECASE,
    ),
    AnswerKind.WEIGHT: regex.compile(
        r"\p{N}\s*(?:mg|g|kg|t|lbs?|oz)\b"
        r"|\b(?:kilograms?|kilos?|grams?|tons?|tonnes?|pounds?|kilogramm|gramm|tonnen?)\b",
        regex.IGNORECASE,
    ),
    AnswerKind.LENGTH: regex.compile(
        r"\p{N}\s*(?:mm|cm|dm|m|km|ft|in|mi|yd)\b"
        r"|\b(?:millimet(?:er|re)s?|centimet(?:er|re)s?|met(?:er|re)s?|kilomet(?:er|re)s?|inch(?:es)?"
        r"|foot|feet|miles?|yards?|metern?|zentimetern?|kilometern?)\b",
        regex.IGNORECASE,
    ),
    AnswerKind.DURATION: regex.compile(
        rf"\b{_COUNTED}{_BETWEEN}(?:{_TIME_UNIT})\b"
        r"|\b(?:immediately|at once|overnight|permanently|indefinitely|sofort|unverzüglich"
        r"|unbefristet)\b",
        regex.IGNORECASE,
    ),
    AnswerKind.AGE: regex.compile(
        rf"\b(?:aged?|alter|jährig\w*)\b"
        rf"|\b{_COUNTED}[\s-]*(?:years?|months?|jahre?n?|monate?n?)\b",
        regex.IGNORECASE,
    ),
    AnswerKind.FREQUENCY: regex.compile(
        rf"\b(?:every|each|per|once|twice|times|hourly|daily|nightly|weekly|monthly|quarterly|yearly"
        r"|annual(?:ly)?|regularly|always|never|jede[rnsm]?|pro|alle|einmal|zweimal|\p{L}+mal"
        r"|stündlich|täglich|wöchentlich|monatlich|vierteljährlich|halbjährlich|jährlich)\b"
        rf"|\b{_COUNTED}{_BETWEEN}(?:{_TIME_UNIT})\b",
        regex.IGNORECASE,
    ),
    AnswerKind.TEMPERATURE: regex.compile(
        r"°|\b(?:degrees?|celsius|fahrenheit|kelvin|grad)\b", regex.IGNORECASE
    ),
    AnswerKind.SHARE: regex.compile(
        r"%|\b(?:per ?cent|percentage|half|thirds?|quarters?|tenth|majority|prozent|hälfte"
        r"|drittel|viertel|mehrheit)\b",
        regex.IGNORECASE,
    ),
}
_NUMBER = regex.compile(
    rf"(?<![\p{{L}}\p{{N}}])(?:\p{{N}}[\p{{N}}.,]*|{_SPELLED})(?!\p{{L}})", regex.IGNORECASE
)
_YEAR = regex.compile(r"1[0-9]{3}|20[0-9]{2}")
_WHEN = regex.compile(
    r"\p{N}|\b(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december|januar|februar|märz|mai|juni|juli|oktober|dezember|(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)days?|montags?|dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonntags?|noon"
    r"|midnight|morning|evening|daily|weekly|monthly|yearly|annually|before|after|until|within|once"
    r"|as soon as|during|vor|nach|bis|innerhalb|sobald|spätestens|während)\b",
    regex.IGNORECASE,
)
_NAME = regex.compile(r"(?<=[\p{L}\p{N},)|]\s)\p{Lu}[\p{L}\p{M}.'’\-]+")


def answer_kind(question: str) -> tuple[AnswerKind, str]:
    """The kind that a question asks for, and the question without the how-many words, which are
    not content words of it."""
    for kind, pattern in _ASKING:
        match = pattern.search(question)
        if match is not None:
            return kind, _ASKING_WORDS.sub(" ", question, count=1)
    return AnswerKind.OTHER, question


_ASKING_WORDS = _words(
    r"how (?:much|many times|many|often|frequently|long|soon|quickly|fast|old|tall|wide|deep|far"
    r"|thick|heavy|hot|cold|warm|expensive|large|big|high|late|early)"
    r"|wie ?viele?[rnm]?|wie (?:oft|häufig|lange?|schnell|bald|alt|breit|tief|weit|dick|schwer|heiß"
    r"|kalt|warm|teuer|groß|hoch|spät|früh)"
    r"|(?:what|which) (?:percentage|percent|proportion|year|date|day|month|time)"
    r"|welche[mnrs]? (?:jahr|datum|tag|monat|uhrzeit)"
)


def holds_kind(kind: AnswerKind, text: str, question: str) -> bool | None:
    """Whether the text has something of the kind that the question does not say itself.

    None for OTHER. For people and places any capitalised word inside a sentence will do, so True
    says less there than for numbers.
    """
    if kind is AnswerKind.OTHER:
        return None
    if kind in {AnswerKind.PERSON, AnswerKind.PLACE}:
        asked = question.casefold()
        return any(found[0].casefold() not in asked for found in _NAME.finditer(text))
    if kind is AnswerKind.DATE:
        return _WHEN.search(text) is not None
    if kind is AnswerKind.COUNT and (unit := _COUNTED_UNIT.search(question)) is not None:
        # "How many weeks" is not answered by months.
        return _has_count_of(unit[1], text)
    if kind in {AnswerKind.COUNT, AnswerKind.QUANTITY}:
        return _has_number(text, question, years_count=kind is AnswerKind.QUANTITY)
    if kind is AnswerKind.DURATION and _EVIDENCE[AnswerKind.LENGTH].search(text):
        return True
    return _EVIDENCE[kind].search(text) is not None


def _has_count_of(unit: str, text: str) -> bool:
    stem = regex.escape(_UNIT_ENDING.sub("", unit))
    return regex.search(rf"\b{_COUNTED}{_BETWEEN}{stem}\p{{L}}{{0,2}}\b", text, regex.I) is not None


def _has_number(text: str, question: str, *, years_count: bool) -> bool:
    asked = {found[0].strip(".,").casefold() for found in _NUMBER.finditer(question)}
    for found in _NUMBER.finditer(text):
        number = found[0].strip(".,").casefold()
        if number not in asked and (years_count or not _YEAR.fullmatch(number)):
            return True
    return False
