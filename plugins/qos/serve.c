/* SPDX-License-Identifier: Apache-2.0 */
/* The worker thread's work: turns. Before each the policies of the pipeline say, one after the other,
 * whose turn it is, how much may be served, or when to ask again; after each they learn what it cost. */
#include <errno.h>

#include "service.h"

#define CHECK_EVERY 8u		  /* requests between two looks at the clock */
#define GAP_NS 100000u		  /* at the begin of each LOOM_GAP_EVERY_NS nobody serves */
#define ASK_NS 1000000u		  /* moderation is asked for this often while requests keep coming */
#define STEER_NS 10000000u
#define RETRY_MOST_NS 100000000u  /* a policy that never says when is asked again after this */

/* ---- what policies see ---------------------------------------------------------------------------- */

static struct loom_qos_load look(struct ssr_thread *t, uint64_t now_ns)
{
	struct service *s = t->s;
	struct loom_qos_load load = {.size = sizeof(load),
				     .now_ns = now_ns,
				     .cpu_ns = ssr_cpu(s),
				     .body_ns = s->body_ns,
				     .served = s->served,
				     .machine = s->machine,
				     .tenants = s->tenants,
				     .tenant = s->seen,
				     .vectors = s->vectors,
				     .vector = t->vector,
				     .core = s->core};
	for (uint32_t i = 0; i < s->tenants; i++) {
		const struct ssr_tenant *from = &s->tenant[i];
		struct loom_qos_queue *to = &s->seen[i];
		to->waiting = ssr_queue_waiting(&from->queue);
		to->served = from->served;
		to->cpu_ns = from->cpu_ns;
		to->weight = from->is.weight;
		to->oldest_ns = ssr_queue_oldest_ns(&from->queue);
		load.waiting += to->waiting;
	}
	return load;
}

void ssr_path_bind(struct service *s, uint64_t vectors)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	for (uint32_t v = 0; v < s->vectors; v++)
		if (vectors >> v & 1)
			CPU_SET(s->core[v], &set);
	for (uint32_t i = 0; i < s->threads; i++)
		if (s->thread[i].role != SSR_TOP)
			pthread_setaffinity_np(s->thread[i].id, sizeof(set), &set);
}

void ssr_ask(struct ssr_thread *t, uint64_t now_ns)
{
	struct service *s = t->s;
	struct loom_qos_load load = look(t, now_ns);
	s->asked_ns = now_ns;
	for (uint32_t v = 0; v < s->vectors; v++)
		load.interrupts += __atomic_load_n(&s->head->door[v].interrupts, __ATOMIC_RELAXED);
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
	ssr_path_bind(s, vectors);
	if (ssr_is_watched(s))
		ssr_doors_ring(s); /* another core looks */
}

/* Without policies: tenants in turn. */
static uint32_t next_tenant(struct service *s)
{
	for (uint32_t i = 1; i <= s->tenants; i++) {
		uint32_t at = (s->last_tenant + i) % s->tenants;
		if (s->seen[at].waiting)
			return s->last_tenant = at;
	}
	return s->last_tenant;
}

/* ---- a turn --------------------------------------------------------------------------------------- */

/* 1: what will be completed with others of its kind. What comes between them is a fence: see order.c. */
static int put_off(struct service *s, struct ssr_tenant *tenant, struct ssr_call *call)
{
	if (ssr_files_add(s, call)) {
		ssr_near_flush(s, tenant);
		return 1;
	}
	ssr_files_flush(s, tenant);
	if (ssr_near_add(s, call))
		return 1;
	ssr_near_flush(s, tenant);
	return 0;
}

static uint32_t serve_some(struct service *s, struct ssr_tenant *tenant, uint32_t most, uint64_t begin,
			   uint64_t cpu_ns)
{
	uint64_t body = ssr_now(), now = body;
	uint32_t n = 0;
	while (n < most) {
		struct ssr_call *call = ssr_queue_take(&tenant->queue);
		if (!call)
			break;
		n++;
		int64_t result = call->error;
		int later = !result && put_off(s, tenant, call);
		if (!result && !later)
			result = ssr_work(s, call);
		if (n % CHECK_EVERY == 0 || n == most)
			now = ssr_now();
		if (!later)
			ssr_complete(s, tenant, call, result, now);
		if (n % CHECK_EVERY)
			continue;
		/* Wall time of this thread: it includes being preempted, and then ends the turn early. */
		if ((cpu_ns && now - begin >= cpu_ns) || ssr_came(s, s->wake_mask))
			break;
	}
	ssr_files_flush(s, tenant);
	ssr_near_flush(s, tenant);
	s->body_ns += ssr_now() - body;
	return n;
}

/* Nobody is served until the policies are asked again. */
static void rest(struct ssr_thread *t, const struct loom_qos_turn *turn, uint64_t now)
{
	struct service *s = t->s;
	uint64_t latest = now + RETRY_MOST_NS;
	s->naps++;
	ssr_point(s, now);
	ssr_listen(s, turn->wake_mask);
	if (ssr_came(s, turn->wake_mask)) /* since the policies looked */
		;
	else if (turn->then_ns > turn->retry_ns && turn->retry_ns > now && turn->retry_ns < latest)
		ssr_sleep_ahead(t, turn->retry_ns, turn->then_ns);
	else if (turn->retry_ns > now)
		ssr_sleep(t, turn->retry_ns < latest ? turn->retry_ns : latest, turn->slack_ns);
	else if (turn->requests)
		ssr_sleep(t, now + 1000, 1); /* a policy that chose nobody: ask again */
	ssr_listen_end(s);
	s->roused += ssr_came(s, turn->wake_mask);
	ssr_charge(t, SSR_WORKER);
	ssr_point(s, ssr_now());
}

/* `now`: before the rings were read, which is part of the turn's time. */
static void take_turn(struct ssr_thread *t, uint64_t now)
{
	struct service *s = t->s;
	if (now - s->asked_ns >= ASK_NS) {
		ssr_ask(t, now);
		ssr_point(s, now);
	}
	struct loom_qos_load load = look(t, now);
	struct loom_qos_turn turn = {.tenant = next_tenant(s), .requests = s->path.batch};
	for (uint32_t i = 0; i < s->stages; i++)
		if (LOOM_HAS(s->stage[i].ops, admit))
			s->stage[i].ops->admit(s->stage[i].self, &load, &turn);
	if (turn.tenant >= s->tenants || !s->seen[turn.tenant].waiting || !turn.requests) {
		rest(t, &turn, now);
		return;
	}
	s->wake_mask = turn.wake_mask;
	struct ssr_tenant *tenant = &s->tenant[turn.tenant];
	uint64_t most = s->seen[turn.tenant].waiting;
	most = most < turn.requests ? most : turn.requests;
	most = most < SSR_BATCH_MOST ? most : SSR_BATCH_MOST;
	uint32_t served = serve_some(s, tenant, (uint32_t)most, now, turn.cpu_ns);
	uint64_t spent = ssr_charge(t, SSR_WORKER) + ssr_files_charge(s, 0);
	tenant->cpu_ns += spent;
	s->turns++;
	load.cpu_ns = ssr_cpu(s);
	load.body_ns = s->body_ns;
	load.served = s->served;
	for (uint32_t i = 0; i < s->stages; i++)
		if (LOOM_HAS(s->stage[i].ops, account))
			s->stage[i].ops->account(s->stage[i].self, &load, turn.tenant, served, spent);
}

/* Rings -> queues, for every turn. Where the doors are shut meanwhile nobody else would; and whoever holds
 * the lock now reads them. */
static void gather(struct service *s, int fills)
{
	if (fills) {
		ssr_fill(s);
	} else if (s->path.mask && ssr_posted(s) && !pthread_mutex_trylock(&s->drain)) {
		ssr_fill(s);
		pthread_mutex_unlock(&s->drain);
	}
}

void ssr_serve(struct ssr_thread *t, int fills)
{
	struct service *s = t->s;
	pthread_mutex_lock(&s->serving);
	ssr_point(s, ssr_now());
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		uint64_t now = ssr_now();
		gather(s, fills);
		if (__atomic_load_n(&s->dropping, __ATOMIC_ACQUIRE))
			ssr_drop(s);
		if (!ssr_waiting(s))
			break;
		/* The threads of a path wake each other thousands of times a second, and one of them always can run: see
		 * LOOM_GAP_NS. So they, too, leave their cores, for less time: requests wait for them. */
		if (loom_has_gap())
			loom_leave_gap(now, GAP_NS);
		take_turn(t, now);
	}
	ssr_ask(t, ssr_now());
	ssr_charge(t, SSR_WORKER);
	ssr_point(s, ssr_now());
	pthread_mutex_unlock(&s->serving);
}
