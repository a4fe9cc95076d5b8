/* SPDX-License-Identifier: Apache-2.0 */
/* Eventcounts (Reed, Kanodia 1979): a thread sleeps until another thread has changed a condition. An eventcount has two
 * parts: a word that only grows, and the number of threads that sleep on the word or are about to sleep. Both may be in
 * memory that several processes share. Eventcounts are for CPUs only, because workers of a GPU poll.
 *
 *   waiter                                            notifier
 *     seen = eventcount_enter()                         change the condition
 *     check the condition; if it does not hold:         eventcount_advance(); if the word itself is the condition,
 *       sleep while the word is `seen`                    change it and call eventcount_notify()
 *     eventcount_leave()
 *
 * No wake-up is lost. The waiter stores the number of waiters, and then loads the condition. The notifier stores the
 * condition, and then loads the number of waiters. Each has a full fence between its store and its load, so at least
 * one of the two sees the other's store. If the waiter sees the condition, it does not sleep. If the notifier sees the
 * waiter, it changes the word before it wakes, and the kernel starts no sleep on a word that differs from `seen`. A
 * sleep may end without a notification, so every waiter checks its condition again.
 *
 * eventcount_advance_one() is for notifiers that publish often. Its flag `waking` says that a wake-up is in progress.
 * While `waking` is set, notifiers skip their system call. The woken thread clears `waking` when it enters or leaves,
 * and checks the condition afterwards, so its check covers what the notifiers of skipped calls have changed. The thread
 * must check all conditions of all notifiers. If it leaves work for others, it must wake another thread. Model:
 * tests/models/eventcount.pml. */
#ifndef GPULOOM_EVENTCOUNT_H
#define GPULOOM_EVENTCOUNT_H

#include <gpuloom/dev/dev.h>
#include "lib/fd.h"
#include <poll.h>
#include <sys/eventfd.h>

#define EVENTCOUNT_ALL 0x7fffffffu /* number of threads to wake: all */

/* Registers the caller as a waiter. Returns the value of the word. The caller may sleep while the word has this
 * value. */
LOOM_FN uint32_t eventcount_enter(uint32_t *word, uint32_t *waiters)
{
	uint32_t seen = loom_load_acquire_sys(word); /* Acquire: pairs with the release in eventcount_advance(). */
	loom_fetch_add_acq_rel_sys(waiters, 1u);
	loom_fence_seq_cst_sys(); /* pairs with eventcount_has_waiters() */
	return seen;
}

LOOM_FN void eventcount_leave(uint32_t *waiters)
{
	loom_fetch_add_relaxed_sys(waiters, ~0u);
}

/* The notifier calls this after it has changed the condition. Returns whether there may be waiters. */
LOOM_FN int eventcount_has_waiters(const uint32_t *waiters)
{
	loom_fence_seq_cst_sys(); /* pairs with the fences of eventcount_enter() and its variants */
	return loom_load_relaxed_sys(waiters) != 0;
}

/* Wakes all waiters, for which the condition is the word itself. The caller has changed it. */
LOOM_FN void eventcount_notify(const struct loom_ctx *c, uint32_t *word, const uint32_t *waiters)
{
	if (eventcount_has_waiters(waiters))
		loom_wake(c, word, EVENTCOUNT_ALL);
}

/* Changes the word and wakes up to `most` waiters. The caller has changed a condition that is outside the word. */
LOOM_FN void eventcount_advance(const struct loom_ctx *c, uint32_t *word, const uint32_t *waiters, uint32_t most)
{
	if (!eventcount_has_waiters(waiters))
		return;
	loom_fetch_add_acq_rel_sys(word, 1u);
	loom_wake(c, word, most);
}

/* ---- a single waiter: the flag `waiting` replaces the number of waiters */

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

/* ---- threads of one process: the kernel finds a private word by its address. For a word that processes share, it must
 * look up the page, which takes longer. */

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

/* ---- one wake-up at a time: `waking` is 1 while a wake-up is in progress */

LOOM_FN void eventcount_advance_one(const struct loom_ctx *c, uint32_t *word, const uint32_t *waiters, uint32_t *waking)
{
	/* A notifier that finds `waking` set wakes no thread. The waiter that clears `waking` must then see what this notifier
	 * has published, so the exchange releases, and that of the waiter acquires. */
	if (!eventcount_has_waiters(waiters) || loom_exchange_acq_rel_sys(waking, 1u))
		return;
	loom_fetch_add_acq_rel_sys(word, 1u);
	loom_wake(c, word, 1);
}

LOOM_FN uint32_t eventcount_enter_one(uint32_t *word, uint32_t *waiters, uint32_t *waking)
{
	uint32_t seen = loom_load_acquire_sys(word);
	loom_fetch_add_acq_rel_sys(waiters, 1u);
	/* A wake-up from before the load of `seen` cannot end the sleep that follows. So it must not suppress another
	 * wake-up. */
	loom_exchange_acq_rel_sys(waking, 0u);
	loom_fence_seq_cst_sys(); /* pairs with eventcount_has_waiters() */
	return seen;
}

LOOM_FN void eventcount_leave_one(uint32_t *waiters, uint32_t *waking)
{
	loom_fetch_add_acq_rel_sys(waiters, ~0u);
	loom_exchange_acq_rel_sys(waking, 0u);
}

/* ---- variant with a descriptor: the waiter sleeps in poll(), because it also waits for other descriptors. The kernel
 * stores the count of notifications but no number of waiters, so each notification is a system call. Call
 * eventcount_fd_drain() before you check the condition. A later notification then ends the next poll(). */

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
	(void)eventfd_read(fd, &n); /* fails if no notification is pending, because the descriptor is non-blocking */
}

#endif
