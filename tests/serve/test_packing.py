from __future__ import annotations

import asyncio

import pytest

from glowplug.core.errors import ModelError
from glowplug.serve.models import memory
from glowplug.serve.models.packing import Packer
from glowplug.serve.models.sources import Source, identify


@pytest.fixture
def source(tmp_path) -> Source:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "saved_model.pb").write_bytes(b"graph")
    return identify(directory)


def ignore(seconds):
    """Nothing takes long here."""


class Pack:
    """Stands for the `glowplug pack` process."""

    def __init__(self, code=0):
        self.commands, self._code = [], code

    async def __call__(self, command, log):
        from pathlib import Path

        self.commands.append(command)
        log.write_text("first line\nthe reason\n")
        if not self._code:
            target = Path(command[command.index("-o") + 1])
            target.mkdir()
            (target / "bundle.json").write_text("{}")
        return self._code


def test_a_model_is_packed_once(tmp_path, source):
    async def scenario():
        run = Pack()
        packer = Packer(tmp_path / "cache", run)
        assert packer.cached(source) is None
        made = await packer.pack(source, overdue=ignore)
        assert (made.kind, await packer.pack(source, overdue=ignore), len(run.commands)) == ("bundle", made, 1)
        assert packer.cached(made) is None  # a bundle needs no packing

    asyncio.run(scenario())


def test_a_changed_model_is_packed_again(tmp_path, source):
    async def scenario():
        run = Pack()
        packer = Packer(tmp_path / "cache", run)
        first = await packer.pack(source, overdue=ignore)
        (source.path / "saved_model.pb").write_bytes(b"another graph")
        assert (await packer.pack(identify(source.path), overdue=ignore)).path != first.path

    asyncio.run(scenario())


def test_a_failure_says_why(tmp_path, source):
    async def scenario():
        with pytest.raises(ModelError, match="the reason"):
            await Packer(tmp_path / "cache", Pack(3)).pack(source, overdue=ignore)

    asyncio.run(scenario())


def test_a_model_that_does_not_fit_is_refused_before_it_is_loaded(source, monkeypatch):
    memory.check_memory(source, 1)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(ModelError, match=r"not enough memory for this model: 1.00 kB free"):
        memory.check_memory(source, 1)
