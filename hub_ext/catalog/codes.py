"""Every finding about a catalog: its code, how bad it is, and what it means.

The codes are stable: tools filter by them, the reference page lists them.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..errors import Severity

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True, slots=True)
class Rule:
    """What one code stands for."""

    severity: Severity
    meaning: str


class Code(StrEnum):
    """Names of all findings about a catalog."""

    # reading
    UNREADABLE = "unreadable"
    NOT_A_CATALOG = "not-a-catalog"
    YAML_SYNTAX = "yaml-syntax"
    YAML_DUPLICATE_KEY = "yaml-duplicate-key"
    YAML_NUMBER = "yaml-number"
    YAML_AMBIGUOUS = "yaml-ambiguous"
    YAML_TAG = "yaml-tag"
    YAML_KEY = "yaml-key"
    YAML_MERGE = "yaml-merge"
    YAML_RECURSIVE = "yaml-recursive"
    DUPLICATE_ENTRY = "duplicate-entry"
    # single values
    UNKNOWN_KEY = "unknown-key"
    MISSING_KEY = "missing-key"
    WRONG_TYPE = "wrong-type"
    BAD_VALUE = "bad-value"
    BAD_QUANTITY = "bad-quantity"
    BAD_DURATION = "bad-duration"
    BAD_NAME = "bad-name"
    BAD_PATH = "bad-path"
    BAD_IMAGE = "bad-image"
    BAD_QUOTA_KEY = "bad-quota-key"
    BAD_MIG_PROFILE = "bad-mig-profile"
    EMPTY_TEXT = "empty-text"
    # references
    UNKNOWN_IMAGE = "unknown-image"
    UNKNOWN_POOL = "unknown-pool"
    UNKNOWN_TEAM = "unknown-team"
    UNKNOWN_OPTION_SET = "unknown-option-set"
    UNKNOWN_CHOICE = "unknown-choice"
    UNKNOWN_OPTION = "unknown-option"
    UNKNOWN_PROFILE = "unknown-profile"
    # versions
    DUPLICATE_VERSION = "duplicate-version"
    REPLACEMENT_CYCLE = "replacement-cycle"
    REPLACEMENT_RETIRED = "replacement-retired"
    REPLACEMENT_IDLE = "replacement-idle"
    NO_REPLACEMENT = "no-replacement"
    UNTIL_WITHOUT_DEPRECATION = "until-without-deprecation"
    TWO_RECOMMENDED = "two-recommended"
    ALIAS_SHADOWS_PROFILE = "alias-shadows-profile"
    NOTHING_TO_START = "nothing-to-start"
    NOTHING_OFFERED = "nothing-offered"
    DEFAULT_IMPLICIT = "default-implicit"
    VERSION_CHANGED = "version-changed"
    VERSION_REMOVED = "version-removed"
    # images
    IMAGE_WITHOUT_DIGEST = "image-without-digest"
    IMAGE_BY_TAG = "image-by-tag"
    IMAGE_UNUSED = "image-unused"
    IMAGE_WITHOUT_CUDA = "image-without-cuda"
    IMAGE_ARCHITECTURE = "image-architecture"
    DRIVER_TOO_OLD = "driver-too-old"
    # GPUs
    POOL_WITHOUT_GPU = "pool-without-gpu"
    POOL_TWICE = "pool-twice"
    POOL_UNUSED = "pool-unused"
    POOL_AMBIGUOUS = "pool-ambiguous"
    POOL_IS_GPU = "pool-is-gpu"
    GPU_COUNT = "gpu-count"
    GPU_COUNT_LARGE = "gpu-count-large"
    GPU_COUNT_NODE = "gpu-count-node"
    GPU_PRODUCT_SUFFIX = "gpu-product-suffix"
    GPU_ENVIRONMENT = "gpu-environment"
    SHARE_COUNT = "share-count"
    SHARE_MEMORY_PROMISE = "share-memory-promise"
    SHARE_NOT_STRICT = "share-not-strict"
    SELECTOR_PRODUCT = "selector-product"
    MIG_PROFILE = "mig-profile"
    MIG_GEOMETRY = "mig-geometry"
    MIG_NOT_CAPABLE = "mig-not-capable"
    MIG_NOT_CHECKED = "mig-not-checked"
    MIG_SINGLE = "mig-single"
    MIG_SLICE_MISSING = "mig-slice-missing"
    MIG_SLICE_ABSENT = "mig-slice-absent"
    MIG_SLICE_MISPLACED = "mig-slice-misplaced"
    MIG_MANY = "mig-many"
    MIG_SUFFIX = "mig-suffix"
    SCALE_UP_BLIND = "scale-up-blind"
    AUTOSCALER_IDLE = "autoscaler-idle"
    DRA_NOT_YET = "dra-not-yet"
    DRA_USED = "dra-used"
    DRA_KEYS = "dra-keys"
    # resources
    CPU_LARGE = "cpu-large"
    LIMIT_BELOW_REQUEST = "limit-below-request"
    MEMORY_UNLIMITED = "memory-unlimited"
    SHARED_MEMORY_LARGE = "shared-memory-large"
    SHARED_MEMORY_MPS = "shared-memory-mps"
    # storage
    MOUNT_OVERLAP = "mount-overlap"
    MOUNT_RESERVED = "mount-reserved"
    MOUNT_SOURCE = "mount-source"
    HOME_INCOMPLETE = "home-incomplete"
    HOME_SHARED = "home-shared"
    HOME_READ_ONLY = "home-read-only"
    HOME_HIDDEN = "home-hidden"
    WORK_DIR_LOST = "work-dir-lost"
    UNKNOWN_PLACEHOLDER = "unknown-placeholder"
    # choices
    CHOICE_RESERVED = "choice-reserved"
    CHOICE_IMAGES = "choice-images"
    CUSTOM_IMAGE_PLACE = "custom-image-place"
    OPTION_UNREACHABLE = "option-unreachable"
    DEFAULTS_CONFLICT = "defaults-conflict"
    TOO_MANY_COMBINATIONS = "too-many-combinations"
    # session, security, access, price, teams
    WARNING_TOO_EARLY = "warning-too-early"
    IDLE_ABOVE_MAXIMUM = "idle-above-maximum"
    START_TIMEOUT_SHORT = "start-timeout-short"
    RUNS_AS_ROOT = "runs-as-root"
    PRIVILEGE_ESCALATION = "privilege-escalation"
    TOKEN_MOUNTED = "token-mounted"  # noqa: S105 - the name of a code
    LABEL_RESERVED = "label-reserved"
    SECRET_IN_ENVIRONMENT = "secret-in-environment"  # noqa: S105 - the name of a code
    ENVIRONMENT_RESERVED = "environment-reserved"
    ACCESS_EMPTY = "access-empty"
    ACCESS_IMPLICIT = "access-implicit"
    CURRENCIES_DIFFER = "currencies-differ"
    TEAM_EMPTY = "team-empty"
    TEAM_NAMESPACE_RESERVED = "team-namespace-reserved"
    QUOTA_GAP = "quota-gap"
    QUOTA_IDLE = "quota-idle"
    QUOTA_TOO_SMALL = "quota-too-small"


RULES: dict[Code, Rule] = {
    Code.UNREADABLE: Rule(E, "A file cannot be read, or is not UTF-8."),
    Code.NOT_A_CATALOG: Rule(E, "There is no catalog in the source, or something else."),
    Code.YAML_SYNTAX: Rule(E, "The file is not YAML."),
    Code.YAML_DUPLICATE_KEY: Rule(E, "A key is written twice; YAML readers silently keep one of them."),
    Code.YAML_NUMBER: Rule(E, "A number with leading zeros: octal for Helm, decimal for others."),
    Code.YAML_AMBIGUOUS: Rule(
        W, "A bare word (`no`, `on`, `1:30`, `1_000`) that YAML readers take for different things."
    ),
    Code.YAML_TAG: Rule(E, "A YAML tag (`!something`); the catalog has plain values only."),
    Code.YAML_KEY: Rule(E, "A key that is not a single word or text."),
    Code.YAML_MERGE: Rule(E, "A merge key (`<<`) that does not name a mapping."),
    Code.YAML_RECURSIVE: Rule(E, "An anchor that contains itself, or nesting without end."),
    Code.DUPLICATE_ENTRY: Rule(E, "The same entry stands in two files."),
    Code.UNKNOWN_KEY: Rule(
        E, "A key that the catalog does not know, most often misspelt or at the wrong level."
    ),
    Code.MISSING_KEY: Rule(E, "A key that must be there is not."),
    Code.WRONG_TYPE: Rule(E, "A value of the wrong kind: text for a number, a list for a mapping."),
    Code.BAD_VALUE: Rule(E, "A value outside of what is allowed."),
    Code.BAD_QUANTITY: Rule(E, "Not a quantity as Kubernetes writes it (`16Gi`, `500m`)."),
    Code.BAD_DURATION: Rule(E, "Not a duration (`90m`, `12h`)."),
    Code.BAD_NAME: Rule(E, "Not a name or label as Kubernetes allows it."),
    Code.BAD_PATH: Rule(E, "Not an absolute path."),
    Code.BAD_IMAGE: Rule(E, "Not an image reference."),
    Code.BAD_QUOTA_KEY: Rule(
        E, "A quota key that would never bound anything, such as `limits.nvidia.com/gpu`."
    ),
    Code.BAD_MIG_PROFILE: Rule(E, "Not a MIG profile at all."),
    Code.EMPTY_TEXT: Rule(E, "A text that people read is empty."),
    Code.UNKNOWN_IMAGE: Rule(E, "A profile or option names an image that `images` does not have."),
    Code.UNKNOWN_POOL: Rule(E, "Resources name a pool that `pools` does not have."),
    Code.UNKNOWN_TEAM: Rule(E, "Access names a team that `teams` does not have."),
    Code.UNKNOWN_OPTION_SET: Rule(E, "A choice names an option set that `optionSets` does not have."),
    Code.UNKNOWN_CHOICE: Rule(E, "`requires` names a choice that the profile does not have."),
    Code.UNKNOWN_OPTION: Rule(
        E, "`default`, `only` or `requires` names an option that the choice does not have."
    ),
    Code.UNKNOWN_PROFILE: Rule(
        E, "An alias, a default or `replacedBy` names a profile or version that is not there."
    ),
    Code.DUPLICATE_VERSION: Rule(E, "Two profiles have the same name and version."),
    Code.REPLACEMENT_CYCLE: Rule(E, "`replacedBy` leads back to where it started."),
    Code.REPLACEMENT_RETIRED: Rule(E, "`replacedBy` ends at a version that cannot be started."),
    Code.REPLACEMENT_IDLE: Rule(
        W, "`replacedBy` has no effect on a version that is not deprecated or retired."
    ),
    Code.NO_REPLACEMENT: Rule(
        W, "A deprecated or retired version has no replacement: saved choices of it will fail."
    ),
    Code.UNTIL_WITHOUT_DEPRECATION: Rule(W, "`until` has no effect on a version that is not deprecated."),
    Code.TWO_RECOMMENDED: Rule(E, "Two versions of one name are recommended."),
    Code.ALIAS_SHADOWS_PROFILE: Rule(E, "An alias has the name of a profile."),
    Code.NOTHING_TO_START: Rule(E, "An alias, or the default, leads to a profile that cannot be started."),
    Code.NOTHING_OFFERED: Rule(W, "No version is on the spawn page: nobody finds anything to start."),
    Code.DEFAULT_IMPLICIT: Rule(N, "No profile is preselected on the spawn page."),
    Code.VERSION_CHANGED: Rule(E, "A published version is not what it was when it was published."),
    Code.VERSION_REMOVED: Rule(E, "A published version is gone: saved choices of it would find nothing."),
    Code.IMAGE_WITHOUT_DIGEST: Rule(
        E, "An image is named by tag only; what it runs can change from start to start."
    ),
    Code.IMAGE_BY_TAG: Rule(W, "An image is named by tag only, by explicit permission."),
    Code.IMAGE_UNUSED: Rule(N, "No profile uses the image."),
    Code.IMAGE_WITHOUT_CUDA: Rule(W, "An image without CUDA can be started with a GPU."),
    Code.IMAGE_ARCHITECTURE: Rule(E, "An image is not built for the processors beside the card."),
    Code.DRIVER_TOO_OLD: Rule(W, "The pool's driver is older than the image's CUDA needs."),
    Code.POOL_WITHOUT_GPU: Rule(E, "GPUs are asked for in a pool that has none."),
    Code.POOL_TWICE: Rule(E, "`resources.pool` and `resources.gpu.pool` name different pools."),
    Code.POOL_UNUSED: Rule(N, "No profile is placed in the pool."),
    Code.POOL_AMBIGUOUS: Rule(
        W, "Two pools reach the same nodes and one resource name means two things there."
    ),
    Code.POOL_IS_GPU: Rule(
        W, "A profile without GPU is placed on GPU nodes and takes processors from GPU work."
    ),
    Code.GPU_COUNT: Rule(E, "A number of GPUs below one."),
    Code.GPU_COUNT_LARGE: Rule(W, "More GPUs than any node has: `1Ki` is 1024."),
    Code.GPU_COUNT_NODE: Rule(
        E, "More GPUs than one node of the pool has: the workspace would wait for ever."
    ),
    Code.GPU_PRODUCT_SUFFIX: Rule(E, "`product` carries a suffix that belongs to the node label only."),
    Code.GPU_ENVIRONMENT: Rule(
        E, "`NVIDIA_VISIBLE_DEVICES` is set by hand; it would open GPUs that were not asked for."
    ),
    Code.SHARE_COUNT: Rule(
        E, "More than one share: the device plugin refuses it, or gives nothing more for it."
    ),
    Code.SHARE_MEMORY_PROMISE: Rule(
        W, "A text promises GPU memory on a share, where memory is not kept apart."
    ),
    Code.SHARE_NOT_STRICT: Rule(
        W, "The device plugin would accept a request for two shares and give no more for it."
    ),
    Code.SELECTOR_PRODUCT: Rule(W, "`nodeSelector` names a product label that these nodes will not have."),
    Code.MIG_PROFILE: Rule(E, "The card has no MIG profile of this name."),
    Code.MIG_GEOMETRY: Rule(E, "The slices do not fit on one card."),
    Code.MIG_NOT_CAPABLE: Rule(E, "The card cannot be cut by MIG."),
    Code.MIG_NOT_CHECKED: Rule(W, "The card is not in the table, so its slices could not be checked."),
    Code.MIG_SINGLE: Rule(E, "The strategy `single` needs slices of one size."),
    Code.MIG_SLICE_MISSING: Rule(
        E, "The pool has slices of several sizes and the profile does not say which."
    ),
    Code.MIG_SLICE_ABSENT: Rule(E, "The pool does not have slices of this size."),
    Code.MIG_SLICE_MISPLACED: Rule(E, "`slice` is written for a pool that is not cut by MIG."),
    Code.MIG_MANY: Rule(W, "Several slices: one program can use one of them only."),
    Code.MIG_SUFFIX: Rule(
        N, "Device plugins before 0.20 offer slices with a suffix under the name of the plain slice."
    ),
    Code.SCALE_UP_BLIND: Rule(
        W, "The autoscaler does not know the resource, so it never adds a node for it."
    ),
    Code.AUTOSCALER_IDLE: Rule(W, "`autoscaler` has no effect where no nodes are added (`scaleUp`)."),
    Code.DRA_NOT_YET: Rule(W, "`via: dra` is reserved: resource claims are not supported yet."),
    Code.DRA_USED: Rule(E, "A profile is placed in a pool whose GPUs are had by resource claims only."),
    Code.DRA_KEYS: Rule(E, "`deviceClass` and `select` belong to `via: dra`."),
    Code.CPU_LARGE: Rule(W, "More processors than machines have: `500m` is half a one, `500` is 500."),
    Code.LIMIT_BELOW_REQUEST: Rule(E, "A limit is below its request; Kubernetes refuses the pod."),
    Code.MEMORY_UNLIMITED: Rule(
        N, "No memory limit: the workspace can fill the node, and a quota on limits refuses it."
    ),
    Code.SHARED_MEMORY_LARGE: Rule(W, "`/dev/shm` is as large as the memory limit it counts towards."),
    Code.SHARED_MEMORY_MPS: Rule(
        W, "`sharedMemory` has no effect under MPS, which brings a `/dev/shm` of its own."
    ),
    Code.MOUNT_OVERLAP: Rule(E, "Two volumes are mounted at the same place."),
    Code.MOUNT_RESERVED: Rule(E, "A volume is mounted over a part of the system."),
    Code.MOUNT_SOURCE: Rule(E, "A mount needs exactly one of `claim` and `nfs`."),
    Code.HOME_INCOMPLETE: Rule(E, "A home needs a size, or a claim and a folder inside it."),
    Code.HOME_SHARED: Rule(
        E, "A home in a shared claim without `{user}` in `subPath`: all users would share it."
    ),
    Code.HOME_READ_ONLY: Rule(E, "A home that cannot be written to."),
    Code.HOME_HIDDEN: Rule(W, "A volume is mounted where the hub's own home would be, and takes its place."),
    Code.WORK_DIR_LOST: Rule(W, "`workDir` is not on a volume that survives a stop."),
    Code.UNKNOWN_PLACEHOLDER: Rule(E, "A placeholder that is not filled in here."),
    Code.CHOICE_RESERVED: Rule(E, "A choice has a name that means something else in the user's options."),
    Code.CHOICE_IMAGES: Rule(E, "Several `images` and a choice named `image` contradict each other."),
    Code.CUSTOM_IMAGE_PLACE: Rule(E, "`custom` is allowed in the choice named `image` only."),
    Code.OPTION_UNREACHABLE: Rule(E, "No combination of options contains this one."),
    Code.DEFAULTS_CONFLICT: Rule(E, "The preselected options do not go together."),
    Code.TOO_MANY_COMBINATIONS: Rule(E, "More combinations of options than can be checked."),
    Code.WARNING_TOO_EARLY: Rule(W, "A warning is due before the session begins."),
    Code.IDLE_ABOVE_MAXIMUM: Rule(W, "The idle limit is never reached: the session ends before."),
    Code.START_TIMEOUT_SHORT: Rule(W, "A start may end before a new node of the pool is there."),
    Code.RUNS_AS_ROOT: Rule(W, "The workspace runs as root."),
    Code.PRIVILEGE_ESCALATION: Rule(W, "Programs in the workspace can gain rights."),
    Code.TOKEN_MOUNTED: Rule(W, "The workspace carries a token for the Kubernetes API."),
    Code.LABEL_RESERVED: Rule(E, "A label or annotation by which the hub or the chart finds its pods."),
    Code.SECRET_IN_ENVIRONMENT: Rule(
        W, "A variable looks like a secret; everybody who may see the pod can read it."
    ),
    Code.ENVIRONMENT_RESERVED: Rule(E, "A variable by which a workspace knows its hub, or proves who it is."),
    Code.ACCESS_EMPTY: Rule(E, "Access names nobody."),
    Code.ACCESS_IMPLICIT: Rule(W, "A GPU profile says nothing about access and is open to everyone."),
    Code.CURRENCIES_DIFFER: Rule(W, "Prices are in different currencies and cannot be added up."),
    Code.TEAM_EMPTY: Rule(W, "A team has neither groups nor users."),
    Code.TEAM_NAMESPACE_RESERVED: Rule(E, "Workspaces of a team would be where the cluster's own pods are."),
    Code.QUOTA_GAP: Rule(W, "A quota bounds some of the GPUs that may be started under it, but not all."),
    Code.QUOTA_IDLE: Rule(W, "A quota bounds a resource that no pool offers."),
    Code.QUOTA_TOO_SMALL: Rule(W, "A quota is smaller than a profile that may be started under it."),
}
