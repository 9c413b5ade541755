# SPDX-License-Identifier: Apache-2.0
"""The argument `keep` of the bulk functions: columns of the groups that the answers repeat."""

from collections.abc import Sequence

from pyspark.sql import types as t

from kafka_rebalance.errors import SchemaError


def kept_fields(keep: Sequence[str], found: t.StructType, answers: t.StructType) -> t.StructType:
    """Returns the fields of the columns to keep, in the order of `keep`.

    Errors: SchemaError at `keep[i]` for a column that the groups lack, that is named twice, or that
    the answers already contain.
    """
    if isinstance(keep, str):
        raise SchemaError(f"keep: a text; give a list of names of columns: [{keep!r}]")
    fields = []
    for i, name in enumerate(keep):
        if name in answers.names:
            raise SchemaError(f"keep[{i}]: {name} is a column of the answers; rename it first")
        if name not in found.names:
            raise SchemaError(f"keep[{i}]: the groups have no column {name}")
        if name in keep[:i]:
            raise SchemaError(f"keep[{i}]: {name} is named twice")
        fields.append(found[name])
    return t.StructType(fields)


def answers_type(schema: str) -> t.StructType:
    """Returns the type of a schema that is written as a string."""
    parsed = t.DataType.fromDDL(schema)
    assert isinstance(parsed, t.StructType)
    return parsed
