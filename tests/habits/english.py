"""Habits of a second language that a machine can find. The code has none of them.

    python -m tests.habits.english               prints each place in the repository, and fails if there is one
    python -m tests.habits.english lamina dags   prints each place in these files and folders

Docstrings (also the string under a constant or a field), comments, other texts, names of values, functions and
classes, and names in templates are read.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
SKIPPED = {".venv", ".lamina", ".git", "build", "node_modules"}
WITH_EXAMPLES = {Path("tests/habits/english.py"), Path("tests/habits/test_english.py")}
"""Files whose texts are not read: they are the patterns below and their examples."""

STORED = re.compile(r"is no (?=\Z|[A-Z]|short of id|text of name)|the record is beside its schema")
"""Words of the reasons of bad records. Deployed sources hold them in their texts: others would be a new version."""

Kind = Literal["docstring", "comment", "text", "name"]


@dataclass(frozen=True)
class Piece:
    """One docstring, comment, other text or bound name."""

    kind: Kind
    line: int
    text: str


@dataclass(frozen=True)
class Habit:
    """A habit and its cure. `pattern` finds it in pieces of these kinds."""

    name: str
    cure: str
    pattern: re.Pattern[str]
    kinds: tuple[Kind, ...]

    def places(self, piece: Piece) -> list[int]:
        """The offsets in the text of a piece."""
        return [match.start() for match in self.pattern.finditer(piece.text)] if piece.kind in self.kinds else []


@dataclass(frozen=True)
class Place:
    """A line that has a habit."""

    file: Path
    line: int
    habit: Habit
    excerpt: str

    def __str__(self) -> str:
        """One line, which editors open at the place."""
        return f"{self.file}:{self.line}: {self.habit.name}: {self.excerpt!r} ({self.habit.cure})"


def _habit(name: str, cure: str, pattern: str, *kinds: Kind) -> Habit:
    return Habit(name, cure, re.compile(pattern, re.MULTILINE), kinds)


HABITS = (
    _habit(
        "question word",
        "begin with a noun, or 'True if'; a condition comes second: 'The query waits while Kafka is down'",
        r"\A(What|Whether|Who|Whose|Whom|How|Which|Where|When|Why)\b",
        "docstring",
    ),
    _habit("question", "'True if' and the condition", r"\A[^.?]*\?(?=\s|\Z)", "docstring"),
    _habit(
        "genitive first",
        "subject first, or a compound noun",
        r"(\A|(?<=[.:;?!] ))Of (?!course\b)",
        "docstring",
        "comment",
        "text",
    ),
    _habit(
        "archaism",
        "next to, again, meanwhile, permanently, and so on, rarely, resume, or a plain clause",
        r"\b([Bb]eside|anew|[Bb]y then|for ever|at the latest|(its|their) like|[Ss]eldom"
        r"|(go|goes|going|gone|went) on with|thereof|therein|wherein|whereby|hitherto|hereby|henceforth|thereby"
        r"|be it|as it happens|lest"
        r"|(?<!one )(?<!all )(?<!both )(?<!each )(?<!none )(?<!some )(?<!most )of (which|whom))\b",
        "docstring",
        "comment",
        "text",
    ),
    _habit(
        "is no",
        "'is not a'; 'there is no' is fine",
        r"(?<!here )(?<!here\n)\b(is|are|was|were|be) "
        r"(none\b|no (?![A-Z]|(longer|more|less|fewer|other|later|earlier|better|worse)\b))",
        "docstring",
        "comment",
        "text",
    ),
    _habit("so often", "the number, its unit and its effect", r"\b[Ss]o often\b", "docstring", "comment", "text"),
    _habit(
        "passive of saying",
        "who logs, reports, raises, returns or prints it",
        r"\b(is|are|was|were|be|been|being) (told(?! apart)|said)\b",
        "docstring",
        "comment",
        "text",
    ),
    _habit(
        "missing subject",
        "subject, verb and rule: 'this argument cannot be a lambda', 'IN () is empty'",
        r", where (no|none|nothing)\b|\bof (no|nothing|less than nothing)\b",
        "text",
    ),
    _habit("semicolon", "one idea a sentence", r";", "docstring"),
    _habit(
        "participle as a name", "say what the thing is", r"(?i)\A_?(found|given|made|told|each|known|said)\Z", "name"
    ),
)


def _prose(docstring: str) -> str:
    """The docstring with every example, indented block and quoted piece of code blanked, so that offsets stay."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    margin = min((len(line) - len(line.lstrip()) for line in docstring.splitlines()[1:] if line.strip()), default=0)
    prose = re.sub(rf"(?<=\n\n)(?: {{{margin + 4}}}.*\n?|\n)+", blank, docstring)
    examples = re.sub(r"^[ \t]*>>>(.|\n)*?(?=\n[ \t]*\n|\Z)", blank, prose, flags=re.MULTILINE)
    return re.sub(r"``[^`]*``|`[^`]*`", blank, examples)


def _docstrings(nodes: Sequence[ast.AST]) -> Iterator[ast.Constant]:
    """Every string that is a statement: of modules, classes and functions, and under a constant or a field."""
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as constant):
                yield constant


def _names(nodes: Sequence[ast.AST]) -> Iterator[Piece]:
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield Piece("name", node.lineno, name)
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                yield Piece("name", node.lineno, name)
            case ast.MatchStar(name=str() as name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield Piece("name", node.lineno, name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield Piece("name", node.lineno, name)


def _comments(source: str) -> Iterator[Piece]:
    """A piece for each comment. Comments alone on successive lines are one piece."""
    piece, last = None, 0
    if "#" not in source:
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, text = token.start[0], token.string.lstrip("#").strip()
        if piece is not None and line == last + 1 and token.line.lstrip().startswith("#"):
            piece = Piece("comment", piece.line, f"{piece.text}\n{text}")
        else:
            if piece is not None:
                yield piece
            piece = Piece("comment", line, text)
        last = line
    if piece is not None:
        yield piece


def _template_names(source: str) -> Iterator[Piece]:
    """The names in the tags of a template that are neither attributes, nor filters, nor in a text."""
    for tag in re.finditer(r"\{[{%](.*?)[}%]\}", source, re.DOTALL):
        code = re.sub(r"\"[^\"]*\"|'[^']*'", "", tag[1])
        for name in re.findall(r"(?<![\w.|])(?<!\| )[a-z_]\w*", code):
            yield Piece("name", source.count("\n", 0, tag.start()) + 1, name)


def pieces(file: Path, source: str) -> Iterator[Piece]:
    """The pieces of a module or a template. The texts of a published migration stay as they are."""
    if file.suffix == ".html":
        yield from _template_names(source)
        return
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = list(_docstrings(nodes))
    of_docstrings = {id(node) for node in docstrings}
    yield from (Piece("docstring", node.lineno, _prose(str(node.value))) for node in docstrings)
    yield from _comments(source)
    yield from _names(nodes)
    if "versions" not in file.parts and file not in WITH_EXAMPLES:
        for node in nodes:
            match node:
                case ast.Constant(value=str() as text) if id(node) not in of_docstrings:
                    yield Piece("text", node.lineno, STORED.sub(lambda words: " " * len(words[0]), text))


def places(file: Path) -> Iterator[Place]:
    """The places of a file that have a habit."""
    for piece in pieces(file, (ROOT / file).read_text()):
        for habit in HABITS:
            for offset in habit.places(piece):
                excerpt = " ".join(piece.text[max(0, offset - 20) : offset + 50].split())
                yield Place(file, piece.line + piece.text.count("\n", 0, offset), habit, excerpt)


def files(paths: list[str]) -> list[Path]:
    """The modules and templates under these paths, relative to the repository. Without paths, all of them."""
    roots = [Path(path).resolve() for path in paths] or [ROOT]
    every = [file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*.*")))]
    relative = [file.relative_to(ROOT) for file in every if file.suffix in (".py", ".html")]
    return [file for file in relative if not SKIPPED & set(file.parts)]


def main(paths: list[str]) -> int:
    """Prints the places. Returns 1 if there is one."""
    all_places = [place for file in files(paths) for place in places(file)]
    for place in all_places:
        print(place)
    return 1 if all_places else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
