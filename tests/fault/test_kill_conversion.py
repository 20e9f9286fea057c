"""kill -9 in the middle of a conversion: nothing half done is ever opened."""

import signal
import subprocess
import sys
from pathlib import Path

import torch

from engine.weights.loading import open_checkpoint
from tests.builders_gguf import TinyModel

# Writes half of the weights, then dies as by `kill -9`: no handler and no `finally` runs.
DIES = """
import os, signal, sys
from pathlib import Path
from engine.weights import conversion, convert

whole = conversion.save_file

def half(tensors, path, metadata):
    whole(tensors, path, metadata=metadata)
    os.truncate(path, Path(path).stat().st_size // 2)
    os.kill(os.getpid(), signal.SIGKILL)

conversion.save_file = half
convert.main([sys.argv[1], "--dtype", "float32"])
"""


def test_a_killed_conversion_is_done_again(tmp_path: Path) -> None:
    model = TinyModel()
    source = model.write(tmp_path / "tiny.gguf")
    finished = subprocess.run(
        [sys.executable, "-c", DIES, str(source)], capture_output=True, check=False, timeout=150
    )
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    parent = tmp_path / "tiny.gguf.converted"
    (scratch,) = parent.glob(".converting-*")
    assert (scratch / "new" / "model.safetensors").is_file(), "the fault did not fire"
    assert not (parent / "float32").exists()

    checkpoint = open_checkpoint(source, torch.float32)
    for name, values in model.tensors().items():
        assert torch.equal(checkpoint.tensor(name), torch.from_numpy(values))
    assert sorted(path.name for path in parent.iterdir()) == [".lock", "float32"]
