"""The check of English finds each habit, at its line, and leaves examples and code alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.habits.english import HABITS, files, main, pieces

CASES = {
    "question word": '"""What is read."""',
    "question": '"""Reads.\n"""\n\n\nclass A:\n    """Is it read?"""',
    "genitive first": "a = 1  # Of two views, the newer",
    "archaism": "# A table\n# beside it",
    "is no": 'raise ValueError("1 is no name")',
    "so often": "# so often",
    "passive of saying": 'a = f"it is told {1}"',
    "missing subject": 'raise ValueError("a lambda, where none is taken")',
    "semicolon": 'a = 1\n"""Rows; none without a view."""',
    "participle as a name": "def f(found): pass",
}
FINE = '''"""Rows of a view: `a; b`.

    >>> 1; "What is beside it?"
    2; 3

Rows:

    SELECT 1;

    SELECT 2;
"""
# There is no row. Of course it is no longer told apart; one of which remains.
known_names = [" is no BIGINT"]
'''


def habits(source: str) -> list[tuple[str, int]]:
    return [
        (habit.name, piece.line + piece.text.count("\n", 0, offset))
        for piece in pieces(Path("a.py"), source)
        for habit in HABITS
        for offset in habit.places(piece)
    ]


@pytest.mark.parametrize("habit", [habit.name for habit in HABITS])
def test_a_habit_is_counted_once_and_at_its_line(habit: str) -> None:
    source = CASES[habit]
    line = {"archaism": 2, "question": 6, "semicolon": 2}.get(habit, 1)
    assert habits(source) == [(habit, line)]


def test_examples_code_and_plain_english_have_no_habit() -> None:
    assert habits(FINE) == []


def test_names_in_templates_are_read() -> None:
    template = 'found\n{% for each in view.found %}{{ each.id | given }} {{ "told" }}{% endfor %}'
    names = [(piece.line, piece.text) for piece in pieces(Path("a.html"), template)]
    assert names == [(2, name) for name in ("for", "each", "in", "view", "each", "endfor")]


def test_the_code_has_none_of_the_habits() -> None:
    assert main([]) == 0


def test_every_folder_is_read() -> None:
    read = {file.parent for file in files([])}
    for folder in ("lamina", "lamina/console/templates", "dags", "tests", "tests/acceptance", "tests/habits"):
        assert Path(folder) in read
