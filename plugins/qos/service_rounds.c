/* SPDX-License-Identifier: Apache-2.0 */
/* The worker thread serves requests in rounds. Before each round each policy of the pipeline decides in turn: which tenant is
 * served, with how many requests, or at what time to call the policies again. After the round the policies get its CPU time. */
#include <errno.h>

#include "service.h"

#define CHECK_EVERY 8u		  /* number of requests between two reads of the clock */
#define GAP_NS 100000u		  /* no request is served for this time at the start of each LOOM_GAP_EVERY_NS */
#define ASK_NS 1000000u		  /* time between two calls of qos_moderate() while requests keep arriving */
#define STEER_NS 10000000u	  /* shortest time between two decisions about steering */
#define RETRY_MOST_NS 100000000u  /* longest wait before the policies are called again */

/* ---- the state that policies get ---- */

static struct loom_qos_load load_of(struct qos_thread *t, uint64_t now_ns)
{
	struct service *s = t->s;
	struct loom_qos_load load = {.size = sizeof(load),
				     .now_ns = now_ns,
				     .cpu_ns = qos_cpu(s),
				     .body_ns = s->body_ns,
				     .served = s->served,
				     .machine = s->machine,
				     .tenants = s->tenants,
				     .tenant = s->seen,
				     .vectors = s->vectors,
				     .vector = t->vector,
				     .core = s->core};
	for (uint32_t i = 0; i < s->tenants; i++) {
		const struct qos_tenant *from = &s->tenant[i];
		struct loom_qos_queue *to = &s->seen[i];
		to->waiting = qos_queue_waiting(&from->queue);
		to->served = from->served;
		to->cpu_ns = from->cpu_ns;
		to->weight = from->is.weight;
		to->oldest_ns = qos_queue_oldest_ns(&from->queue);
		load.waiting += to->waiting;
	}
	return load;
}

void qos_path_bind(struct service *s, uint64_t vectors)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	for (uint32_t v = 0; v < s->vectors; v++)
		if (vectors >> v & 1)
			CPU_SET(s->core[v], &set);
	for (uint32_t i = 0; i < s->threads; i++)
		if (s->thread[i].role != QOS_TOP)
			pthread_setaffinity_np(s->thread[i].id, sizeof(set), &set);
}

void qos_moderate(struct qos_thread *t, uint64_t now_ns)
{
	struct service *s = t->s;
	struct loom_qos_load load = load_of(t, now_ns);
	s->moderated_ns = now_ns;
	for (uint32_t v = 0; v < s->vectors; v++)
		load.interrupts += __atomic_load_n(&s->head->doorbell[v].interrupts, __ATOMIC_RELAXED);
	struct loom_qos_moderation m = {.count = 1};
	for (uint32_t i = 0; i < s->stages; i++)
		if (LOOM_HAS(s->stage[i].ops, interrupt))
			s->stage[i].ops->interrupt(s->stage[i].self, &load, &m);
	__atomic_store_n(&s->head->count, m.count, __ATOMIC_RELAXED);
	__atomic_store_n(&s->head->window_ns, m.window_ns, __ATOMIC_RELAXED);
	if (s->steered_ns && now_ns - s->steered_ns < STEER_NS)
		return;
	s->steered_ns = now_ns;
	uint64_t all = s->vectors < 64 ? (1ull << s->vectors) - 1 : ~0ull, vectors = all;
	for (uint32_t i = 0; i < s->stages; i++)
		if (LOOM_HAS(s->stage[i].ops, steer)) {
			uint64_t narrowed = vectors;
			s->stage[i].ops->steer(s->stage[i].self, &load, &narrowed);
			vectors = narrowed & vectors ? narrowed & vectors : vectors;
		}
	if (vectors == s->route)
		return;
	s->route = vectors;
	__atomic_store_n(&s->head->route, vectors, __ATOMIC_RELAXED);
	qos_path_bind(s, vectors);
	if (qos_is_polled(s))
		qos_doorbells_ring_all(s); /* because the top half of another core must poll from here on */
}

/* Returns the next tenant with requests, in round robin. Policies may choose another tenant. */
static uint32_t next_tenant(struct service *s)
{
	for (uint32_t i = 1; i <= s->tenants; i++) {
		uint32_t at = (s->last_tenant + i) % s->tenants;
		if (s->seen[at].waiting)
			return s->last_tenant = at;
	}
	return s->last_tenant;
}

/* ---- a round ---- */

/* Returns 1 if qos_frames_flush() completes the call later, together with other calls of its kind. Else the call is a
 * fence (queue.c): completes the pending calls first, and returns 0. */
static int defer(struct service *s, struct qos_tenant *tenant, struct qos_call *call)
{
	if (qos_frames_add(s, call))
		return 1;
	qos_frames_flush(s, tenant);
	return 0;
}

static uint32_t serve_some(struct service *s, struct qos_tenant *tenant, uint32_t most, uint64_t begin,
			   uint64_t cpu_ns)
{
	uint64_t body = qos_now(), now = body;
	uint32_t n = 0;
	while (n < most) {
		struct qos_call *call = qos_queue_take(&tenant->queue);
		if (!call)
			break;
		n++;
		int64_t result = call->error;
		int deferred = !result && defer(s, tenant, call);
		if (!result && !deferred)
			result = qos_execute(s, call);
		if (n % CHECK_EVERY == 0 || n == most)
			now = qos_now();
		if (!deferred)
			qos_complete(s, tenant, call, result, now);
		if (n % CHECK_EVERY)
			continue;
		/* Compares wall time, which includes preemption of this thread, so a round may end early. */
		if ((cpu_ns && now - begin >= cpu_ns) || qos_has_request_of(s, s->wake_mask))
			break;
	}
	qos_frames_flush(s, tenant);
	s->body_ns += qos_now() - body;
	return n;
}

/* Waits until the policies must be called again. Serves no tenant during this wait. */
static void wait_for_policies(struct qos_thread *t, const struct loom_qos_round *round, uint64_t now)
{
	struct service *s = t->s;
	uint64_t latest = now + RETRY_MOST_NS;
	s->naps++;
	qos_cpu_point(s, now);
	qos_wake_arm(s, round->wake_mask);
	if (qos_has_request_of(s, round->wake_mask)) /* a request has arrived since the policies decided, so do not sleep */
		;
	else if (round->then_ns > round->retry_ns && round->retry_ns > now && round->retry_ns < latest)
		qos_sleep_ahead(t, round->retry_ns, round->then_ns);
	else if (round->retry_ns > now)
		qos_sleep(t, round->retry_ns < latest ? round->retry_ns : latest, round->slack_ns);
	else if (round->requests)
		qos_sleep(t, now + 1000, 1); /* a policy has chosen a tenant without requests */
	qos_wake_disarm(s);
	s->woken += qos_has_request_of(s, round->wake_mask);
	qos_charge(t, QOS_WORKER);
	qos_cpu_point(s, qos_now());
}

/* Calls the policies, and serves one round or waits. now: a time before the rings were read, because reading them is part of
 * the round. */
static void serve_round(struct qos_thread *t, uint64_t now)
{
	struct service *s = t->s;
	if (now - s->moderated_ns >= ASK_NS) {
		qos_moderate(t, now);
		qos_cpu_point(s, now);
	}
	struct loom_qos_load load = load_of(t, now);
	struct loom_qos_round round = {.tenant = next_tenant(s), .requests = s->path.batch};
	for (uint32_t i = 0; i < s->stages; i++)
		if (LOOM_HAS(s->stage[i].ops, admit))
			s->stage[i].ops->admit(s->stage[i].self, &load, &round);
	if (round.tenant >= s->tenants || !s->seen[round.tenant].waiting || !round.requests) {
		wait_for_policies(t, &round, now);
		return;
	}
	s->wake_mask = round.wake_mask;
	struct qos_tenant *tenant = &s->tenant[round.tenant];
	uint64_t most = s->seen[round.tenant].waiting;
	most = most < round.requests ? most : round.requests;
	most = most < QOS_BATCH_MAX ? most : QOS_BATCH_MAX;
	uint32_t served = serve_some(s, tenant, (uint32_t)most, now, round.cpu_ns);
	uint64_t spent = qos_charge(t, QOS_WORKER);
	tenant->cpu_ns += spent;
	s->rounds++;
	load.cpu_ns = qos_cpu(s);
	load.body_ns = s->body_ns;
	load.served = s->served;
	for (uint32_t i = 0; i < s->stages; i++)
		if (LOOM_HAS(s->stage[i].ops, account))
			s->stage[i].ops->account(s->stage[i].self, &load, round.tenant, served, spent);
}

/* Called before every round. Moves requests from rings to queues, if no other thread is doing so. fills: 1: the caller holds
 * `fill_lock`. With masked interrupts the doorbells are disarmed during rounds, so usually no other thread reads the rings. If
 * another thread holds the lock, it is reading them. */
static void gather(struct service *s, int fills)
{
	if (fills) {
		qos_fill(s);
	} else if (s->path.mask && qos_posted(s) && !pthread_mutex_trylock(&s->fill_lock)) {
		qos_fill(s);
		pthread_mutex_unlock(&s->fill_lock);
	}
}

void qos_serve(struct qos_thread *t, int fills)
{
	struct service *s = t->s;
	pthread_mutex_lock(&s->serve_lock);
	qos_cpu_point(s, qos_now());
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		uint64_t now = qos_now();
		gather(s, fills);
		if (__atomic_load_n(&s->dropping, __ATOMIC_ACQUIRE))
			qos_drop_queued(s);
		if (!qos_waiting(s))
			break;
		/* The threads of a path wake each other thousands of times a second, and one of them can always run. So they
		 * must leave gaps for other programs, as described at LOOM_GAP_NS. GAP_NS is shorter than LOOM_GAP_NS, because
		 * requests wait during the gap. */
		if (loom_has_gap())
			loom_leave_gap(now, GAP_NS);
		serve_round(t, now);
	}
	qos_moderate(t, qos_now());
	qos_charge(t, QOS_WORKER);
	qos_cpu_point(s, qos_now());
	pthread_mutex_unlock(&s->serve_lock);
}
