"""Runs at the start of every Python process of a job, as the module `sitecustomize`.

`job_software.code_directory` links it under that name. A trainer's own command line, which a job
program starts, and the workers that this starts in turn then tell what they imported as well,
without knowing of agentc. A `sitecustomize` of the machine's own still runs.
"""

import os
import sys


def _report_at_exit() -> None:
    if not os.environ.get("AGENTC_IMPORTED"):
        return
    environment = os.environ.get("VIRTUAL_ENV")
    # A tool of the machine (git's hooks, a compiler's driver) may be another Python.
    if environment and os.path.realpath(environment) != os.path.realpath(sys.prefix):
        return
    try:
        from agentc.program.import_report import report_at_exit
    except ImportError:
        return
    report_at_exit()


def _run_shadowed_sitecustomize() -> None:
    from importlib.machinery import PathFinder

    # Not pathlib: its import would cost every process of a job some milliseconds.
    here = os.path.dirname(__file__)
    rest = [entry for entry in sys.path if entry != here]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    spec.loader.exec_module(module_from_spec(spec))


if __name__ == "sitecustomize":
    _report_at_exit()
    _run_shadowed_sitecustomize()
