"""Lineage graphs: the sources and views connected with a view or a source, as shapes of an SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from view_algebra.compiled import Catalog
from view_algebra.explain import origins

WIDTH, HEIGHT = 180, 40
"""Width and height of a box, in pixels."""

ACROSS, DOWN = 70, 14
"""Pixels between two boxes."""

LONGEST = 22
"""Characters of a name in a box."""

MOST = 12
"""Boxes in one column of the graph. Further ones are only counted."""


class Node(NamedTuple):
    """A source or a view. A table is both."""

    kind: Literal["source", "view"]
    name: str


@dataclass(frozen=True)
class Box:
    """The box of a source or a view. `columns` has a line per column. `here` marks the subject of the page."""

    node: Node
    label: str
    columns: Sequence[str]
    x: int
    y: int
    here: bool


@dataclass(frozen=True)
class Graph:
    """Boxes, the paths of the lines between them, and the number of sources and views without a box."""

    boxes: Sequence[Box]
    lines: Sequence[str]
    width: int
    height: int
    left_out: int


def graph(catalog: Catalog, here: Node) -> Graph:
    """A graph with everything that `here` reads, directly or not, on its left, and everything that reads it on its
    right.
    """
    reads = {Node("source", name): list[Node]() for name in catalog.sources}
    for view in catalog.views.values():
        reads[Node("view", view.name)] = [Node("source", name) for name in sorted(view.fed_by)] + [
            Node("view", name) for name in view.reads if name in catalog.views and name != view.name
        ]
    shown = {here} | _reached(here, reads.__getitem__)
    shown |= _reached(here, lambda node: [other for other, read in reads.items() if node in read])
    layers: dict[Node, int] = {}
    for node, read in reads.items():  # a view comes after the ones it reads
        if node in shown:
            layers[node] = 1 + max((layers[other] for other in read if other in layers), default=-1)
    for node in layers:  # a source is next to its first reader, so that few lines pass behind boxes
        readers = [layers[other] for other in layers if node in reads[other]]
        if node.kind == "source" and readers:
            layers[node] = min(readers) - 1
    places, left_out = _places(layers, reads, here)
    boxes = [
        Box(node, _short(node.name), _columns(catalog, node), *place, here=node == here)
        for node, place in places.items()
    ]
    lines = [_line(places[read], place) for node, place in places.items() for read in reads[node] if read in places]
    width, height = (max(side) for side in zip(*((box.x + WIDTH, box.y + HEIGHT) for box in boxes), strict=True))
    return Graph(boxes, lines, width + 2, height + 2, left_out)


def _reached(start: Node, following: Callable[[Node], Iterable[Node]]) -> set[Node]:
    reached: set[Node] = set()
    ahead = [start]
    while ahead:
        new = [node for node in following(ahead.pop()) if node not in reached]
        reached.update(new)
        ahead += new
    return reached


def _places(
    layers: dict[Node, int], reads: dict[Node, list[Node]], here: Node
) -> tuple[dict[Node, tuple[int, int]], int]:
    """The place of each box, at about the height of the boxes that it reads, and the number of boxes without a
    place.
    """
    places: dict[Node, tuple[int, int]] = {}
    for layer in sorted(set(layers.values())):
        members = [node for node, at in layers.items() if at == layer]
        members.sort(key=lambda node: _height([places[read] for read in reads[node] if read in places]))
        kept = sorted(members, key=lambda node: node != here)[:MOST]
        for row, node in enumerate(node for node in members if node in kept):
            places[node] = (1 + layer * (WIDTH + ACROSS), 1 + row * (HEIGHT + DOWN))
    return places, len(layers) - len(places)


def _height(places: Sequence[tuple[int, int]]) -> float:
    return sum(y for _, y in places) / len(places) if places else 0.0


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    """A curve from the right side of a box to the left side of another.

    >>> _line((0, 0), (250, 54))
    'M180 20C215 20 215 74 250 74'
    """
    (x, y), (to_x, to_y) = (start[0] + WIDTH, start[1] + HEIGHT // 2), (end[0], end[1] + HEIGHT // 2)
    middle = (x + to_x) // 2
    return f"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _columns(catalog: Catalog, node: Node) -> list[str]:
    if node.kind == "source":
        return [f"{column.name} {column.spark}" for column in catalog.sources[node.name].columns]
    return origins(catalog.views[node.name])
