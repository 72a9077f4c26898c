from __future__ import annotations

import argparse
import importlib.metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from glowplug.cli import serve
from glowplug.cli.main import main
from glowplug.core.errors import UsageError
from glowplug.runtime.config import CALLERS_THREAD


def settings(*arguments: str):
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    return serve.read_settings(parser.parse_args(list(arguments)))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    made = tmp_path / "half.glow"
    made.mkdir()
    return made


def test_the_flags_of_tensorflow_serving(model, tmp_path):
    monitoring = tmp_path / "monitoring.txt"
    monitoring.write_text('prometheus_config { enable: true, path: "/m" }')
    batching = tmp_path / "batching.txt"
    batching.write_text("max_batch_size { value: 4 }")
    found = settings(
        "--port=9000",
        "--rest_api_port=9001",
        "--model_name=half",
        f"--model_base_path={model}",
        "--file_system_poll_wait_seconds=7",
        "--enable_batching=true",
        f"--batching_parameters_file={batching}",
        f"--monitoring_config_file={monitoring}",
        "--grpc_socket_path=/run/grpc.sock",
        "--rest_api_timeout_in_ms=500",
        "--tensorflow_intra_op_parallelism=3",
    )
    assert (found.grpc_port, found.rest_port, found.grpc_socket) == (9000, 9001, "/run/grpc.sock")
    assert [(one.name, one.base_path) for one in found.models] == [("half", model)]
    assert (found.poll_seconds, found.timeout_s, found.intra_op_threads) == (7, 0.5, 3)
    assert (found.batching.enabled, found.batching.max_batch_size, found.metrics_path) == (True, 4, "/m")


def test_the_defaults_are_safe(model):
    found = settings(f"half={model}")
    assert found.host == "127.0.0.1"
    assert not found.trust
    assert found.metrics_path == "/monitoring/prometheus/metrics"
    assert not found.batching.enabled


def test_what_there_is_to_look_at(model):
    found = settings(f"half={model}")
    assert (found.page, found.otel, found.access_log, found.access_log_json) == (True, False, False, False)
    found = settings("--no-page", "--otel", "--access-log-json", f"half={model}")
    assert (found.page, found.otel, found.access_log, found.access_log_json) == (False, True, False, True)


def test_packages_that_otel_needs(monkeypatch, model, capsys):
    def version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert main(["serve", f"half={model}", "--otel"]) == 2
    assert "opentelemetry-sdk" in (said := capsys.readouterr().err)
    assert "glowplug[otel]" in said


def test_workers_share_the_cores(model):
    assert settings(str(model)).intra_op_threads == 0
    crowded = settings(str(model), "--instances", "1000")
    assert (crowded.intra_op_threads, crowded.inter_op_threads) == (1, CALLERS_THREAD)
    chosen = settings(str(model), "--instances", "1000", "--inter-op-threads", "2")
    assert chosen.inter_op_threads == 2


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "no model to serve"),
        (["x=/nowhere"], "no such model"),
        (["{model}", "half={model}"], "same name"),
        (["{model}", "--instances", "0"], "at least one worker"),
        (["{model}", "--rest-port", "0", "--grpc-port", "0"], "every way in is turned off"),
        (["{model}", "--batching_parameters_file=f"], "add --enable_batching"),
        (["{model}", "--model_config_file={model}/f"], "leave one of them out"),
    ],
)
def test_usage_errors(model, arguments, part):
    with pytest.raises(UsageError, match=part):
        settings(*(text.format(model=model) for text in arguments))


def test_the_command_says_so_in_one_line(capsys):
    assert main(["serve", "x=/nowhere"]) == 2
    assert "there is no such model: /nowhere" in capsys.readouterr().err
