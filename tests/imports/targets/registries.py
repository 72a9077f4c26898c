"""Writes what the import of TensorFlow and Keras has registered, as JSON: registries.py FILE"""

import json
import sys
from pathlib import Path

import keras  # noqa: F401 - what is looked at is the import of both
import tensorflow  # noqa: F401
from tensorflow.python.framework import ops, tensor_conversion_registry, type_spec_registry
from tensorflow.python.saved_model import revived_types
from tensorflow.python.saved_model.registration import registration
from tensorflow.python.util import dispatch

found = {
    "gradients": sorted(ops.gradient_registry.list()),
    "type specs": sorted(type_spec_registry._NAME_TO_TYPE_SPEC),
    "revived types": sorted(revived_types._REVIVED_TYPE_REGISTRY),
    "classes": sorted(registration._class_registry._registered_map),
    "savers": sorted(registration._saver_registry._registered_map),
    "conversions": sorted(str(one) for one in tensor_conversion_registry._tensor_conversion_func_registry),
    "elementwise": sorted(f"{one.__module__}.{one.__name__}" for one in dispatch._UNARY_ELEMENTWISE_APIS),
}
Path(sys.argv[1]).write_text(json.dumps(found))
