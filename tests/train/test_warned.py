"""A restored step warns of what its trace warned of: as often, of the same place, through the program's filters."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


def two_inputs() -> Any:
    """Return a model that takes a dict."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    one, two = keras.Input((2,), name="one"), keras.Input((2,), name="two")
    return keras.Model({"one": one, "two": two}, layers.Add()([one, two]))


def heard(model: Any, value: Any) -> list[tuple[str, type[Warning], str, int]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.predict(value, verbose=0)
    return [(str(each.message), each.category, each.filename, each.lineno) for each in found]


def test_inputs_in_another_structure(tmp_path: Path) -> None:
    import numpy as np

    from glowplug import train

    value = [np.ones((2, 2)), np.zeros((2, 2))]
    stock = heard(two_inputs(), value)
    assert any("structure of `inputs`" in text for text, *_ in stock)
    with train.enabled(tmp_path / "cache"):
        first, second = heard(two_inputs(), value), heard(two_inputs(), value)
        assert train.counts() == {"traced": 1, "stored": 1, "restored": 1}
    assert first == second == stock


def test_a_restored_step_warns_once(tmp_path: Path) -> None:
    import numpy as np

    from glowplug import train

    value = [np.ones((2, 2)), np.zeros((2, 2))]
    with train.enabled(tmp_path / "cache"):
        heard(two_inputs(), value)
        model = two_inputs()
        assert heard(model, value)
        assert heard(model, value) == []


def test_a_second_opinion_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from glowplug import train

    monkeypatch.setenv("GLOWPLUG_TRACE_VERIFY", "always")
    value = [np.ones((2, 2)), np.zeros((2, 2))]
    with train.enabled(tmp_path / "cache"):
        once = heard(two_inputs(), value)
        model = two_inputs()
        assert [heard(model, value) for _ in range(3)] == [once, [], []]
        assert train.counts()["verified"] == 1


def test_what_a_program_was_not_to_hear_it_does_not_hear(tmp_path: Path) -> None:
    import numpy as np

    from glowplug import train

    value = [np.ones((2, 2)), np.zeros((2, 2))]
    with train.enabled(tmp_path / "cache"), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("ignore")
        two_inputs().predict(value, verbose=0)
        assert found == []
        warnings.simplefilter("always")
        two_inputs().predict(value, verbose=0)
        assert train.counts()["restored"] == 1
        assert len(found) == 1  # though it was never shown when the step was traced


def test_warnings_of_another_thread_are_its_own() -> None:
    import threading

    from glowplug.train.verify.warned import Warned

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with Warned(silent=True) as warned:
            other = threading.Thread(target=warnings.warn, args=("other",))
            other.start()
            other.join()
            warnings.warn("mine", stacklevel=1)
    assert [str(each.message) for each in found] == ["other"]
    assert warned.found() == []


def test_a_warning_that_was_not_noted_is_refused() -> None:
    """Code that holds `warn` as a name of its own is not heard."""
    from _warnings import warn

    from glowplug.train.fingerprint.errors import NoKeyError
    from glowplug.train.verify.warned import NOTES_WARNINGS, Warned
    from glowplug.train.verify.witness import _check_warnings

    def called_by(code: Any, run: Any) -> list[Any]:
        import _lsprof

        profiler = _lsprof.Profiler(subcalls=True, builtins=True)
        with warnings.catch_warnings(record=True), Warned():
            profiler.enable()
            run()
            profiler.disable()
        return [each.code for entry in profiler.getstats() if entry.code is code for each in entry.calls or ()]

    def directly() -> None:
        warn("directly", stacklevel=1)

    def noted() -> None:
        warnings.warn("noted", stacklevel=1)

    with pytest.raises(NoKeyError, match=r"directly .* warns while it is traced"):
        _check_warnings(directly.__code__, called_by(directly.__code__, directly))
    assert NOTES_WARNINGS in called_by(noted.__code__, noted)
    _check_warnings(noted.__code__, called_by(noted.__code__, noted))
    _check_warnings(NOTES_WARNINGS, called_by(NOTES_WARNINGS, noted))


def test_threads_that_listen_at_once_leave_what_was_there() -> None:
    """The one that began first may end first."""
    import threading

    from glowplug.train.verify.warned import Warned

    stock, listens, ends = warnings.warn, threading.Event(), threading.Event()

    def other() -> None:
        with Warned(silent=True):
            listens.set()
            ends.wait(10)

    thread = threading.Thread(target=other)
    with Warned(silent=True):
        thread.start()
        assert listens.wait(10)
    assert warnings.warn is not stock
    ends.set()
    thread.join()
    assert warnings.warn is stock


@pytest.mark.parametrize("rows", [None, {}, [1], [["text", "builtins", "int", "a.py", 1, "m"]], [["text"]]])
def test_rows_that_nobody_wrote_are_not_said(rows: Any) -> None:
    from glowplug.train.verify.warned import can_warn_again

    assert not can_warn_again(rows)
    assert can_warn_again([["text", "builtins", "UserWarning", "a.py", 1, "m"]])
