/* Makes the Nth file system call under one folder fail, tear or kill. Preloaded; armed by tests/support/faults.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum way { OFF, KILL_AFTER, TEAR, SHORTEN, FAIL };
enum trait { ANY = 0, WRITES = 1, ALLOCATES = 2 };

static enum way way;
static int error_number, needed, lasting, nth, seen;
static char folder[PATH_MAX];

void faults_arm(int a_way, int an_error, int traits, int lasts, int at, const char *path)
{
    way = a_way, error_number = an_error, needed = traits, lasting = lasts, nth = at, seen = 0;
    snprintf(folder, sizeof folder, "%s", path);
}

int faults_seen(void)
{
    return seen;
}

static int below(const char *path)
{
    size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int of_descriptor(int descriptor)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return below(path);
}

static int of_name(int descriptor, const char *name)
{
    return name[0] == '/' ? below(name) : descriptor != AT_FDCWD && of_descriptor(descriptor);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* What to do with this call; OFF is to let it pass. */
static enum way fate(int traits)
{
    if ((traits & needed) != needed)
        return OFF;
    seen++;
    if (seen < nth || (seen > nth && !lasting))
        return OFF;
    errno = error_number;
    return way;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define AROUND(inside, traits, call) \
    if (way == OFF || !(inside)) \
        return call; \
    enum way what = fate(traits); \
    if (what == FAIL) \
        return -1; \
    __typeof__(call) result = call; \
    if (what == KILL_AFTER) \
        die(); \
    return result

#define AROUND_WRITE(whole, half) \
    if (way == OFF || !of_descriptor(descriptor)) \
        return whole; \
    enum way what = fate(WRITES | ALLOCATES); \
    if (what == FAIL) \
        return -1; \
    ssize_t result = what == TEAR || (what == SHORTEN && size > 1) ? half : whole; \
    if (what == TEAR || what == KILL_AFTER) \
        die(); \
    return result

ssize_t write(int descriptor, const void *data, size_t size)
{
    REAL(write);
    AROUND_WRITE(real(descriptor, data, size), real(descriptor, data, size / 2));
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset)
{
    REAL(pwrite64);
    AROUND_WRITE(real(descriptor, data, size, offset), real(descriptor, data, size / 2, offset));
}

ssize_t pread64(int descriptor, void *data, size_t size, off64_t offset)
{
    REAL(pread64);
    AROUND(of_descriptor(descriptor), ANY, real(descriptor, data, size, offset));
}

int fsync(int descriptor)
{
    REAL(fsync);
    AROUND(of_descriptor(descriptor), ALLOCATES, real(descriptor));
}

int fdatasync(int descriptor)
{
    REAL(fdatasync);
    AROUND(of_descriptor(descriptor), ALLOCATES, real(descriptor));
}

int ftruncate64(int descriptor, off64_t size)
{
    REAL(ftruncate64);
    AROUND(of_descriptor(descriptor), ANY, real(descriptor, size));
}

int flock(int descriptor, int operation)
{
    REAL(flock);
    AROUND(of_descriptor(descriptor), ANY, real(descriptor, operation));
}

int rename(const char *old, const char *new)
{
    REAL(rename);
    AROUND(of_name(AT_FDCWD, new), ALLOCATES, real(old, new));
}

int renameat(int from, const char *old, int to, const char *new)
{
    REAL(renameat);
    AROUND(of_name(to, new), ALLOCATES, real(from, old, to, new));
}

int mkdir(const char *name, mode_t mode)
{
    REAL(mkdir);
    AROUND(of_name(AT_FDCWD, name), ALLOCATES, real(name, mode));
}

int mkdirat(int descriptor, const char *name, mode_t mode)
{
    REAL(mkdirat);
    AROUND(of_name(descriptor, name), ALLOCATES, real(descriptor, name, mode));
}

int unlink(const char *name)
{
    REAL(unlink);
    AROUND(of_name(AT_FDCWD, name), ANY, real(name));
}

int unlinkat(int descriptor, const char *name, int flags)
{
    REAL(unlinkat);
    AROUND(of_name(descriptor, name), ANY, real(descriptor, name, flags));
}

#define MODE_OF(flags) \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
    va_end(rest)
#define CREATES(flags) (flags & O_CREAT ? ALLOCATES : ANY)

int open(const char *name, int flags, ...)
{
    MODE_OF(flags);
    REAL(open);
    AROUND(of_name(AT_FDCWD, name), CREATES(flags), real(name, flags, mode));
}

int open64(const char *name, int flags, ...)
{
    MODE_OF(flags);
    REAL(open64);
    AROUND(of_name(AT_FDCWD, name), CREATES(flags), real(name, flags, mode));
}

int openat(int descriptor, const char *name, int flags, ...)
{
    MODE_OF(flags);
    REAL(openat);
    AROUND(of_name(descriptor, name), CREATES(flags), real(descriptor, name, flags, mode));
}

int openat64(int descriptor, const char *name, int flags, ...)
{
    MODE_OF(flags);
    REAL(openat64);
    AROUND(of_name(descriptor, name), CREATES(flags), real(descriptor, name, flags, mode));
}

/* A close that reports an error has closed all the same. */
int close(int descriptor)
{
    REAL(close);
    if (way == OFF || !of_descriptor(descriptor))
        return real(descriptor);
    enum way what = fate(ANY);
    int result = real(descriptor);
    if (what == KILL_AFTER)
        die();
    if (what == FAIL)
        errno = error_number, result = -1;
    return result;
}
