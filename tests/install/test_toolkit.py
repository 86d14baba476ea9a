"""The compilers of the CUDA lock: linked as a toolkit, found by a run, and really compiling."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from engine.inference.environment import compilers
from install.sources import read_sources
from install.toolkit import make_toolkit

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-runtime"),
    *("nvidia-cuda-cccl", "ninja"),
)
KERNEL = """\
#include <cuda_runtime.h>
#include <cuda_fp8.h>
__global__ void __launch_bounds__(128) scale(__nv_fp8_e4m3 *x, float by) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");  // of sm_90a alone
    x[threadIdx.x] = __nv_fp8_e4m3(float(x[threadIdx.x]) * by);
}
extern "C" int launch(__nv_fp8_e4m3 *x, float by) {
    scale<<<1, 128>>>(x, by);
    return cudaGetLastError();
}
"""
# As libraries that compile at a model's start write it: the compiler, headers and libraries of
# CUDA_HOME, and a shared library with the runtime.
BUILD = """\
home = {home}
arch = -gencode=arch=compute_90a,code=sm_90a
rule cubin
  command = $home/bin/nvcc -cubin $arch -isystem $home/include -o $out $in
rule object
  command = $home/bin/nvcc $arch --compiler-options=-fPIC -c -o $out $in
rule library
  command = c++ -shared $in -L$home/lib64 -lcudart -o $out
build scale.cubin: cubin scale.cu
build scale.o: object scale.cu
build scale.so: library scale.o
"""
CUDA_MACHINE = 190  # of an ELF file


def test_the_packages_files_are_found_under_a_toolkits_names(tmp_path: Path) -> None:
    source = tmp_path / "lib/python3.11/site-packages/nvidia/cu13"
    for name in ("bin/nvcc", "include/cuda.h", "nvvm/bin/cicc", "lib/libcudart.so.13"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "lib/libcudart_static.a").write_text("static")
    for _ in range(2):  # the second time over the first
        toolkit = make_toolkit(tmp_path, driver="libc.so.6")
        assert toolkit == tmp_path / "cuda"
        assert (toolkit / "bin/nvcc").read_text() == "bin/nvcc"
        assert (toolkit / "include/cuda.h").read_text() == "include/cuda.h"
        for folder in ("lib", "lib64"):
            assert (toolkit / folder / "libcudart.so").read_text() == "lib/libcudart.so.13"
            assert (toolkit / folder / "libcudart_static.a").read_text() == "static"
        assert (toolkit / "lib64/libcuda.so").resolve().name.startswith("libc")
    assert make_toolkit(tmp_path, driver="libno-such-driver.so.1") == toolkit
    assert not (toolkit / "lib64/libcuda.so").exists()


def test_an_environment_without_a_compiler_has_no_toolkit(tmp_path: Path) -> None:
    assert make_toolkit(tmp_path) is None
    assert compilers({"PATH": "/bin"}, prefix=tmp_path) == {"PATH": f"{tmp_path}/bin:/bin"}


def test_a_run_finds_the_environments_compilers_first(tmp_path: Path) -> None:
    (tmp_path / "cuda/bin").mkdir(parents=True)
    (tmp_path / "cuda/bin/nvcc").touch()
    home = f"{tmp_path}/cuda"
    found = compilers({"PATH": "/bin"}, prefix=tmp_path)
    assert found == {"PATH": f"{tmp_path}/bin:{home}/bin:/bin", "CUDA_HOME": home}
    own = compilers({"PATH": "/bin", "CUDA_HOME": "/opt/cuda"}, prefix=tmp_path)
    assert own == {"PATH": f"{tmp_path}/bin:/opt/cuda/bin:/bin", "CUDA_HOME": "/opt/cuda"}


@pytest.mark.slow
def test_the_locked_compiler_makes_a_kernel_for_an_h100(tmp_path: Path) -> None:
    venv, uv = tmp_path / "venv", [sys.executable, "-m", "uv"]
    lock = (ROOT / "requirements/cuda.txt").read_text().splitlines()
    wanted = [line for line in lock if line.partition("==")[0] in PACKAGES]
    assert len(wanted) == len(PACKAGES)
    sources = read_sources(Path(sys.executable), os.environ)
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, venv], check=True)
    install = [*uv, "pip", "install", "--quiet", "--no-deps", "--python", venv / "bin/python"]
    subprocess.run([*install, *sources.arguments, *wanted], env=sources.environ, check=True)
    assert make_toolkit(venv) is not None
    environ = {"PATH": "/usr/bin:/bin"}
    environ |= compilers(environ, prefix=venv)
    (tmp_path / "scale.cu").write_text(KERNEL)
    (tmp_path / "build.ninja").write_text(BUILD.format(home=environ["CUDA_HOME"]))
    done = subprocess.run(
        ["ninja", "-C", str(tmp_path)], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    header = (tmp_path / "scale.cubin").read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", header, 18) == (CUDA_MACHINE,)
    needed = subprocess.run(
        ["readelf", "-d", tmp_path / "scale.so"], capture_output=True, text=True, check=True
    )
    assert "libcudart.so.13" in needed.stdout
