/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of userfaultfd that sync_wic uses. Calls that return int return -errno after a failure. After success they return
 * 0, if their comment says nothing else. */
#ifndef WIC_UFFD_H
#define WIC_UFFD_H

#include <stdint.h>

#define UFFD_PAGE 4096u

enum uffd_kind { UFFD_MISSING, UFFD_MINOR };

/* Returns a descriptor, or -errno. The descriptor is for user-mode faults only, which need no privilege since Linux 5.11. */
int uffd_open(enum uffd_kind kind);
/* Returns a text that explains the errno of uffd_open() and says how to avoid it. */
const char *uffd_advice(int code);
int uffd_register(int fd, void *at, uint64_t bytes, enum uffd_kind kind);

/* Places pages at `to`, an address in the address space that opened fd. bytes: their size, a multiple of UFFD_PAGE. from: their
 * content, an address of the caller. wake: 1: resume the threads that are stalled on these pages. Returns -EEXIST if a page was
 * placed already; all pages before that page are then placed. */
int uffd_copy(int fd, uint64_t to, const void *from, uint64_t bytes, int wake);
int uffd_continue(int fd, uint64_t to, uint64_t bytes, int wake);
int uffd_zero(int fd, uint64_t to, uint64_t bytes);
int uffd_wake(int fd, uint64_t to, uint64_t bytes);

#endif
