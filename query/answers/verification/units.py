"""Units of measure, time and money: one name for each spelling, English and German.

Nothing is converted: 1 kg and 1000 g are different units. Symbols are told apart by case (mW, MW).
"""

from __future__ import annotations

import regex


def _by_spelling(lines: str) -> dict[str, str]:
    """`name spelling spelling ...`, a line a unit; a spelling of several words joined by _."""
    found: dict[str, str] = {}
    for line in lines.strip().splitlines():
        name, *spellings = line.split()
        found.update({spelling.replace("_", " "): name for spelling in (name, *spellings)})
    return found


_SYMBOLS = _by_spelling("""
µg mcg ug μg
mg
g
kg
t
lb lbs
oz
nm
µm um μm
mm
cm
dm
m
km
ft
mi
yd
mm2 mm²
cm2 cm²
m2 m² sqm qm
km2 km²
ha
cm3 cm³ ccm
m3 m³ cbm
µl μl
ml mL
cl
dl
l L
ms
s sec
min mins
h hr hrs Std
°C ℃
°F
K
mbar
bar
hPa
Pa
kPa
MPa
GPa
psi
mW
W
kW
MW
GW
TW
hp PS
J
kJ
MJ
Wh
kWh
MWh
GWh
cal
kcal
mV
V
kV
mA
A
Hz
kHz
MHz
GHz
Ω Ohm
mΩ
kΩ
B
kB KB
MB
GB
TB
kbit/s kbps
Mbit/s Mbps
Gbit/s Gbps
N
kN
Nm
m/s
km/h kph
mph
rpm
dB
lx
mol
mmol
ppm
% pct
‰
EUR €
USD $ US$
GBP £
CHF SFr
JPY ¥
""")

_WORDS = _by_spelling("""
µg microgram micrograms mikrogramm
mg milligram milligrams milligramm
g gram grams gramm
kg kilogram kilograms kilo kilos kilogramm
t ton tons tonne tonnes tonnen
oz ounce ounces
mm millimeter millimeters millimetre millimetres millimetern
cm centimeter centimeters centimetre centimetres zentimeter zentimetern
m meter meters metre metres metern
km kilometer kilometers kilometre kilometres kilometern
inch inches zoll
ft foot feet
mi mile miles meile meilen
yd yard yards
m2 square_meters square_metres square_meter square_metre quadratmeter quadratmetern
km2 square_kilometers square_kilometres quadratkilometer
ha hectare hectares hektar
m3 cubic_meters cubic_metres cubic_meter cubic_metre kubikmeter
ml milliliter milliliters millilitre millilitres millilitern
l liter liters litre litres litern
gallon gallons
ms millisecond milliseconds millisekunde millisekunden
s second seconds sekunde sekunden
min minute minutes minuten
h hour hours stunde stunden
day days tag tage tagen calendar_days calendar_day kalendertage kalendertagen
workday workdays working_days working_day business_days business_day werktag werktage werktagen arbeitstag arbeitstage arbeitstagen
night nights nacht nächte nächten
week weeks woche wochen
month months monat monate monaten
quarter quarters quartal quartale quartalen
year years jahr jahre jahren year-old jährig jährige jährigen
decade decades jahrzehnt jahrzehnte
century centuries jahrhundert jahrhunderte
°C celsius degrees_celsius degree_celsius grad_celsius degrees_c
°F fahrenheit degrees_fahrenheit degree_fahrenheit grad_fahrenheit
degree degrees grad °
bar
psi
W watt watts
kW kilowatt kilowatts
MW megawatt megawatts
GW gigawatt gigawatts
kWh kilowatt-hour kilowatt-hours kilowatt_hours kilowattstunden
MWh megawatt_hours megawattstunden
V volt volts
A amp amps ampere amperes
Hz hertz
dB decibel decibels
MB megabyte megabytes
GB gigabyte gigabytes
TB terabyte terabytes
rpm revolutions_per_minute umdrehungen_pro_minute
mph miles_per_hour
% percent per_cent percentage prozent
percentage_point percentage_points prozentpunkt prozentpunkte prozentpunkten
EUR euro euros eur
USD dollar dollars usd us_dollars
GBP sterling gbp
pound pounds pfund
CHF franc francs franken chf
JPY yen jpy
cent cents
time times mal
fold
""")  # noqa: E501
_WORDS = {spelling.casefold(): name for spelling, name in _WORDS.items()}
# "pounds" are money or weight: a match for both.
_SAME = {frozenset({"pound", "lb"}), frozenset({"pound", "GBP"}), frozenset({"degree", "°C"}),
         frozenset({"degree", "°F"})}  # fmt: skip
CURRENCIES = frozenset({"EUR", "USD", "GBP", "CHF", "JPY"})
_GLUED = regex.compile(r"\p{L}+(?:/\p{L}+)?[23]?")


def unit_of(spelling: str) -> str | None:
    """The unit's name; None when this is none."""
    return _SYMBOLS.get(spelling) or _WORDS.get(spelling.casefold())


def same_unit(one: str, other: str) -> bool:
    return one == other or frozenset({one, other}) in _SAME
