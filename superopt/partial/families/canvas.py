"""Several images, convolved alike with the same filters, on one canvas: feature pyramids, Siamese branches.

With gaps as wide as windows reach the result is right everywhere; without them it is wrong along the seams, and those
can be mended. Through a chain of convolutions that keep sizes, with functions of elements between them, a mask makes
the gaps zero again before each convolution that reads them. A chain is proved in sections, from one mask to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from superopt.ops.registry import Registry
from superopt.partial.chain import Chain, chains
from superopt.partial.derivation import Use
from superopt.partial.families.layout import Layout, arrangements, cleared, joined, laid_out, mask
from superopt.partial.lift import MOST_IMAGES
from superopt.partial.program import Mutant, Original, Shape, stated
from superopt.partial.writing import Writer, listing, product


def canvases(original: Original, shapes: Mapping[str, Shape], registry: Registry) -> Iterator[Mutant]:
    group = chains(original, shapes, registry)
    if not 2 <= len(group) <= MOST_IMAGES or len({chain.alike for chain in group}) > 1 or group[0].layers[0].rank > 2:
        return
    sizes = [chain.layers[0].sizes for chain in group]
    first, rank = group[0].layers[0], group[0].layers[0].rank
    gaps = [
        max(max(w.before[axis], w.overhang[axis], 0) for chain in group for w in chain.layers) for axis in range(rank)
    ]
    for shelves in arrangements(sizes):
        layout = laid_out(sizes, shelves, gaps, first.strides)
        doc = f"{len(group)} images on one canvas, with gaps."
        uses = tuple(_uses(original, group, layout)) if len(group[0].layers) > 1 else ()
        yield Mutant("canvas", original, original.rule(_written(original, group, layout), doc), uses)
        if len(group[0].layers) == 1:
            layout = laid_out(sizes, shelves, [0] * rank, first.strides)
            doc = f"{len(group)} images on one canvas, side by side."
            yield Mutant("canvas", original, original.rule(_written(original, group, layout), doc))


def _sections(chain: Chain) -> list[range]:
    """Layers from one mask to the next: a mask stands before each layer that reads neighbours, but the first."""
    starts = [n for n, w in enumerate(chain.layers) if n == 0 or any(e > 1 for e in w.extents)]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(chain.layers)], strict=True)]


def _written(original: Original, group: Sequence[Chain], layout: Layout) -> list[str]:
    writer, chain = Writer(original.names), group[0]
    value = joined(writer, layout, [c.source for c in group])
    made: str | None = None
    for section in _sections(chain):
        if section.start:
            made = made or mask(writer, layout)
            value = writer.put(cleared(value, made))
        value = _on_canvas(writer, chain, section, value, {})
    _cut(writer, value, group, layout, [c.target for c in group])
    return writer.lines


def _on_canvas(writer: Writer, chain: Chain, section: range, value: str, names: Mapping[str, str]) -> str:
    for n in section:
        layer = chain.layers[n]
        b = None if layer.b is None else names.get(layer.b, layer.b)
        value = writer.put(layer.call(value, names.get(layer.k, layer.k), b))
        for function in chain.functions[n]:
            value = writer.put(function.format(value))
    return value


def _cut(writer: Writer, canvas: str, group: Sequence[Chain], layout: Layout, names: Sequence[str]) -> None:
    """The parts of the last result that the images became."""
    strides = group[0].layers[0].strides if len(group[0].layers) == 1 else (1,) * len(layout.size)
    for chain, place, name in zip(group, layout.places, names, strict=True):
        starts = [p // s for p, s in zip(place, strides, strict=True)]
        ranges = [(a, a + n) for a, n in zip(starts, chain.layers[-1].outputs, strict=True)]
        writer.cut(canvas, (None, None, *ranges), name)


def _uses(original: Original, group: Sequence[Chain], layout: Layout) -> Iterator[Use]:
    """The sections as rules of their own, the last one first: it makes the canvas that the others move up."""
    batch = str(original.dims(group[0].source)[0])
    for section in reversed(_sections(group[0])):
        is_last = section.stop == len(group[0].layers)
        layers = group[0].layers[section.start : section.stop]
        weights = dict.fromkeys(name for w in layers for name in (w.k, w.b) if name is not None)
        names = {weight: f"w{n}" for n, weight in enumerate(weights)}
        images = [f"u{n}" for n in range(len(group))]
        first = layers[0]
        channels = product(first.group, original.dims(first.k)[1])
        shapes = {u: [batch, channels, *map(str, s)] for u, s in zip(images, layout.sizes, strict=True)}
        shapes |= {names[w]: [str(d) for d in original.dims(w)] for w in weights}
        given = [f"{name}: {listing(dims)}" for name, dims in _numbered(shapes).items()]
        taken = {*original.names, *images, *names.values()}
        left = Writer(taken)
        results = [
            _alone(left, chain, section, u, names, f"y{n}" if is_last else None)
            for n, (chain, u) in enumerate(zip(group, images, strict=True))
        ]
        if not is_last:
            joined(left, layout, results, "z")
        right = Writer(left.taken)
        canvas = _on_canvas(right, group[0], section, joined(right, layout, images), names)
        if is_last:
            _cut(right, canvas, group, layout, results)
        else:
            right.put(cleared(canvas, mask(right, layout)), "z")
        rule = stated(given, left.lines, right.lines)
        sources = [c.inputs[section.start] for c in group]
        yield Use(rule, {**dict(zip(images, sources, strict=True)), **{n: w for w, n in names.items()}})


def _numbered(shapes: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Sizes called after their order, so that layers that differ in their names alone are one rule."""
    dims = dict.fromkeys(d for shape in shapes.values() for d in shape if not d.isdigit())
    if not all(d.isidentifier() for d in dims):
        return dict(shapes)
    names = {d: f"s{n}" for n, d in enumerate(dims)}
    return {name: [names.get(d, d) for d in shape] for name, shape in shapes.items()}


def _alone(
    writer: Writer, chain: Chain, section: range, value: str, names: Mapping[str, str], result: str | None
) -> str:
    """A section for one image, spelled as the program spells it."""
    for n in section:
        layer = chain.layers[n]
        calls = [layer.spelled("{}", names[layer.k], names.get(layer.b or "", "")), *chain.functions[n]]
        for position, call in enumerate(calls):
            is_last = n == section.stop - 1 and position == len(calls) - 1
            value = writer.put(call.format(value), result if is_last else None)
    return value
