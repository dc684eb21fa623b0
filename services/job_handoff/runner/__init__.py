"""Runs inside the pods of a run: fetches the source, starts the program, brings back what it made.

It travels as a ConfigMap and needs nothing but Python 3.9 of the image: it imports nothing of this project.
What it is told stands in `HANDOFF_SPEC` (`manifest.pod.build_runner_spec`). While the program runs, its log,
the executed notebook and new checkpoints are sent every few seconds; on SIGTERM the whole group of processes
is told, and what is there by the end of the grace is sent. The service may be away meanwhile: it is asked
again.
"""
