"""bfloat16 projections on the CPU whose weights are laid out once as oneDNN wants them.

`F.linear` lays the weight out again in every call. Measured with AMX, 48 rows, 576 to 3,072: 290 us
packed against 462. The operators are those that torch's own compiler emits; they are not public, so
this is the only module that names them, every projection is compared with `F.linear` when it is
packed, and whatever does not work there stays unpacked.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.layers.linear import Linear

# The layout is chosen for a number of rows, but serves any; decodes are what is waited for.
_USUAL_ROWS = 64
_TOLERANCE = 0.02  # relative: bfloat16 rounds to 0.004


class PackedLinear(Linear):
    """`weight` tells shape and dtype only (a meta tensor): the packed copy is the one that is kept.

    Raises RuntimeError, AttributeError or NotImplementedError where torch cannot pack it.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        super().__init__(weight.to("meta"), bias)
        self.device = weight.device
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, _USUAL_ROWS)

    def alike(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
        return PackedLinear(weight, bias)

    def multiply(self, rows: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self._packed, self.bias, "none", [], ""
        )
        return product


def pack_linear(linear: Linear) -> Linear:
    """The projection packed, or as it is where that is not possible or does not pay."""
    weight, bias = linear.weight, linear.bias
    if weight.device.type != "cpu" or weight.dtype != torch.bfloat16:
        return linear
    try:
        packed = PackedLinear(weight, bias)
        rows = torch.linspace(-1.0, 1.0, 2 * weight.shape[1]).view(2, -1).to(weight.dtype)
        actual = packed(rows)
    except (AttributeError, NotImplementedError, RuntimeError):
        return linear
    expected = F.linear(rows, weight, bias)
    largest = expected.abs().amax()
    is_right = bool(((actual - expected).abs().amax() <= _TOLERANCE * largest).item())
    return packed if is_right else linear
