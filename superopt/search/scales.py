"""What a region's graphs cost on the device: by prediction at once, by the clock when they are put on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from superopt.cost.channels import with_channels_last, works_on_images
from superopt.cost.manner import keeps_channels_last
from superopt.cost.regions import RegionSubject, region_key, region_subject
from superopt.cost.structure import structure
from superopt.cost.timer import RegionTimer
from superopt.ir.graph import Graph, Value
from superopt.ir.onnx import Model
from superopt.rewrite.piece import Piece
from superopt.search.learning import Learner
from superopt.search.regions import Region, graph_of_region, weight_nodes


@dataclass(frozen=True)
class Scales:
    model: Model
    sizes: Mapping[str, int]
    """Of symbolic dims, as the model is measured."""
    learner: Learner
    timer: RegionTimer

    @property
    def opens_slowly(self) -> bool:
        """Whether the clock sees few graphs: on a GPU each takes seconds until it runs."""
        return self.timer.deployment.target == "cuda"

    def graph(self, piece: Piece, region: Region) -> Graph:
        """A graph that may stand in a region's place."""
        return graph_of_region(piece, tuple(region.outside))

    def price(self, piece: Piece, region: Region) -> float:
        """Predicted seconds."""
        return self.learner.predictor.region(self.graph(piece, region), _given(piece, region))

    def exchanged(self, before: Piece, after: Piece, region: Region) -> tuple[float, float]:
        """Predicted seconds that a rewrite spares, and those that it adds."""
        return self.learner.predictor.exchanged(
            self.graph(before, region), self.graph(after, region), _given(before, region), _given(after, region)
        )

    def subject(self, piece: Piece, region: Region) -> RegionSubject:
        """The graph as the clock wants it, with the nodes behind its weights."""
        return region_subject(self.model, self._in_place(piece, region), self.sizes)

    def key(self, region: Region) -> str:
        """What the clock's answer to the region is kept under."""
        return region_key(self.model, self._in_place(region.piece, region), self.sizes)

    def structure(self, region: Region) -> str:
        """Equal for regions that differ in their weights alone."""
        final = " ".join(map(str, region.final))
        return f"{structure(self._full(region.piece, region), self.sizes)} {final}".rstrip()

    def _in_place(self, piece: Piece, region: Region) -> Graph:
        """As the graph would stand in the model: where that has channels last, its borders have, too."""
        full = self._full(piece, region)
        if not keeps_channels_last(self.timer.deployment) or not works_on_images(region.graph):
            return full
        return with_channels_last(full, {p for p, value in region.outside.items() if value.node is not None})

    def _full(self, piece: Piece, region: Region) -> Graph:
        return graph_of_region(piece, tuple(region.outside), weight_nodes(piece))


def _given(piece: Piece, region: Region) -> tuple[Value, ...]:
    """The values that become results of the whole graph."""
    return tuple(piece.results[k] for k in region.final)
