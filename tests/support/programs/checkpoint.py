"""A job program that writes the smallest directory that counts as a checkpoint.

Config: `omit` (files left out), `extra` (files added), `cut` (drop the last byte of the weights).
"""

import json
import struct

from agentc.program.job import load_job

job = load_job()
values = job.spec["config"]
texts = {
    "config.json": "{}",
    "generation_config.json": "{}",
    "tokenizer.json": "{}",
    "tokenizer_config.json": "{}",
    "chat_template.jinja": "x",
    "agentc_chat.json": json.dumps({"chat_format": "chatml"}),
}
for name, text in {**texts, **values.get("extra", {})}.items():
    if name not in values.get("omit", []):
        (job.out / name).write_text(text)
header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
weights = struct.pack("<Q", len(header)) + header + b"\0" * 8
(job.out / "model.safetensors").write_bytes(weights[:-1] if values.get("cut") else weights)
