"""The table of faults: a kind each, entered where its function stands.

A fault strikes, mends what an operator would mend, and returns when nothing is broken any more. It gets the stage and
dice. What it may take for granted is that views moved before it; that they move again is for its caller to await.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.chaos.stage import Stage

Inflict = Callable[[Stage, random.Random], None]


@dataclass(frozen=True)
class Fault:
    """A kind of fault. weight: how often it strikes where the rarest strikes once; 0: only where it is asked for.

    needs: `services` that may be stopped, `disks` of their own, a `registry` or an object `store`. beside: it strikes
    while others do, and is one of the batch layer's. alone: it cannot happen while a rebuild, an archive run or an
    apply runs.
    """

    name: str
    inflict: Inflict
    weight: int
    needs: frozenset[str] = frozenset()
    beside: bool = False
    alone: bool = False


FAULTS: dict[str, Fault] = {}


def fault(weight: int, *needs: str, beside: bool = False, alone: bool = False) -> Callable[[Inflict], Inflict]:
    """Enters a kind into the table under its function's docstring."""

    def enter(inflict: Inflict) -> Inflict:
        name = (inflict.__doc__ or "").splitlines()[0].rstrip(".")
        FAULTS[inflict.__name__] = Fault(name, inflict, weight, frozenset(needs), beside, alone)
        return inflict

    return enter


def deck(stage: Stage, dice: random.Random, only: Sequence[str], *, beside: bool) -> list[Fault]:
    """The kinds that can strike here (of those named), each as often as it weighs, in the order of the dice."""
    there = {"services": stage.services, "disks": stage.disks, "registry": stage.registry, "store": stage.stored}
    have = {name for name, found in there.items() if found}
    kinds = [FAULTS[name] for name in FAULTS if not only or name in only]
    cards = [
        each for each in kinds if each.needs <= have and each.beside == beside for _ in range(each.weight or bool(only))
    ]
    dice.shuffle(cards)
    return cards
