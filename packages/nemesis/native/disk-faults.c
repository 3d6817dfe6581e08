/*
 * A disk that is slow to sync, fails to, or is full, for one directory of one process; preloaded. What happens when is said by a small file
 * that is mapped into memory, and counted there.
 *
 * HOLDFAST_DISK_CONTROL: that file. HOLDFAST_DISK_DIRECTORY: the directory, with no symbolic link in its path.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The same order as in src/machine/disk-control.ts. */
struct control {
  uint32_t sync_delay_ms;
  uint32_t is_sync_failing;
  uint32_t is_full;
  uint32_t slowed;
  uint32_t failed;
  uint32_t refused;
};

static volatile struct control *control;
static char directory[4096];
static size_t directory_length;

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("HOLDFAST_DISK_CONTROL");
  const char *path = getenv("HOLDFAST_DISK_DIRECTORY");
  if (file == NULL || path == NULL || strlen(path) >= sizeof directory) return;
  int descriptor = open(file, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return;
  void *memory = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) return;
  strcpy(directory, path);
  directory_length = strlen(path);
  control = memory;
}

/* Of a file below the directory, or of the directory itself. Leaves errno as it was. */
static int is_ours(int descriptor) {
  if (control == NULL) return 0;
  int before = errno;
  char link[64];
  char path[sizeof directory + 256];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path);
  errno = before;
  if (length < (ssize_t)directory_length || memcmp(path, directory, directory_length) != 0) return 0;
  return length == (ssize_t)directory_length || path[directory_length] == '/';
}

static void count(volatile uint32_t *counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

/* The function that this one stands before. Two threads that look it up at once find the same. */
#define NEXT(name)                                                              \
  ({                                                                            \
    static __typeof__(&name) next;                                              \
    if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name);        \
    next;                                                                       \
  })

/* --- syncs --- */

/* In slices, so that a sync that waits goes on soon after the fault has been ended. */
static void wait_for_disk(void) {
  static const uint32_t slice_ms = 10;
  uint32_t waited_ms = 0;
  if (control->sync_delay_ms == 0) return;
  count(&control->slowed);
  while (waited_ms < control->sync_delay_ms) {
    uint32_t left_ms = control->sync_delay_ms - waited_ms;
    uint32_t ms = left_ms < slice_ms ? left_ms : slice_ms;
    struct timespec slice = {0, (long)ms * 1000000};
    nanosleep(&slice, NULL);
    waited_ms += ms;
  }
}

#define SYNC(name)                             \
  int name(int descriptor) {                   \
    if (is_ours(descriptor)) {                 \
      wait_for_disk();                         \
      if (control->is_sync_failing != 0) {     \
        count(&control->failed);               \
        errno = EIO;                           \
        return -1;                             \
      }                                        \
    }                                          \
    return NEXT(name)(descriptor);             \
  }

SYNC(fsync)
SYNC(fdatasync)

/* --- writes --- */

/* Whether a write must fail now; then errno says why. */
static int is_refused(int descriptor) {
  if (control == NULL || control->is_full == 0 || !is_ours(descriptor)) return 0;
  count(&control->refused);
  errno = ENOSPC;
  return 1;
}

/* A disk that is truly full is counted alike. */
static void look_at(int descriptor, int has_failed) {
  if (has_failed && errno == ENOSPC && is_ours(descriptor)) count(&control->refused);
}

#define WRITE(name, parameters, arguments)             \
  ssize_t name parameters {                            \
    if (is_refused(descriptor)) return -1;             \
    ssize_t written = NEXT(name) arguments;            \
    look_at(descriptor, written < 0);                  \
    return written;                                    \
  }

WRITE(write, (int descriptor, const void *bytes, size_t size), (descriptor, bytes, size))
WRITE(writev, (int descriptor, const struct iovec *parts, int many), (descriptor, parts, many))
WRITE(pwrite, (int descriptor, const void *bytes, size_t size, off_t at), (descriptor, bytes, size, at))
WRITE(pwritev, (int descriptor, const struct iovec *parts, int many, off_t at), (descriptor, parts, many, at))
/* Where these aren't other names for the same. */
#ifdef __GLIBC__
WRITE(pwrite64, (int descriptor, const void *bytes, size_t size, off64_t at), (descriptor, bytes, size, at))
WRITE(pwritev64, (int descriptor, const struct iovec *parts, int many, off64_t at), (descriptor, parts, many, at))
#endif

/* LevelDB writes by streams, whose own writes go past the functions above. */
/* A macro in some headers. */
#undef fwrite_unlocked

#define STREAM_WRITE(name)                                                            \
  size_t name(const void *bytes, size_t size, size_t many, FILE *stream) {            \
    if (is_refused(fileno(stream))) return 0;                                         \
    size_t written = NEXT(name)(bytes, size, many, stream);                           \
    look_at(fileno(stream), written < many);                                          \
    return written;                                                                   \
  }

STREAM_WRITE(fwrite)
STREAM_WRITE(fwrite_unlocked)

#define STREAM_FLUSH(name)                                             \
  int name(FILE *stream) {                                             \
    if (stream != NULL && is_refused(fileno(stream))) return EOF;      \
    int failed = NEXT(name)(stream);                                   \
    if (stream != NULL) look_at(fileno(stream), failed != 0);          \
    return failed;                                                     \
  }

STREAM_FLUSH(fflush)
STREAM_FLUSH(fflush_unlocked)
