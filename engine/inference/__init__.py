"""Inference: vLLM in this process; the only package that imports vllm."""

from engine.inference.decoder import Decoder
from engine.inference.environment import is_cpu_build, prepare
from engine.inference.fanout import FanOut, Sampling
from engine.inference.kv_server import KVServer, KVTransfer, kv_server, kv_transfer
from engine.inference.llm import MOST_AT_ONCE, LanguageModel, chunk_tokens, most_at_once
from engine.inference.misses import CallMisses, MissLedger
from engine.inference.model import Children, Model
from engine.inference.stats import EngineLoad, PrefixCacheCount
from engine.inference.weights import find_weights

__all__ = [
    "MOST_AT_ONCE",
    "CallMisses",
    "Children",
    "Decoder",
    "EngineLoad",
    "FanOut",
    "KVServer",
    "KVTransfer",
    "LanguageModel",
    "MissLedger",
    "Model",
    "PrefixCacheCount",
    "Sampling",
    "chunk_tokens",
    "find_weights",
    "is_cpu_build",
    "kv_server",
    "kv_transfer",
    "most_at_once",
    "prepare",
]
