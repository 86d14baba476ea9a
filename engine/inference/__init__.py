"""Inference: vLLM in this process; the only package that imports vllm."""

from engine.inference.decoder import Decoder
from engine.inference.decoding import Decoding, IsOver
from engine.inference.engine_options import chunk_tokens, most_at_once, plan_of
from engine.inference.environment import check_installed, is_cpu_build, prepare
from engine.inference.fanout import FanOut
from engine.inference.gpu_node import gpu_node
from engine.inference.instructions import why_no_instructions
from engine.inference.kv_server import KVServer, kv_server, kv_transfer
from engine.inference.limits import MOST_AT_ONCE
from engine.inference.llm import LanguageModel
from engine.inference.memory_plan import check_trainer_fits
from engine.inference.misses import CallMisses, MissLedger
from engine.inference.model import EngineLoad, Model, ModelLost, Sampling
from engine.inference.number_format import in_its_format
from engine.inference.recovery import SteadyModel
from engine.inference.weights import find_weights, prepared_weights
