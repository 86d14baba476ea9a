"""The kernels compile for an H100: by Triton's own compiler and ptxas, which need no GPU."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

INTS = ("common", "table", "lengths", "starts", "row_blocks", "row_table", "row_lengths")
INTS += ("segment_starts", "segment_lengths", "segment_rows", "segment_table")
TYPES = dict.fromkeys(INTS, "*i32") | {
    "out": "*bf16",
    "shared_out": "*bf16",
    "lse": "*fp32",
    "shared_lse": "*fp32",
}


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("common_blocks_kernel", {"BLOCK_SIZE": 64, "CHUNK": 256}),
        (
            "segments_kernel",
            {"LEAST_BLOCKS": 32, "LEAST_ROWS": 8, "BLOCK_SIZE": 64, "SIZE": 512},
        ),
        ("tables_kernel", {"BLOCK_SIZE": 64, "CHUNK": 256}),
        ("merge_kernel", {"HEAD_SIZE": 128, "SIZE": 128}),
    ],
)
def test_a_kernel_compiles_for_hopper(
    name: str, constants: Mapping[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # compiled here, not found
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from engine.inference.shared_prefix import kernels

    kernel: Any = getattr(kernels, name)
    signature = {
        each: "constexpr" if each in constants else TYPES.get(each, "i32")
        for each in inspect.signature(kernel.fn).parameters
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=dict(constants))
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    assert compiled.asm["cubin"].startswith(b"\x7fELF")
    assert ".target sm_90" in compiled.asm["ptx"]
