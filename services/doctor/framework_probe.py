"""Asks one framework whether it sees a GPU, and prints what it says as one line of JSON.

Run by its path with the interpreter that kernels use, which has neither this package nor any other of ours.

Shell: loads foreign libraries.
"""

import importlib
import importlib.util
import json
import sys

NAMES = ("torch", "tensorflow", "jax", "cupy")


def ask_torch() -> dict[str, object]:
    torch = importlib.import_module("torch")
    told: dict[str, object] = {"version": str(torch.__version__), "cuda": torch.version.cuda}
    if torch.version.cuda is not None:
        told["devices"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not told["devices"]:
            try:
                torch.cuda.init()
            except Exception as error:  # noqa: BLE001 - what it says is the answer
                told["error"] = str(error).splitlines()[0]
        else:
            told["arches"] = list(torch.cuda.get_arch_list())
    return told


def ask_tensorflow() -> dict[str, object]:
    tensorflow = importlib.import_module("tensorflow")
    built = tensorflow.sysconfig.get_build_info()
    cuda = built.get("cuda_version") if tensorflow.test.is_built_with_cuda() else None
    devices = len(tensorflow.config.list_physical_devices("GPU"))
    return {"version": str(tensorflow.__version__), "cuda": cuda, "devices": devices}


def ask_jax() -> dict[str, object]:
    jax = importlib.import_module("jax")
    told: dict[str, object] = {"version": str(jax.__version__), "cuda": None}
    if any(importlib.util.find_spec(f"jax_cuda{major}_plugin") for major in range(11, 20)):
        told["cuda"] = ""  # built for one, and it does not say which
        try:
            told["devices"] = len(jax.devices("cuda"))
        except Exception as error:  # noqa: BLE001 - what it says is the answer
            told |= {"devices": 0, "error": str(error).splitlines()[0]}
    return told


def ask_cupy() -> dict[str, object]:
    cupy = importlib.import_module("cupy")
    version = cupy.cuda.runtime.runtimeGetVersion()
    told = {"version": str(cupy.__version__), "cuda": f"{version // 1000}.{version % 1000 // 10}"}
    try:
        return {**told, "devices": cupy.cuda.runtime.getDeviceCount()}
    except Exception as error:  # noqa: BLE001 - what it says is the answer
        return {**told, "devices": 0, "error": str(error).splitlines()[0]}


ASK = {"torch": ask_torch, "tensorflow": ask_tensorflow, "jax": ask_jax, "cupy": ask_cupy}


def main(name: str) -> None:
    """Print null for a framework that is not installed."""
    if importlib.util.find_spec(name) is None:
        json.dump(None, sys.stdout)
        return
    try:
        told = ASK[name]()
    except Exception as error:  # noqa: BLE001 - a framework that cannot be loaded is an answer
        told = {"version": "", "error": f"{type(error).__name__}: {error}".splitlines()[0]}
    json.dump({"name": name, **told}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
