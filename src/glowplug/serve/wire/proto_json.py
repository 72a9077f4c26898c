"""Messages as JSON, with the names of their fields as written and the fields that are not set."""

from __future__ import annotations

from typing import Any


def to_dict(message: Any) -> dict[str, Any]:
    """Return a message as TensorFlow Serving prints it."""
    from google.protobuf import json_format

    try:
        found = json_format.MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
    except TypeError:  # protobuf before release 5
        found = json_format.MessageToDict(
            message, preserving_proto_field_name=True, including_default_value_fields=True
        )
    return dict(found)
