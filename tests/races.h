/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer of tests that explore schedules with the machine model (device_common/explore/race.h): that of CPUs,
 * but each ordered access and each fence is a site, with file and line. A test includes this header before
 * gpuloom/dev/dev.h. It weakens one site at a time, and expects to find a race or a wrong result. */
#ifndef LOOM_TEST_RACES_H
#define LOOM_TEST_RACES_H

#include "../plugins/device_common/explore/race.h"
#include "turns.h"

#define LOOM_DEVICE_LAYER "tests/races.h"

#include <gpuloom/dev/cpu.h>

/* The linker makes an array of the pointers in this section. A value that is stored may itself be loaded. */
#pragma GCC diagnostic ignored "-Wshadow"
#define RACES_SITE(what, order, scope)                                                                                 \
	static struct race_site site_ = {__FILE__, __func__, what, __LINE__, order, scope, 0, 0, 0, NULL};             \
	static struct race_site *const entry_ __attribute__((section("race_sites"), used)) = &site_;                   \
	(void)entry_;                                                                                                  \
	LOOM_YIELD()
extern struct race_site *const __start_race_sites[], *const __stop_race_sites[];

/* clang-format off */
#define RACES_LOAD(what, p, order, scope)                                                                              \
	(__extension__({ RACES_SITE(what, order, scope); (__typeof__(*(p) + 0))race_load(&site_, p, sizeof(*(p))); }))
#define RACES_STORE(what, p, v, order, scope)                                                                          \
	(__extension__({ RACES_SITE(what, order, scope); race_store(&site_, p, sizeof(*(p)), (uint64_t)(v)); }))
#define RACES_CHANGE(what, op, p, v, order, scope)                                                                     \
	(__extension__({ RACES_SITE(what, order, scope);                                                               \
			 (__typeof__(*(p) + 0))race_change(&site_, p, sizeof(*(p)), op, (uint64_t)(v)); }))
#define RACES_CAS(what, p, expected, v, scope)                                                                         \
	(__extension__({ RACES_SITE(what, RACE_ACQ_REL, scope); uint64_t was_ = *(expected);                           \
			 int set_ = race_cas(&site_, p, sizeof(*(p)), &was_, (uint64_t)(v));                           \
			 *(expected) = (__typeof__(*(p) + 0))was_; set_; }))
#define RACES_FENCE(what, order, scope) (__extension__({ RACES_SITE(what, order, scope); race_fence(&site_); }))

#undef loom_load_relaxed_dev
#define loom_load_relaxed_dev(p) RACES_LOAD("load_relaxed_dev", p, RACE_RELAXED, RACE_DEV)
#undef loom_load_acquire_dev
#define loom_load_acquire_dev(p) RACES_LOAD("load_acquire_dev", p, RACE_ACQUIRE, RACE_DEV)
#undef loom_store_relaxed_dev
#define loom_store_relaxed_dev(p, v) RACES_STORE("store_relaxed_dev", p, v, RACE_RELAXED, RACE_DEV)
#undef loom_store_release_dev
#define loom_store_release_dev(p, v) RACES_STORE("store_release_dev", p, v, RACE_RELEASE, RACE_DEV)
#undef loom_fetch_add_relaxed_dev
#define loom_fetch_add_relaxed_dev(p, v) RACES_CHANGE("fetch_add_relaxed_dev", RACE_ADD, p, v, RACE_RELAXED, RACE_DEV)
#undef loom_fetch_add_acquire_dev
#define loom_fetch_add_acquire_dev(p, v) RACES_CHANGE("fetch_add_acquire_dev", RACE_ADD, p, v, RACE_ACQUIRE, RACE_DEV)
#undef loom_fetch_add_release_dev
#define loom_fetch_add_release_dev(p, v) RACES_CHANGE("fetch_add_release_dev", RACE_ADD, p, v, RACE_RELEASE, RACE_DEV)
#undef loom_fetch_add_acq_rel_dev
#define loom_fetch_add_acq_rel_dev(p, v) RACES_CHANGE("fetch_add_acq_rel_dev", RACE_ADD, p, v, RACE_ACQ_REL, RACE_DEV)
#undef loom_fetch_or_relaxed_dev
#define loom_fetch_or_relaxed_dev(p, v) RACES_CHANGE("fetch_or_relaxed_dev", RACE_OR, p, v, RACE_RELAXED, RACE_DEV)
#undef loom_fetch_or_acq_rel_dev
#define loom_fetch_or_acq_rel_dev(p, v) RACES_CHANGE("fetch_or_acq_rel_dev", RACE_OR, p, v, RACE_ACQ_REL, RACE_DEV)
#undef loom_exchange_acq_rel_dev
#define loom_exchange_acq_rel_dev(p, v) RACES_CHANGE("exchange_acq_rel_dev", RACE_EXCHANGE, p, v, RACE_ACQ_REL, RACE_DEV)
#undef loom_cas_acq_rel_dev
#define loom_cas_acq_rel_dev(p, expected, v) RACES_CAS("cas_acq_rel_dev", p, expected, v, RACE_DEV)
#undef loom_fence_acquire_dev
#define loom_fence_acquire_dev() RACES_FENCE("fence_acquire_dev", RACE_ACQUIRE, RACE_DEV)
#undef loom_fence_release_dev
#define loom_fence_release_dev() RACES_FENCE("fence_release_dev", RACE_RELEASE, RACE_DEV)
#undef loom_fence_seq_cst_dev
#define loom_fence_seq_cst_dev() RACES_FENCE("fence_seq_cst_dev", RACE_SEQ_CST, RACE_DEV)
#undef loom_load_relaxed_sys
#define loom_load_relaxed_sys(p) RACES_LOAD("load_relaxed_sys", p, RACE_RELAXED, RACE_SYS)
#undef loom_load_acquire_sys
#define loom_load_acquire_sys(p) RACES_LOAD("load_acquire_sys", p, RACE_ACQUIRE, RACE_SYS)
#undef loom_store_relaxed_sys
#define loom_store_relaxed_sys(p, v) RACES_STORE("store_relaxed_sys", p, v, RACE_RELAXED, RACE_SYS)
#undef loom_store_release_sys
#define loom_store_release_sys(p, v) RACES_STORE("store_release_sys", p, v, RACE_RELEASE, RACE_SYS)
#undef loom_fetch_add_relaxed_sys
#define loom_fetch_add_relaxed_sys(p, v) RACES_CHANGE("fetch_add_relaxed_sys", RACE_ADD, p, v, RACE_RELAXED, RACE_SYS)
#undef loom_fetch_add_acquire_sys
#define loom_fetch_add_acquire_sys(p, v) RACES_CHANGE("fetch_add_acquire_sys", RACE_ADD, p, v, RACE_ACQUIRE, RACE_SYS)
#undef loom_fetch_add_release_sys
#define loom_fetch_add_release_sys(p, v) RACES_CHANGE("fetch_add_release_sys", RACE_ADD, p, v, RACE_RELEASE, RACE_SYS)
#undef loom_fetch_add_acq_rel_sys
#define loom_fetch_add_acq_rel_sys(p, v) RACES_CHANGE("fetch_add_acq_rel_sys", RACE_ADD, p, v, RACE_ACQ_REL, RACE_SYS)
#undef loom_fetch_or_relaxed_sys
#define loom_fetch_or_relaxed_sys(p, v) RACES_CHANGE("fetch_or_relaxed_sys", RACE_OR, p, v, RACE_RELAXED, RACE_SYS)
#undef loom_fetch_or_acq_rel_sys
#define loom_fetch_or_acq_rel_sys(p, v) RACES_CHANGE("fetch_or_acq_rel_sys", RACE_OR, p, v, RACE_ACQ_REL, RACE_SYS)
#undef loom_exchange_acq_rel_sys
#define loom_exchange_acq_rel_sys(p, v) RACES_CHANGE("exchange_acq_rel_sys", RACE_EXCHANGE, p, v, RACE_ACQ_REL, RACE_SYS)
#undef loom_cas_acq_rel_sys
#define loom_cas_acq_rel_sys(p, expected, v) RACES_CAS("cas_acq_rel_sys", p, expected, v, RACE_SYS)
#undef loom_fence_acquire_sys
#define loom_fence_acquire_sys() RACES_FENCE("fence_acquire_sys", RACE_ACQUIRE, RACE_SYS)
#undef loom_fence_release_sys
#define loom_fence_release_sys() RACES_FENCE("fence_release_sys", RACE_RELEASE, RACE_SYS)
#undef loom_fence_seq_cst_sys
#define loom_fence_seq_cst_sys() RACES_FENCE("fence_seq_cst_sys", RACE_SEQ_CST, RACE_SYS)
#undef loom_fence_acq_rel_sys
#define loom_fence_acq_rel_sys() RACES_FENCE("fence_acq_rel_sys", RACE_ACQ_REL, RACE_SYS)
/* clang-format on */

#endif
