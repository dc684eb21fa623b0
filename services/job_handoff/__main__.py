"""``python -m services.job_handoff --config FILE``."""

from services.base import main

from .app import JobHandoff

raise SystemExit(main(JobHandoff))
