"""The attacks of bench/serve_attacks.py reach a server, end by themselves, and leave it answering."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.server import Server

SCRIPTS = Path(__file__).parents[2] / "bench" / "scripts"
sys.path.insert(0, str(SCRIPTS))

import attacker  # noqa: E402


@pytest.fixture(scope="module")
def server(half_plus_two):
    with Server(f"m={half_plus_two}") as started:
        yield started


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["ping_flood", "rapid_reset", "many_fields", "pipelined", "filled_tensor"])
def test_an_attack(server, name):
    addresses = [f"127.0.0.1:{port}" for port in (server.rest_port, server.grpc_port)]
    words = [sys.executable, str(SCRIPTS / "attacker.py"), name, *addresses, "0.1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert server.request("GET", "/healthz")[0] == 200
    assert server.post("/v1/models/m:predict", {"instances": [2.0]}) == (200, {"predictions": [3.0]})


def test_every_attack_says_what_it_does():
    assert len(attacker.ATTACKS) == 17
    assert all(attack.__doc__ for attack in attacker.ATTACKS.values())
