/* SPDX-License-Identifier: Apache-2.0 */
/* Device functions of kinds that the conf does not select. If a workload calls one without declaring that it needs the
 * kind, the run fails with a message. */
#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#include <gpuloom/sched.h>
#include <gpuloom/sync.h>
#include <gpuloom/term.h>
#include <gpuloom/trigger.h>

#include "device_cpu.h"

static int lacks(struct loom_ctx *c, enum loom_kind kind)
{
	loom_worker_fail(c, LOOM_ENOENT, LOOM_LACKS_KIND(kind));
	return LOOM_ENOENT;
}

/* Defines a function with these parameters, which fails the run. */
#define LACKS(result, kind, name, params, unused)                                                                      \
	static result kind##_##name params                                                                             \
	{                                                                                                              \
		unused;                                                                                                \
		return (result)lacks(c, LOOM_##kind);                                                                  \
	}

LACKS(int, SCHED, spawn, (struct loom_ctx * c, const struct loom_task *task), (void)task)
LACKS(int, SCHED, wanted, (struct loom_ctx * c), (void)0)
LACKS(int, TERM, done, (struct loom_ctx * c, uint64_t stolen_out), (void)stolen_out)
LACKS(int, SYNC, reserve, (struct loom_ctx * c, uint32_t ch, uint32_t tag, uint64_t ns, void **at),
      ((void)ch, (void)tag, (void)ns, (void)at))
LACKS(int, SYNC, publish,
      (struct loom_ctx * c, uint32_t ch, uint32_t tag, const void *from, uint64_t bytes, uint64_t ns),
      ((void)ch, (void)tag, (void)from, (void)bytes, (void)ns))
LACKS(int, SYNC, wait, (struct loom_ctx * c, uint32_t ch, uint32_t tag, uint64_t ns, const void **data),
      ((void)ch, (void)tag, (void)ns, (void)data))
LACKS(int, SYNC, wait_all,
      (struct loom_ctx * c, uint32_t ch, const uint32_t *tag, uint32_t n, uint64_t ns, const void **data),
      ((void)ch, (void)tag, (void)n, (void)ns, (void)data))
LACKS(int, SYNC, release, (struct loom_ctx * c, uint32_t ch, uint32_t tag), ((void)ch, (void)tag))
LACKS(int, BARRIER, wait, (struct loom_ctx * c, enum loom_scope scope), (void)scope)
LACKS(int, BARRIER, await, (struct loom_ctx * c, enum loom_scope scope, uint64_t ns), ((void)scope, (void)ns))
LACKS(uint32_t, BARRIER, missing, (struct loom_ctx * c, enum loom_scope scope, uint32_t *w), ((void)scope, (void)w))
LACKS(int, TRIGGER, fire, (struct loom_ctx * c, uint64_t tag, uint32_t count), ((void)tag, (void)count))
LACKS(int, TRIGGER, fire_with, (struct loom_ctx * c, uint64_t tag, uint64_t arg), ((void)tag, (void)arg))
LACKS(int64_t, TRIGGER, completed, (struct loom_ctx * c, uint32_t slot), (void)slot)
LACKS(int64_t, TRIGGER, arrived, (struct loom_ctx * c, uint32_t index), (void)index)
LACKS(int, TRIGGER, boundary, (struct loom_ctx * c), (void)0)
LACKS(int, TRIGGER, ask, (struct loom_ctx * c, const struct loom_rma *ask, uint64_t *was), ((void)ask, (void)was))
LACKS(int, QOS, request, (struct loom_ctx * c, const struct loom_request *what, uint64_t *id), ((void)what, (void)id))
LACKS(int, QOS, wait, (struct loom_ctx * c, uint64_t id, uint64_t ns, int64_t *result),
      ((void)id, (void)ns, (void)result))

static void SCHED_run(struct loom_ctx *c)
{
	lacks(c, LOOM_SCHED);
}

static void TERM_note(struct loom_ctx *c)
{
	lacks(c, LOOM_TERM);
}

static uint64_t TRIGGER_arrived_at(struct loom_ctx *c, uint32_t index)
{
	(void)index;
	lacks(c, LOOM_TRIGGER);
	return 0;
}

const void *lacking_table(enum loom_kind kind)
{
	static const struct loom_sched_dev sched = {sizeof(sched), SCHED_run, SCHED_spawn, SCHED_wanted, NULL};
	static const struct loom_term_dev term = {
	    .size = sizeof(term), .idle = TERM_note, .busy = TERM_note, .done = TERM_done};
	static const struct loom_sync_dev sync = {sizeof(sync), SYNC_reserve,  SYNC_publish,
						  SYNC_wait,    SYNC_wait_all, SYNC_release};
	static const struct loom_barrier_dev barrier = {sizeof(barrier), BARRIER_wait,    BARRIER_wait, BARRIER_wait,
							BARRIER_await,   BARRIER_missing, BARRIER_wait};
	static const struct loom_trigger_dev trigger = {
	    sizeof(trigger), TRIGGER_fire,     TRIGGER_fire,     TRIGGER_fire_with,  TRIGGER_completed,
	    TRIGGER_arrived, TRIGGER_boundary, TRIGGER_boundary, TRIGGER_arrived_at, TRIGGER_ask,
	    NULL,            NULL};
	static const struct loom_qos_dev qos = {sizeof(qos), QOS_request, QOS_wait};
	switch (kind) {
	case LOOM_SCHED:
		return &sched;
	case LOOM_TERM:
		return &term;
	case LOOM_SYNC:
		return &sync;
	case LOOM_BARRIER:
		return &barrier;
	case LOOM_TRIGGER:
		return &trigger;
	case LOOM_QOS:
		return &qos;
	default:
		return NULL;
	}
}
