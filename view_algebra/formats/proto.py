"""Compiles a Protobuf schema, the text of a .proto file or its descriptor in base64, to the types of its messages.

Google's own compiler reads it in a separate process, because it may crash and prints its reasons.
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
"""The file with the text of a schema, a name that no other schema has."""

_NAME = re.compile(r"(?!.*\.\.)(?=.{1,200}$)\w[\w.+-]*(/\w[\w.+-]*)*", re.ASCII)
"""Names that a schema may import: files of its folder."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
"""Text in base64, which a .proto file with a message never is."""

_REASON = re.compile(r"[\w.+/-]+:")
"""A line of protoc's output about a file; other lines contain the time."""

_REFUSED = 3
COMPILE_SECONDS = 60
"""Seconds within which protoc compiles any schema: it usually takes a tenth of a second."""

_COMPILE = f"import sys; from grpc_tools.protoc import main; sys.exit(main(sys.argv) and {_REFUSED})"
"""Runs protoc with an exit code that distinguishes its errors from Python's."""

_BUNDLED: Mapping[str, str] = {
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
"""Files that a schema may import without a reference to them, in addition to those of google/protobuf and google/type:
Kafka Connect's converter does so."""


@dataclass(frozen=True)
class Types:
    """The types of a schema. pool: all of its files. main: the file with the messages of records."""

    pool: Any
    main: Any

    def named(self, name: str) -> Any:
        """The message type with this full name. Raises `NoText`."""
        try:
            return self.pool.FindMessageTypeByName(name)
        except KeyError:
            raise NoText(f"the schema has no message {name}") from None

    def at(self, indexes: Sequence[int]) -> Any:
        """The type at this place among the file's messages, then among their nested messages. Raises `NoText`.

        The entry types of maps, which are nested as well, do not count.
        """
        names, written = list[str](), self._messages
        for index in indexes:
            if not 0 <= index < len(written):
                raise NoText(f"the schema has no message {list(indexes)}")
            names.append(written[index].name)
            written = [message for message in written[index].nested_type if not message.options.map_entry]
        return self.named(self._full(".".join(names)))

    @cached_property
    def _messages(self) -> Sequence[Any]:
        """The top-level messages, listed once because a file may have thousands."""
        return list(self.main.message_type)

    def names(self) -> list[str]:
        """The full names of the top-level messages."""
        return [self._full(message.name) for message in self.main.message_type]

    def _full(self, name: str) -> str:
        return f"{self.main.package}.{name}" if self.main.package else name


def types_of(schema: Schema) -> Types:
    """The types of a schema. Raises `NoText` if it is not a Protobuf schema."""
    types = _compiled(schema)
    if isinstance(types, str):
        raise NoText(types)
    return types


@lru_cache(maxsize=1_000)
def _compiled(schema: Schema) -> Types | str:
    """The types of a schema, or the reason it has none."""
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
    """The output of protoc for a schema, or the reason for its failure, cached so that protoc runs once per schema.

    Schemas themselves stay in memory as long as records may name them, and the output is not longer than the schema.
    """
    try:
        return _files(schema)
    except NoText as reason:
        return str(reason)


def _files(schema: Schema) -> bytes:
    """The descriptors of a schema's files, each after the files that it imports."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    described, texts, main = FileDescriptorSet(), dict(_BUNDLED), _MAIN
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
    """The files of a descriptor in base64: protoc's descriptor of a set, or a serializer's descriptor of one file."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    for kind in (FileDescriptorSet, FileDescriptorProto):
        try:
            descriptor = kind.FromString(binascii.a2b_base64(text))
        except (binascii.Error, DecodeError):
            continue
        files = descriptor.file if kind is FileDescriptorSet else [descriptor]
        if files and all(file.name for file in files) and not len(UnknownFieldSet(descriptor)):
            return list(files)
    raise NoText("the schema is neither the text of a .proto file nor its descriptor in base64")


def _protoc(main: str, texts: Mapping[str, str], described: bytes) -> bytes:
    """The descriptors of a file and all its imports, from the texts of files and the descriptors of others."""
    import google.type
    import grpc_tools

    shipped = (Path(grpc_tools.__path__[0], "_proto"), Path(google.type.__path__[0]).parents[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            for file, text in texts.items():
                path = folder / "files" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise NoText("the schema is not one of Protobuf: a file is called as the folder of another") from None
        (folder / "described").write_bytes(described)
        inputs = [f"--descriptor_set_in={folder / 'described'}"] if described else []
        paths = [f"-I{path}" for path in (folder / "files", *shipped)]
        out = ["--include_imports", f"--descriptor_set_out={folder / 'out'}"]
        command = [sys.executable, "-c", _COMPILE, *paths, *inputs, *out, main]
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=COMPILE_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise NoText(f"the schema takes protoc longer than {COMPILE_SECONDS} s") from None
        if ended.returncode == 0:
            return (folder / "out").read_bytes()
        output = ended.stderr.decode(errors="replace").replace(f"{folder / 'files'}/", "")
    if ended.returncode != _REFUSED:
        raise OSError(f"protoc ended with {ended.returncode}: {output}")
    reasons = [line for line in output.replace("\0", "").splitlines() if _REASON.match(line) and "warning:" not in line]
    reason = next(iter(reasons), "").removeprefix(f"{main}:").strip()
    raise NoText(f"the schema is not one of Protobuf: {reason[:300]}")
