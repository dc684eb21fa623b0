/*
 * An imitation of NVIDIA's driver library, libnvidia-ml.so.1, for a machine without GPUs.
 *
 * It offers what NVIDIA's own device plugin, GPU feature discovery and MPS control daemon call, and nothing
 * else: each card, MIG profile and MIG instance is a row of a file, so no number about a product stands here.
 * Struct layouts and constants are those of the nvml.h that comes with NVIDIA's go-nvml.
 *
 *   IMITATED_NVML_CONFIG  the rows, read when the library is first initialised (see config.py, which writes them):
 *       driver;<version>;<CUDA version, 13000 for 13.0>
 *       card;<uuid>;<name>;<MiB>;<capability major>;<minor>;<PCI device and vendor>;<PCI bus>;<MIG: -1 none, 0 off, 1 on>
 *       profile;<NVML_GPU_INSTANCE_PROFILE_*>;<id>;<slices>;<instances>;<SMs>;<copy>;<dec>;<enc>;<jpeg>;<ofa>;<MiB>
 *       instance;<uuid>;<NVML_GPU_INSTANCE_PROFILE_*>;<GPU instance id>
 *     Profiles and instances belong to the card above them.
 *   IMITATED_NVML_EVENTS  appended to from outside: "<card> <Xid> <GPU instance> <compute instance>" per line,
 *     -1 where no instance is meant. Every event set hears of what was appended since it was created.
 */
#define _GNU_SOURCE
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CARDS = 16, MAX_PROFILES = 16, MAX_INSTANCES = 7 };
enum { MIG_NONE = -1, MIG_OFF = 0, MIG_ON = 1 };
static const unsigned NO_INSTANCE = 0xFFFFFFFF;

struct profile {
    unsigned gi_profile, id, slices, instances, sms, copy, decoder, encoder, jpeg, ofa;
    unsigned long long memory_mib;
};

/* A card or, where `profile` is set, a MIG instance of `card`; one compute instance fills each GPU instance. */
struct device {
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    struct card *card;
    const struct profile *profile;
    unsigned gi;
};

struct card {
    struct device self;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
    unsigned long long memory_mib;
    int major, minor, mig;
    unsigned index, pci_device, pci_bus, profile_count, instance_count;
    struct profile profiles[MAX_PROFILES];
    struct device instances[MAX_INSTANCES];
};

struct event_set {
    int watch;          /* inotify on the event file, -1 where there is none */
    long offset;        /* what was read of it */
    unsigned cards;     /* bit per registered card */
};

static struct card cards[MAX_CARDS];
static unsigned card_count, users;
static char driver_version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
static int cuda_version;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define EXPORT __attribute__((visibility("default")))
#define HANDLE(type, object) ((type){.handle = (void *)(object)})
#define OBJECT(type, h) ((type *)(h).handle)

static const struct profile *find_profile(const struct card *card, unsigned gi_profile) {
    for (unsigned i = 0; i < card->profile_count; i++)
        if (card->profiles[i].gi_profile == gi_profile) return &card->profiles[i];
    return NULL;
}

/* ---- the configuration -------------------------------------------------------------------------------- */

static int read_card(const char *row) {
    if (card_count == MAX_CARDS) return 0;
    struct card *c = &cards[card_count];
    memset(c, 0, sizeof *c);
    c->self.card = c;
    c->index = card_count;
    if (sscanf(row, "card;%95[^;];%95[^;];%llu;%d;%d;%x;%x;%d", c->self.uuid, c->name, &c->memory_mib, &c->major,
               &c->minor, &c->pci_device, &c->pci_bus, &c->mig) != 8) return 0;
    card_count++;
    return 1;
}

static int read_profile(const char *row) {
    if (!card_count || cards[card_count - 1].profile_count == MAX_PROFILES) return 0;
    struct card *c = &cards[card_count - 1];
    struct profile *p = &c->profiles[c->profile_count];
    if (sscanf(row, "profile;%u;%u;%u;%u;%u;%u;%u;%u;%u;%u;%llu", &p->gi_profile, &p->id, &p->slices, &p->instances,
               &p->sms, &p->copy, &p->decoder, &p->encoder, &p->jpeg, &p->ofa, &p->memory_mib) != 11) return 0;
    c->profile_count++;
    return 1;
}

static int read_instance(const char *row) {
    if (!card_count || cards[card_count - 1].instance_count == MAX_INSTANCES) return 0;
    struct card *c = &cards[card_count - 1];
    struct device *m = &c->instances[c->instance_count];
    unsigned gi_profile;
    if (sscanf(row, "instance;%95[^;];%u;%u", m->uuid, &gi_profile, &m->gi) != 3) return 0;
    m->card = c;
    m->profile = find_profile(c, gi_profile);
    if (!m->profile) return 0;
    c->instance_count++;
    return 1;
}

static nvmlReturn_t read_config(void) {
    const char *path = getenv("IMITATED_NVML_CONFIG");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) {
        fprintf(stderr, "imitated NVML: cannot read IMITATED_NVML_CONFIG=%s\n", path ? path : "");
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    char row[512];
    int good = 1;
    card_count = 0;
    for (int line = 1; good && fgets(row, sizeof row, file); line++) {
        good = sscanf(row, "driver;%79[^;];%d", driver_version, &cuda_version) == 2 || read_card(row) ||
               read_profile(row) || read_instance(row);
        if (!good) fprintf(stderr, "imitated NVML: %s:%d: not understood or too many: %s", path, line, row);
    }
    fclose(file);
    return good ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

/* ---- the library and the system ----------------------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlInit_v2(void) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = users ? NVML_SUCCESS : read_config();
    if (result == NVML_SUCCESS) users++;
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT nvmlReturn_t nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (users) users--;
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    default: return "Unknown Error";
    }
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "%s", driver_version);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    *version = cuda_version;
    return NVML_SUCCESS;
}

/* ---- devices ------------------------------------------------------------------------------------------ */

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    *count = card_count;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    if (index >= card_count) return NVML_ERROR_INVALID_ARGUMENT;
    *device = HANDLE(nvmlDevice_t, &cards[index].self);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    for (unsigned i = 0; i < card_count; i++) {
        struct device *found = strcmp(uuid, cards[i].self.uuid) ? NULL : &cards[i].self;
        for (unsigned j = 0; !found && j < cards[i].instance_count; j++)
            if (!strcmp(uuid, cards[i].instances[j].uuid)) found = &cards[i].instances[j];
        if (found) {
            *device = HANDLE(nvmlDevice_t, found);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    snprintf(name, length, "%s", OBJECT(struct device, device)->card->name);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    snprintf(uuid, length, "%s", OBJECT(struct device, device)->uuid);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
    *index = OBJECT(struct device, device)->card->index;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) {
    return nvmlDeviceGetIndex(device, minor);
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    *major = OBJECT(struct device, device)->card->major;
    *minor = OBJECT(struct device, device)->card->minor;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    const struct device *d = OBJECT(struct device, device);
    memory->total = (d->profile ? d->profile->memory_mib : d->card->memory_mib) << 20;
    memory->free = memory->total;
    memory->used = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    const struct card *c = OBJECT(struct device, device)->card;
    memset(pci, 0, sizeof *pci);
    pci->bus = c->pci_bus;
    pci->pciDeviceId = c->pci_device;
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", c->pci_bus);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", c->pci_bus);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level) {
    (void)a, (void)b;
    *level = NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t *state) {
    (void)device, (void)link, (void)state;
    return NVML_ERROR_NOT_SUPPORTED;
}

/* ---- MIG ---------------------------------------------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    const struct card *c = OBJECT(struct device, device)->card;
    if (c->mig == MIG_NONE) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = c->mig == MIG_ON ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
    *count = OBJECT(struct device, device)->card->mig == MIG_ON ? MAX_INSTANCES : 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *instance) {
    struct card *c = OBJECT(struct device, device)->card;
    if (index >= c->instance_count) return NVML_ERROR_NOT_FOUND;
    *instance = HANDLE(nvmlDevice_t, &c->instances[index]);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_instance) {
    *is_instance = OBJECT(struct device, device)->profile != NULL;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t instance, nvmlDevice_t *device) {
    const struct device *m = OBJECT(struct device, instance);
    if (!m->profile) return NVML_ERROR_INVALID_ARGUMENT;
    *device = HANDLE(nvmlDevice_t, &m->card->self);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t instance, unsigned *id) {
    *id = OBJECT(struct device, instance)->gi;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t instance, unsigned *id) {
    (void)instance;
    *id = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t instance, nvmlDeviceAttributes_t *attributes) {
    const struct profile *p = OBJECT(struct device, instance)->profile;
    if (!p) return NVML_ERROR_INVALID_ARGUMENT;
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = p->sms, .sharedCopyEngineCount = p->copy, .sharedDecoderCount = p->decoder,
        .sharedEncoderCount = p->encoder, .sharedJpegCount = p->jpeg, .sharedOfaCount = p->ofa,
        .gpuInstanceSliceCount = p->slices, .computeInstanceSliceCount = p->slices, .memorySizeMB = p->memory_mib};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *instance) {
    struct card *c = OBJECT(struct device, device)->card;
    for (unsigned i = 0; i < c->instance_count; i++)
        if (c->instances[i].gi == id) {
            *instance = HANDLE(nvmlGpuInstance_t, &c->instances[i]);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t gi, unsigned id, nvmlComputeInstance_t *ci) {
    if (id != 0) return NVML_ERROR_NOT_FOUND;
    *ci = HANDLE(nvmlComputeInstance_t, gi.handle);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info) {
    const struct device *m = OBJECT(struct device, instance);
    *info = (nvmlGpuInstanceInfo_t){
        .device = HANDLE(nvmlDevice_t, &m->card->self), .id = m->gi, .profileId = m->profile->id};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *info) {
    const struct device *m = OBJECT(struct device, instance);
    *info = (nvmlComputeInstanceInfo_t){
        .device = HANDLE(nvmlDevice_t, &m->card->self), .gpuInstance = HANDLE(nvmlGpuInstance_t, m),
        .id = 0, .profileId = m->profile->slices};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned gi_profile,
                                                        nvmlGpuInstanceProfileInfo_t *info) {
    const struct profile *p = find_profile(OBJECT(struct device, device)->card, gi_profile);
    if (!p) return NVML_ERROR_NOT_SUPPORTED;
    *info = (nvmlGpuInstanceProfileInfo_t){
        .id = p->id, .sliceCount = p->slices, .instanceCount = p->instances, .multiprocessorCount = p->sms,
        .copyEngineCount = p->copy, .decoderCount = p->decoder, .encoderCount = p->encoder, .jpegCount = p->jpeg,
        .ofaCount = p->ofa, .memorySizeMB = p->memory_mib};
    return NVML_SUCCESS;
}

/* Only the compute instance that fills its GPU instance is offered; its profile id is its number of slices. */
EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned profile,
                                                                 unsigned engine_profile,
                                                                 nvmlComputeInstanceProfileInfo_t *info) {
    static const unsigned slices[] = {
        [NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE] = 1, [NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE] = 2,
        [NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE] = 3, [NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE] = 4,
        [NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE] = 7};
    const struct profile *p = OBJECT(struct device, instance)->profile;
    (void)engine_profile;
    if (profile >= sizeof slices / sizeof *slices || slices[profile] != p->slices) return NVML_ERROR_NOT_SUPPORTED;
    *info = (nvmlComputeInstanceProfileInfo_t){
        .id = p->slices, .sliceCount = p->slices, .instanceCount = 1, .multiprocessorCount = p->sms};
    return NVML_SUCCESS;
}

/* ---- events ------------------------------------------------------------------------------------------- */

static FILE *open_events(void) {
    const char *path = getenv("IMITATED_NVML_EVENTS");
    return path ? fopen(path, "r") : NULL;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    struct event_set *s = calloc(1, sizeof *s);
    FILE *file = open_events();
    s->watch = -1;
    if (file) {
        s->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        inotify_add_watch(s->watch, getenv("IMITATED_NVML_EVENTS"), IN_MODIFY);
        fseek(file, 0, SEEK_END);
        s->offset = ftell(file);
        fclose(file);
    }
    *set = HANDLE(nvmlEventSet_t, s);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    struct event_set *s = OBJECT(struct event_set, set);
    if (s->watch >= 0) close(s->watch);
    free(s);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    (void)device;
    *types = nvmlEventTypeXidCriticalError;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    if (types & nvmlEventTypeXidCriticalError)
        OBJECT(struct event_set, set)->cards |= 1u << OBJECT(struct device, device)->card->index;
    return NVML_SUCCESS;
}

/* The next appended event on a card of this set; lines for other cards are passed over. */
static int next_event(struct event_set *s, nvmlEventData_t *data) {
    FILE *file = open_events();
    char row[128];
    int found = 0;
    if (!file) return 0;
    fseek(file, s->offset, SEEK_SET);
    while (!found && fgets(row, sizeof row, file) && strchr(row, '\n')) {
        unsigned index;
        unsigned long long xid;
        int gi, ci;
        s->offset = ftell(file);
        if (sscanf(row, "%u %llu %d %d", &index, &xid, &gi, &ci) != 4 || index >= card_count ||
            !(s->cards & 1u << index)) continue;
        *data = (nvmlEventData_t){
            .device = HANDLE(nvmlDevice_t, &cards[index].self), .eventType = nvmlEventTypeXidCriticalError,
            .eventData = xid, .gpuInstanceId = gi < 0 ? NO_INSTANCE : (unsigned)gi,
            .computeInstanceId = ci < 0 ? NO_INSTANCE : (unsigned)ci};
        found = 1;
    }
    fclose(file);
    return found;
}

static long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms) {
    struct event_set *s = OBJECT(struct event_set, set);
    const long long deadline = now_ms() + timeout_ms;
    for (;;) {
        if (next_event(s, data)) return NVML_SUCCESS;
        const long long left = deadline - now_ms();
        if (left <= 0) return NVML_ERROR_TIMEOUT;
        struct pollfd changed = {.fd = s->watch, .events = POLLIN};
        char notes[4096];
        if (poll(&changed, 1, (int)left) > 0 && read(s->watch, notes, sizeof notes) < 0) return NVML_ERROR_UNKNOWN;
    }
}
