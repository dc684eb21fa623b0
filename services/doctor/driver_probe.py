"""Asks the driver's own libraries, and prints what they say as a line of JSON.

A process of its own, for such libraries can crash or hang: before each step it prints what it knows so far
with the name of the step. Run by its path, with Python's library alone.

Shell: loads foreign libraries.
"""

import ctypes
import json

SOME_MEMORY = 1 << 20
"""Bytes."""
_NAME = 96
_MAJOR, _MINOR = 75, 76
"""`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR`."""


def say(**known: object) -> None:
    """Print a line at once, for there may be no other."""
    print(json.dumps(known), flush=True)  # noqa: T201 - this is how it answers


def ask_cuda(nvml: dict[str, object]) -> dict[str, object]:
    """Ask CUDA's driver interface, step by step, as far as it goes."""
    say(step="libcuda", nvml=nvml)
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return {"library": None, "error": str(error)}
    told: dict[str, object] = {"library": loaded("libcuda.so")}
    say(step="cuInit", nvml=nvml, cuda=told)
    version, count = ctypes.c_int(), ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(version)) == 0:
        told["version"] = version.value
    told["init"] = cuda.cuInit(0)
    if told["init"] != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return told
    told["devices"] = [name_of(cuda, number) for number in range(count.value)]
    if count.value:
        told["capability"] = [attribute(cuda, _MAJOR), attribute(cuda, _MINOR)]
        say(step="memory", nvml=nvml, cuda=told)
        told["allocate"] = take_memory(cuda)
    return told


def name_of(cuda: ctypes.CDLL, number: int) -> str:
    """Name of one device."""
    device, name = ctypes.c_int(), ctypes.create_string_buffer(_NAME)
    cuda.cuDeviceGet(ctypes.byref(device), number)
    cuda.cuDeviceGetName(name, _NAME, device)
    return name.value.decode(errors="replace")


def attribute(cuda: ctypes.CDLL, number: int) -> int:
    """One attribute of the first device."""
    value = ctypes.c_int()
    cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0)
    return value.value


def take_memory(cuda: ctypes.CDLL) -> int:
    """Make a context on the first device and take a little memory; gives the first error."""
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    code: int = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    code = code or cuda.cuCtxSetCurrent(context)
    return code or cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(SOME_MEMORY))


def ask_nvml() -> dict[str, object]:
    """Ask the library that nvidia-smi uses."""
    say(step="nvml")
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {"init": None}
    told: dict[str, object] = {"init": nvml.nvmlInit_v2()}
    if told["init"] != 0:
        return told
    text, count = ctypes.create_string_buffer(_NAME), ctypes.c_uint()
    if nvml.nvmlSystemGetDriverVersion(text, _NAME) == 0:
        told["driver"] = text.value.decode(errors="replace")
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    names = []
    for number in range(count.value):
        device = ctypes.c_void_p()
        if nvml.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(device)) == 0:
            nvml.nvmlDeviceGetName(device, text, _NAME)
            names.append(text.value.decode(errors="replace"))
            now, later = ctypes.c_uint(), ctypes.c_uint()
            if nvml.nvmlDeviceGetMigMode(device, ctypes.byref(now), ctypes.byref(later)) == 0:
                told.setdefault("mig", bool(now.value))
    told["devices"] = names
    return told


def loaded(name: str) -> str:
    """Path of a library that this process has loaded."""
    with open("/proc/self/maps", encoding="utf-8") as maps:  # noqa: PTH123 - runs with any Python
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if name in path:
                return path
    return name


if __name__ == "__main__":
    answers = ask_nvml()
    say(nvml=answers, cuda=ask_cuda(answers))
