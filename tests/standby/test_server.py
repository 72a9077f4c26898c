"""The life of a standby: started on demand, its user's alone, replaced when it is stale, not shaken by crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from glowplug.core.errors import StandbyError
from glowplug.standby import key, paths


def status(standby):
    return json.loads(standby.glowplug("standby", "status", "--json").stdout)["standbys"]


def descriptors(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def spare_of(standby, wait_until):
    def found():
        (one,) = status(standby)
        return one["spare"]

    wait_until(lambda: found() is not None)
    return found()


def test_start_status_and_stop(standby):
    started = standby.glowplug("standby", "start", "--preload", "numpy", "--idle", "60")
    assert started.returncode == 0, started.stderr
    (one,) = status(standby)
    assert (one["preload"], one["kind"], one["threads"], one["idle_limit_s"]) == ("numpy", "python", 1, 60)
    assert one["differs"] == ""
    assert str(one["pid"]) in standby.glowplug("standby", "status").stdout
    assert "stopped" in standby.glowplug("standby", "stop").stdout
    assert not is_alive(one["pid"])
    assert standby.glowplug("standby", "status").stdout == "no standby runs\n"


def test_an_interrupted_start_ends_what_it_started(standby, tmp_path, wait_until):
    begun = tmp_path / "begun"
    (tmp_path / "endless.py").write_text(
        f"import os, signal\nopen({str(begun)!r}, 'w').write(str(os.getpid()))\nsignal.pause()\n"
    )
    environment = {**standby.environment, "PYTHONPATH": f"{standby.environment['PYTHONPATH']}:{tmp_path}"}
    command = [sys.executable, "-m", "glowplug", "standby", "start", "--preload", "endless"]
    client = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: begun.exists() and begun.read_text() != "")
    client.send_signal(signal.SIGINT)
    assert "interrupted" in client.communicate(timeout=60)[1]
    assert client.returncode == 130
    wait_until(lambda: not is_alive(int(begun.read_text())))


def test_starting_twice_keeps_the_first(standby):
    words = ("standby", "start", "--preload", "numpy", "--json")
    first, second = (json.loads(standby.glowplug(*words).stdout)["pid"] for _ in range(2))
    assert first == second


def test_many_that_start_at_once_share_one(standby):
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: standby.run("-c", "import os; print(os.getppid())"), range(6)))
    assert {one.returncode for one in done} == {0}
    assert len({one.stdout for one in done}) == 1


def test_one_that_was_stopped_makes_room_while_its_runs_go_on(standby):
    process = standby.begin("-c", "print('on', flush=True); print('got', input())")
    assert process.stdout.readline() == "on\n"
    assert "1 runs go on" in standby.glowplug("standby", "stop").stdout
    assert standby.run("-c", "print('next')").stdout == "next\n"
    out, _ = process.communicate("it\n", timeout=20)
    assert (out, process.returncode) == ("got it\n", 0)
    assert len(standby.pids()) == 1
    assert standby.run("-c", "print('again')", start=False).stdout == "again\n"


def test_it_ends_when_idle(standby, wait_until):
    standby.glowplug("standby", "start", "--preload", "numpy", "--idle", "0.2")
    wait_until(lambda: not list(standby.directory.glob("*.sock")))
    assert standby.pids() == []


@pytest.mark.parametrize("change", [{"KERAS_BACKEND": "jax"}, {"PYTHONHASHSEED": "5"}, {"LC_ALL": "C.UTF-8"}])
def test_another_environment_needs_another_standby(standby, change):
    standby.run("-c", "pass")
    done = standby.run("-c", "pass", env={**standby.environment, **change}, start=False)
    assert done.stderr == "not run: no standby runs\n"


def test_flags_of_the_interpreter_are_part_of_the_key(standby):
    standby.run("-c", "pass")
    command = standby.command("-c", "print(__debug__)", start=False)
    command[1:1] = ["-O"]
    done = subprocess.run(command, env=standby.environment, capture_output=True, text=True)
    assert done.stderr == "not run: no standby runs\n"
    command[command.index("use")] = "start"
    assert subprocess.run(command, env=standby.environment, capture_output=True, text=True).stdout == "False\n"


@pytest.fixture
def preloaded(standby, tmp_path):
    """Return what writes the module of the preload list, and what runs a program that prints its value."""
    library, folder = tmp_path / "library", tmp_path / "work"
    library.mkdir()
    folder.mkdir()
    environment = {**standby.environment, "PYTHONPATH": f"{standby.environment['PYTHONPATH']}:{library}"}

    def value(**options):
        code = "import preloaded; print(preloaded.VALUE)"
        return standby.run("-c", code, preload="preloaded", env=environment, cwd=folder, **options)

    return (library / "preloaded.py").write_text, value


def test_a_changed_file_makes_it_reload(preloaded, wait_until):
    write, value = preloaded
    write("VALUE = 1")
    assert value().stdout == "1\n"
    write("VALUE = 22")
    stale = value(start=False)
    assert "the standby reloads" in stale.stderr
    assert "preloaded.py has changed" in stale.stderr
    wait_until(lambda: value(start=False).stdout == "22\n")


def test_who_comes_while_it_reloads_waits_for_the_new_one(preloaded):
    write, value = preloaded
    write("import time; time.sleep(1); VALUE = 1")
    assert value().stdout == "1\n"
    write("import time; time.sleep(1); VALUE = 22")
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: value(), range(4)))
    assert [(one.stdout, one.stderr) for one in done] == [("22\n", "")] * 4


def test_a_preload_that_fails_is_told(standby):
    done = standby.run("-c", "pass", preload="no_such_module")
    assert "not run: the standby cannot start: ModuleNotFoundError" in done.stderr


def test_a_preload_that_starts_a_thread_is_refused(standby, tmp_path):
    (tmp_path / "threaded.py").write_text(
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    environment = {**standby.environment, "PYTHONPATH": f"{standby.environment['PYTHONPATH']}:{tmp_path}"}
    done = standby.run("-c", "pass", preload="threaded", env=environment)
    assert "must not fork with more than one thread: 2 threads" in done.stderr


def test_a_child_that_is_killed_disturbs_nobody(standby):
    other = standby.begin("-c", "print('ready', flush=True); print('got', input())")
    assert other.stdout.readline() == "ready\n"
    assert standby.run("-c", "import os; os.kill(os.getpid(), 9)").returncode == -9
    assert standby.run("-c", "print(1)").stdout == "1\n"
    out, _ = other.communicate("it\n", timeout=20)
    assert (out, other.returncode) == ("got it\n", 0)


def test_a_killed_standby_leaves_its_runs_alive(standby):
    code = "import sys; print('ready', flush=True); print('got', input()); sys.exit(6)"
    process = standby.begin("-c", code)
    assert process.stdout.readline() == "ready\n"
    (pid,) = standby.pids()
    os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate("it\n", timeout=20)
    assert (out, process.returncode) == ("got it\n", 6)
    following = standby.run("-c", "print('next')")
    assert (following.stdout, following.stderr) == ("next\n", "")
    assert standby.pids() != [pid]


def test_a_run_that_dies_after_its_standby_gives_a_clear_error(standby):
    process = standby.begin("-c", "import os; print(os.getpid(), flush=True); input()")
    child = int(process.stdout.readline())
    os.kill(standby.pids()[0], signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    assert "the standby was killed or stopped during the run" in err
    assert process.returncode != 0


def test_many_runs_leave_nothing_behind(standby, wait_until):
    standby.run("-c", "pass")
    spare_of(standby, wait_until)
    (pid,) = standby.pids()
    before = descriptors(pid)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: standby.run("-c", f"print({n} + 1)").stdout, range(40)))
    assert done == [f"{n + 1}\n" for n in range(40)]
    (one,) = status(standby)
    assert (one["pid"], one["runs"], one["served"]) == (pid, [], 41)
    spare = spare_of(standby, wait_until)
    assert Path(f"/proc/{pid}/task/{pid}/children").read_text().split() == [str(spare)]
    wait_until(lambda: descriptors(pid) == before)


def test_a_client_that_says_nothing_holds_nobody_up(standby):
    standby.run("-c", "pass")
    (one,) = status(standby)
    code = f"""
import os, sys
os.environ["GLOWPLUG_STANDBY_DIR"] = {str(standby.directory)!r}
from glowplug.standby import connection, paths
place = paths.open_place(create=False)
silent = [connection.connect(place, {one["name"]!r}) for _ in range(3)]
silent[0].send(b"nonsense")
print("connected", flush=True)
sys.stdin.read()
"""
    silent = subprocess.Popen(
        [sys.executable, "-c", code], env=standby.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert silent.stdout.readline() == "connected\n"
    assert standby.run("-c", "print(1)").stdout == "1\n"  # one that is held up runs nothing here
    silent.communicate("")


def test_another_user_cannot_connect(standby):
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    standby.run("-c", "pass")
    (one,) = status(standby)
    standby.directory.chmod(0o711)  # so that the kernel's check of the socket and our own are reached, one by one
    path = standby.directory / f"{one['name']}.sock"
    code = f"""
import os, socket
os.setgid(65534)
os.setuid(65534)
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect({str(path)!r})
print(connection.recv(9))
"""
    refused = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert "PermissionError" in refused.stderr
    path.chmod(0o777)
    dropped = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert dropped.stdout == "b''\n"
    standby.directory.chmod(0o700)


def test_a_directory_that_others_may_enter_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.VARIABLE, str(tmp_path / "open"))
    paths.open_place(create=True).close()
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(StandbyError, match="open to others"):
        paths.open_place(create=False)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    monkeypatch.setenv(paths.VARIABLE, str(tmp_path / "link"))
    with pytest.raises(StandbyError, match="Not a directory"):
        paths.open_place(create=False)


def test_a_socket_of_somebody_else_is_not_trusted(tmp_path, monkeypatch):
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    from glowplug.standby.connection import connect

    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv(paths.VARIABLE, str(folder))
    code = """
import os, socket, sys
s = socket.socket(1, 5)
os.setgid(65534); os.setuid(65534)
s.bind(sys.argv[1]); s.listen(); print("listening", flush=True); sys.stdin.read()
"""
    public = Path("/tmp") / f"standby-stranger-{os.getpid()}.sock"
    stranger = subprocess.Popen(
        [sys.executable, "-I", "-c", code, str(public)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert stranger.stdout.readline() == "listening\n"
        (folder / "name.sock").symlink_to(public)
        with pytest.raises(StandbyError, match="another user"):
            connect(paths.open_place(create=False), "name")
    finally:
        stranger.communicate("")
        public.unlink(missing_ok=True)


def test_the_key_names_what_differs(monkeypatch):
    first = key.components("python", ("numpy",))
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    second = key.components("python", ("numpy", "keras"))
    assert key.difference(first, second) == "TF_ENABLE_ONEDNN_OPTS, preload"
    assert key.digest(first) != key.digest(second)
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert key.components("python", ("numpy", "keras")) == second


def test_the_next_child_waits_and_is_replaced_once_it_is_used(standby, wait_until):
    assert standby.run("-c", "").returncode == 0
    first = spare_of(standby, wait_until)
    ran = standby.run(
        "-c", "import os, sys; print(os.getpid(), os.getppid(), os.getcwd(), sys.stdin.read())", input="x"
    )
    (one,) = status(standby)
    assert ran.stdout.split() == [str(first), str(one["pid"]), str(standby.scripts), "x"]
    assert spare_of(standby, wait_until) != first


def test_a_spare_that_was_killed_costs_nothing_but_time(standby, wait_until):
    assert standby.run("-c", "").returncode == 0
    os.kill(spare_of(standby, wait_until), signal.SIGSTOP)
    os.kill(spare_of(standby, wait_until), signal.SIGKILL)
    assert standby.run("-c", "print('here')").stdout == "here\n"


def test_a_spare_ends_with_its_standby(standby, wait_until):
    assert standby.run("-c", "").returncode == 0
    first = spare_of(standby, wait_until)
    (one,) = status(standby)
    os.kill(one["pid"], signal.SIGKILL)
    wait_until(lambda: not is_alive(first))
    assert standby.run("-c", "").returncode == 0
    second = spare_of(standby, wait_until)
    standby.glowplug("standby", "stop")
    assert not is_alive(second)


def test_a_spare_holds_nothing_of_a_run_that_was_there_first(standby, wait_until):
    assert standby.run("-c", "").returncode == 0
    used = spare_of(standby, wait_until)
    with standby.begin("-c", "import sys; print('on', flush=True); sys.stdin.read()") as running:
        assert running.stdout.readline() == "on\n"
        wait_until(lambda: spare_of(standby, wait_until) != used)
        running.kill()  # the spare was forked while this client was connected: it must still be missed
    wait_until(lambda: not is_alive(used))


def test_a_rehearsal_that_crashes_is_not_repeated(standby, wait_until):
    tried = standby.scripts / "tried"
    code = f"import os\n\ndef exercise():\n    open({str(tried)!r}, 'a').write('x')\n    os.abort()\n"
    standby.script(code, "crasher.py")
    standby.environment["PYTHONPATH"] += f"{os.pathsep}{standby.scripts}"
    launch = "from glowplug.standby.starting import start; start('native', ('crasher',))"
    subprocess.run([sys.executable, "-c", launch], env=standby.environment, cwd=standby.scripts, check=True)
    assert is_alive(spare_of(standby, wait_until))
    assert tried.read_text() == "x"
