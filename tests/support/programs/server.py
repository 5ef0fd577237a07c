"""A model server or environment server for tests: HTTP, token, and faults on request."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("--show", help="a variable to print")
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--ready-file")
parser.add_argument("--model", default="")
parser.add_argument("--name", default="policy")
parser.add_argument("--start-delay", type=float, default=0.0)
parser.add_argument("--crowded", type=float, default=0.0, help="wait so long for a busy core")
parser.add_argument("--die-after-calls", type=int, default=-1)
parser.add_argument("--die-at-once", action="store_true")
parser.add_argument("--never-ready", action="store_true")
parser.add_argument("--no-completions", action="store_true")
parser.add_argument("--deaf", action="store_true", help="ignores SIGTERM")
parser.add_argument("--fork", help="leaves daemons behind, which write this file in the end")
parser.add_argument("--sick-after-calls", type=int, default=-1, help="/health answers 503 then")
parser.add_argument("--hang-after-calls", type=int, default=-1, help="/health has no answer then")
parser.add_argument("--stuck-route", default="", help="answers there after hours")
parser.add_argument("--identity", default="{}")
parser.add_argument("--facts", default="{}", help="what its /meta notes besides")
parser.add_argument("--settings", type=pathlib.Path, help="a file with the identity")
parser.add_argument("--count", help="a file that gets one byte for each start")
parser.add_argument("--echo", help="a variable whose value is printed")
options = parser.parse_args()
calls = 0

if options.settings:
    options.identity = options.settings.read_text()
if options.echo:
    print(options.echo, "=", os.environ.get(options.echo), flush=True)

if options.count:
    with pathlib.Path(options.count).open("a") as out:
        out.write("x")
if options.die_at_once:
    print("no such device: /dev/accelerator")
    sys.exit(3)
if options.deaf:
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if options.fork:
    # Two minutes after this process: whoever ends them has seen to it by then.
    outlive = (
        "import os, sys, time\n"
        "while os.path.exists('/proc/' + sys.argv[1]): time.sleep(0.1)\n"
        "time.sleep(120)\n"
        "open(sys.argv[2], 'w').close()\n"
    )
    words = [sys.executable, "-c", outlive, str(os.getpid()), options.fork]
    for extra in ({}, {"start_new_session": True}):
        subprocess.Popen(words, **extra)
time.sleep(options.start_delay)
if options.crowded:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(5)]
    # In nanoseconds: on the core, ready to run without it, ...
    account = pathlib.Path("/proc/self/schedstat")
    while int(account.read_bytes().split()[1]) < options.crowded * 1e9:
        pass
    for other in others:
        other.kill()


class Handler(BaseHTTPRequestHandler):
    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def allowed(self):
        if self.headers.get("Authorization") == "Bearer " + os.environ.get("AGENTC_TOKEN", ""):
            return True
        self.reply(401, {"error": "token"})
        return False

    def do_GET(self):
        if self.path == "/health":
            if 0 < options.hang_after_calls <= calls:
                time.sleep(6000)
            if 0 < options.sick_after_calls <= calls:
                self.reply(503, {"error": "the engine is dead"})
                return
            self.reply(503 if options.never_ready else 200, {})
        elif self.allowed():
            if self.path == "/v1/models":
                self.reply(200, {"data": [{"id": options.name, "root": options.model}]})
            elif self.path == "/meta":
                identity = json.loads(options.identity)
                told = {"identity": identity, "facts": json.loads(options.facts)}
                self.reply(200, {**told, "splits": {"train": ["task0"]}})

    def do_POST(self):
        global calls
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.allowed():
            return
        if self.path == options.stuck_route:
            time.sleep(6000)
        if self.path == "/v1/completions":
            calls += 1
            if options.no_completions:
                self.reply(500, {"error": "out of memory"})
                return
            if calls == options.die_after_calls:
                print("fatal: the accelerator fell off the bus", flush=True)
                threading.Timer(0.05, os._exit, [134]).start()
            self.reply(200, {"choices": [{"text": "x"}]})
        elif self.path in ("/create", "/reset", "/close"):
            self.reply(200, {"id": 7})
        else:
            self.reply(404, {"error": "no such route"})

    def log_message(self, *words):
        pass


server = ThreadingHTTPServer((options.host, options.port), Handler)
if options.ready_file:
    path = pathlib.Path(options.ready_file)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"host": options.host, "port": server.server_address[1]}))
    draft.replace(path)
if options.show:
    print(f"{options.show}={os.environ.get(options.show)}")
print("serving on " + options.host, flush=True)
server.serve_forever()
