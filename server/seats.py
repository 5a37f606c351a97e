"""The devices of a cluster as seats for jobs: each node is asked once what it offers."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from server.cluster import Cluster, Handle, Node
from server.node import Kind
from server.settings import Settings
from superopt.errors import BadOption

ASK_AGAIN_SECONDS = 30.0
log = logging.getLogger("superopt.dispatch")


@dataclass(frozen=True)
class Seat:
    """Room for one job at a time."""

    node: Node
    kind: Kind
    number: int
    count: int
    """Seats on the node."""
    targets: Mapping[str, str]
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"ray/{self.node.id[:16]}/{self.kind}/{self.number}"

    @property
    def device(self) -> str:
        return f"{self.node.address}/{self.kind}"


class Seats:
    def __init__(self, cluster: Cluster, settings: Settings, offered: Mapping[str, Any] | None = None) -> None:
        """`offered`: what every node offers, where that is known already."""
        if settings.devices not in ("auto", "cpu"):
            raise BadOption(f"--devices: expected auto or cpu with --engine ray, found {settings.devices!r}")
        self._cluster, self._settings, self._given = cluster, settings, offered
        self._asked: dict[Handle, Node] = {}
        self._offers: dict[str, Mapping[str, Any]] = {}
        self._again: dict[str, float] = {}

    def look(self) -> dict[str, Seat]:
        """The seats that are there now, by name."""
        nodes = {n.id: n for n in self._cluster.nodes() if self._count(n) > 0}
        self._hear()
        self._ask(nodes)
        found = [seat for node in nodes.values() if node.id in self._offers for seat in self._of(node)]
        # What asks for no device in particular is done on a GPU where the cluster has one.
        has_gpus = any(seat.kind == "cuda" for seat in found)
        return {seat.name: _without_auto(seat) if has_gpus and seat.kind == "cpu" else seat for seat in found}

    def _kind(self, node: Node) -> Kind:
        return "cuda" if node.gpus and self._settings.devices == "auto" else "cpu"

    def _count(self, node: Node) -> int:
        """A GPU is for one job at a time; so is a CPU, which is all of the node's cores."""
        return node.gpus if self._kind(node) == "cuda" else min(1, node.cpus)

    def _of(self, node: Node) -> list[Seat]:
        offer, kind, count = self._offers[node.id], self._kind(node), self._count(node)
        other = "cpu" if kind == "cuda" else "cuda"
        targets = {target: found for target, found in offer["targets"].items() if target != other}
        return [Seat(node, kind, number, count, targets, offer["facts"]) for number in range(count)]

    def _ask(self, nodes: Mapping[str, Node]) -> None:
        for known in [id for id in self._offers if id not in nodes]:
            del self._offers[known]
        waiting = {node.id for node in self._asked.values()}
        for node in nodes.values():
            if node.id in self._offers or node.id in waiting or time.monotonic() < self._again.get(node.id, 0.0):
                continue
            if self._given is not None:
                self._offers[node.id] = self._given
            else:
                asked = self._cluster.ask(node, self._kind(node), for_nodes(self._settings), self._count(node))
                self._asked[asked] = node

    def _hear(self) -> None:
        for ended in self._cluster.ended(list(self._asked), 0.0):
            node = self._asked.pop(ended.handle)
            if ended.error is None:
                self._offers[node.id] = ended.value
                continue
            self._again[node.id] = time.monotonic() + ASK_AGAIN_SECONDS
            log.error("a node does not work", extra={"node": node.address, "reason": ended.error})


def for_nodes(settings: Settings) -> dict[str, str]:
    """The settings as a node gets them: database and store are here, whatever its own data folder is."""
    return replace(settings, database=settings.database_url, store=settings.store_url).as_environment()


def _without_auto(seat: Seat) -> Seat:
    return replace(seat, targets={t: f for t, f in seat.targets.items() if t != "auto"})
