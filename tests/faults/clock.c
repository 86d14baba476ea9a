// A wall clock that jumps to and fro, for LD_PRELOAD: by years, about once in a second.
// The clocks that only go forward are left alone.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

static int (*real_gettime)(clockid_t, struct timespec *);

static time_t offset(void) {
    static const time_t jumps[] = {0, 86400L * 400, -86400L * 9000, -3600, 3600, -86400L * 400};
    struct timespec now;
    real_gettime(CLOCK_MONOTONIC, &now);
    return jumps[(now.tv_sec * 10 + now.tv_nsec / 100000000) / 7 % (time_t)(sizeof jumps / sizeof *jumps)];
}

int clock_gettime(clockid_t which, struct timespec *now) {
    if (!real_gettime)
        real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int done = real_gettime(which, now);
    if (done == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset();
    return done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now != NULL) *now = found.tv_sec;
    return found.tv_sec;
}
