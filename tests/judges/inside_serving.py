"""Runs TensorFlow Serving's integration test in a process of its own: inside_serving.py CHECKOUT REPORT [CASE]

The installed package `tensorflow_serving` has the messages, the checkout has the test: the package gets the folders of
both. The report has the names of the cases that passed and of those that did not.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import unittest
from pathlib import Path
from typing import Any


class Names(unittest.TextTestResult):
    """Remembers the names of cases."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.passed: list[str] = []
        self.failed: list[str] = []

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.passed.append(_name(test))

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.failed.append(_name(test))

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self.failed.append(_name(test))


def _name(test: unittest.TestCase) -> str:
    return test.id().rpartition(".")[2]


def main(checkout: Path, report: Path, only: str) -> None:
    import tensorflow as tf
    import tensorflow_serving
    from absl import app
    from tensorflow.python.platform import flags

    flags.os = os  # one case takes it from there, where newer releases of TensorFlow do not have it
    tensorflow_serving.__path__.append(str(checkout / "tensorflow_serving"))
    place = checkout / "tensorflow_serving" / "model_servers" / "tensorflow_model_server_test.py"
    spec = importlib.util.spec_from_file_location("judge", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["judge"] = module
    spec.loader.exec_module(module)

    def run(_: list[str]) -> None:
        tf.compat.v1.enable_eager_execution()
        loader = unittest.TestLoader()
        loader.testNamePatterns = [f"*.{only}"] if only else None
        suite = loader.loadTestsFromModule(module)
        result = unittest.TextTestRunner(resultclass=Names, verbosity=2).run(suite)
        assert isinstance(result, Names)
        # every class of TensorFlow's has a case of this name, which is about nothing and is skipped
        names = {"passed": result.passed, "failed": result.failed}
        report.write_text(
            json.dumps({key: [one for one in found if one != "test_session"] for key, found in names.items()})
        )

    app.run(run, argv=sys.argv[:1])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
