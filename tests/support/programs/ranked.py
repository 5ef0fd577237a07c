"""One rank of a server over several nodes: rank 0 is `server.py`, the others only live along."""

import argparse
import pathlib
import runpy
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, required=True)
parser.add_argument("--nodes", type=int, required=True)
parser.add_argument("--meet", required=True)
parser.add_argument("--die-when", help="a file at whose sight ranks but the first end")
options, rest = parser.parse_known_args()

# One write for the whole line: the ranks share a log.
sys.stdout.write(f"I am {options.rank} of {options.nodes} and meet at {options.meet}\n")
sys.stdout.flush()
if options.rank == 0:
    server = pathlib.Path(__file__).with_name("server.py")
    sys.argv = [str(server), *(word for word in rest if word != "--headless")]
    runpy.run_path(str(server), run_name="__main__")
assert "--headless" in rest, rest
while not (options.die_when and pathlib.Path(options.die_when).exists()):
    time.sleep(0.05)
print("an uncorrectable memory error", flush=True)
sys.exit(5)
