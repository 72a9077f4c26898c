"""OpenVINO's converter as a user would call it: openvino_ir.py SAVED_MODEL OUTPUT. Run as a script."""

from __future__ import annotations

import sys


def main() -> None:
    """Convert, weights left at the precision that they have."""
    import openvino

    source, output = sys.argv[1:]
    openvino.save_model(openvino.convert_model(source), output, compress_to_fp16=False)


if __name__ == "__main__":
    main()
