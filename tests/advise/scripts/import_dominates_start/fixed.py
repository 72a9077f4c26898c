"""The same program under `glowplug run`."""

import subprocess
import sys
from pathlib import Path

symptom = Path(__file__).with_name("symptom.py")
subprocess.run([sys.executable, "-m", "glowplug", "run", str(symptom)], check=True)
