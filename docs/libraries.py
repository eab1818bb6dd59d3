"""The libraries of the tables, each as a set of names for the tables' expressions."""

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

import numpy as np
import webnn_cases

import gatherum

Names = dict[str, Any]
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
# The distributions that the expressions of a library need. The results depend on their versions.
NEEDED = {
    "gatherum": ("gatherum", "numpy"),
    "numpy": ("numpy",),
    "onnx": ("onnx", "onnxruntime"),
    "torch": ("torch",),
    "jax": ("jax",),
    "webnn": ("pywebnn", "onnxruntime"),
}


def versions(library: str) -> dict[str, str] | None:
    """Return the versions of a library's packages, or None if a package is not installed."""
    try:
        return {name: metadata.version(name) for name in NEEDED[library] if name != "gatherum"}
    except metadata.PackageNotFoundError:
        return None


def names(library: str, arrays: Names) -> Names:
    """Return the names for a library's expressions. `arrays` become arrays of the library."""
    modules, convert = _KINDS[library]()
    own = {name: convert(array) for name, array in arrays.items()}
    return {"np": np, "nan": float("nan"), "after": _after, "accepted": _accepted} | modules | own


def _after(change: Callable[..., Any], array: Any, *arguments: Any) -> Any:
    """Return a copy of an array after a change in place, or its values as text after an error."""
    copy = array.clone() if hasattr(array, "clone") else np.array(array)
    try:
        change(copy, *arguments)
    except Exception as error:  # the table shows the values after the error
        return f"{np.asarray(copy).tolist()} after {type(error).__name__}"
    return copy


def _accepted(call: Callable[[Any], Any]) -> str:
    """Return the names of the dtypes that a call accepts for indices."""
    taken = []
    for dtype in (*INTEGERS, "bool", "float32"):
        try:
            call(np.ones(1, dtype))
        except Exception:
            continue
        taken.append(dtype)
    every = ", ".join(taken)
    return every.replace(", ".join(INTEGERS), "every integer")


def _gatherum() -> tuple[Names, Callable[[Any], Any]]:
    return {name: getattr(gatherum, name) for name in gatherum.__all__}, np.asarray


def _numpy() -> tuple[Names, Callable[[Any], Any]]:
    return {}, np.asarray


def _torch() -> tuple[Names, Callable[[Any], Any]]:
    torch = import_module("torch")
    return {"torch": torch, "tensor": torch.tensor}, lambda array: torch.tensor(np.asarray(array))


def _jax() -> tuple[Names, Callable[[Any], Any]]:
    jax, jnp = import_module("jax"), import_module("jax.numpy")
    return {"jax": jax, "jnp": jnp}, jnp.asarray


def _webnn() -> tuple[Names, Callable[[Any], Any]]:
    return {"webnn": webnn_cases.run}, np.asarray


def _onnx() -> tuple[Names, Callable[[Any], Any]]:
    reference, runtime = import_module("onnx.reference"), import_module("onnxruntime")
    runtime.set_default_logger_severity(4)  # errors are results, and need no log message

    def run_reference(op: str, *inputs: Any, **attributes: Any) -> Any:
        model, feeds = _model(op, inputs, attributes)
        return reference.ReferenceEvaluator(model).run(None, feeds)[0]

    def run_runtime(op: str, *inputs: Any, **attributes: Any) -> Any:
        model, feeds = _model(op, inputs, attributes)
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        session = runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return session.run(None, feeds)[0]

    return {"reference": run_reference, "runtime": run_runtime}, np.asarray


def _model(op: str, inputs: tuple[Any, ...], attributes: Names) -> tuple[Any, Names]:
    """Make a model of one node, and its feeds. Scalars and lists get the dtype that it needs."""
    helper = import_module("onnx.helper")
    data, indices, *updates = inputs
    data = np.asarray(data)
    arrays = [data, np.asarray(indices), *(np.asarray(u, data.dtype) for u in updates)]
    operands = ["data", "indices", "updates"][: len(arrays)]

    def info(name: str, array: Any, shape: Any) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        [helper.make_node(op, operands, ["out"], **attributes)],
        "asked",
        [
            info(name, array, [None] * array.ndim)
            for name, array in zip(operands, arrays, strict=True)
        ],
        [info("out", data, None)],
    )
    opset = helper.make_opsetid("", 18)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    return model, dict(zip(operands, arrays, strict=True))


_KINDS: dict[str, Callable[[], tuple[Names, Callable[[Any], Any]]]] = {
    "gatherum": _gatherum,
    "numpy": _numpy,
    "onnx": _onnx,
    "torch": _torch,
    "jax": _jax,
    "webnn": _webnn,
}
