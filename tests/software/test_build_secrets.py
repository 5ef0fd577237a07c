"""Builds of software are strangers' code: what they see of the shell, and what is added unasked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from wheels import addressed, pinned, write_sdist, write_wheel

from agentc.runtime.software.job_software import (
    SoftwareError,
    ensure_software,
    resolve_secrets,
)
from agentc.runtime.store.layout import StoreLayout
from agentc.software.build import build_all
from agentc.software.requirements import Needed

pytestmark = pytest.mark.slow

SECRETS = {
    "TEACHER_KEY": "canary-teacher",
    "HF_TOKEN": "canary-hub",
    "AWS_SECRET_ACCESS_KEY": "canary-cloud",
    "SSH_AUTH_SOCK": "canary-agent",
    "PIP_MY_TOKEN": "canary-odd",
    "SLURM_JWT": "canary-cluster",
    "CUDA_DECLARED": "canary-declared",
}
WANTED = {
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "SSL_CERT_FILE": "/some/certificates.pem",
    "CFLAGS": "-O1",
    "CUDA_HOME": "/some/cuda",
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
}


@pytest.mark.parametrize("way", ["wrapper", "builders"])
def test_a_setup_script_sees_what_it_needs_and_no_secret(
    way: str,
    layout: StoreLayout,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_CERT", raising=False)
    seen = tmp_path / "seen.json"
    tell = f"import json, os; json.dump(dict(os.environ), open({str(seen)!r}, 'w'))"
    sdist = write_sdist(tmp_path, "dumper", "1.0", tell)
    for name, value in {**SECRETS, **WANTED}.items():
        monkeypatch.setenv(name, value)
    one = Needed(name="dumps", lock=f"{addressed('dumper', sdist)}\n", users=())
    if way == "wrapper":
        resolve_secrets({"TOKEN": "CUDA_DECLARED"})
        ensure_software(layout, one.sha256, one.lock)
    else:
        build_all([one], layout, lambda *_: None, withheld=["CUDA_DECLARED"])
    found = json.loads(seen.read_text())
    assert not [name for name, value in found.items() if "canary" in value]
    assert {name: found.get(name) for name in WANTED} == WANTED
    assert {"PATH", "HOME"} <= set(found)


def test_what_the_lock_does_not_name_is_never_installed(
    layout: StoreLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    touched = tmp_path / "touched"
    sdist = write_sdist(links, "unlisted", "1.0", f"open({str(touched)!r}, 'w').close()")
    elsewhere = write_sdist(tmp_path, "stranger", "1.0", f"open({str(touched)!r}, 'w').close()")
    plainly = write_wheel(links, "plainly", "1.0", {})
    needs = {
        "one": "Requires-Dist: plainly\n",
        "two": "Requires-Dist: unlisted\n",
        "three": f"Requires-Dist: stranger @ file://{elsewhere}\n",
    }
    wheels = {name: write_wheel(tmp_path, name, "1.0", {}, asks) for name, asks in needs.items()}
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    said: list[str] = []
    lock = addressed("one", wheels["one"]) + "\n"
    needed = Needed(name="bare", lock=lock, users=())
    _, record = ensure_software(layout, needed.sha256, lock, said.append)
    assert (record["versions"], record["complete"]) == ({"one": "1.0"}, False)
    assert said[-2] == "its packages ask for plainly, which the lock does not name"
    lock = addressed("one", wheels["one"]) + "  # by hand\n# agentc: if-asked\n"
    lock += pinned("plainly", "1.0", plainly) + "\n"
    needed = Needed(name="asked", lock=lock, users=())
    _, record = ensure_software(layout, needed.sha256, lock, said.append)
    assert (record["versions"], record["complete"]) == ({"one": "1.0", "plainly": "1.0"}, True)
    # A source is none of what may be asked for: building it would run its code.
    lock = f"{addressed('two', wheels['two'])}\n{addressed('three', wheels['three'])}\n"
    lock += f"# agentc: if-asked\n{pinned('unlisted', '1.0', sdist)}\n"
    needed = Needed(name="source", lock=lock, users=())
    with pytest.raises(SoftwareError, match="unlisted"):
        ensure_software(layout, needed.sha256, lock, said.append)
    assert not touched.exists()
