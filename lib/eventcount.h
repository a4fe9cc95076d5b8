/* SPDX-License-Identifier: Apache-2.0 */
/* Eventcounts (Reed, Kanodia 1979): a thread sleeps until another one has changed a condition. An eventcount is a word
 * that only grows, with the number of threads that sleep on it or are about to. Both may be in memory that several
 * processes share. CPU only: workers of a GPU poll.
 *
 *   waiter                                            notifier
 *     seen = eventcount_enter()                         change the condition
 *     check the condition; if it does not hold:         eventcount_advance(); if the word itself is the condition,
 *       sleep while the word is `seen`                    change it and call eventcount_notify()
 *     eventcount_leave()
 *
 * No wake-up is lost. Each side has a full fence between its store (waiters, condition) and its load (condition,
 * waiters), so at least one side sees the other's store. If the waiter sees the condition, the waiter does not sleep.
 * If the notifier sees the waiter, it changes the word before it wakes, and the kernel starts no sleep on a word that
 * is not `seen`. A sleep may end spuriously, so every waiter checks again.
 *
 * eventcount_advance_one() is for notifiers that publish often. `waking` says that a wake-up is in progress, and saves
 * system calls until the woken thread enters or leaves. Both calls clear `waking` before the thread checks the
 * condition, so the check covers what a saved wake-up announced. The thread must check all that any notifier announces,
 * and must pass on a wake-up if it leaves work. Model: tests/models/eventcount.pml. */
#ifndef GPULOOM_EVENTCOUNT_H
#define GPULOOM_EVENTCOUNT_H

#include <gpuloom/dev/dev.h>
#include "lib/fd.h"
#include <poll.h>
#include <sys/eventfd.h>

#define EVENTCOUNT_ALL 0x7fffffffu

/* Registers the caller as a waiter, and returns the word for its sleep. */
LOOM_FN uint32_t eventcount_enter(uint32_t *word, uint32_t *waiters)
{
	uint32_t seen = loom_load_acquire_sys(word); /* Acquire: pairs with the release of the notifier. */
	loom_fetch_add_acq_rel_sys(waiters, 1u);
	loom_fence_seq_cst_sys(); /* pairs with eventcount_has_waiters() */
	return seen;
}

LOOM_FN void eventcount_leave(uint32_t *waiters)
{
	loom_fetch_add_relaxed_sys(waiters, ~0u);
}

/* For the notifier, after it has changed the condition. */
LOOM_FN int eventcount_has_waiters(const uint32_t *waiters)
{
	loom_fence_seq_cst_sys(); /* pairs with eventcount_enter() */
	return loom_load_relaxed_sys(waiters) != 0;
}

/* Wakes all waiters, after the word, which is the condition, was changed. */
LOOM_FN void eventcount_notify(const struct loom_ctx *c, uint32_t *word, const uint32_t *waiters)
{
	if (eventcount_has_waiters(waiters))
		loom_wake(c, word, EVENTCOUNT_ALL);
}

/* Wakes up to `most` waiters, after a condition outside the word was changed. */
LOOM_FN void eventcount_advance(const struct loom_ctx *c, uint32_t *word, const uint32_t *waiters, uint32_t most)
{
	if (!eventcount_has_waiters(waiters))
		return;
	loom_fetch_add_acq_rel_sys(word, 1u);
	loom_wake(c, word, most);
}

/* ---- a single waiter: a flag in place of the number */

LOOM_FN uint32_t eventcount_enter_single(uint32_t *word, uint32_t *waiting)
{
	uint32_t seen = loom_load_acquire_sys(word);
	loom_store_relaxed_sys(waiting, 1u);
	loom_fence_seq_cst_sys(); /* pairs with eventcount_has_waiters() */
	return seen;
}

LOOM_FN void eventcount_leave_single(uint32_t *waiting)
{
	loom_store_relaxed_sys(waiting, 0u);
}

/* ---- threads of one process: the kernel finds a private word by its address; for a shared one it looks up the page,
 * which takes longer */

static inline int eventcount_sleep_private(uint32_t *word, uint32_t seen, uint64_t until_ns)
{
	return loom_futex_sleep(word, seen, until_ns, FUTEX_PRIVATE_FLAG);
}

static inline void eventcount_notify_private(uint32_t *word, const uint32_t *waiters)
{
	if (eventcount_has_waiters(waiters))
		loom_futex_wake(word, EVENTCOUNT_ALL, FUTEX_PRIVATE_FLAG);
}

static inline void eventcount_advance_private(uint32_t *word, const uint32_t *waiters)
{
	if (!eventcount_has_waiters(waiters))
		return;
	loom_fetch_add_acq_rel_sys(word, 1u);
	loom_futex_wake(word, EVENTCOUNT_ALL, FUTEX_PRIVATE_FLAG);
}

/* ---- one wake-up at a time: `waking` is 1 while one is in progress */

LOOM_FN void eventcount_advance_one(const struct loom_ctx *c, uint32_t *word, const uint32_t *waiters, uint32_t *waking)
{
	/* Acquire and release: the waiter that clears `waking` sees what was published before a wake-up saved here. */
	if (!eventcount_has_waiters(waiters) || loom_exchange_acq_rel_sys(waking, 1u))
		return;
	loom_fetch_add_acq_rel_sys(word, 1u);
	loom_wake(c, word, 1);
}

LOOM_FN uint32_t eventcount_enter_one(uint32_t *word, uint32_t *waiters, uint32_t *waking)
{
	uint32_t seen = loom_load_acquire_sys(word);
	loom_fetch_add_acq_rel_sys(waiters, 1u);
	/* A wake-up from before `seen` was read no longer ends a sleep, so it must not save another one. */
	loom_exchange_acq_rel_sys(waking, 0u);
	loom_fence_seq_cst_sys(); /* pairs with eventcount_has_waiters() */
	return seen;
}

LOOM_FN void eventcount_leave_one(uint32_t *waiters, uint32_t *waking)
{
	loom_fetch_add_acq_rel_sys(waiters, ~0u);
	loom_exchange_acq_rel_sys(waking, 0u);
}

/* ---- back end for descriptors: the waiter sleeps in poll(), because it also waits for other descriptors. The kernel
 * keeps the count but no number of waiters, so each notification is a system call. Drain before checking the condition:
 * a later notification ends the next poll(). */

static inline int eventcount_fd_open(void)
{
	return loom_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

/* Any thread, signal handler or forked process may call this. */
static inline void eventcount_fd_notify(int fd)
{
	(void)eventfd_write(fd, 1); /* fails only if 2^64 - 2 notifications are pending */
}

static inline void eventcount_fd_drain(int fd)
{
	eventfd_t n;
	(void)eventfd_read(fd, &n); /* non-blocking: no notification may be pending */
}

#endif
