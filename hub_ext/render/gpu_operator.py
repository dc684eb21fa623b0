"""Configuration of NVIDIA's GPU Operator: how cards are shared and cut, per pool.

One ConfigMap for the device plugin with a key per pool, one for the MIG manager with a layout per MIG pool;
a node takes part by labels. Sources: device plugin v0.20 (README, api/config/v1), mig-parted v0.15
(deployments/gpu-operator), GPU Operator 26.7 (values `devicePlugin.config`, `migManager.config`).

Pure: no clock, no network.
"""

from typing import Any

from ..catalog.model import Catalog, Gpu, MigGpu, MpsGpu, Pool, TimeSlicedGpu
from ..errors import Finding
from ..gpu.resources import NVIDIA_GPU, shared_resource
from .documents import to_yaml
from .target import MANAGED_BY, Code, Rendering, note

NAMESPACE = "gpu-operator"
PLUGIN_CONFIG = "gpu-workspaces-device-plugin"
MIG_CONFIG = "gpu-workspaces-mig"
PLUGIN_LABEL = "nvidia.com/device-plugin.config"
MIG_LABEL = "nvidia.com/mig.config"


def render_gpu_operator(catalog: Catalog, *, namespace: str = NAMESPACE) -> Rendering:
    """Render the ConfigMaps; the labels that nodes need are remarks, with the command that sets them."""
    pools = {
        name: (pool, pool.gpu) for name, pool in catalog.pools.items() if pool.gpu and _is_nvidia(pool.gpu)
    }
    plugin = {name: to_yaml(device_plugin_config(gpu)) for name, (_, gpu) in pools.items()}
    layouts = {name: _layout(gpu) for name, (_, gpu) in pools.items() if isinstance(gpu, MigGpu)}
    documents = []
    if plugin:
        documents.append(_config_map(PLUGIN_CONFIG, namespace, plugin))
    if layouts:
        parted = {"version": "v1", "mig-configs": {"all-disabled": [_disabled()]} | layouts}
        documents.append(_config_map(MIG_CONFIG, namespace, {"config.yaml": to_yaml(parted)}))
    findings = [remark for name, (pool, gpu) in pools.items() for remark in _remarks(name, pool, gpu)]
    return Rendering(documents=tuple(documents), findings=(*_settings(plugin, layouts), *findings))


def _is_nvidia(gpu: Gpu) -> bool:
    resource = getattr(gpu, "resource_name", None)
    return gpu.via == "device-plugin" and (resource is None or resource.startswith("nvidia.com/"))


def device_plugin_config(gpu: Gpu) -> dict[str, Any]:
    """Build the configuration that makes NVIDIA's device plugin offer a pool's cards as the catalog says."""
    strategy = gpu.strategy.value if isinstance(gpu, MigGpu) else "none"
    config: dict[str, Any] = {"version": "v1", "flags": {"migStrategy": strategy}}
    if isinstance(gpu, TimeSlicedGpu | MpsGpu):
        sharing = {
            "renameByDefault": gpu.rename_by_default,
            "failRequestsGreaterThanOne": gpu.fail_requests_greater_than_one,
            "resources": [{"name": NVIDIA_GPU, "replicas": gpu.replicas}],
        }
        config["sharing"] = {"mps" if isinstance(gpu, MpsGpu) else "timeSlicing": sharing}
    return config


def _layout(gpu: MigGpu) -> list[dict[str, Any]]:
    return [{"devices": "all", "mig-enabled": True, "mig-devices": dict(gpu.geometry)}]


def _disabled() -> dict[str, Any]:
    return {"devices": "all", "mig-enabled": False}


def node_labels(name: str, pool: Pool) -> dict[str, str]:
    """Give the labels that put a node's cards under the configuration of a pool."""
    return {PLUGIN_LABEL: name} | ({MIG_LABEL: name} if isinstance(pool.gpu, MigGpu) else {})


def _config_map(name: str, namespace: str, data: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": MANAGED_BY}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _settings(plugin: dict[str, str], layouts: dict[str, Any]) -> list[Finding]:
    settings = [f"devicePlugin.config.name={PLUGIN_CONFIG}"] if plugin else []
    settings += [f"migManager.config.name={MIG_CONFIG}"] if layouts else []
    if not settings:
        return []
    flags = " ".join(f"--set {setting}" for setting in settings)
    return [note(Code.NODE_LABELS, "", f"Name the ConfigMaps in the GPU Operator's values: {flags}")]


def _remarks(name: str, pool: Pool, gpu: Gpu) -> list[Finding]:
    path = f"pools.{name}"
    selector = ",".join(f"{key}={value}" for key, value in pool.node_selector.items())
    labels = " ".join(f"{key}={value}" for key, value in node_labels(name, pool).items())
    nodes = f"-l {selector}" if selector else "NODE…"
    remarks = [
        note(
            Code.NODE_LABELS,
            path,
            "Label the nodes of this pool:",
            help=f"kubectl label nodes {nodes} {labels}",
        )
    ]
    if isinstance(gpu, TimeSlicedGpu | MpsGpu):
        offered = shared_resource(renamed=gpu.rename_by_default)
        wanted = shared_resource(renamed=gpu.rename_by_default, resource_name=gpu.resource_name)
        if wanted != offered:
            remarks.append(
                note(
                    Code.NOT_EXPRESSIBLE,
                    f"{path}.gpu.resourceName",
                    f"NVIDIA's device plugin ignores other names and will offer {offered}, not {wanted}.",
                    help="Leave resourceName out unless another device plugin serves this pool.",
                )
            )
    return remarks
