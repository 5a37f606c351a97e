"""Numbers of a model as people would write them: 1/sqrt(2) for 0.70710678, 1/sqrt(d) for an eighth where d is 64."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import pi, sqrt

from superopt.rewrite.numerals import decimal, rounds_to

PLAIN: tuple[Fraction, ...] = tuple(Fraction(n, d) for d in (1, 2, 3, 6) for n in (0, 1, -1, 2, 3, 6))
"""Numbers that stand for themselves in any formula."""
CLOSED: Mapping[str, float] = {
    "sqrt(2)": sqrt(2),
    "1/sqrt(2)": 1 / sqrt(2),
    "sqrt(2/pi)": sqrt(2 / pi),
    "sqrt(pi)": sqrt(pi),
    "1/sqrt(2*pi)": 1 / sqrt(2 * pi),
    "pi": pi,
}


def is_plain(number: float | int, dtype: str) -> bool:
    return decimal(float(number), dtype) in PLAIN or any(rounds_to(float(number), v, dtype) for v in CLOSED.values())


def spelled(number: float | int, dtype: str, sizes: Iterable[tuple[str, int]] = ()) -> Iterator[str]:
    """Ways to write it, those in the part's sizes first."""
    value = float(number)
    for text, size in sizes:
        ways = {
            f"1/sqrt({text})": size**-0.5,
            f"sqrt({text})": size**0.5,
            f"1/sqrt(sqrt({text}))": size**-0.25,
            f"1/({text})": 1 / size,
            text: float(size),
        }
        for written, exact in ways.items():
            if size > 1 and rounds_to(value, exact, dtype):
                yield written
    for text, exact in CLOSED.items():
        if rounds_to(value, exact, dtype):
            yield text
        elif rounds_to(-value, exact, dtype):
            yield f"0 - {text}"
    yield plain(decimal(value, dtype))


def plain(number: Fraction | float | int) -> str:
    fraction = Fraction(number)
    text = str(abs(fraction.numerator)) if fraction.denominator == 1 else _short(abs(fraction))
    return f"0 - {text}" if fraction < 0 else text


def _short(fraction: Fraction) -> str:
    """A decimal where that is what it is and it is no longer, else a quotient."""
    quotient = f"{fraction.numerator}/{fraction.denominator}"
    written = repr(float(fraction))
    return written if Fraction(written) == fraction and len(written) <= len(quotient) else quotient
