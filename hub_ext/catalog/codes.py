"""Every finding about a catalog: its code, how bad it is, and what it means.

The codes are stable: tools filter by them, the reference page lists them.

Pure: no clock, no network.
"""

from __future__ import annotations

from ..errors import FindingCode, error, note, warning


class Code(FindingCode):
    """Names of all findings about a catalog."""

    # reading
    UNREADABLE = error("unreadable", "A file cannot be read, or is not UTF-8.")
    NOT_A_CATALOG = error("not-a-catalog", "There is no catalog in the source, or something else.")
    YAML_SYNTAX = error("yaml-syntax", "The file is not YAML.")
    YAML_DUPLICATE_KEY = error(
        "yaml-duplicate-key", "A key is written twice; YAML readers silently keep one of them."
    )
    YAML_NUMBER = error("yaml-number", "A number with leading zeros: octal for Helm, decimal for others.")
    YAML_AMBIGUOUS = warning(
        "yaml-ambiguous",
        "A bare word (`no`, `on`, `1:30`, `1_000`) that YAML readers take for different things.",
    )
    YAML_TAG = error("yaml-tag", "A YAML tag (`!something`); the catalog has plain values only.")
    YAML_KEY = error("yaml-key", "A key that is not a single word or text.")
    YAML_MERGE = error("yaml-merge", "A merge key (`<<`) that does not name a mapping.")
    YAML_RECURSIVE = error("yaml-recursive", "An anchor that contains itself, or nesting without end.")
    DUPLICATE_ENTRY = error("duplicate-entry", "The same entry stands in two files.")
    # single values
    UNKNOWN_KEY = error(
        "unknown-key", "A key that the catalog does not know, most often misspelt or at the wrong level."
    )
    MISSING_KEY = error("missing-key", "A key that must be there is not.")
    WRONG_TYPE = error("wrong-type", "A value of the wrong kind: text for a number, a list for a mapping.")
    BAD_VALUE = error("bad-value", "A value outside of what is allowed.")
    BAD_QUANTITY = error("bad-quantity", "Not a quantity as Kubernetes writes it (`16Gi`, `500m`).")
    BAD_DURATION = error("bad-duration", "Not a duration (`90m`, `12h`).")
    BAD_NAME = error("bad-name", "Not a name or label as Kubernetes allows it.")
    BAD_PATH = error("bad-path", "Not an absolute path.")
    BAD_IMAGE = error("bad-image", "Not an image reference.")
    BAD_QUOTA_KEY = error(
        "bad-quota-key", "A quota key that would never bound anything, such as `limits.nvidia.com/gpu`."
    )
    BAD_MIG_PROFILE = error("bad-mig-profile", "Not a MIG profile at all.")
    EMPTY_TEXT = error("empty-text", "A text that people read is empty.")
    # references
    UNKNOWN_IMAGE = error("unknown-image", "A profile or option names an image that `images` does not have.")
    UNKNOWN_POOL = error("unknown-pool", "Resources name a pool that `pools` does not have.")
    UNKNOWN_TEAM = error("unknown-team", "Access names a team that `teams` does not have.")
    UNKNOWN_OPTION_SET = error(
        "unknown-option-set", "A choice names an option set that `optionSets` does not have."
    )
    UNKNOWN_CHOICE = error("unknown-choice", "`requires` names a choice that the profile does not have.")
    UNKNOWN_OPTION = error(
        "unknown-option", "`default`, `only` or `requires` names an option that the choice does not have."
    )
    UNKNOWN_PROFILE = error(
        "unknown-profile", "An alias, a default or `replacedBy` names a profile or version that is not there."
    )
    # versions
    DUPLICATE_VERSION = error("duplicate-version", "Two profiles have the same name and version.")
    REPLACEMENT_CYCLE = error("replacement-cycle", "`replacedBy` leads back to where it started.")
    REPLACEMENT_RETIRED = error(
        "replacement-retired", "`replacedBy` ends at a version that cannot be started."
    )
    REPLACEMENT_IDLE = warning(
        "replacement-idle", "`replacedBy` has no effect on a version that is not deprecated or retired."
    )
    NO_REPLACEMENT = warning(
        "no-replacement", "A deprecated or retired version has no replacement: saved choices of it will fail."
    )
    UNTIL_WITHOUT_DEPRECATION = warning(
        "until-without-deprecation", "`until` has no effect on a version that is not deprecated."
    )
    TWO_RECOMMENDED = error("two-recommended", "Two versions of one name are recommended.")
    ALIAS_SHADOWS_PROFILE = error("alias-shadows-profile", "An alias has the name of a profile.")
    NOTHING_TO_START = error(
        "nothing-to-start", "An alias, or the default, leads to a profile that cannot be started."
    )
    NOTHING_OFFERED = warning(
        "nothing-offered", "No version is on the spawn page: nobody finds anything to start."
    )
    DEFAULT_IMPLICIT = note("default-implicit", "No profile is preselected on the spawn page.")
    VERSION_CHANGED = error(
        "version-changed", "A published version is not what it was when it was published."
    )
    VERSION_REMOVED = error(
        "version-removed", "A published version is gone: saved choices of it would find nothing."
    )
    # images
    IMAGE_WITHOUT_DIGEST = error(
        "image-without-digest", "An image is named by tag only; what it runs can change from start to start."
    )
    IMAGE_BY_TAG = warning("image-by-tag", "An image is named by tag only, by explicit permission.")
    IMAGE_UNUSED = note("image-unused", "No profile uses the image.")
    IMAGE_WITHOUT_CUDA = warning("image-without-cuda", "An image without CUDA can be started with a GPU.")
    IMAGE_ARCHITECTURE = error(
        "image-architecture", "An image is not built for the processors beside the card."
    )
    DRIVER_TOO_OLD = warning("driver-too-old", "The pool's driver is older than the image's CUDA needs.")
    # GPUs
    POOL_WITHOUT_GPU = error("pool-without-gpu", "GPUs are asked for in a pool that has none.")
    POOL_TWICE = error("pool-twice", "`resources.pool` and `resources.gpu.pool` name different pools.")
    POOL_UNUSED = note("pool-unused", "No profile is placed in the pool.")
    POOL_AMBIGUOUS = warning(
        "pool-ambiguous", "Two pools reach the same nodes and one resource name means two things there."
    )
    POOL_IS_GPU = warning(
        "pool-is-gpu", "A profile without GPU is placed on GPU nodes and takes processors from GPU work."
    )
    GPU_COUNT = error("gpu-count", "A number of GPUs below one.")
    GPU_COUNT_LARGE = warning("gpu-count-large", "More GPUs than any node has: `1Ki` is 1024.")
    GPU_COUNT_NODE = error(
        "gpu-count-node", "More GPUs than one node of the pool has: the workspace would wait for ever."
    )
    GPU_PRODUCT_SUFFIX = error(
        "gpu-product-suffix", "`product` carries a suffix that belongs to the node label only."
    )
    GPU_ENVIRONMENT = error(
        "gpu-environment",
        "`NVIDIA_VISIBLE_DEVICES` is set by hand; it would open GPUs that were not asked for.",
    )
    SHARE_COUNT = error(
        "share-count", "More than one share: the device plugin refuses it, or gives nothing more for it."
    )
    SHARE_MEMORY_PROMISE = warning(
        "share-memory-promise", "A text promises GPU memory on a share, where memory is not kept apart."
    )
    SHARE_NOT_STRICT = warning(
        "share-not-strict", "The device plugin would accept a request for two shares and give no more for it."
    )
    SELECTOR_PRODUCT = warning(
        "selector-product", "`nodeSelector` names a product label that these nodes will not have."
    )
    MIG_PROFILE = error("mig-profile", "The card has no MIG profile of this name.")
    MIG_GEOMETRY = error("mig-geometry", "The slices do not fit on one card.")
    MIG_NOT_CAPABLE = error("mig-not-capable", "The card cannot be cut by MIG.")
    MIG_NOT_CHECKED = warning(
        "mig-not-checked", "The card is not in the table, so its slices could not be checked."
    )
    MIG_SINGLE = error("mig-single", "The strategy `single` needs slices of one size.")
    MIG_SLICE_MISSING = error(
        "mig-slice-missing", "The pool has slices of several sizes and the profile does not say which."
    )
    MIG_SLICE_ABSENT = error("mig-slice-absent", "The pool does not have slices of this size.")
    MIG_SLICE_MISPLACED = error(
        "mig-slice-misplaced", "`slice` is written for a pool that is not cut by MIG."
    )
    MIG_MANY = warning("mig-many", "Several slices: one program can use one of them only.")
    MIG_SUFFIX = note(
        "mig-suffix",
        "Device plugins before 0.20 offer slices with a suffix under the name of the plain slice.",
    )
    SCALE_UP_BLIND = warning(
        "scale-up-blind", "The autoscaler does not know the resource, so it never adds a node for it."
    )
    AUTOSCALER_IDLE = warning(
        "autoscaler-idle", "`autoscaler` has no effect where no nodes are added (`scaleUp`)."
    )
    DRA_NOT_YET = warning("dra-not-yet", "`via: dra` is reserved: resource claims are not supported yet.")
    DRA_USED = error("dra-used", "A profile is placed in a pool whose GPUs are had by resource claims only.")
    DRA_KEYS = error("dra-keys", "`deviceClass` and `select` belong to `via: dra`.")
    # resources
    CPU_LARGE = warning(
        "cpu-large", "More processors than machines have: `500m` is half a one, `500` is 500."
    )
    LIMIT_BELOW_REQUEST = error(
        "limit-below-request", "A limit is below its request; Kubernetes refuses the pod."
    )
    MEMORY_UNLIMITED = note(
        "memory-unlimited",
        "No memory limit: the workspace can fill the node, and a quota on limits refuses it.",
    )
    SHARED_MEMORY_LARGE = warning(
        "shared-memory-large", "`/dev/shm` is as large as the memory limit it counts towards."
    )
    SHARED_MEMORY_MPS = warning(
        "shared-memory-mps", "`sharedMemory` has no effect under MPS, which brings a `/dev/shm` of its own."
    )
    # storage
    MOUNT_OVERLAP = error("mount-overlap", "Two volumes are mounted at the same place.")
    MOUNT_RESERVED = error("mount-reserved", "A volume is mounted over a part of the system.")
    MOUNT_SOURCE = error("mount-source", "A mount needs exactly one of `claim` and `nfs`.")
    HOME_INCOMPLETE = error("home-incomplete", "A home needs a size, or a claim and a folder inside it.")
    HOME_SHARED = error(
        "home-shared", "A home in a shared claim without `{user}` in `subPath`: all users would share it."
    )
    HOME_READ_ONLY = error("home-read-only", "A home that cannot be written to.")
    HOME_HIDDEN = warning(
        "home-hidden", "A volume is mounted where the hub's own home would be, and takes its place."
    )
    WORK_DIR_LOST = warning("work-dir-lost", "`workDir` is not on a volume that survives a stop.")
    UNKNOWN_PLACEHOLDER = error("unknown-placeholder", "A placeholder that is not filled in here.")
    # choices
    CHOICE_RESERVED = error(
        "choice-reserved", "A choice has a name that means something else in the user's options."
    )
    CHOICE_IMAGES = error(
        "choice-images", "Several `images` and a choice named `image` contradict each other."
    )
    CUSTOM_IMAGE_PLACE = error("custom-image-place", "`custom` is allowed in the choice named `image` only.")
    OPTION_UNREACHABLE = error("option-unreachable", "No combination of options contains this one.")
    DEFAULTS_CONFLICT = error("defaults-conflict", "The preselected options do not go together.")
    TOO_MANY_COMBINATIONS = error(
        "too-many-combinations", "More combinations of options than can be checked."
    )
    # session, security, access, price, teams
    WARNING_TOO_EARLY = warning("warning-too-early", "A warning is due before the session begins.")
    IDLE_ABOVE_MAXIMUM = warning(
        "idle-above-maximum", "The idle limit is never reached: the session ends before."
    )
    START_TIMEOUT_SHORT = warning(
        "start-timeout-short", "A start may end before a new node of the pool is there."
    )
    RUNS_AS_ROOT = warning("runs-as-root", "The workspace runs as root.")
    PRIVILEGE_ESCALATION = warning("privilege-escalation", "Programs in the workspace can gain rights.")
    TOKEN_MOUNTED = warning("token-mounted", "The workspace carries a token for the Kubernetes API.")
    LABEL_RESERVED = error(
        "label-reserved", "A label or annotation by which the hub or the chart finds its pods."
    )
    SECRET_IN_ENVIRONMENT = warning(
        "secret-in-environment", "A variable looks like a secret; everybody who may see the pod can read it."
    )
    ENVIRONMENT_RESERVED = error(
        "environment-reserved", "A variable by which a workspace knows its hub, or proves who it is."
    )
    ACCESS_EMPTY = error("access-empty", "Access names nobody.")
    ACCESS_IMPLICIT = warning(
        "access-implicit", "A GPU profile says nothing about access and is open to everyone."
    )
    CURRENCIES_DIFFER = warning(
        "currencies-differ", "Prices are in different currencies and cannot be added up."
    )
    TEAM_EMPTY = warning("team-empty", "A team has neither groups nor users.")
    TEAM_NAMESPACE_RESERVED = error(
        "team-namespace-reserved", "Workspaces of a team would be where the cluster's own pods are."
    )
    QUOTA_GAP = warning(
        "quota-gap", "A quota bounds some of the GPUs that may be started under it, but not all."
    )
    QUOTA_IDLE = warning("quota-idle", "A quota bounds a resource that no pool offers.")
    QUOTA_TOO_SMALL = warning(
        "quota-too-small", "A quota is smaller than a profile that may be started under it."
    )
