/* SPDX-License-Identifier: Apache-2.0 */
/* One execution: ready, go, wait for the last worker; every wait ends. */
#include "stack/stack.h"

/* How long one device is waited for before the others and the deadline are looked at. The last one says by itself
 * when its workers are done, when one of them gives up and when they die; signals and nudges end its wait: a
 * host that looks more often than that keeps an idle machine from sleeping. */
#define SLICE_NS 20000000ull
#define LAST_NS 1000000000ull
/* After the stop word is set, workers leave within this time or are ended by force. */
#define GRACE_NS 1000000000ull

int loom__worker_failure(struct loom_stack *s, struct loom_error *err)
{
	/* Acquire: pairs with the release in loom_worker_fail; who and what are valid behind it. */
	if (!__atomic_load_n(&s->ctl->failed_ready, __ATOMIC_ACQUIRE))
		return 0;
	uint32_t worker = s->ctl->failed_worker, device = 0;
	int code = -(int)s->ctl->failed;
	while (device + 1 < s->layout.devices &&
	       worker >= s->shape[device].first_worker + s->shape[device].workers)
		device++;
	for (size_t i = 0; i < s->policies; i++) {
		const void *ops = s->policy[i].choice->plugin->ops;
		const struct loom_sched_ops *sched = ops;
		const struct loom_workload_ops *workload = ops;
		int rc = 0;
		if (s->policy[i].choice->kind == LOOM_SCHED && LOOM_HAS(sched, explain))
			rc = sched->explain(s->policy[i].self, worker, code, s->ctl->failed_info, err);
		if (s->policy[i].choice->kind == LOOM_WORKLOAD && LOOM_HAS(workload, explain))
			rc = workload->explain(s->policy[i].self, worker, code, s->ctl->failed_info, err);
		if (rc)
			return rc;
	}
	return LOOM__FAIL(err, code, "worker %u on %s: %s (code %d, detail %llu)", worker,
			  s->shape[device].name, loom_strerror(code), code,
			  (unsigned long long)s->ctl->failed_info);
}

/* Where the tasks of a sample are that did not end. An image is from before the sample: it tells nothing. */
static void ask_scheduler(struct loom_stack *s, char *text, size_t size)
{
	for (uint32_t i = 0; i < s->segments; i++)
		if (s->image[i])
			return;
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom_sched_ops *ops = s->policy[i].choice->plugin->ops;
		if (s->policy[i].choice->kind == LOOM_SCHED && LOOM_HAS(ops, stuck))
			ops->stuck(s->policy[i].self, &s->layout, &s->policy[i].view, text, size);
	}
}

/* Waits for all devices at once, a slice each. `until` bounds it. */
static int wait_all(struct loom_stack *s, uint64_t until, int heed_stop, uint64_t *end_ns,
		    struct loom_error *err)
{
	char finished[LOOM_MAX_DEVICES] = {0};
	uint32_t left = s->layout.devices;
	int told = 0;
	*end_ns = 0;
	while (left) {
		/* A worker that failed has stopped the others: those that sleep must be told. */
		if (!told && __atomic_load_n(&s->ctl->stop, __ATOMIC_RELAXED)) {
			loom__interrupt(s, LOOM_EINTR, 0);
			told = 1;
		}
		for (uint32_t d = 0; d < s->layout.devices; d++) {
			if (finished[d])
				continue;
			uint64_t now = loom__now_ns(), end = 0;
			uint64_t slice = now >= until ? 0 : until - now;
			uint64_t most = left > 1 ? SLICE_NS : LAST_NS;
			slice = slice < most ? slice : most;
			int rc = s->device[d].ops->wait(s->device[d].self, slice, &end, err);
			if (rc == 0) {
				finished[d] = 1;
				left--;
				if (end > *end_ns)
					*end_ns = end;
			} else if (rc != LOOM_EAGAIN) {
				if (rc == LOOM_EDIED)
					loom__interrupt(s, rc, d);
				return rc;
			}
		}
		if (left && heed_stop && s->beat)
			s->beat(s->beat_arg, s, loom__now_ns() - s->begin_ns);
		if (left && heed_stop && __atomic_load_n(&s->stop_requests, __ATOMIC_ACQUIRE) > 1)
			return LOOM__FAIL(err, LOOM_EINTR, "interrupted in mid-sample");
		if (left && loom__now_ns() >= until)
			return LOOM_ETIMEDOUT;
	}
	return 0;
}

int loom__gate_run(struct loom_stack *s, uint64_t timeout_ns, uint64_t *begin_ns, uint64_t *end_ns,
		   struct loom_error *err)
{
	uint64_t n = s->samples_done, ignored;
	s->ctl->sample = n;
	/* Release: pairs with the workers' acquire of the phase; all that init() wrote is before it. */
	__atomic_store_n(&s->ctl->phase, LOOM_PHASE_READY(n), __ATOMIC_RELEASE);
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		int rc = s->device[d].ops->ready(s->device[d].self, timeout_ns, err);
		if (rc)
			return rc;
	}
	*begin_ns = s->begin_ns = loom__now_ns();
	__atomic_store_n(&s->ctl->phase, LOOM_PHASE_GO(n), __ATOMIC_RELEASE);
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		int rc = LOOM_HAS(s->device[d].ops, go) ?
				 s->device[d].ops->go(s->device[d].self, err) :
				 0;
		if (rc)
			return rc;
	}
	int rc = wait_all(s, *begin_ns + timeout_ns, 1, end_ns, err);
	if (rc == 0) {
		s->samples_done++;
		return 0;
	}
	struct loom__text doing = {0};
	if (rc == LOOM_ETIMEDOUT)
		loom__whereabouts(s, &doing);
	/* Pairs with nothing: workers poll the word and leave, whatever else they see. */
	__atomic_store_n(&s->ctl->stop, 1u, __ATOMIC_RELAXED);
	loom__interrupt(s, LOOM_EINTR, 0);
	if (rc != LOOM_ETIMEDOUT)
		return rc;
	int ended = wait_all(s, loom__now_ns() + GRACE_NS, 0, &ignored, NULL) == 0;
	char where[400] = "";
	ask_scheduler(s, where, sizeof(where));
	struct loom__text stayed = {0};
	if (!ended)
		loom__whereabouts(s, &stayed);
	LOOM__FAIL(err, LOOM_ETIMEDOUT, "no end after %.3g s ([run] timeout): %s; the workers %s when they were told to stop%s%s%s%s",
		   (double)timeout_ns / 1e9, doing.at ? doing.at : "what workers do is not known",
		   ended ? "left" : "did not leave", stayed.at ? ": " : "", stayed.at ? stayed.at : "",
		   *where ? "; " : "", where);
	loom__text_free(&doing);
	loom__text_free(&stayed);
	return LOOM_ETIMEDOUT;
}
