"""From a catalog's files to its declarations, with its functions expanded. Every mistake is noted, and none raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from sqlglot import exp

from view_algebra.passes import type_of_function
from view_algebra.refusals import File, Mistake, Span, Wrong
from view_algebra.typed.expressions.scalars import WITH_RULES_OF_THEIR_OWN
from view_algebra.written.declarations.catalog_functions import (
    FunctionDeclaration,
    calls_of,
    expanded,
    function_declaration,
    is_function,
    written_out,
)
from view_algebra.written.declarations.checks import CheckDeclaration, check_declaration
from view_algebra.written.declarations.sources_and_views import SourceDeclaration, ViewDeclaration, declaration
from view_algebra.written.dialect import Statement, parse

Declaration = SourceDeclaration | ViewDeclaration | CheckDeclaration | FunctionDeclaration


@dataclass
class Mistakes:
    """Collects the mistakes of a catalog, which are reported together."""

    noted: list[Mistake] = field(default_factory=list)

    def add(self, file: File, subject: str, wrong: Wrong) -> None:
        """Adds a mistake in the declaration of this name."""
        self.noted.append(Mistake(file, wrong.span, subject, wrong.reason, wrong.way_out))

    @contextmanager
    def of(self, file: File, subject: str, place: Span | None = None) -> Iterator[None]:
        """Adds the mistake that is raised inside, at `place` if it has no place of its own."""
        try:
            yield
        except Wrong as wrong:
            self.add(file, subject, Wrong(wrong.span or place, wrong.reason, wrong.way_out))
        except RecursionError:
            way_out = "Compute parts of it in subqueries, and write many comparisons with OR as IN (…)."
            self.add(file, subject, Wrong(place, "the SQL is nested too deeply", way_out))

    def has(self, subject: str) -> bool:
        """True if the declaration of this name has a mistake."""
        return any(mistake.subject == subject for mistake in self.noted)


@dataclass(frozen=True)
class Declared:
    """The declarations of a catalog by name, of checks by view and name.

    names: the names of all declarations of sources and views, also of those that cannot be read
    """

    sources: Mapping[str, SourceDeclaration]
    views: Mapping[str, ViewDeclaration]
    checks: Mapping[tuple[str, str], CheckDeclaration]
    names: frozenset[str]


def declarations(files: Mapping[str, str], mistakes: Mistakes) -> Declared:
    """The declarations of a catalog's files, by path. Those with mistakes are left out, but for their names."""
    statements = [pair for path in sorted(files) for pair in _parsed(File(path, files[path]), mistakes)]
    functions = _functions(statements, mistakes)
    wrong = _wrong_functions(functions, mistakes)
    sources: dict[str, SourceDeclaration] = {}
    views: dict[str, ViewDeclaration] = {}
    checks: dict[tuple[str, str], CheckDeclaration] = {}
    names: set[str] = set()
    for file, whole in statements:
        if is_function(whole.tree):
            continue
        name = _name_of(whole.tree)
        if isinstance(whole.tree, exp.Create):
            names.add(name.lower())
        if calls_of(whole.tree, functions) & wrong:
            continue
        with mistakes.of(file, name):
            statement = expanded(whole, functions)
            if isinstance(statement.tree, exp.Alter):
                check = check_declaration(file, statement)
                if (other := checks.setdefault((check.view, check.name), check)) is not check:
                    raise _declared_twice(check.place, other, f"a check {check.name} is ")
                continue
            declared = declaration(file, statement, partial(mistakes.add, file, name))
            if isinstance(declared, SourceDeclaration) and not declared.columns and mistakes.has(name):
                continue
            if (first := sources.get(declared.name) or views.get(declared.name)) is not None:
                raise _declared_twice(declared.place, first)
            if isinstance(declared, SourceDeclaration):
                sources[declared.name] = declared
            else:
                views[declared.name] = declared
    _note_topics_read_twice(sources, mistakes)
    return Declared(sources, views, checks, frozenset(names))


def _parsed(file: File, mistakes: Mistakes) -> list[tuple[File, Statement]]:
    statements: list[Statement] = []
    with mistakes.of(file, ""):
        statements = parse(file)
    return [(file, statement) for statement in statements]


def _functions(statements: list[tuple[File, Statement]], mistakes: Mistakes) -> dict[str, FunctionDeclaration]:
    functions: dict[str, FunctionDeclaration] = {}
    for file, statement in statements:
        if is_function(statement.tree):
            with mistakes.of(file, _name_of(statement.tree)):
                function = function_declaration(file, statement, WITH_RULES_OF_THEIR_OWN)
                if (first := functions.setdefault(function.name, function)) is not function:
                    raise _declared_twice(function.place, first)
    return functions


def _wrong_functions(functions: Mapping[str, FunctionDeclaration], mistakes: Mistakes) -> set[str]:
    """The functions that are wrong, or call one that is. A mistake is noted at the function, not at its calls."""
    pending, wrong = dict(functions), set[str]()
    while pending:
        ready = [d for d in pending.values() if not calls_of(d.body, pending) - {d.name}]
        for d in ready or list(pending.values()):  # all that are pending call each other in a circle
            del pending[d.name]
            if not calls_of(d.body, functions) & wrong:
                with mistakes.of(d.file, d.name):
                    type_of_function(written_out(d, functions), d.name, d.takes)
                    continue
            wrong.add(d.name)
    return wrong


def _note_topics_read_twice(sources: Mapping[str, SourceDeclaration], mistakes: Mistakes) -> None:
    topics: dict[tuple[str, str, str], SourceDeclaration] = {}
    for source in sources.values():
        start = source.properties.get("start", "earliest")
        if (other := topics.setdefault((source.topic, source.kind, start), source)) is not source:
            reason = f"the topic {source.topic!r} is the {source.kind} {other.name} already"
            way_out = f"Read {other.name} in views, or name another topic."
            mistakes.add(source.file, source.name, Wrong(source.topic_place, reason, way_out))


def _declared_twice(place: Span | None, first: Declaration, what: str = "") -> Wrong:
    """The refusal of a second declaration of one name."""
    line = first.file.line(first.place.start) if first.place else 1
    return Wrong(place, f"{what}already declared in {first.file.path}:{line}", "Give one of them another name.")


def _name_of(statement: exp.Expr) -> str:
    named = (
        statement.this.find(exp.Table) if isinstance(statement, (exp.Create, exp.Alter)) and statement.this else None
    )
    return named.name if named is not None else ""
