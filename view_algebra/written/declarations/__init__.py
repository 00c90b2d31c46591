"""Statements as declarations: their names, columns, types and properties.

The syntax of one statement comes in. A frozen declaration goes out, and mistakes go to a `Report` or are raised as
`Wrong`, each with its place. No column that a SELECT reads is resolved here.

sources_and_views   CREATE TABLE and CREATE VIEW
properties          OPTIONS and TBLPROPERTIES
declared_encodings  the encodings of a source's columns
catalog_functions   CREATE FUNCTION, and calls of these functions, expanded
checks              ALTER VIEW … ADD CONSTRAINT, as a SELECT of the violations
"""
