"""Einsum: products of operands whose axes have letters, summed over the letters that the result does not have."""

from __future__ import annotations

from typing import Any

from specs._reduce import sum_all
from superopt.ops.draws import pick, size, whole
from superopt.ops.element import ONE, Element
from superopt.ops.formula import Tensor, broadcast, broadcast_shape, covered, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator

EQUATIONS = (
    "ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "bhij,bhjd->bihd", "ij,jk,kl->il", "i,j->ij",
    "i,i", "ij,jk", "ba", "ij->", "ii", "ii->i", "iji", "iij->ji", "aab,bcc->ac", "ij,ij->ij", ",ij", "ij , jk -> k",
    "...ij,...jk->...ik", "...ij,jk->...ik", "...a,...a->...", "i...j->...", "...ij->j...i", "...ii->...i", "b...,b...",
    "Ab,bC->AC", "a,a,a->a", "bnd,hd->bhn", "abcd->dcab",
)  # fmt: skip


@whole
def draw(rng: Any) -> Draw:
    equation = pick(rng, *EQUATIONS)
    sizes = {letter: 1 if rng.random() < 0.15 else size(rng, 2, 4) for letter in equation}
    if rng.random() < 0.05:
        sizes[pick(rng, *sizes)] = 0
    rest = tuple(size(rng, 1, 3) for _ in range(size(rng, 0, 2)))
    shapes: list[tuple[int, ...]] = []
    for term in equation.split("->")[0].replace(" ", "").split(","):
        batch = tuple(1 if rng.random() < 0.2 else n for n in rest)
        shapes.append(tuple(n for c in term.replace("...", ".") for n in (batch if c == "." else (sizes[c],))))
    return Draw(tuple(shapes), {"equation": equation})


def parsed(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand's axes and of the result's; an ellipsis stands for axes with the names 0, 1, …"""
    left, arrow, right = equation.replace(" ", "").partition("->")
    for name in (left + right).replace("...", "").replace(",", ""):
        require(name.isascii() and name.isalpha(), f"{equation}: {name!r} is no letter")
    terms = [term.replace("...", ".") for term in left.split(",")]
    require(len(terms) == len(ranks), f"{equation}: {len(terms)} terms for {len(ranks)} operands")
    hidden = {rank - len(term) + 1 for term, rank in zip(terms, ranks, strict=True) if "." in term} or {0}
    require(len(hidden) == 1, f"{equation}: an ellipsis stands for as many axes wherever it is")
    count = hidden.pop()
    require(count >= 0, f"{equation}: more letters than axes")
    names = [str(k) for k in range(count)]
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        right = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    spelled = [[c for s in term for c in (names if s == "." else [s])] for term in [*terms, right.replace("...", ".")]]
    for term, rank in zip(spelled, ranks, strict=False):
        require(len(term) == rank, f"{equation}: {len(term)} letters for {rank} axes")
    return spelled[:-1], spelled[-1]


@operator("Einsum", since=12, elements="any", draw=draw)
def einsum(*xs: Tensor, equation: str) -> Tensor:
    terms, result = parsed(equation, [x.rank for x in xs])
    names = list(dict.fromkeys(name for term in terms for name in term))
    require(len(set(result)) == len(result), f"{equation}: the result has an axis twice")
    require(set(result) <= set(names), f"{equation}: the result has an axis that no operand has")
    covered(all(n in result for n in names if n.isdigit()), f"{equation}: a sum over the axes of an ellipsis")
    sizes: dict[str, Index] = {}
    for name in names:
        found = [n for x, term in zip(xs, terms, strict=True) for n, c in zip(x.shape, term, strict=True) if c == name]
        if name.isdigit():
            (sizes[name],) = broadcast_shape(*((n,) for n in found))
        else:
            sizes[name] = found[0]
            for n in found[1:]:
                covered(n == found[0], f"{equation}: sizes {found[0]} and {n} of one letter")
    operands = [broadcast(x, tuple(sizes[c] for c in term)) for x, term in zip(xs, terms, strict=True)]
    summed = [name for name in names if name not in result]

    def at(*i: Index) -> Element:
        def term(*j: Index) -> Element:
            place = dict(zip([*result, *summed], [*i, *j], strict=True))
            product: Element = ONE
            for x, letters in zip(operands, terms, strict=True):
                product = product * x[tuple(place[c] for c in letters)]
            return product

        return sum_all(tuple(sizes[name] for name in summed), term)

    return tensor(tuple(sizes[name] for name in result), at)
