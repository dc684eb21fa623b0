"""``python -m services.doctor``: the doctor where the command is not installed."""

from __future__ import annotations

import argparse
import json
import sys

from .verb import HELP, configure, run

parser = argparse.ArgumentParser(prog="python -m services.doctor", description=HELP)
parser.add_argument("--json", action="store_true", help="print findings and result as JSON")
configure(parser)
options = parser.parse_args()
report = run(options)
sys.stdout.write(
    json.dumps(report.as_dict("doctor", strict=False), indent=2) if options.json else report.text
)
sys.stdout.write("\n")
sys.exit(report.exit_status(strict=False))
