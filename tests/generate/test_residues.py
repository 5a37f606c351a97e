"""What is equal for real numbers is equal for residues."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.generate.residues import BASE, P, Parts, Q, Residues, Value, power, raise_base, times

pytestmark = pytest.mark.unit
FIELD = Residues(Parts(q=True, r=True))


def drawn(seed: int, *shape: int) -> Value:
    return FIELD.draw(shape, np.random.default_rng(seed), 0.3)


def test_the_primes_are_what_the_construction_needs() -> None:
    assert P == 2 * Q + 1
    assert P.bit_length() == 31
    assert all(n % d for n in (P, Q) for d in range(2, 50_000))
    assert pow(BASE, Q, P) == 1


def test_products_are_exact() -> None:
    random = np.random.default_rng(0)
    for modulus in (P, Q):
        a, b = random.integers(0, modulus, (2, 5000))
        edge = np.array([0, 1, modulus - 1])
        a, b = np.concatenate([a, edge, edge]), np.concatenate([b, edge, edge[::-1]])
        assert times(a, b, modulus).tolist() == [int(x) * int(y) % modulus for x, y in zip(a, b, strict=True)]


def test_exponentials_turn_sums_into_products() -> None:
    x, y = drawn(1, 40), drawn(2, 40)
    left = FIELD.call("exp", [FIELD.add(x, y)])
    right = FIELD.multiply(FIELD.call("exp", [x]), FIELD.call("exp", [y]))
    assert (left.p == right.p).all()
    exponents = FIELD.add(x, y).q
    assert exponents is not None
    assert left.p.tolist() == [pow(BASE, int(q), P) for q in exponents]


def test_tanh_is_the_quotient_of_exponentials() -> None:
    x = drawn(3, 40)
    e, f = FIELD.call("exp", [x]), FIELD.call("exp", [FIELD.multiply(FIELD.number(-1), x)])
    over = FIELD.call("reciprocal", [FIELD.add(e, f)])
    wanted = FIELD.multiply(FIELD.add(e, FIELD.multiply(FIELD.number(-1), f)), over)
    assert (FIELD.call("tanh", [x]).p == wanted.p).all()


def test_quotients_and_roots() -> None:
    x, y = drawn(4, 40), drawn(5, 40)
    assert (FIELD.multiply(x, FIELD.call("reciprocal", [x])).p == 1).all()
    both = FIELD.call("sqrt", [FIELD.multiply(x, y)])
    assert (both.p == FIELD.multiply(FIELD.call("sqrt", [x]), FIELD.call("sqrt", [y])).p).all()
    square = FIELD.call("sqrt", [FIELD.multiply(x, x)])
    assert ((square.p == x.p) | (square.p == P - x.p)).all()


def test_the_larger_takes_its_residue_along() -> None:
    x, y, z = drawn(6, 40), drawn(7, 40), drawn(8, 40)
    largest = FIELD.call("max", [x, y])
    shifted = FIELD.call("max", [FIELD.add(x, z), FIELD.add(y, z)])
    assert (FIELD.add(largest, z).p == shifted.p).all()
    assert (largest.p != x.p).any()
    assert (largest.p != y.p).any()


def test_few_numbers_tell_signs_and_bounds_apart() -> None:
    places = [0.1 + k / 4 for k in range(4)]
    one = [FIELD.draw((1,), np.random.default_rng(k), place).r for k, place in enumerate(places)]
    assert min(float(r[0]) for r in one if r is not None) < 0 < max(float(r[0]) for r in one if r is not None)
    several = FIELD.draw((6,), np.random.default_rng(0), 0.1).r
    assert several is not None
    assert several.max() > 6
    assert several.min() < -3


def test_other_functions_have_no_algebra_but_their_symmetry() -> None:
    x, y = drawn(9, 40), drawn(10, 40)
    minus = FIELD.multiply(FIELD.number(-1), x)
    assert (FIELD.add(FIELD.call("erf", [x]), FIELD.call("erf", [minus])).p == 0).all()
    assert (FIELD.call("cos", [x]).p == FIELD.call("cos", [minus]).p).all()
    logs = FIELD.add(FIELD.call("log", [x]), FIELD.call("log", [y]))
    assert (FIELD.call("log", [FIELD.multiply(x, y)]).p != logs.p).all()


def test_powers() -> None:
    x = np.array([2, 3, P - 1])
    assert power(x, 12, P).tolist() == [pow(int(n), 12, P) for n in x]
    assert raise_base(np.array([0, 1, 5])).tolist() == [1, BASE, BASE**5]
