/* Preloaded into the server: slow or stalled file calls, by thread, a text that ends the process when a thread writes it,
 * and a wall clock that is set.
 *
 * The file that TEST_FAULTS names is mapped and read at each call; `faults.py` writes it while the server runs. Only the
 * wall clock can be set: monotonic time, and with it every timer, goes on as it does when an administrator sets the date. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum call { SYNC = 1, WRITE = 2, READ_AT = 4 };

#define RULES 8
#define STALL_SLICE_NS 5000000L

/* The layout is known to faults.py. */
struct rule {
    char thread[16];           /* prefix of the thread's name */
    volatile uint32_t calls;   /* set of enum call; 0 for a rule that is not in use */
    volatile uint32_t stalled; /* calls wait until it is 0 */
    volatile uint64_t delay_us;
    volatile uint64_t waiting; /* calls that are held up now */
    volatile uint64_t held_up; /* calls that were, from the beginning */
};

/* The process ends at once when a thread writes this text. */
struct deadly {
    char thread[16]; /* prefix of the thread's name */
    char text[56];
    volatile uint64_t length; /* of the text; 0 for none */
};

struct control {
    volatile int64_t clock_offset_us;
    struct rule rules[RULES];
    struct deadly deadly;
};

static struct control *control;
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_fsync)(int), (*real_fdatasync)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);

__attribute__((constructor)) static void start(void) {
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pread = dlsym(RTLD_NEXT, "pread");
    const char *path = getenv("TEST_FAULTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) control = mapped;
}

static void nap(long ns) {
    struct timespec left = {ns / 1000000000L, ns % 1000000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static void hold_up(enum call call) {
    if (!control) return;
    int kept = errno;
    char name[16] = "";
    for (int i = 0; i < RULES; i++) {
        struct rule *rule = &control->rules[i];
        if (!(rule->calls & call)) continue;
        if (!name[0]) prctl(PR_GET_NAME, name);
        if (strncmp(name, rule->thread, strnlen(rule->thread, sizeof rule->thread)) != 0) continue;
        __sync_fetch_and_add(&rule->waiting, 1);
        if (rule->delay_us) nap((long)rule->delay_us * 1000L);
        while (rule->stalled) nap(STALL_SLICE_NS);
        __sync_fetch_and_sub(&rule->waiting, 1);
        __sync_fetch_and_add(&rule->held_up, 1);
    }
    errno = kept;
}

static void die_of(const void *bytes, size_t count) {
    if (!control || !control->deadly.length) return;
    struct deadly *deadly = &control->deadly;
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, deadly->thread, strnlen(deadly->thread, sizeof deadly->thread)) != 0) return;
    if (memmem(bytes, count, deadly->text, deadly->length)) abort();
}

int fsync(int file) {
    hold_up(SYNC);
    return real_fsync(file);
}

int fdatasync(int file) {
    hold_up(SYNC);
    return real_fdatasync(file);
}

ssize_t write(int file, const void *bytes, size_t count) {
    hold_up(WRITE);
    die_of(bytes, count);
    return real_write(file, bytes, count);
}

ssize_t pread(int file, void *bytes, size_t count, off_t position) {
    hold_up(READ_AT);
    return real_pread(file, bytes, count, position);
}

ssize_t pread64(int file, void *bytes, size_t count, off_t position) {
    return pread(file, bytes, count, position);
}

/* -- the wall clock -- */

static int64_t offset_us(void) {
    return control ? control->clock_offset_us : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = real_clock_gettime(clock, now);
    int64_t offset = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? offset_us() : 0;
    if (result == 0 && offset != 0) {
        int64_t ns = now->tv_nsec + offset % 1000000 * 1000;
        now->tv_sec += offset / 1000000 + (ns < 0 ? -1 : ns / 1000000000);
        now->tv_nsec = (ns + 1000000000) % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (out) *out = precise.tv_sec;
    return precise.tv_sec;
}
