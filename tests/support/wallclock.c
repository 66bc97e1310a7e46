/* A wall clock that a test can set: preloaded, it adds the seconds in the file named by WALL_CLOCK to CLOCK_REALTIME,
   and to nothing else. Waits for a moment of the wall clock follow it, as they do in the kernel. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *ahead;

__attribute__((constructor)) static void find_file(void) {
    const char *name = getenv("WALL_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED)
        ahead = page;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    long failed = syscall(SYS_clock_gettime, clock, found);
    if (!failed && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        found->tv_sec += *ahead;
    return (int)failed;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found)
        *found = now.tv_sec;
    return now.tv_sec;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    struct timespec now, step;
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &step);
        step.tv_nsec += 20 * 1000 * 1000;
        if (step.tv_nsec >= 1000000000) {
            step.tv_nsec -= 1000000000;
            step.tv_sec++;
        }
        if (!sem_clockwait(semaphore, CLOCK_MONOTONIC, &step))
            return 0;
        if (errno != ETIMEDOUT)
            return -1;
        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}
