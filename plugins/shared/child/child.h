/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of devices with isolation = process: forked, not executed. Compiled into each such device, because plug-ins
 * link to nothing of gpuloom. */
#ifndef GPULOOM_CHILD_H
#define GPULOOM_CHILD_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

/* Signals that a thread causes itself stay open: a blocked SIGSEGV would kill without a word. */
void child_block_signals(sigset_t *old);
/* As fork(). The child has the given name and no terminal or pipe of the parent's but stderr; no handler of the
 * parent's runs there. `tied`: it is killed when the thread that calls this ends, and so when its process does. */
pid_t child_fork(const char *name, int tied);
/* "was killed by signal 9 (Killed)", by a status of waitpid(); -1: somebody else waited for it. */
void child_end_text(int status, char *text, size_t room);

#endif
