"""`glowplug serve`: a server that speaks TensorFlow Serving's API."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from glowplug.cli.options import add_op_library, add_trusted_keys, count
from glowplug.cli.serving_flags import add_ignored, given

if TYPE_CHECKING:
    from glowplug.serve.settings import Settings
    from glowplug.serve.tls import TlsFiles
    from glowplug.serve.workers.batching import Batching

NAME = "serve"
HELP = "serve bundles and SavedModels over TensorFlow Serving's REST and gRPC API"
EXAMPLE = """
glowplug serve resnet=resnet50.glow --instances 8
glowplug serve --model_name=half --model_base_path=/models/half --port=8500 --rest_api_port=8501
glowplug serve --model_name=half --model_base_path=s3://models/half --trust-key team.key.pub
glowplug serve --model_config_file=models.config --enable_batching --batching_parameters_file=batching.txt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options: ours, and TensorFlow Serving's under their own names."""
    add = parser.add_argument
    add("models", metavar="NAME=PLACE", nargs="*", help="a bundle, a SavedModel, or numbered versions: a path or a URL")
    add("--model-name", "--model_name", metavar="NAME", default="default", help="name of the one model (default)")
    add(
        "--model-base-path",
        "--model_base_path",
        metavar="PLACE",
        help="the one model's folder of numbered versions, or URL",
    )
    add("--model-config-file", "--model_config_file", metavar="FILE", help="models, labels and version policies")
    add("--host", default="127.0.0.1", help="address to listen on (127.0.0.1; 0.0.0.0 serves others, :: over IPv6 too)")
    add("--rest-port", "--rest_api_port", metavar="PORT", type=count, default=8501, help="REST (8501; 0 is off)")
    add("--grpc-port", "--port", metavar="PORT", type=count, default=8500, help="gRPC (8500; 0 is off)")
    add("--grpc-socket", "--grpc_socket_path", metavar="PATH", default="", help="gRPC on a unix socket")
    add("--rest-socket", metavar="PATH", default="", help="REST on a unix socket")
    add("--control-socket", metavar="PATH", default="", help="gRPC for this user alone: here the models may be changed")
    add("--tls-cert", metavar="FILE", help="certificate chain, for REST and gRPC over TLS; read again when it changes")
    add("--tls-key", metavar="FILE", help="its private key")
    add("--tls-client-ca", metavar="FILE", help="clients need a certificate of this authority")
    add("--ssl-config-file", "--ssl_config_file", metavar="FILE", help="TLS for gRPC, as TensorFlow Serving has it")
    add("--auth-tokens", metavar="FILE", help="ask for tokens: lines of NAME sha256:DIGEST SCOPES")
    add("--instances", metavar="N", type=count, default=1, help="worker processes a version, one copy of the weights")
    add("--enable-batching", "--enable_batching", **_SWITCH, help="join requests into batches")  # type: ignore[arg-type]
    add("--batching-parameters-file", "--batching_parameters_file", metavar="FILE", help="how to join them")
    add(
        "--per-model-batching",
        "--enable_per_model_batching_parameters",
        **_SWITCH,  # type: ignore[arg-type]
        help="join them as the batching_params.pbtxt in each version's folder says, and not where there is none",
    )
    add(
        "--saved-model-tags",
        "--saved_model_tags",
        metavar="TAGS",
        default="serve",
        help="graph of a SavedModel (serve)",
    )
    add("--monitoring-config-file", "--monitoring_config_file", metavar="FILE", help="where metrics are served")
    add(
        "--poll-seconds",
        "--file_system_poll_wait_seconds",
        metavar="S",
        type=float,
        default=1.0,
        help="how often folders are looked at (1; 0 is once)",
    )
    add(
        "--config-poll-seconds",
        "--model_config_file_poll_wait_seconds",
        metavar="S",
        type=float,
        help="how often the file of models is looked at (as folders are; 0 is once)",
    )
    add(
        "--load-retries",
        "--max_num_load_retries",
        metavar="N",
        type=count,
        default=5,
        help="loads of a version that fails, after the first (5)",
    )
    add(
        "--load-retry-micros",
        "--load_retry_interval_micros",
        metavar="N",
        type=count,
        default=60_000_000,
        help="time between them (a minute); sooner when a file changes",
    )
    add(
        "--load-patience-seconds",
        metavar="S",
        type=float,
        default=60.0,
        help="time of a load after which others begin beside it (60; 0 is never)",
    )
    add("--prefer-tflite", "--prefer_tflite_model", **_SWITCH, help="of a version with both, take model.tflite")  # type: ignore[arg-type]
    add("--cors", "--rest_api_enable_cors_support", **_SWITCH, help="let pages of any origin call REST")  # type: ignore[arg-type]
    add("--timeout-ms", "--rest_api_timeout_in_ms", metavar="MS", type=count, default=30000, help="a request's time")
    add("--max-queue", metavar="N", type=count, default=1000, help="requests that may wait for a version (1000)")
    add("--max-request-bytes", metavar="N", type=count, default=1 << 26, help="largest REST body (64 MiB)")
    add("--max-bodies-bytes", metavar="N", type=count, default=1 << 27, help="all REST bodies together (128 MiB)")
    add("--max-tensor-bytes", metavar="N", type=count, default=1 << 30, help="largest tensor (1 GiB)")
    add("--drain-seconds", metavar="S", type=float, default=30.0, help="time to finish requests when stopped (30)")
    add("--no-pack", action="store_true", help="serve SavedModels as they are, without packing them meanwhile")
    add("--pack-cache", metavar="DIR", help="where packed models are kept (the user's cache folder)")
    add("--record-warmup", metavar="DIR", help="keep a sample of requests there, and warm up with them")
    add("--trust", action="store_true", help="load savedmodel bundles that you did not pack, and SavedModels of URLs")
    add_trusted_keys(parser)
    add(
        "--intra-op-threads",
        "--tensorflow_intra_op_parallelism",
        metavar="N",
        type=count,
        default=0,
        help="a worker's (its share)",
    )
    add(
        "--inter-op-threads",
        "--tensorflow_inter_op_parallelism",
        metavar="N",
        type=count,
        default=0,
        help="a worker's (its share)",
    )
    add("--no-page", action="store_true", help="no page at / that shows what the server does")
    add("--access-log", action="store_true", help="one line for each request")
    add("--access-log-json", action="store_true", help="one line for each request, as JSON whatever the others are")
    add("--log-json", action="store_true", help="log as JSON lines")
    add("--otel", action="store_true", help="export traces and metrics as the OTEL_* variables say")
    add("--tensorflow_session_parallelism", type=count, default=0, help=argparse.SUPPRESS)
    add_op_library(parser)
    add_ignored(parser)


_SWITCH = {
    "nargs": "?",
    "const": True,
    "default": False,
    "type": lambda text: text.lower() in ("true", "1", "yes"),
    "metavar": "true|false",
}


def run(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy would start threads, and a process with threads cannot be forked
    import numpy  # noqa: F401

    from glowplug.cli.output import note

    if threads is None:
        del os.environ["OPENBLAS_NUM_THREADS"]
    else:
        os.environ["OPENBLAS_NUM_THREADS"] = threads
    _check_installed(otel=args.otel)
    ignored = given(args)
    if ignored:
        note(f"these flags of TensorFlow Serving change nothing here: {', '.join(ignored)}")
    settings = read_settings(args)
    from glowplug.serve.processes.supervisor import Supervisor

    def front_end(channel: object) -> int:
        from glowplug.serve.frontend import run as run_front_end

        return run_front_end(channel, settings)  # type: ignore[arg-type]

    return Supervisor(front_end, drain_seconds=settings.drain_seconds).run()


def _check_installed(*, otel: bool) -> None:
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    from glowplug.core.errors import UsageError

    for package in ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http") if otel else ():
        try:
            version(package)
        except PackageNotFoundError:
            raise UsageError(
                "--otel needs more packages", seen=package, remedy="run `pip install 'glowplug[otel]'`"
            ) from None

    missing = [name for name in ("orjson", "httptools", "uvloop", "prometheus_client", "hpack") if not find_spec(name)]
    if missing:
        raise UsageError(
            "serving needs more packages", seen=", ".join(missing), remedy="run `pip install 'glowplug[serve]'`"
        )


def read_settings(args: argparse.Namespace) -> Settings:
    """Return the checked settings of a command line."""
    from glowplug.core.errors import UsageError
    from glowplug.serve.models.config import at, from_argument, read_config_file
    from glowplug.serve.settings import Settings
    from glowplug.serve.wire.limits import Limits

    models = [from_argument(text) for text in args.models]
    for model in models:
        if not model.url and not model.base_path.exists():  # most likely mistyped: unlike a base path, by a person
            raise UsageError(
                "there is no such model",
                seen=model.base_path,
                remedy="to wait until it is there, name it with --model_base_path or in a --model_config_file",
            )
    if args.model_base_path:
        models.append(at(args.model_name, args.model_base_path))
    config_file = Path(args.model_config_file) if args.model_config_file else None
    if config_file is not None:
        if models:
            raise UsageError(
                "models are named on the command line and in a file", seen=config_file, remedy="leave one of them out"
            )
        models = read_config_file(config_file)
    elif not models:
        raise UsageError("there is no model to serve", remedy="give NAME=PATH, or --model_config_file")
    if len({model.name for model in models}) != len(models):
        seen = ", ".join(model.name for model in models)
        raise UsageError("two models have the same name", seen=seen, remedy="give each a name of its own: NAME=PATH")
    if args.instances < 1:
        raise UsageError(
            "a version needs at least one worker", seen=args.instances, remedy="give --instances 1 or more"
        )
    rest_tls, grpc_tls = _tls(args)
    if not (args.rest_port or args.grpc_port or args.grpc_socket or args.rest_socket):
        raise UsageError("every way in is turned off", remedy="give --rest-port or --grpc-port")
    intra_op_threads, inter_op_threads = _threads(args.instances)
    return Settings(
        models=tuple(models),
        config_file=config_file,
        host=args.host,
        rest_port=args.rest_port,
        grpc_port=args.grpc_port,
        grpc_socket=args.grpc_socket.removeprefix("unix:"),
        rest_socket=args.rest_socket,
        control_socket=args.control_socket.removeprefix("unix:"),
        rest_tls=rest_tls,
        grpc_tls=grpc_tls,
        auth_tokens=Path(args.auth_tokens) if args.auth_tokens else None,
        instances=args.instances,
        batching=_batching(args),
        per_model_batching=args.per_model_batching,
        saved_model_tags=_tags(args.saved_model_tags),
        max_queue=args.max_queue,
        limits=Limits(args.max_request_bytes, args.max_tensor_bytes),
        bodies_bytes=max(args.max_bodies_bytes, args.max_request_bytes),
        timeout_s=args.timeout_ms / 1000,
        poll_seconds=args.poll_seconds,
        config_poll_seconds=args.poll_seconds if args.config_poll_seconds is None else args.config_poll_seconds,
        load_retries=args.load_retries,
        load_retry_seconds=args.load_retry_micros / 1e6,
        load_patience_seconds=args.load_patience_seconds,
        cors=args.cors,
        drain_seconds=args.drain_seconds,
        metrics_path=_metrics_path(args.monitoring_config_file),
        pack_cache=None if args.no_pack else _pack_cache(args.pack_cache),
        record_warmup=Path(args.record_warmup) if args.record_warmup else None,
        prefer_tflite=args.prefer_tflite,
        trust=args.trust,
        trusted_keys=tuple(str(Path(key).absolute()) for key in args.trust_key),
        require_signature=args.require_signature,
        op_libraries=tuple(args.op_library),
        intra_op_threads=args.intra_op_threads or args.tensorflow_session_parallelism or intra_op_threads,
        inter_op_threads=args.inter_op_threads or args.tensorflow_session_parallelism or inter_op_threads,
        log_json=args.log_json,
        access_log=args.access_log,
        access_log_json=args.access_log_json,
        otel=args.otel,
        page=not args.no_page,
        announce_json=args.json,
    )


def _tls(args: argparse.Namespace) -> tuple[TlsFiles | None, TlsFiles | None]:
    """Return where REST and gRPC have their certificates. TensorFlow Serving's file is about gRPC alone, as there."""
    from glowplug.core.errors import UsageError
    from glowplug.serve.tls import TlsFiles

    paths = [Path(one) if one else None for one in (args.tls_cert, args.tls_key, args.tls_client_ca)]
    if args.ssl_config_file:
        if any(paths):
            raise UsageError(
                "certificates are named twice",
                seen=args.ssl_config_file,
                remedy="give --ssl_config_file or --tls-cert and its like, not both",
            )
        return None, TlsFiles(config=Path(args.ssl_config_file))
    if not any(paths):
        return None, None
    if paths[0] is None or paths[1] is None:
        raise UsageError("TLS needs a certificate and its key", remedy="give --tls-cert and --tls-key")
    files = TlsFiles(None, *paths)
    return files, files


def _threads(instances: int) -> tuple[int, int]:
    """Return each worker's share of the cores: several that each took all of them would stand in each other's way.

    A worker with one core runs its operations on the thread that took the request: nothing is gained by handing it on.
    """
    from glowplug.runtime.config import CALLERS_THREAD

    if instances == 1:
        return 0, 0
    share = len(os.sched_getaffinity(0)) // instances
    return (share, share) if share > 1 else (1, CALLERS_THREAD)


def _batching(args: argparse.Namespace) -> Batching:
    from glowplug.core.errors import UsageError
    from glowplug.serve.workers.batching import Batching, read_batching

    if not args.enable_batching:
        if args.batching_parameters_file:
            seen = f"--batching_parameters_file {args.batching_parameters_file}"
            raise UsageError("batching is off", seen=seen, remedy="add --enable_batching")
        if args.per_model_batching:
            seen = "--enable_per_model_batching_parameters"
            raise UsageError("batching is off", seen=seen, remedy="add --enable_batching")
        return Batching()
    return read_batching(Path(args.batching_parameters_file) if args.batching_parameters_file else None)


def _tags(text: str) -> tuple[str, ...]:
    from glowplug.core.errors import UsageError

    tags = tuple(tag for tag in text.split(",") if tag)
    if not tags:
        raise UsageError("a graph needs a tag", seen=repr(text), remedy="give --saved_model_tags=serve")
    return tags


def _metrics_path(file: str | None) -> str:
    """Return the path of the metrics: on by default, elsewhere or off as the file says."""
    from glowplug.serve.wire.text_config import read_text

    default = "/monitoring/prometheus/metrics"
    if not file:
        return default
    config = read_text(Path(file), "MonitoringConfig").prometheus_config
    return (config.path or default) if config.enable else ""


def _pack_cache(folder: str | None) -> Path | None:
    """Return where packed models are kept, None where there is no place for them."""
    from glowplug.core.disk import cache_files

    place = folder or cache_files.folder("serve", create=True)
    return Path(place) if place else None
