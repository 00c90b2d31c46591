"""The table of faults, which each fault's function enters by a decorator.

A fault strikes, repairs what an operator would repair, and returns once nothing is broken any more. It gets the stage
and a random generator. Views move before it. Its caller waits until they move again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.chaos.stage import Stage

Inflict = Callable[[Stage, random.Random], None]


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    weight: number of times it strikes per strike of the rarest, or 0 for a fault that only strikes if it is asked for
    needs: `services` that may be stopped, `disks` of their own, a `registry` or an object `store`
    parallel: True for a fault of the batch layer, which strikes in parallel to others
    alone: True if it cannot happen during a rebuild, an archive run or an apply
    """

    name: str
    inflict: Inflict
    weight: int
    needs: frozenset[str] = frozenset()
    parallel: bool = False
    alone: bool = False


FAULTS: dict[str, Fault] = {}


def fault(weight: int, *needs: str, parallel: bool = False, alone: bool = False) -> Callable[[Inflict], Inflict]:
    """Enters a kind into the table under its function's docstring."""

    def enter(inflict: Inflict) -> Inflict:
        name = (inflict.__doc__ or "").splitlines()[0].rstrip(".")
        FAULTS[inflict.__name__] = Fault(name, inflict, weight, frozenset(needs), parallel, alone)
        return inflict

    return enter


def deck(stage: Stage, dice: random.Random, only: Sequence[str], *, parallel: bool) -> list[Fault]:
    """The kinds (of those in `only`) that can strike here, each as often as its weight, shuffled."""
    there = {"services": stage.services, "disks": stage.disks, "registry": stage.registry, "store": stage.log_is_in_s3}
    have = {name for name, present in there.items() if present}
    kinds = [FAULTS[name] for name in FAULTS if not only or name in only]
    cards = [
        kind
        for kind in kinds
        if kind.needs <= have and kind.parallel == parallel
        for _ in range(kind.weight or bool(only))
    ]
    dice.shuffle(cards)
    return cards
