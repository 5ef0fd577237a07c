"""httpx2, or httpx in a software environment that was locked before its successor was taken.

A plan names the lock that it was made with, and runs after agentc has moved on; the two libraries
have the same names. Apart from `software`, whose lists need the compiler: programs import this.
"""

try:
    import httpx2
except ModuleNotFoundError:
    import httpx as httpx2  # type: ignore[no-redef]

__all__ = ["httpx2"]
