"""HTML and SVG from Python, where text cannot become markup by accident.

`element` escapes every string it is given, unless it was made by `element` itself. Models are hostile input: a node may
be called `</script><script>…`, or hold characters that turn the direction of writing around.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_EMPTY = {"meta", "link", "br", "rect", "path", "circle", "line", "polyline"}


class Markup(str):
    """Markup already: not to be escaped again."""

    __slots__ = ()

    def __add__(self, other: str) -> Markup:
        return Markup(f"{self}{escape(other)}")


def element(name: str, /, *children: str | Iterable[str], **attributes: str | float | bool | None) -> Markup:
    """`element("a", "text", href="#x", class_="y")`. An attribute that is None or False is left out."""
    opening = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _EMPTY:
        return Markup(f"<{name}{opening}/>")
    return Markup(f"<{name}{opening}>{''.join(map(_child, children))}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    return Markup(escape(between).join(map(escape, parts)))


def escape(text: str) -> Markup:
    return text if isinstance(text, Markup) else Markup(html.escape(visible(text)))


def visible(text: str) -> str:
    """Without characters that no font shows: control characters, and those that reorder what is around them."""
    return _UNSEEN.sub("\ufffd", text)


def shorten(text: str, most: int) -> str:
    """The middle left out where it is too long: names tell most at their ends."""
    if len(text) <= most:
        return text
    head = (most - 1) // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def _child(child: str | Iterable[str]) -> str:
    return escape(child) if isinstance(child, str) else "".join(map(escape, child))


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f' {name}=""'
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(visible(shown))}"'
