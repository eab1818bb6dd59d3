"""The functions of ONNX's ``onnx.backend.base.Backend``, as functions of this module.

The gather and scatter operators are gatherum's. All other operators use ONNX's reference
implementation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from gatherum._model.arrays import NumpyArray

from .evaluator import Evaluator


class PreparedModel(BackendRep):
    """A model prepared to run."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._evaluator = Evaluator(model)
        initialized = {tensor.name for tensor in model.graph.initializer}
        self._required = [i.name for i in model.graph.input if i.name not in initialized]
        self._outputs = [output.name for output in model.graph.output]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[NumpyArray, ...]:
        """Run the model.

        Parameters
        ----------
        inputs : sequence of arrays, mapping of names to arrays, or one array
            The inputs, in the order of the graph's inputs without initializers.
        **kwargs
            Ignored; part of the interface.

        Returns
        -------
        tuple
            The outputs in the graph's order, also by name: ``outputs["y"]``.

        Raises
        ------
        ValueError
            If inputs are missing or superfluous.
        """
        feeds = _named(self._required, inputs)
        results = self._evaluator.run(None, feeds)
        outputs: tuple[NumpyArray, ...] = namedtupledict("Outputs", self._outputs)(*results)
        return outputs


class GatherumBackend(Backend):
    """ONNX's backend interface over `gatherum.onnx.Evaluator`."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device is the CPU, such as ``"CPU"`` or ``"CPU:0"``."""
        return device.split(":", maxsplit=1)[0] == "CPU"

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether `prepare` supports a model: every operator must have an implementation."""
        if not cls.supports_device(device):
            return False
        try:
            Evaluator(model)
        except NotImplementedError:  # raised by ONNX's evaluator for an unsupported operator
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Check a model against ONNX's rules and prepare it to run.

        Raises
        ------
        ValueError
            If the device is not the CPU.
        onnx.checker.ValidationError
            If the model is not valid.
        """
        cls._require_device("prepare", device)
        super().prepare(model, device, **kwargs)
        return PreparedModel(model)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[NumpyArray, ...]:
        """Run one node at the newest opset, or at ``opset_version``.

        Raises
        ------
        ValueError
            If the device is not the CPU, or inputs are missing or superfluous.
        onnx.checker.ValidationError
            If the node is not valid at that opset.
        """
        cls._require_device("run_node", device)
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        names = [name for name in dict.fromkeys(node.input) if name]
        outputs = [name for name in node.output if name]
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        imports = [onnx.helper.make_opsetid("", version)]
        if node.domain:
            imports.append(onnx.helper.make_opsetid(node.domain, 1))
        # Unlike a node, a function has an opset and needs no input types.
        function = onnx.helper.make_function("gatherum", "node", names, outputs, [node], imports)
        feeds = _named(names, inputs)
        results = Evaluator(function).run(None, feeds, attributes={})
        answer: tuple[NumpyArray, ...] = namedtupledict("Outputs", outputs)(*results)
        return answer

    @classmethod
    def _require_device(cls, where: str, device: str) -> None:
        if not cls.supports_device(device):
            raise ValueError(f"{where}: `device` must be 'CPU', got {device!r}")


def _named(names: Sequence[str], inputs: Any) -> dict[str, NumpyArray]:
    """Return inputs by name, from a mapping or a sequence."""
    if isinstance(inputs, Mapping):
        missing = [name for name in names if name not in inputs]
        if missing:
            raise ValueError(f"the inputs {missing} are missing; given are {sorted(inputs)}")
        return dict(inputs)
    arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
    if len(arrays) != len(names):
        raise ValueError(f"there must be {len(names)} inputs {list(names)}, got {len(arrays)}")
    return dict(zip(names, arrays, strict=True))


is_compatible = GatherumBackend.is_compatible
prepare = GatherumBackend.prepare
run_model = GatherumBackend.run_model
run_node = GatherumBackend.run_node
supports_device = GatherumBackend.supports_device
