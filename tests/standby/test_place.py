"""Nobody else on the machine can interfere: what others plant is passed by, and no secret can be read by others."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.core.errors import StandbyError
from glowplug.standby import paths


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Let the places in which a directory may be planted be below the test's own."""
    names = [str(tmp_path / name / f"glowplug-{os.getuid()}") for name in ("first", "second")]
    for name in names:
        Path(name).parent.mkdir()
    monkeypatch.setattr(paths, "candidates", lambda: names)
    return [Path(name) for name in names]


def plant_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.parent / "elsewhere")


def plant_nothing_to_be_used(path: Path) -> None:
    path.mkdir()
    path.chmod(0)


def plant_open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def plant_foreign(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    path.mkdir(mode=0o700)
    os.chown(path, 65534, 65534)


PLANTED = {
    "link": plant_link,
    "dangling link": lambda path: path.symlink_to("/nonexistent/place"),
    "file": lambda path: path.write_text("here"),
    "fifo": os.mkfifo,
    "mode 000": plant_nothing_to_be_used,
    "open to others": plant_open,
    "another user's": plant_foreign,
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("create", [True, False])
def test_what_is_planted_is_passed_by(places, kind, create):
    PLANTED[kind](places[0])
    if not create:
        places[1].mkdir(mode=0o700)
    place = paths.open_place(create=create)
    assert (place.path, len(place.passed_over.splitlines())) == (str(places[1]), 1)
    assert str(places[0]) in place.passed_over
    assert stat.S_IMODE(places[1].stat().st_mode) == 0o700
    place.close()


def test_the_users_runtime_directory_comes_first_if_it_is_the_users(tmp_path, monkeypatch):
    monkeypatch.delenv(paths.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    assert paths.candidates()[0] == str(tmp_path / "glowplug")
    tmp_path.chmod(0o755)
    assert str(tmp_path / "glowplug") not in paths.candidates()


def test_where_all_is_planted_there_is_one_line(places):
    for place in places:
        plant_open(place)
    with pytest.raises(StandbyError, match="there is no safe directory for a standby") as caught:
        paths.open_place(create=True)
    assert len(str(caught.value).splitlines()) == 1


def test_a_run_with_a_planted_place_is_told_in_one_line_and_uses_another(standby):
    """The real places, in a mount namespace of its own."""
    if os.getuid() != 0:
        pytest.skip("only root can have a /tmp of its own")
    if any(Path(one).is_relative_to("/tmp") for one in (sys.prefix, paths.__file__)):
        pytest.skip("Glowplug lies in /tmp, which another one would hide")
    environment = {**standby.environment}
    del environment[paths.VARIABLE]
    environment.pop("XDG_RUNTIME_DIR", None)
    code = "import sys; print('ran')"
    user = os.getuid()
    script = f"""
mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm && mount -t tmpfs none /run && cd / || exit 98
mkfifo /tmp/glowplug-{user}
"$0" -m glowplug standby start --preload numpy >/dev/null || exit 97
"$0" -m glowplug run --explain -c "$1"
"$0" -m glowplug standby stop --all >/dev/null
ls /dev/shm/glowplug-{user}
"""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sys.executable, code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert f"glowplug: standby: /tmp/glowplug-{user} is not used: Not a directory\n" in done.stderr


def test_no_secret_is_in_an_argument_a_file_or_a_message(standby):
    secret = "hunter2-do-not-tell"
    environment = {**standby.environment, "TF_VAR_db_password": secret, "TF_TOKEN_app": secret, "DB": secret}
    standby.environment = environment
    started = standby.glowplug("standby", "start", "--preload", "numpy")
    assert started.returncode == 0, started.stderr
    told = [standby.glowplug("standby", "status", *words) for words in ((), ("--json",))]
    del environment["TF_VAR_db_password"]
    told += [standby.glowplug("standby", "status", *words) for words in ((), ("--json",))]
    assert "TF_VAR_db_password" in told[-1].stdout  # that it differs is told, by name
    for one in (started, *told):
        assert secret not in one.stdout + one.stderr
    for path in standby.directory.iterdir():
        if not path.is_socket():
            assert secret.encode() not in path.read_bytes()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (pid,) = standby.pids()
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    assert secret.encode() not in arguments
    assert arguments.rstrip(b"\0").endswith(b"boot.py")
    os.kill(pid, signal.SIGKILL)


def test_stop_stops_the_one_of_this_environment(standby):
    other = {**standby.environment, "KERAS_BACKEND": "jax"}
    mine = standby.run("-c", "import os; print(os.getppid())").stdout
    theirs = standby.run("-c", "import os; print(os.getppid())", env=other).stdout
    status = standby.glowplug("standby", "status").stdout
    assert status.count(sys.executable) == status.count(sys.prefix) - status.count(f"{sys.prefix}/") == 2
    assert "not for a run from here: other KERAS_BACKEND" in status
    stopped = standby.glowplug("standby", "stop").stdout
    assert f"(process {mine.strip()})" in stopped
    assert "1 of other environments go on: glowplug standby stop --all" in stopped
    assert [str(pid) for pid in standby.pids()] == [theirs.strip()]
    assert f"(process {theirs.strip()})" in standby.glowplug("standby", "stop", "--all").stdout
    assert list(standby.directory.iterdir()) == []
