"""Schemas of Protobuf: the text of a .proto file, or its descriptor in base64, becomes the types of its messages.

Google's own compiler reads them, in a process of its own: it may fail, and it prints its reasons.
"""

from __future__ import annotations

import binascii
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from view_algebra.formats.interface import NoText, Schema

_MAIN = "schema-of-records.proto"
"""The file with the text of a schema, which other schemas are not called."""

_NAME = re.compile(r"(?!.*\.\.)(?=.{1,200}$)\w[\w.+-]*(/\w[\w.+-]*)*", re.ASCII)
"""A name that a schema may import: a file of the folder it is in."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
"""What the text of a .proto file with a message is not."""

_REASON = re.compile(r"[\w.+/-]+:")
"""A line of protoc's that is about a file; other lines have the time in them."""

_REFUSED = 3
COMPILE_SECONDS = 60
"""Seconds within which protoc compiles any schema: it takes a tenth of one."""

_COMPILE = f"import sys; from grpc_tools.protoc import main; sys.exit(main(sys.argv) and {_REFUSED})"
"""Runs protoc, and tells an exit of its own from one of Python."""

_KNOWN: Mapping[str, str] = {
    "confluent/type/decimal.proto": """syntax = "proto3"; package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "confluent/meta.proto": """syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }""",
}
"""The files that a schema may import without naming them as references, besides those of google/protobuf and
google/type: Kafka Connect's converter does."""


@dataclass(frozen=True)
class Types:
    """The types of a schema: the files that it consists of, and the one with the messages of records."""

    pool: Any
    main: Any

    def named(self, name: str) -> Any:
        """The type of a message by its full name; raises `NoText`."""
        try:
            return self.pool.FindMessageTypeByName(name)
        except KeyError:
            raise NoText(f"the schema has no message {name}") from None

    def at(self, indexes: Sequence[int]) -> Any:
        """The type at this place among the messages of the file, then among those within; raises `NoText`.

        The entries of maps are types within a message as well, and do not count.
        """
        names, written = list[str](), self._messages
        for index in indexes:
            if not 0 <= index < len(written):
                raise NoText(f"the schema has no message {list(indexes)}")
            names.append(written[index].name)
            written = [each for each in written[index].nested_type if not each.options.map_entry]
        return self.named(self._full(".".join(names)))

    @cached_property
    def _messages(self) -> Sequence[Any]:
        """The messages that are not within another: listed once, since a file may have thousands."""
        return list(self.main.message_type)

    def names(self) -> list[str]:
        """The full names of the messages that are not within another."""
        return [self._full(each.name) for each in self.main.message_type]

    def _full(self, name: str) -> str:
        return f"{self.main.package}.{name}" if self.main.package else name


def types_of(schema: Schema) -> Types:
    """The types of a schema; raises `NoText` if it is not one of Protobuf."""
    found = _compiled(schema)
    if isinstance(found, str):
        raise NoText(found)
    return found


@lru_cache(maxsize=1_000)
def _compiled(schema: Schema) -> Types | str:
    """The types of a schema, or the reason why it has none."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    described = _described(schema)
    if isinstance(described, str):
        return described
    pool, main = DescriptorPool(), None
    try:
        for main in FileDescriptorSet.FromString(described).file:
            pool.Add(main)
    except TypeError as error:
        return f"the schema is not one of Protobuf: {error}"
    return Types(pool, main)


@cache
def _described(schema: Schema) -> bytes | str:
    """The output of protoc for a schema, or the reason why there is none: kept of every schema, so that it runs once.

    Schemas are kept in whole as long as records may name them, and what is made of one is not longer.
    """
    try:
        return _files(schema)
    except NoText as reason:
        return str(reason)


def _files(schema: Schema) -> bytes:
    """The descriptors of the files of a schema, each behind those that it imports."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    described, texts, main = FileDescriptorSet(), dict(_KNOWN), _MAIN
    for name, text in (*dict(schema.references).items(), (_MAIN, schema.text)):
        if not _BASE64.fullmatch(text):
            texts[name] = text
            continue
        files = _of_descriptor(text)
        if name == _MAIN:
            main = files[-1].name
        else:
            files[-1].name = name
        described.file.extend(files)
    for name in (*texts, main):
        if not _NAME.fullmatch(name):
            raise NoText(f"the schema is not one of Protobuf: a file cannot be called {name[:200]!r}")
    return _protoc(main, texts, described.SerializeToString())


def _of_descriptor(text: str) -> Sequence[Any]:
    """The files of a descriptor in base64: of a set, as protoc writes it, or of one file, as serializers have it."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    for kind in (FileDescriptorSet, FileDescriptorProto):
        try:
            found = kind.FromString(binascii.a2b_base64(text))
        except (binascii.Error, DecodeError):
            continue
        files = found.file if kind is FileDescriptorSet else [found]
        if files and all(each.name for each in files) and not len(UnknownFieldSet(found)):
            return list(files)
    raise NoText("the schema is neither the text of a .proto file nor its descriptor in base64")


def _protoc(main: str, texts: Mapping[str, str], described: bytes) -> bytes:
    """The descriptors of a file, and of all that it imports, from the texts of files or from descriptors of others."""
    import google.type
    import grpc_tools

    known = (Path(grpc_tools.__path__[0], "_proto"), Path(google.type.__path__[0]).parents[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            for each, text in texts.items():
                path = folder / "files" / each
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise NoText("the schema is not one of Protobuf: a file is called as the folder of another") from None
        (folder / "described").write_bytes(described)
        given = [f"--descriptor_set_in={folder / 'described'}"] if described else []
        paths = [f"-I{path}" for path in (folder / "files", *known)]
        out = ["--include_imports", f"--descriptor_set_out={folder / 'out'}"]
        command = [sys.executable, "-c", _COMPILE, *paths, *given, *out, main]
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=COMPILE_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise NoText(f"the schema takes protoc longer than {COMPILE_SECONDS} s") from None
        if ended.returncode == 0:
            return (folder / "out").read_bytes()
        said = ended.stderr.decode(errors="replace").replace(f"{folder / 'files'}/", "")
    if ended.returncode != _REFUSED:
        raise OSError(f"protoc ended with {ended.returncode}: {said}")
    reasons = [line for line in said.replace("\0", "").splitlines() if _REASON.match(line) and "warning:" not in line]
    reason = next(iter(reasons), "").removeprefix(f"{main}:").strip()
    raise NoText(f"the schema is not one of Protobuf: {reason[:300]}")
