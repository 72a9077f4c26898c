"""Who can take part in a benchmark, in which environment, and what it needs of a model."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

STOCK = "tensorflow"  # its answers are the right ones
GLOWPLUG = "glowplug-"  # what the names of our engines begin with


@dataclass(frozen=True, slots=True)
class Peer:
    """A program that answers from models. `module` is what an environment must have for it.

    `form` is the kind of file that it takes. `environment` is the folder `peers-NAME` that is looked for first; without
    one, it runs where Glowplug itself is installed.
    """

    name: str
    title: str
    script: str
    module: str
    environment: str
    form: str
    distributions: tuple[str, ...]


_TENSORFLOW = "tensorflow|tensorflow-cpu"

PEERS: tuple[Peer, ...] = (
    Peer(STOCK, "TensorFlow", "tensorflow_signature", "tensorflow", "", "saved_model", (_TENSORFLOW,)),
    Peer("keras", "Keras", "keras_model", "keras", "", "source", (_TENSORFLOW, "keras")),
    Peer("litert", "LiteRT", "litert_interpreter", "ai_edge_litert", "litert", "tflite", ("ai-edge-litert",)),
    Peer("onnxruntime", "ONNX Runtime", "onnx_session", "onnxruntime", "onnxruntime", "onnx", ("onnxruntime",)),
    Peer("openvino", "OpenVINO", "openvino_model", "openvino", "openvino", "openvino", ("openvino",)),
    *(
        Peer(
            f"{GLOWPLUG}{engine}",
            f"Glowplug {engine}",
            "glowplug_bundle",
            module,
            "",
            engine,
            ("glowplug", distribution),
        )
        for engine, module, distribution in (
            ("native", "tensorflow", _TENSORFLOW),
            ("litert", "ai_edge_litert", "ai-edge-litert"),
            ("savedmodel", "tensorflow", _TENSORFLOW),
        )
    ),
)


def find_interpreter(environment: str, module: str, environments: Path) -> Path | None:
    """Return the interpreter of a peer's own environment, else this one where it has the module."""
    own = environments / f"peers-{environment}" / "bin" / "python"
    if environment and own.is_file():
        return own.absolute()  # not resolved: a virtual environment is where its link is
    return Path(sys.executable) if find_spec(module) is not None else None
