"""Dates and times of day, English and German, and whether the quotes have them.

2024-03-01, 1 March 2024, March 1, 2024 and 01.03.2024 are one date. 3/1/2024 may be two. A lone
year is a number like any other (`quantities`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import regex

from query.answers.verification.problems import Problem, ProblemKind

Fields = tuple[int | None, int | None, int | None]  # year, month, day


@dataclass(frozen=True, slots=True)
class Date:
    """What was written: calendar readings (any may be meant), or a weekday 0 to 6, or a time of day
    in minutes. `start`, `end` in the prepared text."""

    text: str
    start: int
    end: int
    readings: frozenset[Fields] = frozenset()
    weekday: int | None = None
    minutes: int | None = None

    @property
    def years(self) -> set[int]:
        return {year for year, _, _ in self.readings if year is not None}

    @property
    def terms(self) -> tuple[str, ...]:
        """One for each field that was written, to lay clauses beside each other."""
        if self.weekday is not None:
            return (f"weekday:{self.weekday}",)
        if self.minutes is not None:
            return (f"minutes:{self.minutes}",)
        fields = {
            f"{name}:{value}"
            for reading in self.readings
            for name, value in zip(("year", "month", "day"), reading, strict=True)
            if value is not None
        }
        return tuple(sorted(fields))


_MONTHS: dict[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "January Jan Januar Jänner", "February Feb Februar", "March Mar März Mrz",
            "April Apr", "May Mai", "June Jun Juni", "July Jul Juli", "August Aug",
            "September Sept Sep", "October Oct Oktober Okt", "November Nov",
            "December Dec Dezember Dez",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAYS: dict[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "monday montag", "tuesday dienstag", "wednesday mittwoch", "thursday donnerstag",
            "friday freitag", "saturday samstag sonnabend", "sunday sonntag",
        )
    )
    for name in names.split()
}  # fmt: skip
_NAMED_TIMES = {"noon": 720, "midday": 720, "midnight": 0, "mitternacht": 0}

_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)"
_YEAR = r"(?P<year>[12]\d{3})(?!\d)"
_BEFORE_MONTH = (
    r"(?:in|since|until|by|during|of|from|every|each|before|after|through|to|and|late|early|mid|end"
    r"|im|seit|bis|ab|jeden|ende|anfang|mitte|und|vor|nach)"
)
_CALENDAR: tuple[str, ...] = (
    r"(?<![\d-])(?P<year>[12]\d{3})-(?P<month_number>[01]\d)-(?P<day>[0-3]\d)(?![\d-])",
    rf"(?<![\d.,]){_DAY}(?:st|nd|rd|th|\.)?(?: of)? {_MONTH}(?:,? {_YEAR})?",
    rf"\b{_MONTH} {_DAY}(?:st|nd|rd|th)?(?![\d:%])(?:,? {_YEAR})?",
    rf"\b{_MONTH},? (?:of )?{_YEAR}",
    r"(?<![\d.,/])(?P<first>[0-3]?\d)(?P<separator>[./])(?P<second>[0-3]?\d)(?P=separator)"
    r"(?P<short_year>(?:[12]\d)?\d\d)(?!\d)",
    rf"(?i:\b{_BEFORE_MONTH}) {_MONTH}",
    rf"\b(?!May\b|March\b|Mar\b){_MONTH}",
)
_PATTERNS = [regex.compile(pattern) for pattern in _CALENDAR]
_WEEKDAY = regex.compile(rf"\b({'|'.join(_WEEKDAYS)})s?\b", regex.IGNORECASE)
_TIME = regex.compile(
    r"(?<![\d.,:])(?P<hour>[0-2]?\d)(?:(?P<colon>[:.])(?P<minute>[0-5]\d))?"
    r"(?:\s?(?P<half>[ap])\.?\s?m\b\.?|\s?(?P<clock>uhr|o'clock)\b)?(?![\d:])",
    regex.IGNORECASE,
)
_NAMED_TIME = regex.compile(rf"\b({'|'.join(_NAMED_TIMES)})\b", regex.IGNORECASE)


def find_dates(prepared: str) -> list[Date]:
    """All dates and times in order; none overlap."""
    found: list[Date] = []
    for pattern in _PATTERNS:
        _collect(found, pattern.finditer(prepared), _calendar_date)
    _collect(found, _WEEKDAY.finditer(prepared), _weekday)
    _collect(found, _TIME.finditer(prepared), _time)
    _collect(found, _NAMED_TIME.finditer(prepared), _named_time)
    return sorted(found, key=lambda date: date.start)


def date_problems(
    wanted: Iterable[Date], available: Sequence[Date], lone_years: frozenset[int]
) -> list[Problem]:
    """The dates that the quotes do not have. `lone_years`: years in the quotes by themselves.

    A quote that leaves the year open supports a date only weakly, and only where the other fields
    are right; one that says another year does not.
    """
    problems: list[Problem] = []
    for date in wanted:
        if any(_covers(date, other) for other in available):
            continue
        others = [other for other in available if other.readings]
        is_open = any(_agrees(date, other, lone_years) for other in others)
        problems.append(Problem(ProblemKind.DATE, date.text, is_hard=not is_open))
    return problems


def _collect(
    found: list[Date],
    matches: Iterable[regex.Match[str]],
    read: Callable[[regex.Match[str]], Date | None],
) -> None:
    for match in matches:
        if any(match.start() < date.end and date.start < match.end() for date in found):
            continue
        date = read(match)
        if date is not None:
            found.append(date)


def _calendar_date(match: regex.Match[str]) -> Date | None:
    groups = match.groupdict()
    if groups.get("separator"):
        readings = _numeric_readings(groups)
    else:
        named = groups.get("month")
        month = _MONTHS[named] if named else int(groups["month_number"])
        readings = {(_number(groups.get("year")), month, _number(groups.get("day")))}
    valid = frozenset(fields for fields in readings if _is_valid(fields))
    return Date(match[0], *match.span(), readings=valid) if valid else None


def _numeric_readings(groups: dict[str, str]) -> set[Fields]:
    first, second, year = int(groups["first"]), int(groups["second"]), int(groups["short_year"])
    year += 2000 if year < 100 else 0
    if groups["separator"] == ".":
        return {(year, second, first)}
    return {(year, second, first), (year, first, second)}


def _weekday(match: regex.Match[str]) -> Date:
    return Date(match[0], *match.span(), weekday=_WEEKDAYS[match[1].lower()])


def _time(match: regex.Match[str]) -> Date | None:
    has_words = bool(match["half"] or match["clock"])
    if not has_words and match["colon"] != ":":
        return None
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].lower() == "p" else 0)
    if hour > 24:
        return None
    return Date(match[0].strip(), *match.span(), minutes=hour % 24 * 60 + int(match["minute"] or 0))


def _named_time(match: regex.Match[str]) -> Date:
    return Date(match[0], *match.span(), minutes=_NAMED_TIMES[match[1].lower()])


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _is_valid(fields: Fields) -> bool:
    _, month, day = fields
    return (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31)


def _covers(wanted: Date, other: Date) -> bool:
    if wanted.weekday is not None or wanted.minutes is not None:
        return (wanted.weekday, wanted.minutes) == (other.weekday, other.minutes)
    return any(_covers_reading(reading, other) for reading in wanted.readings)


def _agrees(wanted: Date, other: Date, lone_years: frozenset[int]) -> bool:
    """Whether day and month are the other's, which leaves the year open or has it elsewhere."""
    is_year_open = not other.years or bool(wanted.years & lone_years)
    return is_year_open and any(
        month is not None and _covers_reading((None, month, day), other)
        for _, month, day in wanted.readings
    )


def _covers_reading(wanted: Fields, other: Date) -> bool:
    return any(
        all(mine is None or mine == theirs for mine, theirs in zip(wanted, reading, strict=True))
        for reading in other.readings
    )
