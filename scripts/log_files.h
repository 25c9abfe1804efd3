/* Which file of one log a descriptor belongs to, for libraries that stand between a process and its file system. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *real(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        fprintf(stderr, "a preloaded library: there is no %s\n", name);
        abort();
    }
    return function;
}

/* 0 for the database, 1 for its write-ahead log, -1 for any other file; also where the database has no name. */
static int which(int fd, const char *database) {
    char link[64], path[4096];
    if (!database) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return -1;
    path[length] = 0;
    size_t known = strlen(database);
    if (strncmp(path, database, known)) return -1;
    if (!path[known]) return 0;
    return strcmp(path + known, "-wal") ? -1 : 1;
}
