"""Compiles the .proto files of this folder into `messages.desc`: `python src/glowplug/serve/wire/protos/build.py`.

Needs grpcio-tools, which only someone who changes a .proto file has to install.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
FILES = ("tensorflow.proto", "serving.proto", "open_inference.proto", "health.proto", "reflection.proto")


def build(output: Path) -> int:
    """Write the descriptor set of all files, with what they import, to `output`."""
    from grpc_tools import protoc  # type: ignore[import-not-found,import-untyped,unused-ignore]

    well_known = Path(protoc.__file__).parent / "_proto"
    options = [f"-I{FOLDER}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={output}"]
    code: int = protoc.main(["protoc", *options, *FILES])
    return code


if __name__ == "__main__":
    sys.exit(build(FOLDER / "messages.desc"))
