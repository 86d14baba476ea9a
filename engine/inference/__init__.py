"""Inference: vLLM in this process; the only package that imports vllm."""

from engine.inference.environment import is_cpu_build, prepare
from engine.inference.kv_server import KVServer, KVTransfer, kv_server, kv_transfer
from engine.inference.llm import (
    FanOut,
    LanguageModel,
    PrefixCacheCount,
    Sampling,
    chunk_tokens,
)
from engine.inference.misses import MissLedger
from engine.inference.weights import find_weights

__all__ = [
    "FanOut",
    "KVServer",
    "KVTransfer",
    "LanguageModel",
    "MissLedger",
    "PrefixCacheCount",
    "Sampling",
    "chunk_tokens",
    "find_weights",
    "is_cpu_build",
    "kv_server",
    "kv_transfer",
    "prepare",
]
