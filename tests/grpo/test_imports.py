import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_an_inspector_replays_leaves_torch_unimported():
    modules = [
        "advantages",
        "aggregation",
        "arrays",
        "diagnostics",
        "groups",
        "importance",
        "kl",
        "loss",
        "masking",
        "ratio",
    ]
    code = f"import sys, {', '.join('engine.grpo.' + name for name in modules)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_the_package_itself_loads_torch_only_for_the_functions_that_need_it():
    code = "import sys, engine.grpo; before = 'torch' in sys.modules; from engine.grpo import masked_mean; "
    code += "sys.exit(before or 'torch' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0
