// Records what a process does to the files below a folder, in order: for LD_PRELOAD.
//
// RECORDED is the folder, RECORD the file that takes the records. A record is a `struct head` and
// then its bytes. Writes to the file MARKS are recorded too, whatever it is for.
// `power.py` reads them, and says what of all that a power cut would leave.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct head {
    uint64_t inode, offset, size;  // of what follows, `size` bytes
    uint8_t what;
} __attribute__((packed));

#define MOST 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record = -1;
static char root[PATH_MAX], marks[PATH_MAX];
static struct { dev_t device; ino_t inode; } known[MOST];
static int count;

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static ssize_t plain_write(int fd, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    return real(fd, data, size);
}

__attribute__((constructor)) static void begin(void) {
    REAL(int, open64, const char *, int, ...);
    const char *folder = getenv("RECORDED"), *to = getenv("RECORD"), *at = getenv("MARKS");
    if (!folder || !to || !at) return;
    snprintf(root, sizeof root, "%s", folder);
    snprintf(marks, sizeof marks, "%s", at);
    record = real(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static void put(char what, uint64_t inode, uint64_t offset, const void *data, size_t size) {
    struct head head = {inode, offset, size, (uint8_t)what};
    char *whole = malloc(sizeof head + size);
    memcpy(whole, &head, sizeof head);
    memcpy(whole + sizeof head, data, size);
    if (plain_write(record, whole, sizeof head + size) != (ssize_t)(sizeof head + size)) abort();
    free(whole);
}

// Makes an absolute path of what a call was given; returns whether it lies below the folder.
static int below(int folder, const char *path, char *whole) {
    if (record < 0 || !path) return 0;
    if (path[0] == '/') {
        snprintf(whole, PATH_MAX, "%s", path);
    } else {
        char link[64], at[PATH_MAX];
        if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, at, sizeof at - 1);
        if (length < 0) return 0;
        at[length] = 0;
        if (snprintf(whole, PATH_MAX, "%s/%s", at, path) >= PATH_MAX) return 0;
    }
    size_t length = strlen(root);
    return !strncmp(whole, root, length) && whole[length] == '/';
}

static int is_known(const struct stat *found) {
    for (int i = 0; i < count; ++i)
        if (known[i].device == found->st_dev && known[i].inode == found->st_ino) return 1;
    return 0;
}

static void know(const struct stat *found) {
    if (is_known(found)) return;
    if (count == MOST) abort();
    known[count].device = found->st_dev;
    known[count++].inode = found->st_ino;
}

static int opened(int fd, const char *path, int was_there, int flags) {
    struct stat found;
    if (fd < 0 || fstat(fd, &found) != 0 || S_ISDIR(found.st_mode)) return fd;
    know(&found);
    if (!was_there) put('c', found.st_ino, 0, path, strlen(path));
    else if (flags & O_TRUNC) put('t', found.st_ino, 0, "", 0);
    return fd;
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    REAL(int, openat64, int, const char *, int, ...);
    char whole[PATH_MAX];
    int is_mark = record >= 0 && path && !strcmp(path, marks);
    if (!is_mark && !below(folder, path, whole)) return real(folder, path, flags, mode);
    if (is_mark) snprintf(whole, sizeof whole, "%s", path);
    pthread_mutex_lock(&lock);
    struct stat before;
    int was_there = stat(whole, &before) == 0;
    int fd = opened(real(folder, path, flags, mode), whole, was_there, flags);
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE \
    mode_t mode = 0; \
    if (flags & O_CREAT) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE return open_at(at, path, flags, mode); }

static int is_recorded(int fd, struct stat *found) {
    return record >= 0 && fd != record && fstat(fd, found) == 0 && S_ISREG(found->st_mode) &&
           is_known(found);
}

ssize_t write(int fd, const void *data, size_t size) {
    struct stat found;
    if (!is_recorded(fd, &found)) return plain_write(fd, data, size);
    pthread_mutex_lock(&lock);
    ssize_t done = plain_write(fd, data, size);
    if (done > 0) put('w', found.st_ino, (uint64_t)(lseek(fd, 0, SEEK_CUR) - done), data, (size_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

static ssize_t write_at(int fd, const void *data, size_t size, off64_t offset) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    struct stat found;
    if (!is_recorded(fd, &found)) return real(fd, data, size, offset);
    pthread_mutex_lock(&lock);
    ssize_t done = real(fd, data, size, offset);
    if (done > 0) put('w', found.st_ino, (uint64_t)offset, data, (size_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return write_at(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return write_at(fd, data, size, at); }

ssize_t writev(int fd, const struct iovec *parts, int number) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    struct stat found;
    if (!is_recorded(fd, &found)) return real(fd, parts, number);
    ssize_t sum = 0;
    for (int i = 0; i < number; ++i) {
        ssize_t done = write(fd, parts[i].iov_base, parts[i].iov_len);
        if (done < 0) return sum ? sum : done;
        sum += done;
        if ((size_t)done < parts[i].iov_len) break;
    }
    return sum;
}

static int cut(int fd, off64_t size) {
    REAL(int, ftruncate64, int, off64_t);
    struct stat found;
    if (!is_recorded(fd, &found)) return real(fd, size);
    pthread_mutex_lock(&lock);
    int done = real(fd, size);
    if (done == 0) put('t', found.st_ino, (uint64_t)size, "", 0);
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off64_t size) { return cut(fd, size); }

static int cut_path(const char *path, off64_t size) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int done = cut(fd, size);
    close(fd);
    return done;
}

int truncate(const char *path, off_t size) { return cut_path(path, size); }
int truncate64(const char *path, off64_t size) { return cut_path(path, size); }

static int synced(int fd, int (*real)(int)) {
    struct stat found;
    if (record < 0 || fstat(fd, &found) != 0 || !(S_ISDIR(found.st_mode) || is_known(&found)))
        return real(fd);
    pthread_mutex_lock(&lock);
    int done = real(fd);
    if (done == 0) put('s', found.st_ino, 0, "", 0);
    pthread_mutex_unlock(&lock);
    return done;
}

int fsync(int fd) {
    REAL(int, fsync, int);
    return synced(fd, real);
}

int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    return synced(fd, real);
}

int mkdirat(int at, const char *path, mode_t mode) {
    REAL(int, mkdirat, int, const char *, mode_t);
    char whole[PATH_MAX];
    if (!below(at, path, whole)) return real(at, path, mode);
    pthread_mutex_lock(&lock);
    int done = real(at, path, mode), error = errno;
    struct stat found;
    if (done == 0 && stat(whole, &found) == 0) put('m', found.st_ino, 0, whole, strlen(whole));
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int at, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    char whole[PATH_MAX];
    if (!below(at, path, whole)) return real(at, path, flags);
    pthread_mutex_lock(&lock);
    int done = real(at, path, flags), error = errno;
    if (done == 0) put('u', 0, 0, whole, strlen(whole));
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int renameat(int from, const char *old, int to, const char *new) {
    REAL(int, renameat, int, const char *, int, const char *);
    char whole[2 * PATH_MAX], other[PATH_MAX];
    if (!below(from, old, whole) || !below(to, new, other)) return real(from, old, to, new);
    pthread_mutex_lock(&lock);
    int done = real(from, old, to, new), error = errno;
    size_t length = strlen(whole) + 1;
    memcpy(whole + length, other, strlen(other));
    if (done == 0) put('r', 0, 0, whole, length + strlen(other));
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }
