"""`protobuf`: each value is one Protobuf message, of the registry's schema for it or of the schema in OPTIONS.

A message becomes JSON by its type, with the field names of the schema: enums as their names, bytes in base64,
well-known types as the values that they represent. A field with presence (`optional`, a message, one of a `oneof`) is
NULL if it is not set. Any other field then has its default. Fields that the schema lacks are ignored.

A schema is the text of a .proto file or its descriptor in base64. Google's own compiler reads it in a separate process,
because it may crash and prints its reasons.
"""

from __future__ import annotations

import binascii
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from view_algebra.formats import as_json, frames
from view_algebra.formats.interface import (
    DECODED,
    DeclaredColumns,
    Decoder,
    FormatMistake,
    NoText,
    Schema,
    Schemas,
    ValueSql,
    refusing,
)

_MAIN = "schema-of-records.proto"
"""The file with the text of a schema, a name that no other schema has."""

_NAME = re.compile(r"(?!.*\.\.)(?=.{1,200}$)\w[\w.+-]*(/\w[\w.+-]*)*", re.ASCII)
"""Names that a schema may import: files of its folder."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
"""Text in base64, which a .proto file with a message never is."""

_REASON = re.compile(r"[\w.+/-]+:")
"""A line of protoc's output about a file. Other lines contain the time."""

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
    """The types of a schema.

    pool: all of its files
    main: the file with the messages of records
    """

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


def schema_types(schema: Schema) -> Types:
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
        files = _descriptor_files(text)
        if name == _MAIN:
            main = files[-1].name
        else:
            files[-1].name = name
        described.file.extend(files)
    for name in (*texts, main):
        if not _NAME.fullmatch(name):
            raise NoText(f"the schema is not one of Protobuf: a file cannot be called {name[:200]!r}")
    return _protoc(main, texts, described.SerializeToString())


def _descriptor_files(text: str) -> Sequence[Any]:
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


OPTIONS = {
    "schema": "of `protobuf`: the schema of all records, as the text of a .proto file, or in base64 what `protoc"
    " --include_imports --descriptor_set_out` writes; they then have no frame of a schema registry",
    "message": "of `protobuf` with a `schema`: the full name of the message that each record is, if it has several",
}

KIND = "PROTOBUF"

FIELDS = 2_000_000
"""Most fields of all messages within a value. A message may take only two bytes, but has all its fields in JSON."""

MOST_TYPES = 10_000
"""Most message types whose readers are cached: a reader takes some kB, and a quarter of a millisecond to make."""

_DEEPEST = 100
"""Most nested types that message indexes may name."""

Convert = Callable[[Any, list[int]], Any]
"""Converts a value to JSON. The list holds the number of fields that the whole value may still have."""


def read(declared: DeclaredColumns) -> ValueSql:
    """The SQL of decoded values. Raises `FormatMistake` for wrong options."""
    text, message = declared.options.get("schema"), declared.options.get("message")
    if text is None:
        if message is not None:
            raise FormatMistake(f"message {message!r} needs a schema", "Leave it out, or write the schema.", "message")
        return DECODED
    schema = Schema(KIND, text)
    try:
        names = schema_types(schema).names()
    except NoText as mistake:
        way_out = (
            "Write the text of a .proto file, or in base64 the file of `protoc --include_imports --descriptor_set_out`."
        )
        raise FormatMistake(str(mistake), way_out, "schema") from None
    try:
        message_class(schema, message)
    except NoText as mistake:
        listed = " or ".join(f"message '{name}'" for name in names[:5])
        way_out = (
            f"Write {listed}{' or another' if names[5:] else ''}." if names else "Declare a message in the schema."
        )
        raise FormatMistake(str(mistake), way_out, "schema" if message is None else "message") from None
    return DECODED


def decoder(options: Mapping[str, str], schemas: Schemas) -> Decoder:
    """Returns the decoder of values whose schemas are among these."""
    if "schema" in options:
        only, message = Schema(KIND, options["schema"]), options.get("message")
        return lambda value, header: _message_decoder(only, message)(value)

    def decode(schema: Schema, behind: bytes, datum: bytes) -> str:
        indexes, rest = unindexed(behind)
        return _message_decoder(schema, indexes)(rest if behind is datum else datum)  # a header may hold the indexes

    return frames.decoder(KIND, schemas, decode)


def unindexed(value: bytes) -> tuple[tuple[int, ...], bytes]:
    r"""The place of a message's type in its schema, which Confluent's serializers write after the frame, and the rest.

    >>> unindexed(b"\0rest"), unindexed(b"\4\2\6rest")
    (((0,), b'rest'), ((1, 3), b'rest'))
    """
    count, at = _zigzag(value, 0)
    if not 0 <= count <= _DEEPEST:
        raise NoText("not Protobuf: no message indexes follow the frame")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(value, at)
        indexes.append(index)
    return tuple(indexes) or (0,), value[at:]


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    number = 0
    for shift in range(0, 35, 7):
        if at >= len(value):
            break
        byte, at = value[at], at + 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise NoText("not Protobuf: no message indexes follow the frame")


def message_class(schema: Schema, message: str | Sequence[int] | None) -> Any:
    """The message class of the type with this name or these indexes, or of the only type. Raises `NoText`."""
    from google.protobuf.message_factory import GetMessageClass

    types = schema_types(schema)
    if isinstance(message, str):
        return GetMessageClass(types.named(message))
    if message is not None:
        return GetMessageClass(types.at(message))
    names = types.names()
    if len(names) != 1:
        raise NoText(f"the schema has {len(names) or 'no'} messages")
    return GetMessageClass(types.named(names[0]))


@lru_cache(maxsize=MOST_TYPES)
def _message_decoder(schema: Schema, message: str | tuple[int, ...] | None) -> Callable[[bytes], str]:
    """Returns the decoder of a schema's messages, which raises `NoText` if a value is not a message."""
    from google.protobuf.message import DecodeError

    try:
        written = message_class(schema, message)
    except NoText as reason:
        return refusing(str(reason))
    parse, convert = written.FromString, _type_converter(written.DESCRIPTOR, {})
    names = len(schema.text) + sum(len(text) for _, text in schema.references)
    is_none = f"not Protobuf: not a message of type {written.DESCRIPTOR.full_name}"

    def decode(value: bytes) -> str:
        try:
            return as_json.text(convert(parse(value), [FIELDS]), value, names)
        except DecodeError:
            raise NoText(is_none) from None
        except TypeError:  # Python leaves such a text as bytes
            raise NoText(f"{is_none}: a text is not UTF-8") from None
        except (ValueError, AttributeError) as error:
            raise NoText(f"{is_none}: {error}") from None

    return decode


def _object(kind: Any, types: dict[str, Convert]) -> Convert:
    """Returns the conversion of a type's messages to JSON objects with a field for each field of the type.

    types: the conversions of the types met so far, since a type may contain itself.
    """
    from google.protobuf.message_factory import GetMessageClass

    has = GetMessageClass(kind).HasField  # from the class, since a message may have a field of this name
    names = [field.name for field in kind.fields]
    as_it_is, always, perhaps = list[str](), list[tuple[str, Convert]](), list[tuple[str, Convert | None]]()
    for field in kind.fields:
        convert_value = _field_converter(field, types)
        if field.has_presence:
            perhaps.append((field.name, convert_value))
        elif convert_value is not None:
            always.append((field.name, convert_value))
        else:
            as_it_is.append(field.name)
    as_it_is += as_it_is[:1]  # for a single name, attrgetter would not return a tuple
    values = attrgetter(*as_it_is) if as_it_is else lambda _: ()

    def convert(message: Any, left: list[int]) -> dict[str, Any]:
        left[0] -= len(names)
        if left[0] < 0:
            raise NoText(f"not Protobuf: its messages have more than {FIELDS} fields")
        fields: dict[str, Any] = dict.fromkeys(names)
        fields.update(zip(as_it_is, values(message), strict=True))
        for name, convert_value in always:
            fields[name] = convert_value(getattr(message, name), left)
        for name, convert_set in perhaps:
            if has(message, name):
                value = getattr(message, name)
                fields[name] = value if convert_set is None else convert_set(value, left)
        return fields

    return convert


def _type_converter(kind: Any, types: dict[str, Convert]) -> Convert:
    """Returns the conversion of a type's messages to JSON, made at the first message: a schema may have many types."""
    name = kind.full_name
    if name in _WELL_KNOWN:
        return _WELL_KNOWN[name]

    def convert(message: Any, left: list[int]) -> Any:
        convert_object = types.get(name)
        if convert_object is None:
            convert_object = types[name] = _object(kind, types)
        return convert_object(message, left)

    return convert


def _field_converter(field: Any, types: dict[str, Convert]) -> Convert | None:
    """Returns the conversion of a field's value to JSON, or None if JSON takes Python's value."""
    if not field.is_repeated:
        return _single_converter(field, types)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map_converter(field.message_type, types)
    convert_each = _single_converter(field, types)
    if convert_each is None:
        return lambda values, _: list(values)
    return lambda values, left: [convert_each(value, left) for value in values]


def _map_converter(entry: Any, types: dict[str, Convert]) -> Convert:
    """Returns the conversion of a map, with entries in the order of their keys: Protobuf's own order is random."""
    key, value = entry.fields
    text: Callable[[Any], Any] = str
    if key.type == key.TYPE_BOOL:
        text = {True: "true", False: "false"}.get
    elif key.type == key.TYPE_STRING:  # stays bytes if it is not UTF-8
        text = _same
    convert_each = _single_converter(value, types)
    if convert_each is None:
        return lambda entries, _: {text(key): entries[key] for key in sorted(entries)}
    return lambda entries, left: {text(key): convert_each(entries[key], left) for key in sorted(entries)}


def _same(value: Any) -> Any:
    return value


def _single_converter(field: Any, types: dict[str, Convert]) -> Convert | None:
    match field.type:
        case field.TYPE_DOUBLE | field.TYPE_FLOAT:
            return lambda value, _: as_json.number(value)
        case field.TYPE_BYTES:
            return lambda value, _: as_json.in_base64(value)
        case field.TYPE_MESSAGE | field.TYPE_GROUP:
            return _type_converter(field.message_type, types)
        case field.TYPE_ENUM:
            names = {value.number: value.name for value in reversed(field.enum_type.values)}
            return lambda value, _: names.get(value, value)
    return None


def _nanoseconds(time: Any) -> int:
    return int(time.seconds) * _NANOS + int(time.nanos)


def _duration(value: Any, _: list[int]) -> Any:
    """The seconds, with nine digits after the point unless they are whole."""
    number = _nanoseconds(value)
    return as_json.decimal(number, 9) if number % _NANOS else number // _NANOS


def _decimal(value: Any, _: list[int]) -> Any:
    unscaled = int.from_bytes(value.value, "big", signed=True)
    if not -_MOST_DIGITS <= value.scale <= _MOST_DIGITS:
        raise NoText(f"not Protobuf: a decimal of scale {value.scale}")
    return as_json.decimal(unscaled * 10 ** max(-value.scale, 0), max(value.scale, 0))


def _any_json(value: Any, left: list[int]) -> Any:
    """The JSON of a `google.protobuf.Value`. A whole number has no fraction."""
    kind = value.WhichOneof("kind")
    match kind:
        case None | "null_value":
            return None
        case "struct_value":
            return _struct(value.struct_value, left)
        case "list_value":
            return _list(value.list_value, left)
        case "number_value":
            number = value.number_value
            return int(number) if abs(number) < _WHOLE and number.is_integer() else as_json.number(number)
    return getattr(value, kind)


def _struct(value: Any, left: list[int]) -> Any:
    return {name: _any_json(value.fields[name], left) for name in sorted(value.fields)}


def _list(value: Any, left: list[int]) -> Any:
    return [_any_json(element, left) for element in value.values]


_NANOS = 10**9
_instant = as_json.instant(_NANOS, "Z")
_WHOLE = 2.0**53
"""From this number on, a double no longer distinguishes all whole numbers."""

_MOST_DIGITS = 1_000
"""Most digits that the scale of a decimal may add."""

_WELL_KNOWN: Mapping[str, Convert] = {
    "google.protobuf.Timestamp": lambda value, _: _instant(_nanoseconds(value)),
    "google.protobuf.Duration": _duration,
    **dict.fromkeys(
        [f"google.protobuf.{kind}Value" for kind in ("Int64", "UInt64", "Int32", "UInt32", "Bool", "String")],
        lambda value, _: value.value,
    ),
    **dict.fromkeys(
        [f"google.protobuf.{kind}Value" for kind in ("Double", "Float")], lambda value, _: as_json.number(value.value)
    ),
    "google.protobuf.BytesValue": lambda value, _: as_json.in_base64(value.value),
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
    "google.protobuf.Value": _any_json,
    "google.type.Date": lambda value, _: f"{value.year:04}-{value.month:02}-{value.day:02}",
    "google.type.TimeOfDay": lambda value, _: (
        f"{value.hours:02}:{value.minutes:02}:{value.seconds:02}.{value.nanos:09}"
    ),
    "confluent.type.Decimal": _decimal,
}
"""Conversions to JSON of Google's and Confluent's well-known types."""
