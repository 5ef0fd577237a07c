"""Builds of software are strangers' code: what they see of the shell, and what is added unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wheels import write_sdist, write_wheel

from agentc.runtime.environment import ensure_environment, resolve_secrets
from agentc.runtime.layout import StoreLayout
from agentc.software.build import build_all
from agentc.software.needed import Needed

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
    way: str, layout: StoreLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen.json"
    tell = f"import json, os; json.dump(dict(os.environ), open({str(seen)!r}, 'w'))"
    sdist = write_sdist(tmp_path, "dumper", "1.0", tell)
    for name, value in {**SECRETS, **WANTED}.items():
        monkeypatch.setenv(name, value)
    one = Needed(name="dumps", lock=f"dumper @ file://{sdist}\n", users=())
    if way == "wrapper":
        resolve_secrets({"TOKEN": "CUDA_DECLARED"})
        ensure_environment(layout, one.sha256, one.lock)
    else:
        build_all([one], layout, lambda *_: None, withheld=["CUDA_DECLARED"])
    found = json.loads(seen.read_text())
    assert not [name for name, value in found.items() if "canary" in value]
    assert {name: found.get(name) for name in WANTED} == WANTED
    assert {"PATH", "HOME"} <= set(found)


def test_what_the_lock_does_not_name_is_added_by_name_and_as_wheels_only(
    layout: StoreLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    touched = tmp_path / "touched"
    write_sdist(links, "unlisted", "1.0", f"open({str(touched)!r}, 'w').close()")
    elsewhere = write_sdist(tmp_path, "stranger", "1.0", f"open({str(touched)!r}, 'w').close()")
    write_wheel(links, "plainly", "1.0", {})
    for name, needs in (
        ("one", "Requires-Dist: plainly\n"),
        ("two", "Requires-Dist: unlisted\n"),
        ("three", f"Requires-Dist: stranger @ file://{elsewhere}\n"),
    ):
        write_wheel(tmp_path, name, "1.0", {}, needs)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    said: list[str] = []
    complete = {}
    for names in (("one",), ("two", "three")):
        lock = "".join(f"{n} @ file://{tmp_path}/{n}-1.0-py3-none-any.whl\n" for n in names)
        needed = Needed(name=names[0], lock=lock, users=())
        _, record = ensure_environment(layout, needed.sha256, lock, said.append)
        complete[names] = record["complete"]
        assert ("plainly" in record["versions"]) == (names == ("one",))
    assert complete == {("one",): True, ("two", "three"): False}
    assert not touched.exists()
    assert any("adding plainly" in line for line in said)
