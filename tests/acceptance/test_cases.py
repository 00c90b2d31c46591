"""Cases with known results, written as an author of views would: live, rebuilt, and by Spark over all records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import pytest

from tests.acceptance.cases import DATA, Case, Row, Source, comparable, read_cases, read_selects
from tests.fix_lamina import Deployed

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the cases lie beside the repository")


def case_of(name: str, cases: Mapping[str, Case]) -> Case:
    """The case that a SELECT answers."""
    return cases[name.partition(" ")[0]]


def view_name(name: str) -> str:
    """A SELECT's name as a view's, which has no more than 36 letters."""
    return re.sub(r"\W", "_", name.rpartition("/")[2])[-36:]


def view(name: str, select: str, case: Case, source_name: str) -> str:
    """The view that answers a case from a source."""
    return f"CREATE VIEW {view_name(name)} AS\n{select.format(**{case.source_name: source_name})};"


def test_every_case_is_answered() -> None:
    cases, selects = read_cases(), read_selects()
    assert {name.partition(" ")[0] for name in selects} == set(cases)
    assert len({view_name(name) for name in selects}) == len(selects)


def test_cases_give_the_rows_of_their_query_over_all_records(deployed: Deployed) -> None:
    """One catalog of all cases; cases of the same records share a source."""
    cases, selects = read_cases(), read_selects()
    names: dict[Source, str] = {}
    for case in cases.values():
        names.setdefault(case.source, f"c{len(names) + 1:02d}_{case.source_name.lower()}")
    answers = {name: case_of(name, cases) for name in selects}
    deployed.apply(
        sources="\n".join(source.declaration(name) for source, name in names.items()),
        views="\n".join(view(name, selects[name], case, names[case.source]) for name, case in answers.items()),
    )
    for source, name in names.items():
        deployed.send(name, *(line.encode() for line in source.lines), partition=0)
    deployed.catch_up()
    assert wrong(deployed, answers) == {}
    proofs = deployed.deployment.batch.rebuild()
    assert [(proof.view, proof.differing) for proof in proofs if proof.differing] == []
    assert wrong(deployed, answers) == {}
    deployed.check(*map(view_name, answers))


def wrong(deployed: Deployed, answers: Mapping[str, Case]) -> dict[str, tuple[Counter[Row], Counter[Row]]]:
    """What is missing and what is surplus in the views, by the names of their SELECTs."""
    found = {}
    for name, case in answers.items():
        actual = comparable(deployed.rows(f"SELECT * FROM {view_name(name)}"))
        if actual != case.expected:
            found[name] = (case.expected - actual, actual - case.expected)
    return found
