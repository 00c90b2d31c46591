"""Lineage graphs: the sources and views connected with a view or a source, as shapes of an SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


class Named(NamedTuple):
    """A source or a view. A table is both."""

    kind: str
    name: str


@dataclass(frozen=True)
class Box:
    """The box of a source or a view. `columns` has a line per column. `here` marks the subject of the page."""

    named: Named
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


def graph(catalog: Catalog, here: Named) -> Graph:
    """A graph with everything that `here` reads, directly or not, on its left, and everything that reads it on its
    right.
    """
    reads = {Named("source", name): list[Named]() for name in catalog.sources}
    for view in catalog.views.values():
        reads[Named("view", view.name)] = [Named("source", name) for name in sorted(view.fed_by)] + [
            Named("view", name) for name in view.reads if name in catalog.views and name != view.name
        ]
    shown = {here} | _reached(here, reads.__getitem__)
    shown |= _reached(here, lambda named: [other for other, read in reads.items() if named in read])
    layers: dict[Named, int] = {}
    for named, read in reads.items():  # a view comes after the ones it reads
        if named in shown:
            layers[named] = 1 + max((layers[other] for other in read if other in layers), default=-1)
    for named in layers:  # a source is next to its first reader, so that few lines pass behind boxes
        readers = [layers[other] for other in layers if named in reads[other]]
        if named.kind == "source" and readers:
            layers[named] = min(readers) - 1
    places, left_out = _places(layers, reads, here)
    boxes = [
        Box(named, _short(named.name), _columns(catalog, named), *place, here=named == here)
        for named, place in places.items()
    ]
    lines = [_line(places[read], place) for named, place in places.items() for read in reads[named] if read in places]
    width, height = (max(side) for side in zip(*((box.x + WIDTH, box.y + HEIGHT) for box in boxes), strict=True))
    return Graph(boxes, lines, width + 2, height + 2, left_out)


def _reached(start: Named, following: Callable[[Named], Iterable[Named]]) -> set[Named]:
    reached: set[Named] = set()
    ahead = [start]
    while ahead:
        new = [named for named in following(ahead.pop()) if named not in reached]
        reached.update(new)
        ahead += new
    return reached


def _places(
    layers: dict[Named, int], reads: dict[Named, list[Named]], here: Named
) -> tuple[dict[Named, tuple[int, int]], int]:
    """The place of each box, at about the height of the boxes that it reads, and the number of boxes without a
    place.
    """
    places: dict[Named, tuple[int, int]] = {}
    for layer in sorted(set(layers.values())):
        members = [named for named, at in layers.items() if at == layer]
        members.sort(key=lambda named: _height([places[read] for read in reads[named] if read in places]))
        kept = sorted(members, key=lambda named: named != here)[:MOST]
        for row, named in enumerate(named for named in members if named in kept):
            places[named] = (1 + layer * (WIDTH + ACROSS), 1 + row * (HEIGHT + DOWN))
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


def _columns(catalog: Catalog, named: Named) -> list[str]:
    if named.kind == "source":
        return [f"{column.name} {column.spark}" for column in catalog.sources[named.name].columns]
    return origins(catalog.views[named.name])
