/*
 * Preloaded into a process, notes every write to the files of one log, so that a power cut can be played afterwards.
 *
 * Covers write, pwrite and ftruncate on the database and its write-ahead log, and the fsync or fdatasync that makes them
 * last. Each note is in the journal before the write is in the file, and a killed process leaves both. Not covered:
 * memory maps (the -shm file, which SQLite makes anew after a power cut), and files that are made or removed without their
 * folder being synced.
 *
 * LOST_WRITES_FILE: path of the database. LOST_WRITES_JOURNAL: where the notes go, one after the other:
 * kind (1 write, 2 truncate, 3 sync), which file (0 database, 1 write-ahead log), offset, old size, length, all as 64 bits;
 * then, of a write, the old bytes and the new ones, of a truncation the old bytes behind its end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "log_files.h"

enum { WRITE = 1, TRUNCATE = 2, SYNC = 3 };

typedef ssize_t (*pwrite_function)(int, const void *, size_t, off_t);
typedef ssize_t (*write_function)(int, const void *, size_t);
typedef int (*truncate_function)(int, off_t);
typedef int (*sync_function)(int);

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static int journal(void) {
    static int fd = -1;
    if (fd < 0) {
        const char *path = getenv("LOST_WRITES_JOURNAL");
        fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
        if (fd < 0) abort();
    }
    return fd;
}

/* One write for the whole note, so that a kill leaves it whole or not at all. */
static void note(int64_t kind, int file, int64_t offset, int fd, const void *fresh, int64_t length) {
    struct stat status;
    if (fstat(fd, &status)) abort();
    int64_t size = status.st_size;
    int64_t kept = kind == SYNC ? 0 : kind == TRUNCATE ? (size > offset ? size - offset : 0) : length;
    int64_t head[5] = {kind, file, offset, size, kind == TRUNCATE ? kept : length};
    size_t total = sizeof head + (size_t)kept + (kind == WRITE ? (size_t)length : 0);
    char *text = calloc(1, total);
    if (!text) abort();
    memcpy(text, head, sizeof head);
    if (kept && pread(fd, text + sizeof head, (size_t)kept, offset) < 0) abort();
    if (kind == WRITE) memcpy(text + sizeof head + kept, fresh, (size_t)length);
    write_function plain = (write_function)real("write");
    if (plain(journal(), text, total) != (ssize_t)total) abort();
    free(text);
}

static ssize_t noted_pwrite(const char *name, int fd, const void *data, size_t length, off_t offset) {
    pwrite_function go_on = (pwrite_function)real(name);
    int file = which(fd, getenv("LOST_WRITES_FILE"));
    if (file < 0) return go_on(fd, data, length, offset);
    pthread_mutex_lock(&turn);
    note(WRITE, file, offset, fd, data, (int64_t)length);
    ssize_t done = go_on(fd, data, length, offset);
    pthread_mutex_unlock(&turn);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return noted_pwrite("pwrite", fd, data, length, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) {
    return noted_pwrite("pwrite64", fd, data, length, offset);
}

ssize_t write(int fd, const void *data, size_t length) {
    write_function go_on = (write_function)real("write");
    int file = which(fd, getenv("LOST_WRITES_FILE"));
    if (file < 0) return go_on(fd, data, length);
    pthread_mutex_lock(&turn);
    note(WRITE, file, lseek(fd, 0, SEEK_CUR), fd, data, (int64_t)length);
    ssize_t done = go_on(fd, data, length);
    pthread_mutex_unlock(&turn);
    return done;
}

static int noted_truncate(const char *name, int fd, off_t length) {
    truncate_function go_on = (truncate_function)real(name);
    int file = which(fd, getenv("LOST_WRITES_FILE"));
    if (file < 0) return go_on(fd, length);
    pthread_mutex_lock(&turn);
    note(TRUNCATE, file, length, fd, NULL, 0);
    int done = go_on(fd, length);
    pthread_mutex_unlock(&turn);
    return done;
}

int ftruncate(int fd, off_t length) { return noted_truncate("ftruncate", fd, length); }

int ftruncate64(int fd, off_t length) { return noted_truncate("ftruncate64", fd, length); }

static int noted_sync(const char *name, int fd) {
    sync_function go_on = (sync_function)real(name);
    int file = which(fd, getenv("LOST_WRITES_FILE"));
    int done = go_on(fd);
    if (file >= 0 && !done) {
        pthread_mutex_lock(&turn);
        note(SYNC, file, 0, fd, NULL, 0);
        pthread_mutex_unlock(&turn);
    }
    return done;
}

int fsync(int fd) { return noted_sync("fsync", fd); }

int fdatasync(int fd) { return noted_sync("fdatasync", fd); }
