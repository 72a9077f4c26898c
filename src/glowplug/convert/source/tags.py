"""Which of the graphs of a SavedModel is meant. They are told apart by sets of tags; one that is called has `serve`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from glowplug.bundle.graphscan import byte_fields
from glowplug.core.errors import GraphMalformedError, NotAModelError, UsageError

SERVE: tuple[str, ...] = ("serve",)
_FILE, _FINGERPRINT = "saved_model.pb", "fingerprint.pb"  # the latter is the original's
_META_GRAPHS, _META_INFO, _TAGS = 2, 1, 4  # of saved_model.proto and meta_graph.proto


def chosen_tags(directory: Path, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """Return the tags of the graph that is wanted; by default of the one to be served, or of the only one."""
    if not (directory / _FILE).is_file():  # text and chunked forms: TensorFlow looks itself
        return SERVE if wanted is None else tuple(wanted)
    graphs = _graphs(directory / _FILE)
    if wanted is not None:
        for tags in graphs:
            if set(tags) == set(wanted):
                return tags
        raise UsageError("the model has no graph with these tags", seen=_shown(wanted), remedy=f"it has {_all(graphs)}")
    candidates = [tags for tags in graphs if tags == SERVE] or [tags for tags in graphs if "serve" in tags] or graphs
    if len(candidates) != 1:
        raise UsageError(
            "the model has several graphs", seen=_all(candidates), remedy="choose one with --tags (tags=... in Python)"
        )
    return candidates[0]


def retagged(directory: Path, tags: tuple[str, ...], target: Path) -> Path:
    """Return a SavedModel with that graph alone, to be served: everything else in it points to the original."""
    if tags == SERVE:
        return directory
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel.FromString((directory / _FILE).read_bytes())
    (graph,) = (one for one in model.meta_graphs if set(one.meta_info_def.tags) == set(tags))
    graph.meta_info_def.tags[:] = SERVE
    shutil.copytree(directory, target, copy_function=os.symlink, ignore=lambda *_: (_FILE, _FINGERPRINT))
    alone = saved_model_pb2.SavedModel(saved_model_schema_version=model.saved_model_schema_version, meta_graphs=[graph])
    (target / _FILE).write_bytes(alone.SerializeToString(deterministic=True))
    return target


def _graphs(path: Path) -> list[tuple[str, ...]]:
    data = path.read_bytes()
    try:
        return [
            tuple(
                data[s:e].decode()
                for field, first, last in byte_fields(data, start, end)
                if field == _META_INFO
                for number, s, e in byte_fields(data, first, last)
                if number == _TAGS
            )
            for number, start, end in byte_fields(data, 0, len(data))
            if number == _META_GRAPHS
        ]
    except (GraphMalformedError, UnicodeDecodeError) as error:
        raise NotAModelError("this SavedModel is damaged", seen=path, remedy="copy or export it again") from error


def _all(graphs: Sequence[Sequence[str]]) -> str:
    return "; ".join(_shown(tags) for tags in graphs) or "none"


def _shown(tags: Sequence[str]) -> str:
    return ",".join(sorted(tags)) or "no tags"
