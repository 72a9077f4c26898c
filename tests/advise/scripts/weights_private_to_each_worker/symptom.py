"""Two workers, each with its own copy of the weights."""

import subprocess
import sys
from pathlib import Path

WORKERS = 2

command = [sys.executable, str(Path(__file__).with_name("worker.py")), sys.argv[1]]
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
workers = [subprocess.Popen(command, **pipes) for _ in range(WORKERS)]
for worker in workers:
    assert worker.stdout.readline() == "ready\n"
for worker in workers:
    worker.communicate("answer\n")
