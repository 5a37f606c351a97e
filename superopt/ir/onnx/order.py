# pyright: basic
"""Nodes of a graph in an order in which each follows what it reads.

Files are meant to be sorted, and some that onnxruntime runs are not. The file's own order is kept where it can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from onnx import AttributeProto, GraphProto, NodeProto

from superopt.errors import BadModel


def in_order(graph: GraphProto, where: str) -> Iterator[NodeProto]:
    producer = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    reads = [{producer[n] for n in names_read(node) if n in producer} for node in graph.node]
    if all(all(j < i for j in deps) for i, deps in enumerate(reads)):
        yield from graph.node
        return
    waiting = [len(deps) for deps in reads]
    readers: dict[int, list[int]] = {}
    for i, deps in enumerate(reads):
        for j in deps:
            readers.setdefault(j, []).append(i)
    ready = [i for i, n in enumerate(waiting) if n == 0]
    heapify(ready)
    done = 0
    while ready:
        i = heappop(ready)
        done += 1
        yield graph.node[i]
        for j in readers.get(i, ()):
            waiting[j] -= 1
            if waiting[j] == 0:
                heappush(ready, j)
    if done < len(graph.node):
        stuck = next(n for n, w in zip(graph.node, waiting, strict=True) if w > 0)
        raise BadModel(f"{where}: cycle through node {stuck.name or stuck.op_type!r}: it needs its own result")


def names_read(node: NodeProto) -> Iterator[str]:
    """What a node reads, free names of its bodies included."""
    yield from (n for n in node.input if n)
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield from free_names(attribute.g)
        elif attribute.type == AttributeProto.GRAPHS:
            for body in attribute.graphs:
                yield from free_names(body)


def free_names(graph: GraphProto) -> set[str]:
    bound = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    bound |= {s.values.name for s in graph.sparse_initializer}
    bound |= {n for node in graph.node for n in node.output}
    read = {n for node in graph.node for n in names_read(node)} | {v.name for v in graph.output}
    return read - bound
