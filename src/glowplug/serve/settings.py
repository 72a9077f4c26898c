"""Everything that a server is told when it starts, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .models.config import ModelConfig
from .tls import TlsFiles
from .wire.limits import Limits
from .workers.batching import Batching


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve. A port of 0 and an empty socket path mean that this way in is off."""

    models: tuple[ModelConfig, ...] = ()
    config_file: Path | None = None
    host: str = "127.0.0.1"
    rest_port: int = 8501
    grpc_port: int = 8500
    grpc_socket: str = ""
    rest_socket: str = ""
    control_socket: str = ""
    rest_tls: TlsFiles | None = None
    grpc_tls: TlsFiles | None = None
    auth_tokens: Path | None = None
    instances: int = 1
    batching: Batching = field(default_factory=Batching)
    per_model_batching: bool = False
    saved_model_tags: tuple[str, ...] = ("serve",)
    max_queue: int = 1000
    limits: Limits = field(default_factory=Limits)
    bodies_bytes: int = 1 << 27
    timeout_s: float = 30.0
    poll_seconds: float = 1.0
    config_poll_seconds: float = 1.0
    load_retries: int = 5
    load_retry_seconds: float = 60.0
    load_patience_seconds: float = 60.0
    cors: bool = False
    drain_seconds: float = 30.0
    metrics_path: str = ""
    pack_cache: Path | None = None
    record_warmup: Path | None = None
    prefer_tflite: bool = False
    trust: bool = False
    trusted_keys: tuple[str, ...] = ()
    require_signature: bool = False
    op_libraries: tuple[str, ...] = ()
    intra_op_threads: int = 0
    inter_op_threads: int = 0
    log_json: bool = False
    access_log: bool = False
    access_log_json: bool = False
    otel: bool = False
    page: bool = True
    announce_json: bool = False
