/* A disk that tells what was written and synced, and that fails when it is told to.
 *
 * Loaded in front of the C library (LD_PRELOAD) of a process that records. Every change below the folder FAULT_ROOT is
 * appended to the file FAULT_LOG: what the kernel was asked to do, in its order, which is all that is needed to work out
 * what a disk may hold after the power went. tests/faults/power.py reads it.
 *
 * A line of the log: operation (one letter), number of the file, offset, length, then that many octets. The number is
 * that of the open file's inode; names come with their own length in front.
 */
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
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static const char *root;
static size_t root_length;
static long fail_at = -1; /* changes until one is refused; -1: none is */
static int fail_with, fail_on; /* the errno, and whether it goes on until it is disarmed */
static long seen;

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static void start(void) {
    if (root) return;
    const char *chosen = getenv("FAULT_ROOT"), *place = getenv("FAULT_LOG");
    root = chosen ? chosen : "/nonexistent";
    root_length = strlen(root);
    int (*really_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    if (place) log_fd = really_open(place, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int below(const char *path) {
    start();
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* The shared memory of a write-ahead log is no durable state: SQLite makes it again. */
static int watched(int fd) {
    char path[PATH_MAX];
    if (fd < 0 || fd == log_fd || !path_of(fd, path)) return 0;
    size_t length = strlen(path);
    return length < 4 || strcmp(path + length - 4, "-shm") != 0;
}

static uint64_t inode(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

static void put(char operation, uint64_t file, uint64_t offset, const void *octets, uint64_t length) {
    if (log_fd < 0) return;
    char head[25];
    head[0] = operation;
    memcpy(head + 1, &file, 8);
    memcpy(head + 9, &offset, 8);
    memcpy(head + 17, &length, 8);
    ssize_t (*really_write)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (really_write(log_fd, head, sizeof head) != sizeof head) abort();
    if (length && really_write(log_fd, octets, length) != (ssize_t)length) abort();
}

/* Something the process wants to be found in the log at this place: that a call has returned to its caller. */
void fault_note(const char *text) {
    start();
    pthread_mutex_lock(&one);
    put('!', 0, 0, text, strlen(text));
    pthread_mutex_unlock(&one);
}

/* Refuse the change that comes after `after` others; where `on`, every one from there. */
void fault_arm(long after, int with, int on) {
    pthread_mutex_lock(&one);
    fail_at = after, fail_with = with, fail_on = on, seen = 0;
    pthread_mutex_unlock(&one);
}

/* Refuse nothing any more; return how many changes were asked for since it was armed. */
long fault_disarm(void) {
    pthread_mutex_lock(&one);
    long asked = seen;
    fail_at = -1;
    pthread_mutex_unlock(&one);
    return asked;
}

static int refused(void) {
    if (fail_at < 0) return 0;
    long mine = seen++;
    if (mine < fail_at || (mine > fail_at && !fail_on)) return 0;
    errno = fail_with;
    return 1;
}

static ssize_t written(int fd, const void *octets, size_t length, off_t offset, ssize_t (*write_it)(int, const void *, size_t, off_t)) {
    if (!watched(fd)) return write_it(fd, octets, length, offset);
    pthread_mutex_lock(&one);
    ssize_t done = -1;
    if (!refused()) {
        if (offset < 0) {
            int flags = fcntl(fd, F_GETFL);
            struct stat now;
            off_t at = (flags & O_APPEND) && fstat(fd, &now) == 0 ? now.st_size : lseek(fd, 0, SEEK_CUR);
            done = write_it(fd, octets, length, -1);
            if (done > 0) put('w', inode(fd), (uint64_t)at, octets, (uint64_t)done);
        } else {
            done = write_it(fd, octets, length, offset);
            if (done > 0) put('w', inode(fd), (uint64_t)offset, octets, (uint64_t)done);
        }
    }
    int kept = errno;
    pthread_mutex_unlock(&one);
    errno = kept;
    return done;
}

static ssize_t plain_write(int fd, const void *octets, size_t length, off_t unused) {
    REAL(ssize_t, write, int, const void *, size_t);
    (void)unused;
    return real(fd, octets, length);
}
static ssize_t write_at(int fd, const void *octets, size_t length, off_t offset) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off_t);
    return real(fd, octets, length, offset);
}
ssize_t write(int fd, const void *octets, size_t length) { return written(fd, octets, length, -1, plain_write); }
ssize_t pwrite(int fd, const void *octets, size_t length, off_t offset) { return written(fd, octets, length, offset, write_at); }
ssize_t pwrite64(int fd, const void *octets, size_t length, off_t offset) { return written(fd, octets, length, offset, write_at); }

static int changed(int fd, char operation, uint64_t size, int (*change)(int, off_t), off_t argument) {
    if (!watched(fd)) return change(fd, argument);
    pthread_mutex_lock(&one);
    int result = -1;
    if (!refused()) {
        result = change(fd, argument);
        if (result == 0) put(operation, inode(fd), size, "", 0);
    }
    int kept = errno;
    pthread_mutex_unlock(&one);
    errno = kept;
    return result;
}
static int sync_all(int fd, off_t unused) { REAL(int, fsync, int); (void)unused; return real(fd); }
static int sync_data(int fd, off_t unused) { REAL(int, fdatasync, int); (void)unused; return real(fd); }
static int cut(int fd, off_t size) { REAL(int, ftruncate64, int, off_t); return real(fd, size); }
int fsync(int fd) { return changed(fd, 's', 0, sync_all, 0); }
int fdatasync(int fd) { return changed(fd, 's', 0, sync_data, 0); }
int ftruncate(int fd, off_t size) { return changed(fd, 't', (uint64_t)size, cut, size); }
int ftruncate64(int fd, off_t size) { return changed(fd, 't', (uint64_t)size, cut, size); }

/* Names: the whole path, and for a rename the old one, a zero octet, and the new one. */
static void put_name(char operation, uint64_t file, const char *path, const char *other) {
    char both[2 * PATH_MAX];
    size_t length = strlen(path);
    memcpy(both, path, length);
    if (other) {
        both[length] = 0;
        memcpy(both + length + 1, other, strlen(other));
        length += 1 + strlen(other);
    }
    put(operation, file, 0, both, length);
}

static int opened(const char *path, int flags, mode_t mode, int (*open_it)(const char *, int, ...)) {
    start();
    if (!below(path)) return open_it(path, flags, mode);
    pthread_mutex_lock(&one);
    struct stat before;
    int there = lstat(path, &before) == 0;
    int fd = -1;
    if (!((flags & O_CREAT) && !there && refused())) {
        fd = open_it(path, flags, mode);
        if (fd >= 0 && watched(fd)) {
            if ((flags & O_CREAT) && !there) put_name('c', inode(fd), path, NULL);
            else if (flags & O_TRUNC) put('t', inode(fd), 0, "", 0);
        }
    }
    int kept = errno;
    pthread_mutex_unlock(&one);
    errno = kept;
    return fd;
}
#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        return opened(path, flags, mode, real); \
    }
OPENING(open)
OPENING(open64)

static int named(char operation, const char *path, const char *other, int (*change)(const char *, const char *)) {
    if (!below(path)) return change(path, other);
    pthread_mutex_lock(&one);
    int result = -1;
    if (!refused()) {
        result = change(path, other);
        size_t length = strlen(path);
        if (result == 0 && (length < 4 || strcmp(path + length - 4, "-shm") != 0)) {
            struct stat made = {0};
            if (operation == 'd') stat(path, &made);
            put_name(operation, made.st_ino, path, other);
        }
    }
    int kept = errno;
    pthread_mutex_unlock(&one);
    errno = kept;
    return result;
}
static int move(const char *path, const char *other) { REAL(int, rename, const char *, const char *); return real(path, other); }
static int take_away(const char *path, const char *unused) { REAL(int, unlink, const char *); (void)unused; return real(path); }
int rename(const char *path, const char *other) { return named('r', path, other, move); }
int unlink(const char *path) { return named('u', path, NULL, take_away); }

static __thread mode_t folder_mode;
static int make_folder(const char *path, const char *unused) { REAL(int, mkdir, const char *, mode_t); (void)unused; return real(path, folder_mode); }
int mkdir(const char *path, mode_t mode) { folder_mode = mode; return named('d', path, NULL, make_folder); }
