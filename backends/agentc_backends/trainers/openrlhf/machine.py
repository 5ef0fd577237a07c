"""Lets OpenRLHF run where CUDA, a CUDA compiler or flash-attn are missing.

OpenRLHF 0.11.2 imports flash_attn when it is loaded, and calls torch.cuda unconditionally. On a
machine that has all of them, nothing is changed.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType
from typing import Any

from agentc_backends.job_device import visible_device

_PACKING = "packing needs flash-attn, which this software stack does not hold"


def prepare_machine() -> None:
    """Load OpenRLHF, with replacements for what this machine lacks. To be called once in each
    process, before anything else imports it."""
    import torch

    cuda = visible_device().type == "cuda"
    if not cuda:
        os.environ["DS_ACCELERATOR"] = "cpu"
        _without_cuda(torch)
    _load_models()
    if not cuda or not _has_cuda_compiler():
        _without_compiled_operators(cuda)


def join_group() -> None:
    """Create the process group before OpenRLHF does. A single process needs no port; several find
    each other by the variables of their launcher."""
    import torch
    import torch.distributed as dist

    cuda = visible_device().type == "cuda"
    options: dict[str, Any] = {"timeout": timedelta(minutes=60)}
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
        # DeepSpeed checks that these exist; it does not use them once there is a group.
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
        options |= {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    elif os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"]:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("nccl" if cuda else "gloo", **options)


def _without_cuda(torch: Any) -> None:
    """Let the calls of torch.cuda that OpenRLHF makes on any machine do nothing, or mean the
    CPU."""
    from torch.distributed import device_mesh

    torch.cuda.set_device = lambda *_, **__: None
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.synchronize = lambda *_, **__: None
    torch.cuda.empty_cache = lambda: None
    stock = device_mesh.init_device_mesh

    def init_device_mesh(device_type: str, *arguments: Any, **options: Any) -> Any:
        return stock("cpu" if device_type == "cuda" else device_type, *arguments, **options)

    device_mesh.init_device_mesh = init_device_mesh
    torch.distributed.init_device_mesh = init_device_mesh


def _load_models() -> None:
    """Import the part of OpenRLHF that imports flash_attn; where that is missing, with placeholders
    that are removed afterwards, so that nothing takes them for the real ones."""
    name = "openrlhf.models"
    importlib.import_module("deepspeed")
    try:
        # When this fails, the libraries that OpenRLHF uses are loaded: they look for flash_attn
        # too, and must not find the placeholders.
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("flash_attn"):
            raise
        with _placeholders():
            importlib.import_module(name)


@contextmanager
def _placeholders() -> Iterator[None]:
    def unavailable(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(_PACKING)

    names = {
        "flash_attn": (),
        "flash_attn.bert_padding": ("index_first_axis", "pad_input", "rearrange", "unpad_input"),
        "flash_attn.utils": (),
        "flash_attn.utils.distributed": ("all_gather",),
    }
    for name, functions in names.items():
        module = ModuleType(name)
        for function in functions:
            setattr(module, function, unavailable)
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


def _has_cuda_compiler() -> bool:
    from torch.utils.cpp_extension import CUDA_HOME

    return CUDA_HOME is not None


def _without_compiled_operators(cuda: bool) -> None:
    """DeepSpeed compiles operators at first use, which takes minutes and a compiler: PyTorch's
    AdamW instead of its own, and no shared-memory communication between CPU processes."""
    strategy: Any = importlib.import_module("openrlhf.utils.deepspeed.deepspeed")
    stock: Callable[..., dict[str, Any]] = strategy.get_train_ds_config

    def get_train_ds_config(*arguments: Any, **options: Any) -> dict[str, Any]:
        config = stock(*arguments, **options)
        if "optimizer" in config:
            config["optimizer"]["params"]["torch_adam"] = True
        return config

    strategy.get_train_ds_config = get_train_ds_config
    if not cuda:
        # The attribute `deepspeed.comm.torch` is torch itself, not this module.
        communication: Any = importlib.import_module("deepspeed.comm.torch")
        communication.build_shm_op = lambda: None
