/* SPDX-License-Identifier: Apache-2.0 */
/* The C library functions that the device layer of CPUs calls. Under -std=c11 (CMake's C_EXTENSIONS OFF) without
 * feature macros, the library hides them, so they are declared here. C++ compilers hide none. */
#ifndef GPULOOM_DEV_LIBC_H
#define GPULOOM_DEV_LIBC_H

#include <sched.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if !defined(__cplusplus) && !defined(_DEFAULT_SOURCE)
long syscall(long number, ...);
int usleep(unsigned microseconds);
#endif
#ifdef CLOCK_MONOTONIC
#define LOOM_CLOCK CLOCK_MONOTONIC
#else
#define LOOM_CLOCK 1 /* value of CLOCK_MONOTONIC on Linux */
int nanosleep(const struct timespec *length, struct timespec *left);
int clock_gettime(int clock, struct timespec *now);
#endif

#endif
