/*
 * What libfaketime leaves to be done in a process whose clocks are faked; preloaded before it.
 *
 * The machine's uptime is read from a file, which runs at its own rate. The process finds the faked clock there, in the same steps of 10 ms.
 *
 * A process whose clocks are wrong can't say when something happened. What HOLDFAST_TRUE_CLOCK names looks to it like a file, in which the
 * machine's monotonic clock stands in nanoseconds.
 *
 * libfaketime's shared memory has a name, which would stay behind when the process is killed. Nobody else needs the name: it goes at once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

typedef int (*open_function)(const char *, int, ...);

typedef int (*clock_function)(clockid_t, struct timespec *);

/* The C library's own, whatever stands before it. */
static int read_true_clock(struct timespec *now) {
  void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return -1;
  clock_function clock = (clock_function)dlsym(library, "clock_gettime");
  dlclose(library);
  return clock == NULL ? -1 : clock(CLOCK_MONOTONIC, now);
}

static int file_of(const char *name, const char *text, int length) {
  int file = memfd_create(name, MFD_CLOEXEC);
  if (file >= 0 && (write(file, text, (size_t)length) != length || lseek(file, 0, SEEK_SET) != 0)) {
    close(file);
    return -1;
  }
  return file;
}

static int open_true_clock(void) {
  struct timespec now;
  char text[32];
  if (read_true_clock(&now) != 0) {
    errno = ENOENT;
    return -1;
  }
  int length = snprintf(text, sizeof text, "%lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
  return file_of("true-clock", text, length);
}

/* How long the processors were idle is said too, by the kernel: nobody here asks. */
static int open_uptime(void) {
  struct timespec now;
  char text[64];
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return -1;
  int length = snprintf(text, sizeof text, "%lld.%02ld 0.00\n", (long long)now.tv_sec, now.tv_nsec / 10000000);
  return file_of("uptime", text, length);
}

static int open_other(const char *name, const char *path, int flags, mode_t mode) {
  const char *clock = getenv("HOLDFAST_TRUE_CLOCK");
  if (path != NULL && clock != NULL && strcmp(path, clock) == 0) return open_true_clock();
  if (path != NULL && strcmp(path, "/proc/uptime") == 0) return open_uptime();
  open_function next = (open_function)dlsym(RTLD_NEXT, name);
  return next(path, flags, mode);
}

/* A mode is given only when a file may be made. */
#define OPEN(name)                                                    \
  int name(const char *path, int flags, ...) {                        \
    mode_t mode = 0;                                                  \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
      va_list rest;                                                   \
      va_start(rest, flags);                                          \
      mode = va_arg(rest, mode_t);                                    \
      va_end(rest);                                                   \
    }                                                                 \
    return open_other(#name, path, flags, mode);                      \
  }

OPEN(open)
OPEN(open64)

/* Libraries are begun from the last to the first, so libfaketime has its memory by now. A program that this one becomes makes its own. */
__attribute__((constructor)) static void forget_names(void) {
  const char *shared = getenv("FAKETIME_SHARED");
  char semaphore[256];
  char memory[256];
  if (shared == NULL || sscanf(shared, "%255s %255s", semaphore, memory) != 2) return;
  sem_unlink(semaphore);
  shm_unlink(memory);
  unsetenv("FAKETIME_SHARED");
}
