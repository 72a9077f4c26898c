"""The verb `cluster`: what it says about bad input without a cluster, and the whole way with one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.nodes import Nodes
from tests.components.relay import Relay


def glowplug(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "glowplug", "cluster", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    # Ray looks for the internet before its log can be told to be quiet; here there is none.
    done.stderr = "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith(("[", "20")))
    return done


def test_without_ray_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('there is none', name='ray')\n")
    done = glowplug("status", PYTHONPATH=str(tmp_path))
    assert done.returncode == 5
    assert done.stderr.splitlines() == [
        "glowplug: glowplug.cluster needs Ray, which is not installed: ray; pip install 'glowplug[ray]'"
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["deploy"], "cluster deploy needs the URL of a model"),
        (["status", "s3://a/b"], "cluster status takes no URL"),
        (["deploy", "s3://a/b", "--autoscale", "6:2"], "this is no range of replicas"),
        (["deploy", "a=s3://a/b", "s3://a/c"], "several models need a name each"),
    ],
)
def test_a_wrong_call_is_one_line(words: list[str], said: str) -> None:
    done = glowplug(*words)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("address", "said"),
    [("127.0.0.1:9", "there is no Ray cluster"), ("nowhere", "this is no address"), ("a:b:c", "there is no Ray")],
)
def test_no_cluster_at_the_address_is_one_line(address: str, said: str) -> None:
    done = glowplug("status", "--address", address)
    assert done.returncode == 5
    (line,) = done.stderr.splitlines()
    assert said in line


@pytest.mark.cluster
def test_a_url_that_nobody_reaches_is_one_line(three_nodes: Nodes) -> None:
    done = glowplug("preload", "s3://models/nothing/here", "--address", three_nodes.address)
    assert done.returncode == 4, done.stderr
    (line,) = done.stderr.splitlines()
    assert "there is nothing under this URL" in line


@pytest.mark.cluster
def test_an_unknown_node_is_one_line(three_nodes: Nodes) -> None:
    done = glowplug("preload", "s3://models/nothing/here", "--nodes", "abcdef", "--address", three_nodes.address)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert "the cluster has no such node: abcdef" in line


@pytest.mark.cluster
@pytest.mark.tensorflow
def test_the_whole_way(serving: None, three_nodes: Nodes, bundle: Callable[[str], Path], origin: Relay) -> None:
    """As in the how-to: deploy, look, change, go back, end."""
    from glowplug.loader.origin import publish

    for number in (1, 2):
        publish(bundle("dense"), f"s3://models/cli/dense/{number}")
    address = ["--address", three_nodes.address]
    seeded = json.loads(glowplug("preload", "s3://models/cli/dense/1", "--json", *address).stdout)
    assert [node["error"] for node in seeded["models"][0]["nodes"]] == ["", "", ""]
    for number in ("1", "2"):
        url = f"dense=s3://models/cli/dense/{number}"
        done = glowplug("deploy", url, "--replicas", "2", "--application", "cli", "--json", *address)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["models"][0]["version"] == int(number)
    back = json.loads(glowplug("rollback", "--application", "cli", "--json", *address).stdout)
    assert (back["number"], back["models"][0]["version"]) == (3, 1)
    shown = json.loads(glowplug("status", "--json", *address).stdout)
    assert len([node for node in shown["nodes"] if node["alive"]]) == 3
    replicas = [one for node in shown["nodes"] for one in node["replicas"] if one["application"] == "cli"]
    assert [one["generation"] for one in replicas] == [3, 3]
    text = glowplug("status", *address).stdout
    assert "application cli: RUNNING, generation 3: dense version 1" in text
    assert glowplug("down", "--application", "cli", *address).returncode == 0
    done = glowplug("down", "--application", "cli", *address)
    assert done.returncode == 2
    assert "there is no such application: cli" in done.stderr
