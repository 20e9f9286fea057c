"""One thread: these matrices are smaller than a barrier between threads costs on a busy machine."""

import torch

torch.set_num_threads(1)
