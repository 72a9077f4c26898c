"""The files of examples/deploy, run as far as that goes without a container engine or a cluster."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.components.processes import free_ports

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples" / "deploy"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
PLACES = ("/build", "/models", "/usr/bin")


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each on one line."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    found = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, " ".join(rest.split())) for name, rest in found]


def moved(text: str, root: Path) -> str:
    """Return a command whose absolute paths lie below a folder."""
    places = "|".join(PLACES)
    return re.sub(rf'(?<![\w.])(?=(?:{places})(?:[/\s"]|$))', str(root), text)


class Image:
    """What the Dockerfile makes, in a folder in place of a container's root, with this environment's packages."""

    def __init__(self, root: Path, context: Path) -> None:
        self.root, self.context, self.extras = root, context, set[str]()
        self.environment = {**os.environ, "PATH": PATH, "GLOWPLUG_CACHE_DIR": str(root / "cache")}
        self.entry: list[str] = []
        for name, rest in instructions():
            getattr(self, f"_{name.lower()}")(rest)

    def _from(self, rest: str) -> None:
        for place in PLACES:
            (self.root / place[1:]).mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        *sources, target = rest.split()
        for source in sources:
            for path in self.context.glob(source):
                shutil.copy(path, moved(target, self.root))

    def _run(self, rest: str) -> None:
        for mount in re.findall(r"--mount=type=bind,source=(\S+?),target=(\S+)", rest):
            shutil.copytree(self.context / mount[0], moved(mount[1], self.root))
        command = re.sub(r"--mount=\S+ ", "", rest)
        if command.startswith("pip install"):  # this environment has what it would install
            self.extras.update(re.findall(r"\[([\w,]+)\]", command)[0].split(","))
            return
        words = ["sh", "-c", moved(command, self.root)]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stderr

    def _env(self, rest: str) -> None:
        name, _, value = rest.partition("=")
        self.environment[name] = moved(value, self.root)

    def _expose(self, rest: str) -> None:
        self.ports = [int(port) for port in rest.split()]

    def _user(self, rest: str) -> None:
        assert int(rest) > 0

    def _entrypoint(self, rest: str) -> None:
        self.entry = [moved(word, self.root) for word in json.loads(rest)]


@pytest.fixture(scope="module")
def source() -> Path:
    found = next((path for parent in ROOT.parents if (path := parent / "shared" / "models").is_dir()), None)
    if found is None:
        pytest.skip("TensorFlow Serving's test models do not lie beside the repository")
    return found / "saved_model_half_plus_two_cpu" / "00000123"


@pytest.fixture(scope="module")
def image(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Image:
    context = tmp_path_factory.mktemp("context")
    for path in DEPLOY.iterdir():
        shutil.copy(path, context)
    for name in ("half", "model"):
        shutil.copytree(source, context / "models" / name / "1")
    return Image(tmp_path_factory.mktemp("root"), context)


def asked(port: int, method: str, path: str, body: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["", "half"])
def test_the_image_serves_the_model_that_the_environment_names(image: Image, name: str) -> None:
    rest, rpc = free_ports(2)
    chosen = {**image.environment, **({"MODEL_NAME": name} if name else {})}
    words = [*image.entry, f"--rest_api_port={rest}", f"--port={rpc}"]  # the last of a kind counts
    process = subprocess.Popen(words, env=chosen, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 120)[0], "the container is not ready"
        assert f"serving {name or 'model'}:" in process.stdout.readline().decode()
        assert asked(rest, "GET", "/readyz")[0] == 200
        answer = asked(rest, "POST", f"/v1/models/{name or 'model'}:predict", '{"instances": [1.0]}')
        assert (answer[0], json.loads(answer[1])) == (200, {"predictions": [2.5]})
        addresses = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True, check=True).stdout
        assert f"00000000:{rest:04X}" in addresses  # all addresses
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert b"loading" in log
    assert b"not_packed" not in log
    assert image.ports == [8500, 8501]


@pytest.mark.tensorflow
def test_what_is_baked_is_bundles_that_nobody_can_write(image: Image) -> None:
    for name in ("half", "model"):
        version = image.root / "models" / name / "1"
        assert (version / "bundle.json").is_file()
        assert not any(path.stat().st_mode & 0o222 for path in (version, *version.rglob("*")))


def test_the_extras_of_the_image_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (command,) = [rest for name, rest in instructions() if name == "RUN" and rest.startswith("pip install")]
    assert set(re.findall(r"\[([\w,]+)\]", command)[0].split(",")) <= set(project["optional-dependencies"])


@pytest.mark.tensorflow
def test_an_image_with_a_dead_model_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "models" / "broken" / "1").mkdir(parents=True)
    (tmp_path / "models" / "broken" / "1" / "saved_model.pb").write_bytes(b"not a model")
    words = ["sh", DEPLOY / "bake.sh", tmp_path / "models", tmp_path / "baked"]
    done = subprocess.run(words, env={**os.environ, "PATH": PATH}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "glowplug:" in done.stderr


def documents(name: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one]


def container(document: dict[str, Any]) -> dict[str, Any]:
    spec = document["spec"]
    (found,) = spec["template"]["spec"]["containers"] if "template" in spec else spec["containers"]
    return dict(found)


def test_manifests_fit_the_schemas_of_kubernetes() -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="the package kubernetes-validate has the schemas")
    checked = [
        *documents("kubernetes.yaml"),
        *yaml.safe_load_all((ROOT / "examples/fleet/kubernetes.yaml").read_text()),
    ]
    for document in documents("kserve.yaml"):  # not a kind of Kubernetes' own; what is in it is a pod's
        spec = {"containers": document["spec"]["containers"]}
        checked.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec})
    assert len(checked) >= 6
    for document in checked:
        validator.validate(document, validator.latest_version(), strict=True)
    wrong = documents("kubernetes.yaml")[0]
    container(wrong)["readinessProbe"]["httpGett"] = {}
    with pytest.raises(Exception, match="httpGett"):
        validator.validate(wrong, validator.latest_version(), strict=True)


def test_manifests_say_what_the_server_means() -> None:
    by_kind = {one["kind"]: one for one in documents("kubernetes.yaml")}
    assert set(by_kind) == {"Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
    labels = by_kind["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert by_kind[kind]["spec"]["selector"]["matchLabels"] == labels
    assert by_kind["Service"]["spec"]["selector"] == labels
    assert by_kind["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "half"
    assert (
        by_kind["HorizontalPodAutoscaler"]["spec"]["minReplicas"]
        > by_kind["PodDisruptionBudget"]["spec"]["minAvailable"]
    )
    (runtime,) = documents("kserve.yaml")
    assert (runtime["apiVersion"], runtime["kind"]) == ("serving.kserve.io/v1alpha1", "ClusterServingRuntime")
    assert set(runtime["spec"]["protocolVersions"]) == {"v1", "v2", "grpc-v2"}
    for one in (by_kind["Deployment"], runtime):
        probes = container(one)
        assert probes["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert probes["livenessProbe"]["httpGet"]["path"] == "/healthz"
    (service,) = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].values()
    assert "/readyz" in service["healthcheck"]["test"][-1]


@pytest.mark.parametrize(
    "words",
    [
        [word.replace("{{.Name}}", "half") for word in container(documents("kserve.yaml")[0])["args"]],
        ["m=/x", *container(documents("kubernetes.yaml")[0])["args"]],
        ["m=/x", *next(iter(yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].values()))["command"]],
    ],
    ids=["kserve", "kubernetes", "compose"],
)
def test_flags_of_manifests_are_flags_of_the_server(words: list[str]) -> None:
    from glowplug.cli.main import build_parser

    args = build_parser(["serve"]).parse_args(["serve", *words])
    assert args.models or (args.host, args.rest_port, args.model_name) == ("0.0.0.0", 8080, "half")


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    program = Path(sys.executable).with_name("glowplug")
    text = (DEPLOY / "glowplug-serve.service").read_text()
    assert "/opt/glowplug/bin/glowplug" in text
    unit = tmp_path / "glowplug-serve.service"
    unit.write_text(text.replace("/opt/glowplug/bin/glowplug", str(program)))
    environment = {**os.environ, "SYSTEMD_LOG_TARGET": "console"}
    words = [analyze, "verify", "--man=no", str(unit)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    about = [line for line in done.stderr.splitlines() if unit.name in line]
    assert not about, about
    assert done.returncode == 0, done.stderr


def test_the_command_of_the_unit_is_one_of_ours() -> None:
    from glowplug.cli.main import build_parser
    from glowplug.serve.models.config import read_config_file

    (line,) = re.findall(r"^ExecStart=(.*)$", (DEPLOY / "glowplug-serve.service").read_text(), re.MULTILINE)
    words = shlex.split(line.replace("$FLAGS", ""))
    args = build_parser(["serve"]).parse_args(words[1:])
    assert (args.host, args.model_config_file) == ("0.0.0.0", "/etc/glowplug/models.config")
    (model,) = read_config_file(DEPLOY / "models.config")
    assert model.name == "half"
