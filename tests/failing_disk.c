/*
 * Preloaded into a process, makes calls on the files of one log fail, as a full or broken disk does.
 *
 * FAILING_DISK_FILE: path of the database. FAILING_DISK_ORDER: a file that says what fails from now on, and that is read
 * at each call: "w" (write, pwrite, ftruncate), "s" (fsync, fdatasync) or "r" (read, pread), then the errno, then which
 * file: 0 the database, 1 its write-ahead log, 2 either. Empty, or not there: nothing fails.
 *
 * Not covered: memory maps (the -shm file), and making or removing files.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "../scripts/log_files.h"

/* Tell whether a call of a kind on a file is to fail, and set errno if it is. */
static int fails(char kind, int fd) {
    int file = which(fd, getenv("FAILING_DISK_FILE"));
    if (file < 0) return 0;
    const char *path = getenv("FAILING_DISK_ORDER");
    FILE *order = path ? fopen(path, "re") : NULL;
    if (!order) return 0;
    char ordered = 0;
    int number = 0, target = 0;
    int found = fscanf(order, "%c %d %d", &ordered, &number, &target);
    fclose(order);
    if (found != 3 || ordered != kind || (target != 2 && target != file)) return 0;
    errno = number;
    return 1;
}

#define FAILING(result, name, kind, parameters, arguments)      \
    result name parameters {                                    \
        if (fails(kind, fd)) return -1;                         \
        return ((result (*) parameters)real(#name)) arguments;  \
    }

FAILING(ssize_t, write, 'w', (int fd, const void *data, size_t length), (fd, data, length))
FAILING(ssize_t, pwrite, 'w', (int fd, const void *data, size_t length, off_t at), (fd, data, length, at))
FAILING(ssize_t, pwrite64, 'w', (int fd, const void *data, size_t length, off_t at), (fd, data, length, at))
FAILING(int, ftruncate, 'w', (int fd, off_t length), (fd, length))
FAILING(int, ftruncate64, 'w', (int fd, off_t length), (fd, length))
FAILING(int, fsync, 's', (int fd), (fd))
FAILING(int, fdatasync, 's', (int fd), (fd))
FAILING(ssize_t, read, 'r', (int fd, void *data, size_t length), (fd, data, length))
FAILING(ssize_t, pread, 'r', (int fd, void *data, size_t length, off_t at), (fd, data, length, at))
FAILING(ssize_t, pread64, 'r', (int fd, void *data, size_t length, off_t at), (fd, data, length, at))
