"""The state of each view: one SELECT that the status, the overview and the page of a view read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from serving_layer.catalog.lookup import HELD
from serving_layer.postgres.cells import ESTIMATED
from serving_layer.promise.proof import NEWEST_PROOFS

VIEW_STATES = f"""
SELECT v.name, v.kind, o.sources, f.seconds_behind, f.fresh_within, f.generation, c.cells,
       v.name IN (SELECT view FROM ({HELD}) AS h) AS held, v.served IS NOT NULL AS served,
       CASE WHEN p.view IS NOT NULL
         THEN jsonb_build_object('compared', p.cells, 'differing', p.differing, 'at', p.proved_at) END AS proof
FROM lamina.view AS v
JOIN lamina.freshness AS f ON f.view = v.name
LEFT JOIN (
  SELECT view, array_agg(DISTINCT source ORDER BY source) AS sources FROM lamina.offsets GROUP BY view
) AS o ON o.view = v.name
LEFT JOIN LATERAL (
  SELECT {ESTIMATED} AS cells
  FROM lamina.generation_cells AS g JOIN pg_class AS t ON t.oid = to_regclass(g.place)
  WHERE g.generation = f.generation
) AS c ON true
LEFT JOIN ({NEWEST_PROOFS}) AS p ON p.view = v.name
ORDER BY v.position"""
"""SQL of the fields of `ViewState`, a row for each view, each view after those that it reads."""


@dataclass(frozen=True)
class NewestProof:
    """The newest proof of a view: cells compared, cells that differed, and when."""

    compared: int
    differing: int
    at: datetime


@dataclass(frozen=True)
class ViewState:
    """A view as readers read it.

    seconds_behind: seconds for which it may lack a record of one of its sources
    fresh_within: the seconds that it may be behind, if declared
    generation: the published one
    cells: Postgres' estimate. None for a derived view, and until Postgres has estimated it
    held: a new generation is held back from readers
    """

    name: str
    kind: str
    sources: tuple[str, ...]
    seconds_behind: float | None
    fresh_within: float | None
    generation: int | None
    cells: int | None
    held: bool
    served: bool
    proof: NewestProof | None

    @property
    def is_late(self) -> bool:
        """True if it is further behind than its `fresh_within`."""
        behind, within = self.seconds_behind, self.fresh_within
        return behind is not None and within is not None and behind > within

    @classmethod
    def of_row(cls, row: Mapping[Any, Any]) -> ViewState:
        """The state in a row of `VIEW_STATES`, which may come as JSON."""
        proof = row["proof"] and NewestProof(**{**row["proof"], "at": datetime.fromisoformat(row["proof"]["at"])})
        return cls(**{**row, "sources": tuple(row["sources"] or ()), "proof": proof})


def view_states(connection: Connection) -> list[ViewState]:
    """The states of all views, each after those of the views that it reads."""
    return [ViewState.of_row(row) for row in connection.execute(text(VIEW_STATES)).mappings()]


def view_state(connection: Connection, name: str) -> ViewState | None:
    """The state of a view, or None if no view has this name."""
    one = text(f"SELECT * FROM ({VIEW_STATES}) AS states WHERE name = :name")
    row = connection.execute(one, {"name": name}).mappings().one_or_none()
    return None if row is None else ViewState.of_row(row)
