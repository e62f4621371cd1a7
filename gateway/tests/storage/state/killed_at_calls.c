/* Loaded before libc (LD_PRELOAD) into a process that writes files: has it killed by SIGKILL at the
 * system call of a number, of those that change what is on the disk or make it durable. Nothing is
 * made durable, as what was written outlives a process that is killed: tests do not wait for disks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { POINTS = 4096 };

/* What was called since killed_arm: a letter each. */
char killed_points[POINTS];
static int called, at;
static int half;

/* number: from 1 on, 0 for never; torn: of a write, half the bytes are there first. */
void killed_arm(int number, int torn)
{
    memset(killed_points, 0, sizeof killed_points);
    called = 0;
    at = number;
    half = torn;
}

static int is_due(char what)
{
    if (called < POINTS - 1)
        killed_points[called] = what;
    return ++called == at;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    pause();
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset)
{
    ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    if (is_due('w')) {
        if (half)
            next(file, bytes, length / 2, offset);
        die();
    }
    return next(file, bytes, length, offset);
}

ssize_t write(int file, const void *bytes, size_t length)
{
    ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (is_due('w')) {
        if (half)
            next(file, bytes, length / 2);
        die();
    }
    return next(file, bytes, length);
}

int fsync(int file)
{
    (void)file;
    if (is_due('s'))
        die();
    return 0;
}

int fdatasync(int file)
{
    (void)file;
    if (is_due('s'))
        die();
    return 0;
}

int ftruncate64(int file, off64_t length)
{
    int (*next)(int, off64_t) = dlsym(RTLD_NEXT, "ftruncate64");
    if (is_due('t'))
        die();
    return next(file, length);
}

int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    if (is_due('r'))
        die();
    return next(from, to);
}

int unlink(const char *path)
{
    int (*next)(const char *) = dlsym(RTLD_NEXT, "unlink");
    if (is_due('u'))
        die();
    return next(path);
}
