"""Flags of TensorFlow Serving that `glowplug serve` takes and that change nothing here, each with the reason."""

from __future__ import annotations

import argparse

IGNORED = {
    "allow_version_labels_for_unavailable_models": "a label counts as soon as its version answers",
    "enable_grpc_healthcheck_service": "the service is always there",
    "enable_model_warmup": "a version is always warm before it is routed to",
    "enable_profiler": "there is no profiler's service",
    "enable_serialization_as_tensor_content": "answers are in typed fields",
    "enable_signature_method_name_check": "what a signature can answer decides, not its name",
    "flush_filesystem_caches": "the weights are mapped from there",
    "grpc_channel_arguments": "gRPC has one event loop and no channel options",
    "grpc_max_threads": "gRPC has one event loop",
    "num_load_threads": "versions are loaded one at a time, in processes",
    "num_request_iterations_for_warmup": "each warm-up call is made until it is quick",
    "num_tflite_interpreters_per_pool": "each worker has one interpreter: --instances",
    "num_tflite_pools": "each worker has one interpreter: --instances",
    "num_unload_threads": "a version ends with its processes",
    "per_process_gpu_memory_fraction": "there is no GPU engine",
    "remove_unused_fields_from_bundle_metagraph": "a bundle has none",
    "rest_api_num_threads": "REST has one event loop",
    "skip_initialize_tpu": "there is no TPU engine",
    "xla_cpu_compilation_enabled": "XLA is not used",
    "xla_gpu_compilation_enabled": "there is no GPU engine",
}


def add_ignored(parser: argparse.ArgumentParser) -> None:
    """Declare them in a part of the help of their own."""
    group = parser.add_argument_group("flags of TensorFlow Serving that are taken and change nothing")
    for flag, reason in IGNORED.items():
        group.add_argument(f"--{flag}", nargs="?", const="", metavar="VALUE", help=f"no effect: {reason}")


def given(args: argparse.Namespace) -> list[str]:
    """Return those that stand on a command line."""
    return [f"--{flag}" for flag in IGNORED if getattr(args, flag) is not None]
