"""A simulated machine: models run on a clock that drifts, stumbles and favours some openings over others."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from superopt.cost.contest import Contest, Method, Progress
from superopt.cost.result import Comparison
from superopt.cost.sitting import Bench

RUN = 0.02
OPENING = 0.05


@dataclass(frozen=True)
class Weather:
    noise: float = 0.03  # of one run, and half of it wanders
    drift: float = 0.2  # slow swing of the clock speed
    outliers: float = 0.02  # runs that take several times as long
    luck: float = 0.0  # of one opening, kept until it is closed
    second_is_faster: float = 0.0  # what every second opening gains
    opening: float | None = None  # seconds that an opening takes, if not OPENING


class World:
    def __init__(self, seed: int, weather: Weather) -> None:
        self.random, self.weather = random.Random(seed), weather
        self.now, self.openings, self.open, self.most_open = 0.0, 0, 0, 0
        self._phase, self._wander = self.random.uniform(0, 2 * math.pi), 0.0

    def clock(self) -> float:
        self.now += 5e-8
        return self.now

    def spend(self, seconds: float) -> None:
        weather, draw = self.weather, self.random
        self._wander = 0.98 * self._wander + 0.1 * weather.noise * draw.gauss(0, 1)
        speed = 1 + weather.drift * math.sin(self._phase + 0.7 * self.now)
        taken = seconds * speed * math.exp(weather.noise * draw.gauss(0, 1) + self._wander)
        if draw.random() < weather.outliers:
            taken *= 1 + draw.expovariate(0.3)
        self.now += taken


class Model:
    def __init__(self, world: World, seconds: float) -> None:
        weather = world.weather
        world.openings += 1
        world.open += 1
        world.most_open = max(world.most_open, world.open)
        world.now += OPENING if weather.opening is None else weather.opening
        gain = weather.second_is_faster if world.openings % 2 == 0 else 0.0
        self._world = world
        self._seconds = seconds * math.exp(weather.luck * world.random.gauss(0, 1)) * (1 - gain)

    def start(self) -> None:
        """Opening is all that takes time here."""

    def run(self) -> None:
        self._world.spend(self._seconds)

    def close(self) -> None:
        self._world.open -= 1


def contest(
    world: World,
    seconds: Sequence[float],
    method: Method | None = None,
    together: bool = True,
    told: list[Progress] | None = None,
) -> Comparison:
    """Models that take so long, named 0, 1, …"""
    method = method or Method()
    bench = Bench(lambda i: Model(world, seconds[i]), world.clock, method.sample_seconds, 0.5)
    names = [str(i) for i in range(len(seconds))]
    return Contest(names, bench, method, together, None if told is None else told.append).run()
