"""The edits of programs: what must match, what is replaced everywhere, and where a program ends."""

from __future__ import annotations

import ast

import pytest

from .edits import Cut, OutdatedEditError, Replace, edited
from .table import PROGRAMS

SOURCE = '''"""
Title
"""
import os
os.environ["KERAS_BACKEND"] = "jax"
(x, y), _ = keras.datasets.mnist.load_data()
epochs = 20
model.fit(x, y, epochs=epochs)
super().fit(x)
keras.utils.plot_model(model)
!pip install nothing
"""
## Results
"""
print("shown")
'''


def test_a_program_is_made_to_train_on_little_data_and_to_tell_what_it_gave():
    text = edited(SOURCE, (Replace(r"^epochs = 20", "epochs = 3"), Cut(r"^## Results")), determinism=True)
    assert text.startswith("import recording, synthetic\nrecording.begin(determinism=True)\n")
    assert text.endswith("recording.finish(globals())\n")
    for expected in (
        'os.environ["KERAS_BACKEND"] = "tensorflow"',
        "synthetic.mnist()",
        "epochs = 3",
        "recording.fit(model, x, y, epochs=epochs)",
        "super().fit(x)",
        "recording.nothing(model)",
    ):
        assert expected in text
    assert "shown" not in text
    assert "pip" not in text
    ast.parse(text)


def test_an_edit_whose_line_is_gone_says_so():
    with pytest.raises(OutdatedEditError, match="epochs = 30"):
        edited(SOURCE, (Replace(r"^epochs = 30", ""),), determinism=True)


def test_there_are_programs_enough():
    assert len(PROGRAMS) >= 40
