"""Environments by hand: an entry of `environments:` without an experiment around it, and its server
without a job. `entry.py` reads and checks the entry; `hosting.py` runs the server."""
