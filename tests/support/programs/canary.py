"""A job program that lets its secret out in every way it can, and makes a good artifact.

Config: `leak` (where: "data", "name" or "journal"), `calm` (a file: where it exists, nothing of the
journal is leaked), `exit` (status at the end), `hold` (seconds at work).
"""

import base64
import json
import os
import pathlib
import sys
import time
import urllib.parse

from agentc.program.job import load_job

job = load_job()
values = job.spec["config"]
secret = os.environ["API_KEY"]


def say(text: str, stream=sys.stdout) -> None:
    stream.write(text)
    stream.flush()


say("whole: " + secret + "\n")
say("to stderr: " + secret + "\n", sys.stderr)
say("twice: " + secret + secret + "\n")
for letter in secret:  # a write for each letter
    say(letter)
    time.sleep(0.002)
say("\nin halves: " + secret[:7])
time.sleep(0.2)
say(secret[7:] + "\n")
say("without a line's end, after much text: " + "x" * 200_000 + secret)
say("\njson: " + json.dumps({"key": secret}) + "\n")
say("repr: " + repr(secret) + "\n")
say("address: https://example.org/?key=" + urllib.parse.quote(secret, safe="") + "\n")
say("hex: " + secret.encode().hex() + "\n")
for before in ("", "u:", "user:", "any:"):
    header = base64.b64encode((before + secret + ":x").encode()).decode()
    say("Authorization: Basic " + header + "\n")
for line in secret.splitlines():
    say("    | " + line + "\n")
say("variables: " + repr(dict(os.environ)) + "\n")

(job.logs / "steps.jsonl").write_text(json.dumps({"step": 1, "key": secret}) + "\n")
time.sleep(values.get("hold", 0))
job.facts(rows=1, trained_tokens=1, note="the key is " + secret)
job.progress(1, 1, "rows", force=True)
row = {
    "id": "t#0", "task_id": "t", "attempt": 0, "seed": 0, "prompt_seed": 0, "split": "train",
    "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "Action: 1"}],
    "prompt_length": 1, "reward": 1.0, "success": True, "end": "success", "error": None,
    "turns": 1, "invalid": 0, "rewards": [1.0], "tokens": {"prompt": 1, "completion": 1},
    "source": "policy",
}  # fmt: skip
(job.out / "trajectories.jsonl").write_text(json.dumps(row) + "\n")
if values.get("leak") == "journal":
    # As a rollout does: rows of a journal from which it goes on, and an artifact made of them.
    journal = job.work / "rows.jsonl"
    kept = {**row, "id": "kept#0", "task_id": "kept"}
    known = journal.read_text() if journal.exists() else json.dumps(kept) + "\n"
    calm = pathlib.Path(values["calm"]).exists()
    if '"t#0"' not in known:
        text = "" if calm else "user:" + secret
        row["messages"][0]["content"] += (
            base64.b64encode(text.encode()).decode() if values["coded"] else text
        )
        known += json.dumps(row) + "\n"
    journal.write_text(known)
    if not calm:
        (job.work / "state.bin").write_text(secret)
    (job.out / "trajectories.jsonl").write_text(known)
if values.get("leak") == "data":
    (job.out / "notes.bin").write_bytes(b"\0" * (1 << 20) + secret.encode() + b"\0")
if values.get("leak") == "name":
    (job.out / ("key-" + secret.splitlines()[0])).write_text("x")
if values.get("exit"):
    say("cut off in the middle: " + secret[:-1])
    sys.exit(values["exit"])
