"""A Protobuf schema with a field of every kind, and its messages."""

from __future__ import annotations

from typing import Any

from google.protobuf.message_factory import GetMessageClass

from view_algebra.formats.interface import Schema
from view_algebra.formats.protobuf import schema_types

ORDER = """
syntax = "proto3";
package shop;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "confluent/type/decimal.proto";
enum Kind { option allow_alias = true; NONE = 0; NEW = 1; FRESH = 1; }
message Order {
  int64 id = 1;
  uint64 most = 2;
  sint32 less = 3;
  fixed64 fixed = 4;
  double share = 5;
  float part = 6;
  bool ok = 7;
  string userName = 8;
  bytes raw = 9;
  Kind kind = 10;
  optional int32 given = 11;
  Place place = 12;
  message Place { string city = 1; map<string, int32> floors = 2; message Room { int32 number = 1; } }
  repeated int32 numbers = 13;
  repeated Place places = 14;
  map<int32, Place> by_number = 15;
  map<bool, double> by_truth = 16;
  oneof paid { int64 cash = 17; string card = 18; }
  google.protobuf.Timestamp at = 19;
  google.protobuf.Duration took = 20;
  google.protobuf.Int64Value wrapped = 21;
  google.protobuf.Struct any_json = 22;
  google.protobuf.Any any = 23;
  google.type.Date day = 24;
  confluent.type.Decimal price = 25;
  Order within = 26;
  repeated Kind kinds = 27;
  string HasField = 28;
  google.protobuf.BytesValue wrapped_bytes = 29;
  google.protobuf.FloatValue wrapped_float = 30;
}
message Other { string name = 1; }
"""


def message(schema: str, name: str) -> Any:
    """The class of a message in a schema."""
    return GetMessageClass(schema_types(Schema("PROTOBUF", schema)).named(name))


def order(**fields: Any) -> Any:
    """An order with these fields."""
    return message(ORDER, "shop.Order")(**fields)
