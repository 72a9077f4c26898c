"""Profile the examples and put the excerpts into docs/explanation/startup-questions.md

    python examples/startup/make_answers.py [EXAMPLE ...]

Each example runs once under the probe, in a fresh process with the page cache as found. The page keeps its words; only
what stands between `<!-- profile NAME -->` and `<!-- end -->` is replaced.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs/explanation/startup-questions.md"
sys.path.insert(0, str(ROOT / "src"))

from glowplug.advise.engine import with_findings
from glowplug.advise.wording import seconds, size
from glowplug.probe.run import profile_target

BLOCK = re.compile(r"(<!-- profile (\w+) -->\n).*?(<!-- end -->)", re.S)
LEAST_SHARE = 0.02


def excerpt(name, folder):
    """Return the phases of one example that matter, and what the rules found."""
    print(f"profiling {name}", file=sys.stderr)
    profile = with_findings(profile_target([str(HERE / f"{name}.py"), str(folder)]))
    if profile.exit_code:
        raise SystemExit(f"{name} failed with exit code {profile.exit_code}")
    phases = sorted(profile.phases.items(), key=lambda item: -item[1])
    lines = [f"{'wall time':20} {seconds(profile.wall_ns):>8}"]
    shown = [(phase, ns) for phase, ns in phases if ns >= LEAST_SHARE * profile.wall_ns]
    lines += [f"  {phase:18} {seconds(ns):>8}  {'#' * round(40 * ns / profile.wall_ns)}" for phase, ns in shown]
    for finding in profile.findings:
        saving = [seconds(finding.saves_ns)] if finding.saves_ns else []
        saving += [size(finding.saves_bytes)] if finding.saves_bytes else []
        title = finding.title.replace(str(folder), "FOLDER")
        lines.append(f"{finding.rule}{' (saves ' + ', '.join(saving) + ')' if saving else ''}: {title}")
    return "```text\n" + "\n".join(lines) + "\n```\n"


def main():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    text = PAGE.read_text()
    wanted = set(sys.argv[1:] or (name for _, name, _ in BLOCK.findall(text)))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(HERE / "make_models.py"), folder], check=True)
        for name in sorted(wanted):
            made = excerpt(name, folder)

            def replace(found, name=name, made=made):
                return found[1] + made + found[3] if found[2] == name else found[0]

            text = BLOCK.sub(replace, text)
            PAGE.write_text(text)


if __name__ == "__main__":
    main()
