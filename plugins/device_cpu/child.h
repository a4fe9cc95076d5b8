/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of devices with isolation = process: forked, not executed, and dead when their parent is. Compiled into
 * each such device, because plug-ins link to nothing of gpuloom. */
#ifndef GPULOOM_CHILD_H
#define GPULOOM_CHILD_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

/* Signals that a thread causes itself stay open: a blocked SIGSEGV would kill without a word. */
void child_block_signals(sigset_t *old);
/* As fork(). The child has the given name and no terminal or pipe of the parent's but stderr; no handler of the
 * parent's runs there. */
pid_t child_fork(const char *name);
/* "was killed by signal 9 (Killed)", by a status of waitpid(); -1: somebody else waited for it. */
void child_end_text(int status, char *text, size_t room);

#endif
