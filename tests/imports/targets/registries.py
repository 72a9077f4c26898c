"""Prints what TensorFlow's import has registered, without touching the API: registries.py FILE"""

import json
import sys

import keras  # noqa: F401 - what is looked at is the import of both
import tensorflow as tf  # noqa: F401

from google.protobuf import descriptor_pool
from tensorflow.python.framework import ops, tensor_conversion_registry, type_spec_registry
from tensorflow.python.saved_model import revived_types
from tensorflow.python.saved_model.registration import registration
from tensorflow.python.util import dispatch, tf_export
from tensorflow.python.framework import composite_tensor_gradient, registry

found: dict[str, list[str]] = {
    "gradients": sorted(ops.gradient_registry.list()),
    "type specs": sorted(type_spec_registry.get_registered_name_to_type() if hasattr(type_spec_registry, "get_registered_name_to_type") else type_spec_registry._NAME_TO_TYPE_SPEC),
    "revived types": sorted(revived_types._REVIVED_TYPE_REGISTRY),
    "classes": sorted(registration._class_registry._registered_names if hasattr(registration._class_registry, "_registered_names") else registration._class_registry._registry),
    "savers": sorted(registration._saver_registry._registered_names if hasattr(registration._saver_registry, "_registered_names") else registration._saver_registry._registry),
    "conversions": sorted(str(one) for one in tensor_conversion_registry._tensor_conversion_func_registry),
    "dispatchers": sorted(str(type(one)) for one in dispatch._GLOBAL_DISPATCHERS),
    "elementwise": sorted(f"{one.__module__}.{one.__name__}" for one in dispatch._UNARY_ELEMENTWISE_APIS),
}
with open(sys.argv[1], "w") as stream:
    json.dump(found, stream)
