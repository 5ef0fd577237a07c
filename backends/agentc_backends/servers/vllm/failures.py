"""Where vLLM's log says why a server failed, and what in it says nothing: patterns for the runtime.

vLLM ends with tracebacks of its interface process, which only say that the engine failed; the
reason is some hundred lines above, among the lines of a worker or of the engine.
"""

from __future__ import annotations

_ERROR = (
    r"(?P<cause>(?:\w+\.)*\w*(?:Error|Exception): "
    r"(?!Engine core initialization failed|Executor failed|\d+ validation errors? for).+)"
)
_LOGGED = r"ERROR \S+ \S+ \[[^\]]*\] "

CAUSES = (
    r"^vllm: (?P<cause>.+)",  # said by job_serve.py before vLLM is started
    rf"^\((?:\w*Worker|EngineCore)\S* pid=\d+\) (?:{_LOGGED})?{_ERROR}",
    r"ERROR .*(?P<cause>Worker proc \S+ died unexpectedly)",
    # Settings that vLLM refuses before there is an engine, in the words of pydantic.
    r"^(?:\(APIServer pid=\d+\))?\s+(?P<cause>Value error, .+?)(?: \[type=\w+, input_value=.*)?$",
    r"\berror: (?P<cause>(?:argument|unrecognized arguments|ambiguous option).+)",
    rf"^\(APIServer pid=\d+\) (?:{_LOGGED})?(?!.*EngineDeadError){_ERROR}",
    # The engine's process is gone without a word: killed, by the kernel where memory ran out.
    r"(?P<cause>EngineDeadError: EngineCore encountered an issue)",
    rf"^{_ERROR}",
)
NOISE = (
    r"nanobind",
    r"^ - (?:leaked |\.\.\. skipped)",
    r"leaked (?:semaphore|shared_memory)",
    r"\bRoute: /",
    r"Loading safetensors checkpoint shards:",
    r"FutureWarning: |^  (?:if hasattr|wrapper = lookup)\(",
    r"doesn't include CPU backend. Disabling Triton",
    r"\[api_utils\.py:\d+\] (?:\s|$)",
)
