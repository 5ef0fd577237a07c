"""One Java process with the simulator, and the episodes in it.

Several episodes share a JVM, and the simulator keeps three things for the whole JVM that belong
to an episode: the generator of random events, the counter of object ids, and the simplifications
in force. They are exchanged whenever another episode has its turn. What is left to chance, the
hash codes of objects (sets of them are walked in that order, and what happens first decides),
is switched off: so an episode is a function of its task and its actions, in any process.
`pool.py` chooses the JVM of an episode.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path
from py4j.protocol import Py4JError, Py4JJavaError
from scienceworld.constants import JAR_PATH

from agentc_backends.environments.server.environment import EnvironmentFailure

_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:+UnlockExperimentalVMOptions",
    # Every object has the same hash code, so sets keep the order of insertion.
    "-XX:hashCode=2",
    # Else the thread that ran out ends alone, and whoever called it waits for an answer.
    "-XX:+ExitOnOutOfMemoryError",
)
_OUT_OF_MEMORY = 3
"""The status that Java exits with then."""
_START_SECONDS = 60.0
_CALL_SECONDS = 300.0
_END_SECONDS = 5.0
_LAST_SECONDS = 1.0
"""Between the end of a connection and that of the process."""


@dataclass(frozen=True, slots=True)
class SimulatorTurn:
    """What an action led to. `score` is the simulator's: 0 to 100, or -100 after a wrong focus."""

    observation: str
    score: int
    completed: bool


class Jvm:
    """A running JVM. Its calls are made one at a time; any failure of one ends it."""

    def __init__(self, java: str, *, heap_mb: int) -> None:
        # It would write a traceback for every Java object that outlives its JVM.
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
        # The simulator writes a table of its own into the folder that it runs in.
        self._folder = tempfile.TemporaryDirectory(prefix="agentc-sciworld-")
        self._gateway: Any = None
        self._heap_mb = heap_mb
        self._process, port, token = _start(java, heap_mb, self._folder.name)
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(
                port=port, auth_token=token, auto_convert=True, read_timeout=_CALL_SECONDS
            )
        )
        self._lock = threading.Lock()
        self._active: Simulation | None = None
        self._simplifications = ""
        self.loads = 0
        try:
            self._prepare()
        except (Py4JError, OSError) as error:
            cause = self._cause(error)
            self.end()
            raise EnvironmentFailure(f"the simulator did not start: {cause}") from error
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def open(self) -> Simulation:
        """A simulation, not loaded yet."""
        with self.calling():
            # Building one draws random numbers and object ids: those of no episode.
            self._leave()
            self._random_field.set(self._random_module, self._new_random())
            return Simulation(self, self._new_interface(), self._new_random())

    @contextlib.contextmanager
    def calling(self, simulation: Simulation | None = None) -> Any:
        """The JVM for one caller, with the simulation's own state put into place."""
        with self._lock:
            try:
                if simulation is not None and simulation is not self._active:
                    self._switch(simulation)
                yield
            except (Py4JError, OSError) as error:
                cause = self._cause(error)
                self.end()
                raise EnvironmentFailure(f"the simulator failed: {cause}") from error

    def end(self) -> None:
        """Stop the process, at once; calls that run fail."""
        if self._gateway is not None:
            # Else py4j would try to tell the JVM of every Java object that Python forgets.
            self._gateway._gateway_client.is_connected = False
        if self.alive:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        with contextlib.suppress(OSError):
            self._folder.cleanup()

    def object_ids(self) -> int:
        return int(self._ids.count())

    def forget_paths(self) -> None:
        """Paths through the house that gold paths are made of; they depend on who came first."""
        self._gateway.jvm.scienceworld.goldagent.PathFinder.precomputedExhaustivePaths().clear()

    def joined(self, texts: Any) -> list[str]:
        """A Java list of one-line texts, in one call."""
        text = str(self._gateway.jvm.java.lang.String.join("\n", texts))
        return text.split("\n") if text else []

    def has_simplifications(self, words: str) -> None:
        """Which are in force after a load."""
        self._simplifications = words

    def _cause(self, error: Exception) -> str:
        """Why a call failed; to be asked before the end, which an exception of Java's has to be
        asked for its words before."""
        if not isinstance(error, Py4JJavaError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LAST_SECONDS)
        if self._process.poll() == _OUT_OF_MEMORY:
            return f"{self._heap_mb} MB (`heap_mb`) are too little for the episodes of its JVM"
        if type(error) is Py4JError and self.alive:
            return f"it does not answer ({error})"
        try:
            return str(error)
        except (Py4JError, OSError):
            return type(error).__name__

    def _switch(self, simulation: Simulation) -> None:
        self._leave()
        self._active = simulation
        self._random_field.set(self._random_module, simulation.random)
        self._set_ids(simulation.ids)
        if simulation.simplifications != self._simplifications:
            self._simplifier.parseSimplificationStr(simulation.simplifications)
            self._simplifications = simulation.simplifications

    def _leave(self) -> None:
        if self._active is not None:
            self._active.ids = self.object_ids()
        self._active = None

    def _set_ids(self, count: int) -> None:
        getattr(self._ids, "count_$eq")(count)

    def _prepare(self) -> None:
        jvm = self._gateway.jvm
        # The simulator prints all it does; nobody reads it.
        nothing = jvm.java.io.OutputStream.nullOutputStream()
        jvm.java.lang.System.setOut(jvm.java.io.PrintStream(nothing))
        self._ids = jvm.util.UniqueIdentifier
        self._simplifier = jvm.main.scala.scienceworld.runtime.SimplifierProcessor
        self._new_random = jvm.java.util.Random
        self._new_interface = jvm.scienceworld.runtime.pythonapi.PythonInterface
        self._random_field = jvm.java.lang.Class.forName("scala.util.Random").getDeclaredField(
            "self"
        )
        self._random_field.setAccessible(True)
        module = jvm.java.lang.Class.forName("scala.util.Random$").getField("MODULE$")
        self._random_module = module.get(None)


class Simulation:
    """One episode after another in a JVM; `load` starts each from its beginning."""

    def __init__(self, jvm: Jvm, interface: Any, random: Any) -> None:
        self.jvm = jvm
        self._interface = interface
        self.random = random
        self.ids = 0
        self.simplifications = ""

    def load(self, task: str, variation: int, simplifications: str) -> tuple[str, str]:
        """Start a variation: its task description, and what the agent sees.

        `simplifications` are words with commas between them, or `easy`.
        """
        with self.jvm.calling(self):
            self._load(task, variation, simplifications, gold=False)
            return str(self._interface.getTaskDescription()), str(self._interface.freeActionLook())

    def gold_path(self, task: str, variation: int, simplifications: str) -> list[str]:
        """Actions that the simulator's own agent takes; the simulation starts again after them."""
        with self.jvm.calling(self):
            self.jvm.forget_paths()
            self._load(task, variation, simplifications, gold=True)
            return self.jvm.joined(self._interface.getGoldActionSequence())

    def step(self, action: str) -> SimulatorTurn:
        with self.jvm.calling(self):
            observation = str(self._interface.step(action))
            score = round(100 * float(self._interface.getScore()))
            return SimulatorTurn(observation, score, bool(self._interface.getCompleted()))

    def legal_actions(self) -> list[str]:
        """What the simulator accepts now, sorted."""
        with self.jvm.calling(self):
            found = json.loads(str(self._interface.getValidActionObjectCombinationsJSON()))
        return sorted({str(each["action"]) for each in found["validActions"]})

    def state(self) -> str:
        """The whole tree of objects with their properties, as the simulator writes it."""
        with self.jvm.calling(self):
            return str(self._interface.getObjectTree(""))

    def _load(self, task: str, variation: int, simplifications: str, *, gold: bool) -> None:
        problem = str(self._interface.load(task, variation, simplifications, gold))
        self.jvm.loads += 1
        self.simplifications = str(self._interface.getSimplificationsUsed())
        self.jvm.has_simplifications(self.simplifications)
        if problem:
            raise EnvironmentFailure(f"the simulator refuses {task}:{variation}: {problem}")


def _start(java: str, heap_mb: int, folder: str) -> tuple[subprocess.Popen[str], int, str]:
    # The simulator's jar holds an old py4j, which knows no tokens: the wheel's goes first.
    classpath = os.pathsep.join((find_jar_path(), JAR_PATH))
    argv: Sequence[str] = [
        java, f"-Xmx{heap_mb}m", *_FLAGS, "-cp", classpath, "py4j.GatewayServer",
        # It ends when the pipe does, which is when this process does, however that ends.
        "--die-on-broken-pipe", "--enable-auth", "0",
    ]  # fmt: skip
    try:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
    except OSError as error:
        raise EnvironmentFailure(f"the simulator's JVM does not start: {error}") from error
    assert process.stdout is not None
    timer = threading.Timer(_START_SECONDS, process.kill)
    timer.start()
    port, token = process.stdout.readline().strip(), process.stdout.readline().strip()
    timer.cancel()
    # What it may still print goes nowhere; a pipe that nobody reads would stop it.
    process.stdout.close()
    if not port.isdigit() or not token:
        process.kill()
        status = process.wait()
        raise EnvironmentFailure(f"the simulator's JVM ended with status {status}: {port[:200]}")
    return process, int(port), token
