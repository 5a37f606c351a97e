"""A term as text in which the names of bound variables do not matter, for adding up like terms.

Equal text means equal terms. Equal terms may still differ in text: that is for `superopt.verify.equal` to find out.
Bound variables get Greek names, which no rule can give to a size.
"""

from __future__ import annotations

from superopt.ops.index import Poly, Symbol, Values
from superopt.verify.terms import AccessFactor, Alternative, CallFactor, Factor, Sum, Term, replace, replace_sum

_BLANK = Poly({(Symbol("_"),): 1})


def term_key(term: Term) -> str:
    """Everything but the coefficient."""
    if term.bound:
        term = _renumbered(term)
    scale = "·".join(f"{a}^{e}" for a, e in term.scale)
    domain = " & ".join(sorted(str(c) for c in term.domain))
    factors = " ".join(sorted(map(factor_key, term.factors)))
    return f"{scale}|{len(term.bound)}|{domain}|{factors}"


def text_key(term: Term) -> str:
    """As `term_key`, with the bound variables' own names: quickly made, and enough for copies of one term."""
    bound = ",".join(v.name for v in term.bound)
    domain = " & ".join(map(str, term.domain))
    factors = " ".join(map(factor_key, term.factors))
    return f"{term.scale}|{bound}|{domain}|{factors}"


def sum_key(terms: Sum) -> str:
    return " + ".join(sorted(f"{t.coefficient}·{term_key(t)}" for t in terms))


def factor_key(factor: Factor) -> str:
    if isinstance(factor, AccessFactor):
        return f"{factor.tensor}[{', '.join(map(str, factor.indices))}]"
    if isinstance(factor, CallFactor):
        return f"{factor.function}({'; '.join(map(sum_key, factor.arguments))})"
    return f"max({'; '.join(sorted(map(_alternative_key, factor.alternatives)))})"


def _alternative_key(alternative: Alternative) -> str:
    names: Values = {v: Poly({(Symbol(f"µ{k}"),): 1}) for k, v in enumerate(alternative.bound)}
    shell = Term(1, bound=(), domain=alternative.domain)  # pyright: ignore[reportArgumentType]
    domain = " & ".join(sorted(str(c) for c in replace(shell, names).domain))
    return f"{domain}: {sum_key(replace_sum(alternative.value, names))}"


def _renumbered(term: Term) -> Term:
    """Bound variables numbered by where they occur, factors ordered by what they are without them."""
    blank: Values = dict.fromkeys(term.bound, _BLANK)
    shapes = replace(term, blank).factors
    order = sorted(range(len(shapes)), key=lambda k: factor_key(shapes[k]))
    text = " ".join(factor_key(term.factors[k]) for k in order) + " ".join(sorted(str(c) for c in term.domain))
    ordered = sorted(term.bound, key=lambda v: (text.find(v.name) if v.name in text else len(text), v.name))
    names: Values = {v: Poly({(Symbol(f"β{k}"),): 1}) for k, v in enumerate(ordered)}
    renamed = replace(term, names)
    return Term(
        renamed.coefficient,
        renamed.scale,
        tuple(Symbol(f"β{k}") for k in range(len(ordered))),
        renamed.domain,
        renamed.factors,
    )
