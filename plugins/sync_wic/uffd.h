/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of userfaultfd that sync_wic uses. All return 0 or -errno. */
#ifndef WIC_UFFD_H
#define WIC_UFFD_H

#include <stdint.h>

#define UFFD_PAGE 4096u

enum uffd_kind { UFFD_MISSING, UFFD_MINOR };

/* Returns a descriptor for user-mode faults only, which needs no privilege since Linux 5.11, or -errno. */
int uffd_open(enum uffd_kind kind);
/* Returns what the user can do about the errno of uffd_open(). */
const char *uffd_advice(int code);
int uffd_register(int fd, void *at, uint64_t bytes, enum uffd_kind kind);

/* Places `bytes` (whole pages) at `to`, an address in the address space that opened fd. from: an address of the caller.
 * wake: resumes the threads that are stalled there. Returns -EEXIST if a page was placed already; the pages before it
 * have been placed now. */
int uffd_copy(int fd, uint64_t to, const void *from, uint64_t bytes, int wake);
int uffd_continue(int fd, uint64_t to, uint64_t bytes, int wake);
int uffd_zero(int fd, uint64_t to, uint64_t bytes);
int uffd_wake(int fd, uint64_t to, uint64_t bytes);

#endif
