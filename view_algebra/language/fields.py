"""Fields inside nested values: of a struct or of all structs in a list, and the bounds of a window."""

from __future__ import annotations

from view_algebra.language.expressions import Call, Case, Constant, Expr, Field, Place
from view_algebra.language.types import STRING, Type
from view_algebra.refusals import Wrong, suggestion

VARIABLE = "->"
"""The relation of a lambda's variable."""


def member(value: Expr, name: str, place: Place) -> Expr:
    """A field of a struct or of all structs in an array, or a bound of a window."""
    fields = dict(value.type.fields)
    if value.type.key == STRING and value.type.element is not None:
        fields = {name: value.type.element}
    exact = next((f for f in fields if f.lower() == name.lower()), None)
    if exact is None and value.type.name == "ARRAY" and value.type.element is not None and value.type.element.fields:
        element = Field(VARIABLE, ("each 0",), value.type.element, place=place)
        inner = member(element, name, place)
        function = Call("lambda", (element, inner), inner.type)
        return Call("transform", (value, function), Type("ARRAY", element=inner.type), place=place)
    if exact is None:
        way_out = suggestion(name, fields)
        if value.type == STRING:
            of = ".".join(value.path) if isinstance(value, Field) else "x"
            way_out = f"Write get_json_object({of}, '$.{name}')."
        raise Wrong(place, f"no field {name} in {value.type}", way_out)
    if isinstance(value, Call) and value.function in ("window", "named_struct"):
        values = value.arguments if value.function == "window" else value.arguments[1::2]
        return values[list(fields).index(exact)]
    if isinstance(value, Case) and len(value.branches) == 1 and value.otherwise is None:
        ((when, then),) = value.branches
        return Case(((when, member(then, name, place)),), None, fields[exact], place)
    if isinstance(value, Field):
        return Field(value.relation, (*value.path, exact), fields[exact], place=place, of=value.type)
    return Call(".", (value, Constant(exact, STRING)), fields[exact], place=place)
