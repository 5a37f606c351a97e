"""Recipes: what is enumerated. A recipe is a file of scenes; each has inputs, operators, and worlds of sizes.

doc = "…"
max-ops = 3

[[scene]]
name = "matrices"
given = "x: [m, k]  y: [m, k]  w: [k, n]  v: [k, n]"      as in rules; sizes are names
weights = "w v"                                             known when a model is loaded: work on them alone is free
worlds = ["m=2 k=3 n=4", "m=1 k=2 n=5", …]                  at least four; `b=2,3` for a block, `p=1` for `p: int`
ops = [
    "MatMul($, $)",
    "Concat($, $, axis={0|1})",                              one operator for each choice
    "Split($, split=[n, n], axis=1) -> 2",
    "Mul($, 0.5)",
    "Conv($, %)",                                            % stands for weights, and what is computed of them
    "Sub(%, Mul(%, %))",                                     several that count as one
    "Add(#, #)",                                             # stands for what is known only when the model runs
]
targets = ["Gelu($)"]                                       operators whose spellings are looked for
laws = 2                                                    only so many are found, the smallest first
distinct = true                                             no operator reads one value twice, as x + x does
results = 4                                                 only laws about graphs with at least so many results
uphill = true                                               rules lead to what counts as much or more: the clock decides

What is constructed rather than found has entries of its own: convolutions by tiles (`superopt.generate.tiles`), and two
known rules in one (`superopt.generate.macros`).
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from superopt.errors import BadInput, BadOption
from superopt.generate.term import Template
from superopt.generate.tiles import Tiling, read_tiling
from superopt.ops.registry import Registry
from superopt.rewrite.program import find
from superopt.rewrite.rule import Block, Given
from superopt.rewrite.text import parse_call, parse_given

FOLDER = Path(__file__).with_name("recipes")
FEWEST_WORLDS = 4
MOST = 64
"""The largest size in a world: small ones tell graphs apart as well."""
EVERY = 1 << 30
"""Laws of a scene, where it does not say how many."""
_OUTPUTS = re.compile(r"(.*?)(?:\s*->\s*(\d+))?\Z", re.DOTALL)

World = Mapping[str, "int | tuple[int, ...]"]
"""A number for each name of a size, numbers for each block."""


@dataclass(frozen=True)
class Scene:
    """Inputs and operators that are combined with one another."""

    name: str
    given: tuple[Given, ...]
    weights: frozenset[str]
    templates: tuple[Template, ...]
    worlds: tuple[World, ...]
    max_ops: int
    max_inputs: int
    targets: tuple[str, ...] = ()
    """Operators whose spellings are looked for, such as Gelu: rules lead to them. They are among the templates too."""
    laws: int = EVERY
    """So many that are new, the first in order, and the scene is over: of scenes that are about a few laws. Idle ones
    do not count, and nothing follows from them."""
    distinct: bool = False
    """No operator has the same operand twice: models hold no x + x, and laws about it are smaller than those that
    matter."""
    results: int = 1
    """Laws about graphs with fewer results are left out."""
    uphill: bool = False
    """Laws are followed to the side with as many operators or more: kernels differ in what counting does not see."""
    whole: tuple[Given, ...] = ()
    """Whole numbers (`p: int`) that attributes mention: each world says how much they are; they are no inputs."""

    @cached_property
    def goals(self) -> frozenset[int]:
        """The targets' templates."""
        return frozenset(k for k, t in enumerate(self.templates) if t.text in self.targets)

    def leaf(self, name: str) -> Given:
        return next(g for g in self.given if g.name == name)


@dataclass(frozen=True)
class Macros:
    """Two known rules in one."""

    name: str
    most: int
    """Candidates."""


@dataclass(frozen=True)
class Recipe:
    name: str
    doc: str
    scenes: tuple[Scene, ...]
    source: str = field(default="", compare=False)
    tilings: tuple[Tiling, ...] = ()
    macros: tuple[Macros, ...] = ()

    def only(self, names: Collection[str]) -> Recipe:
        """With the scenes of these names alone."""
        known = [each.name for each in (*self.scenes, *self.tilings, *self.macros)]
        if unknown := set(names) - set(known):
            told = ", ".join(sorted(unknown))
            raise BadOption(f"recipe {self.name} has no scene {told}; it has {', '.join(known)}")
        scenes = tuple(s for s in self.scenes if s.name in names)
        tilings = tuple(t for t in self.tilings if t.name in names)
        return replace(self, scenes=scenes, tilings=tilings, macros=tuple(m for m in self.macros if m.name in names))


ORDER = ("pointwise", "layout", "linear", "reduce", "conv", "fused", "taso", "aimed", "gates", "tiles", "macros")
"""Simple laws first: what they say need not be found again among richer operators."""


def shipped() -> list[str]:
    found = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return sorted(found, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def load_recipe(name: str, registry: Registry, *, max_ops: int | None = None, ops: Iterable[str] = ()) -> Recipe:
    """A shipped recipe by name, or one of the user's by path. `ops` leaves only operators of these names."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        raise BadOption(f"no recipe is called {name!r}; there are {', '.join(shipped())}, or a path to a .toml file")
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path}: {error}") from None
    for key in ("scene", "tiles", "macros"):
        if not isinstance(entries := read.get(key, []), list) or not all(isinstance(e, dict) for e in entries):
            raise BadInput(f"{path}: `{key}` must be entries of their own, each headed [[{key}]]")
    wanted = frozenset(ops)
    scenes = tuple(_scene(s, read, path, registry, max_ops, wanted) for s in read.get("scene", []))
    scenes = tuple(s for s in scenes if s.templates)
    asked = read.get("tiles", []) if not wanted or "Conv" in wanted else []
    tilings = tuple(read_tiling(t, f"{path}: tiles {t.get('name', k + 1)}") for k, t in enumerate(asked))
    macros = tuple(_macros(m, path) for m in read.get("macros", []))
    if not scenes and not tilings and not macros:
        raise BadInput(f"{path}: has no scene" + (f" with any of {', '.join(sorted(wanted))}" if wanted else ""))
    return Recipe(path.stem, str(read.get("doc", "")), scenes, str(path), tilings, macros)


def _scene(
    read: Mapping[str, Any], whole: Mapping[str, Any], path: Path, registry: Registry, max_ops: int | None,
    wanted: frozenset[str],
) -> Scene:  # fmt: skip
    name = str(read.get("name", "scene"))
    where = f"{path}: scene {name}"
    for key, kind in (("given", str), ("ops", list), ("worlds", list)):
        if key not in read:
            raise BadInput(f"{where}: `{key}` is missing")
        if not isinstance(read[key], kind) or (kind is list and not all(isinstance(t, str) for t in read[key])):
            raise BadInput(f"{where}: `{key}` must be {'a text' if kind is str else 'a list of texts'}")
    for key in ("max-ops", "max-inputs", "laws", "results"):
        if not isinstance(number := read.get(key, 1), int) or number < 1:
            raise BadInput(f"{where}: `{key}` must be a number of at least 1, not {number!r}")
    for key in ("distinct", "uphill"):
        if not isinstance(said := read.get(key, False), bool):
            raise BadInput(f"{where}: `{key}` must be true or false, not {said!r}")
    declared = parse_given(read["given"], where)
    given = tuple(g for g in declared if g.kind != "int")
    whole_numbers = tuple(g for g in declared if g.kind == "int")
    weights = frozenset(str(read.get("weights", "")).split())
    if unknown := weights - {g.name for g in given}:
        raise BadInput(f"{where}: weights that are no input: {', '.join(sorted(unknown))}")
    worlds = tuple(_world(text, given, where) for text in read["worlds"])
    if len(worlds) < FEWEST_WORLDS:
        raise BadInput(f"{where}: {len(worlds)} worlds, at least {FEWEST_WORLDS} are needed")
    goals = [t for text in read.get("targets", []) for t in _templates(text, where, registry)]
    templates = [*(t for text in read["ops"] for t in _templates(text, where, registry)), *goals]
    kept = tuple(t for t in dict.fromkeys(templates) if not wanted or t.call.op in wanted)
    most = max_ops or int(read.get("max-ops", whole.get("max-ops", 3)))
    targets = tuple(t.text for t in goals if t in kept)
    inputs, laws = int(read.get("max-inputs", 4)), int(read.get("laws", EVERY))
    distinct, uphill, results = read.get("distinct", False), read.get("uphill", False), int(read.get("results", 1))
    return Scene(
        name, given, weights, kept, worlds, most, inputs, targets, laws, distinct, results, uphill, whole_numbers
    )


def _macros(read: Mapping[str, Any], path: Path) -> Macros:
    name = str(read.get("name", "macros"))
    if not isinstance(most := read.get("most", 60), int) or most < 1:
        raise BadInput(f"{path}: macros {name}: `most` must be a number of at least 1, not {most!r}")
    return Macros(name, most)


def _world(text: str, given: tuple[Given, ...], where: str) -> World:
    blocks = {d.name for g in given for d in g.dims if isinstance(d, Block)}
    world: dict[str, int | tuple[int, ...]] = {}
    for part in text.split():
        name, _, value = part.partition("=")
        try:
            numbers = tuple(int(n) for n in value.split(",") if n)
        except ValueError:
            raise BadInput(f"{where}: expected NAME=NUMBER in a world, found {part!r}") from None
        if not all(0 <= n <= MOST for n in numbers) or (name not in blocks and len(numbers) != 1):
            raise BadInput(f"{where}: expected a number from 0 to {MOST} in a world, found {part!r}")
        world[name] = numbers if name in blocks else numbers[0]
    for block in blocks:
        if block not in world:
            raise BadInput(f"{where}: a world lacks the block {block!r}: {text!r}")
    return world


def _templates(text: str, where: str, registry: Registry) -> Iterator[Template]:
    """One for each choice in braces."""
    found = _OUTPUTS.match(text.strip())
    assert found is not None
    body, outputs = found.groups()
    for chosen in _choices(body):
        slots = itertools.count()
        kinds = re.findall(r"[$%#]", chosen)
        call = parse_call(re.sub(r"[$%#]", lambda _, slots=slots: f"s{next(slots)}", chosen), where)
        operator = find(call, registry)
        two = [o for o in call.operands if o is not None] == ["s0", "s1"]
        weights, running = (frozenset(k for k, kind in enumerate(kinds) if kind == sign) for sign in "%#")
        commutative = operator.commutative and two and not weights and len(running) != 1
        yield Template(call, int(outputs or 1), commutative, weights, running)


def _choices(text: str) -> Iterator[str]:
    found = re.search(r"\{([^{}]*)\}", text)
    if found is None:
        yield text
        return
    for choice in found.group(1).split("|"):
        yield from _choices(text[: found.start()] + choice.strip() + text[found.end() :])
