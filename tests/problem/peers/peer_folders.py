"""Small problem folders in the formats of other systems."""

from __future__ import annotations

from pathlib import Path

PROGRAM = """# EVOLVE-BLOCK-START
def squares(count):
    return [index for index in range(count)]
# EVOLVE-BLOCK-END
"""

EVALUATOR = '''"""How near a list is to the square numbers."""

import importlib.util


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    if not hasattr(program, "squares"):
        return {"combined_score": 0.0, "error": "squares is missing"}
    found = program.squares(5)
    right = sum(one == index * index for index, one in enumerate(found))
    return {"combined_score": right / 5, "right": right, "artifacts": {"found": str(found)}}
'''

CONFIG = """max_iterations: 10
llm:
  temperature: 0.5
prompt:
  system_message: |
    Write squares(count).
evaluator:
  timeout: 20
  cascade_thresholds: [0.3, 0.6]
"""

STAGES = """

def evaluate_stage1(program_path):
    return {"runs": 1.0}


def evaluate_stage2(program_path):
    return evaluate(program_path)
"""

SHINKA_EVALUATOR = """import argparse

from shinka.core import run_shinka_eval


def validate(result):
    return (len(result) == 5, "five numbers are needed")


def aggregate(results):
    right = sum(one == index * index for index, one in enumerate(results[0]))
    return {
        "combined_score": right / 5,
        "public": {"right": right},
        "private": {"secret": 1},
        "text_feedback": "a hint",
    }


def main(program_path, results_dir):
    run_shinka_eval(
        program_path=program_path,
        results_dir=results_dir,
        experiment_fn_name="squares",
        num_runs=1,
        get_experiment_kwargs=lambda index: {"count": 5},
        validate_fn=validate,
        aggregate_metrics_fn=aggregate,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path")
    parser.add_argument("--results_dir")
    given = parser.parse_args()
    main(given.program_path, given.results_dir)
"""

SHINKA_RUN = '''from shinka.core import EvolutionConfig
from shinka.launch import LocalJobConfig

TASK = """Return the first square numbers."""
search_task_sys_msg = TASK + " Start at 0."
job = LocalJobConfig(eval_program_path="evaluate.py", time="00:01:30")
config = EvolutionConfig(task_sys_msg=search_task_sys_msg)
'''


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files, by their names, and return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def openevolve(folder: Path, **changed: str | None) -> Path:
    """Return a folder of OpenEvolve's; ``changed`` has other texts by file, None for none."""
    files = {"initial_program": PROGRAM, "evaluator": EVALUATOR, "config": CONFIG}
    suffixes = {"config": "yaml"}
    texts = {
        f"{name}.{suffixes.get(name, 'py')}": text
        for name, text in {**files, **changed}.items()
        if text is not None
    }
    return write(folder / "squares", texts)


def skydiscover(folder: Path) -> Path:
    """Return a folder of SkyDiscover's, with its evaluator in a folder of its own."""
    return write(
        folder / "squares",
        {
            "initial_program.py": PROGRAM,
            "initial_program_naive.py": "",
            "config.yaml": CONFIG,
            "evaluator/evaluator.py": EVALUATOR
            + "\n\nif __name__ == '__main__':\n    from wrapper import run\n    run(evaluate)\n",
            "evaluator/wrapper.py": "def run(evaluate):\n    raise SystemExit(3)\n",
            "evaluator/evaluate.sh": "python /benchmark/evaluator.py $1\n",
            "evaluator/Dockerfile": "FROM python\n",
        },
    )


def shinka(folder: Path, *, run: str = SHINKA_RUN) -> Path:
    """Return a folder of ShinkaEvolve's."""
    return write(
        folder / "squares",
        {"initial.py": PROGRAM, "evaluate.py": SHINKA_EVALUATOR, "run_evo.py": run},
    )
