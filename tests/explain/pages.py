"""A page taken apart by a parser that knows HTML, and reports to make pages from."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

from superopt.report import (
    CheckReport,
    Environment,
    Interval,
    Latency,
    ModelFacts,
    OutputCheck,
    Profile,
    Report,
    Rewrite,
    TimingReport,
)

VOID = {"meta", "rect", "path", "img"}


class Page(HTMLParser):
    """Elements, attributes and text; a strict one fails where an element is closed that is not open."""

    def __init__(self, text: str, *, strict: bool = True) -> None:
        super().__init__()
        self.titles: list[str] = []
        self._strict = strict
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open or not strict

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert not self._strict or self._open[-1] == tag
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "title" and len(self._open) == 3:
            self.titles.append(data)
        (self.scripts if inside == "script" else self.styles if inside == "style" else self.texts).append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def values(self, attribute: str) -> list[str]:
        return [value for _, name, value in self.attributes if name == attribute]


def facts(nodes: int, path: str) -> ModelFacts:
    return ModelFacts(
        path=path, sha256="0" * 64, file_bytes=2048, ir_version=8, opsets={"": 17}, nodes=nodes,
        operators={"Relu": nodes}, parameters=0,
    )  # fmt: skip


def latency(seconds: float) -> Latency:
    return Latency(median=seconds, interval=Interval(low=seconds * 0.99, high=seconds * 1.01), spread=0.02, runs=50)


def report(rewrites: list[Rewrite], *, path: str = "model.onnx", profile: Profile | None = None) -> Report:
    return Report(
        verdict="1.25× faster (1.20 to 1.30), outputs checked equal",
        returned="optimized",
        before=facts(12, path),
        after=facts(10, "out.onnx"),
        rewrites=rewrites,
        candidate_nodes=10,
        check=CheckReport(
            status="equal", reason="", runs=3, inputs=["zeros"],
            outputs=[OutputCheck(
                output="y", dtype="float32", max_absolute_error=0, max_relative_error=0, absolute_tolerance=1e-6,
                relative_tolerance=1e-5, equal=True,
            )],
        ),
        timing=TimingReport(
            status="faster", reason="", before=latency(0.001), after=latency(0.0008), speedup=1.25,
            speedup_interval=Interval(low=1.2, high=1.3), shapes={"x": [1, 3]}, frozen=False,
        ),
        profile=profile,
        environment=Environment(
            superopt="0.1.0", python="3.11", onnx="1.19", onnxruntime="1.23", target="cpu", device="a device",
            driver="", threads=2, platform="Linux",
        ),
        options={"seed": 3, "budget": 60.0, "shape": {"x": [1, 3]}, "rules": ["my rules"]},
        peak_memory_bytes=1 << 20,
        seconds=1.5,
    )  # fmt: skip
