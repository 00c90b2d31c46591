-- no topic
CREATE TABLE x (a INT) USING kafka;
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- no USING
CREATE TABLE x (a INT);
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- another format
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'thrift');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a separator of two characters
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'csv', delimiter '||');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'csv', delimiter ',');

-- one character for two purposes
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'csv', delimiter ';', quote ';');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'csv', delimiter ';', quote '"');

-- an option of another format
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', delimiter ';');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a registry asked again that is not asked
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', ask_again '1');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a registry asked again without a number
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'avro', ask_again 'yes');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'avro', ask_again '1');

-- two columns of one text
CREATE TABLE x (a STRING, b STRING) USING kafka OPTIONS (topic 'x', format 'text');
-- instead
CREATE TABLE x (a STRING) USING kafka OPTIONS (topic 'x', format 'text');

-- a number for bytes
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'bytes');
-- instead
CREATE TABLE x (a BINARY) USING kafka OPTIONS (topic 'x', format 'bytes');

-- a schema that is not of Protobuf
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', schema 'syntax = "proto3"; message A { int65 a = 1; }');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', schema 'syntax = "proto3"; message A { int64 a = 1; }');

-- base64 of something other than a descriptor
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', schema 'c2hvcC5PcmRlcg==');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', schema 'CiEKB2EucHJvdG8iDgoBQRIJCgFhGAEgASgFYgZwcm90bzM=');

-- a schema of several messages
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', schema 'syntax = "proto3"; package shop; message A { int64 a = 1; } message B { int64 a = 1; }');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', schema 'syntax = "proto3"; package shop; message A { int64 a = 1; } message B { int64 a = 1; }', message 'shop.A');

-- a message that the schema lacks
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', schema 'syntax = "proto3"; package shop; message A { int64 a = 1; } message B { int64 a = 1; }', message 'A');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', schema 'syntax = "proto3"; package shop; message A { int64 a = 1; } message B { int64 a = 1; }', message 'shop.B');

-- a message without a schema
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf', message 'shop.A');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'protobuf');

-- a ROW
CREATE TABLE x (a ROW<b INT, c STRING>) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a STRUCT<b: INT, c: STRING>) USING kafka OPTIONS (topic 'x', format 'json');
