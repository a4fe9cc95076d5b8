/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that all qos plug-ins share. Only the plug-in that leads has a service; for the others need()
 * asks for nothing and the rest does nothing. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "service.h"
#include "lib/align.h"

int qos_create(struct qos *q, const struct loom_host *host, const char *name, struct loom_error *err)
{
	if (!q)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", name);
	q->host = host;
	q->name = name;
	return 0;
}

static void free_tenants(struct service *s)
{
	for (uint32_t i = 0; i < s->tenants; i++) {
		ssr_queue_close(&s->tenant[i].queue);
		s->host->free(s->host, s->tenant[i].grant);
	}
	s->host->free(s->host, s->source);
	s->host->free(s->host, s->known);
	s->host->free(s->host, s->granted);
	s->source = NULL;
	s->known = NULL;
	s->granted = NULL;
	s->granted_count = s->tenants = 0;
}

void qos_destroy(void *self)
{
	struct qos *q = self;
	struct service *s = q ? q->service : NULL;
	if (s) {
		qos_stop(q);
		free_tenants(s);
		pthread_mutex_destroy(&s->drain);
		pthread_mutex_destroy(&s->serving);
		q->host->free(q->host, s);
	}
	if (q)
		q->host->free(q->host, q);
}

/* ---- who takes part ------------------------------------------------------------------------------- */

/* One vector for each core that this process may use, and that the path may. */
static void take_cores(struct service *s)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	s->machine = (uint32_t)CPU_COUNT(&set);
	for (int pass = 0; pass < 2 && !s->vectors; pass++) /* none left: all */
		for (uint32_t core = 0; core < CPU_SETSIZE && s->vectors < SSR_VECTORS; core++)
			if (CPU_ISSET(core, &set) &&
			    (pass || !s->path.cores || (core < 64 && s->path.cores >> core & 1)))
				s->core[s->vectors++] = core;
}

int qos_lead(void *self, const struct loom_qos_stage *stage, uint32_t n, struct loom_error *err)
{
	struct qos *q = self;
	struct service *s = q->host->alloc(q->host, sizeof(*s));
	if (!s || n > SSR_STAGES_MOST) {
		q->host->free(q->host, s);
		return LOOM_FAIL(q->host, err, LOOM_ENOMEM, "%s: out of memory", q->name);
	}
	s->host = q->host;
	s->name = q->name;
	s->fault_fd = s->awake_fd = s->bedside_fd = -1;
	s->patience_ns = SSR_PATIENCE_NS;
	pthread_mutex_init(&s->drain, NULL);
	pthread_mutex_init(&s->serving, NULL);
	memcpy(s->stage, stage, n * sizeof(*stage));
	s->stages = n;
	s->path = (struct loom_qos_path){.size = sizeof(s->path), .files = SSR_FILES_DEFAULT, .batch = 64};
	for (uint32_t i = 0; i < n; i++) {
		if (LOOM_HAS(stage[i].ops, arrange))
			stage[i].ops->arrange(stage[i].self, &s->path);
		s->timed |= LOOM_HAS(stage[i].ops, interrupt) != 0;
	}
	if (s->path.batch < 1 || s->path.batch > SSR_BATCH_MOST)
		s->path.batch = SSR_BATCH_MOST;
	take_cores(s);
	for (uint32_t v = 0; v < SSR_VECTORS; v++)
		s->event_fd[v] = s->timer_fd[v] = -1;
	q->service = s;
	return 0;
}

static int no_memory(const struct service *s, struct loom_error *err)
{
	return LOOM_FAIL(s->host, err, LOOM_ENOMEM, "%s: out of memory", s->name);
}

int qos_tenants(void *self, const struct loom_layout *layout, const struct loom_tenant *tenant,
		uint32_t n, struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	free_tenants(s);
	s->workers = layout->workers;
	s->source = s->host->alloc(s->host, layout->workers * sizeof(*s->source));
	s->known = s->host->alloc(s->host, layout->workers * sizeof(*s->known));
	if (!s->source || !s->known || n > LOOM_MAX_TENANTS)
		return no_memory(s, err);
	for (s->tenants = 0; s->tenants < n; s->tenants++) {
		struct ssr_tenant *t = &s->tenant[s->tenants];
		const struct loom_tenant *is = &tenant[s->tenants];
		*t = (struct ssr_tenant){.is = *is};
		if (ssr_queue_open(&t->queue, (uint64_t)is->count * is->outstanding, s->path.order))
			return no_memory(s, err);
		for (uint32_t w = is->first; w < is->first + is->count; w++)
			s->source[w] = (struct ssr_source){
				.tenant = s->tenants,
				.first = (w - is->first) * is->outstanding,
				.slots = is->outstanding,
				.shift = (uint32_t)__builtin_ctz(is->outstanding)};
	}
	s->plain = 0;
	s->gpus = 0;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		s->plain |= has->kind != LOOM_ON_CPU;
		s->gpus |= (uint64_t)(has->kind == LOOM_ON_GPU) << d;
		for (uint32_t w = 0; w < has->workers; w++)
			s->source[has->first_worker + w].device = d;
	}
	/* A GPU knows neither eventfd nor futex: the host looks. */
	if (s->plain && s->path.notify < LOOM_QOS_POLL)
		s->path.notify = LOOM_QOS_POLL;
	return 0;
}

int qos_grants(void *self, const struct loom_grant *grant, uint32_t n, struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	s->host->free(s->host, s->granted);
	s->granted = s->host->alloc(s->host, (n + 1) * sizeof(*grant));
	if (!s->granted)
		return no_memory(s, err);
	if (n)
		memcpy(s->granted, grant, n * sizeof(*grant));
	s->granted_count = n;
	for (uint32_t i = 0; i < s->tenants; i++) {
		struct ssr_tenant *t = &s->tenant[i];
		s->host->free(s->host, t->grant);
		t->grant = s->host->alloc(s->host, (n + 1) * sizeof(*t->grant));
		t->grants = 0;
		if (!t->grant)
			return no_memory(s, err);
	}
	return 0;
}

/* ---- memory --------------------------------------------------------------------------------------- */

/* head, bits, told words, then slots and answers of each worker. Fills in the shared block and what the host keeps of it,
 * if there is one. */
static uint64_t lay_out(struct service *s, struct ssr_head *h)
{
	uint64_t bits = sizeof(struct ssr_head);
	uint64_t told = bits + loom__align((s->workers / 64 + 1) * sizeof(uint64_t), 64);
	/* Who compares them wants them side by side; the workers of a CPU want them on lines of their own. */
	uint64_t step = s->plain ? sizeof(uint32_t) : 64;
	uint64_t at = told + loom__align(s->workers * step, 64);
	if (h) {
		s->head = h;
		s->bits = (uint64_t *)((char *)h + bits);
		s->told = s->plain ? (uint32_t *)((char *)h + told) : NULL;
		h->bits_at = bits;
	}
	for (uint32_t w = 0; w < s->workers; w++) {
		struct ssr_source *from = &s->source[w];
		uint64_t answers = at + from->slots * sizeof(struct ssr_slot);
		if (h) {
			from->told = (uint32_t *)((char *)h + told + w * step);
			from->slot = (struct ssr_slot *)((char *)h + at);
			from->answer = (uint64_t *)((char *)h + answers);
		}
		at = answers + loom__align(from->slots * sizeof(uint64_t), 64);
	}
	return at;
}

/* How many looks at answers all workers of a GPU together may make, in a second and in vain: each takes a read from the
 * link. */
#define LOOKS_PER_S 200000000ull

/* A worker's own end of what lay_out() has laid out. */
static struct ssr_port port_of(const struct service *s, uint32_t worker, uint32_t neighbours)
{
	const struct ssr_source *from = &s->source[worker];
	return (struct ssr_port){.told_at = (uint64_t)((char *)from->told - (char *)s->head),
				 .slot_at = (uint64_t)((char *)from->slot - (char *)s->head),
				 .answer_at = (uint64_t)((char *)from->answer - (char *)s->head),
				 .slots = from->slots,
				 .shift = from->shift,
				 .tenant = from->tenant,
				 .plain = (uint32_t)s->plain,
				 .raises = s->interrupt[from->device].interrupt != NULL,
				 .nap_ns = 32 + (uint32_t)(neighbours * 1000000000ull / LOOKS_PER_S)};
}

/* A GPU's driver pins this memory. */
#define RINGS_MOST (1ull << 30)

int qos_need(void *self, const struct loom_layout *layout, struct loom_need *need,
	     struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	need->global_place = LOOM_PLACE_HOST;
	need->device_place = LOOM_PLACE_DEVICE;
	if (!s || !s->source)
		return 0;
	need->global = lay_out(s, NULL);
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint64_t bytes = sizeof(struct ssr_near) + layout->device[d].workers * sizeof(struct ssr_port);
		need->device = bytes > need->device ? bytes : need->device;
	}
	if (need->global > RINGS_MOST)
		return LOOM_FAIL(s->host, err, LOOM_EINVAL,
				 "%s: the rings of %u workers would take %llu MiB, and 1024 are the most: lower `outstanding`, or the "
				 "number of workers", s->name, s->workers, (unsigned long long)(need->global >> 20));
	return 0;
}

int qos_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	     struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	int rc = s && s->head ? ssr_path_quiet(s, err) : 0;
	if (rc || !s || !s->head)
		return rc;
	pthread_mutex_lock(&s->drain);
	pthread_mutex_lock(&s->serving);
	for (uint32_t w = 0; w < s->workers; w++) {
		struct ssr_source *from = &s->source[w];
		from->taken = from->served = 0;
		/* Who polls looks at these meanwhile. */
		__atomic_store_n(&from->broken, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->known[w], 0, __ATOMIC_RELAXED);
		__atomic_store_n(from->told, 0, __ATOMIC_RELAXED);
		memset(from->answer, 0, from->slots * sizeof(*from->answer));
	}
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		struct ssr_near *near = view->device[d];
		struct ssr_port *port = (struct ssr_port *)(near + 1);
		/* An alarm may be waiting for the next request: this word goes on from sample to sample. */
		if (s->fresh) {
			near->posted = 0;
			__atomic_store_n(&s->interrupt[d].taken, 0, __ATOMIC_RELEASE);
		}
		for (uint32_t i = 0; i < has->workers; i++)
			port[i] = port_of(s, has->first_worker + i, has->workers);
	}
	s->fresh = 0;
	for (struct ssr_grant *g = s->grants; g; g = g->next) {
		ssr_heap_reset(&g->heap);
		ssr_near_reset(g);
	}
	s->last_tenant = 0;
	ssr_account_begin(s);
	pthread_mutex_unlock(&s->serving);
	pthread_mutex_unlock(&s->drain);
	return 0;
}

/* ---- threads -------------------------------------------------------------------------------------- */

int qos_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
	      const struct loom_segments *segments, struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	if (!s || !s->tenants)
		return 0;
	struct ssr_head *h = view->global;
	memset(h, 0, sizeof(*h));
	lay_out(s, h);
	/* A run before this one may have ended with requests under way. */
	for (uint32_t w = 0; w < s->workers; w++) {
		s->source[w].taken = s->source[w].served = 0;
		s->source[w].broken = 0;
		s->known[w] = *s->source[w].told = 0;
	}
	for (uint32_t t = 0; t < s->tenants; t++)
		ssr_queue_reset(&s->tenant[t].queue);
	h->notify = s->path.notify;
	h->vectors = s->vectors;
	h->every = s->path.halves == LOOM_QOS_SPLIT && !s->path.mask;
	h->count = 1;
	int rc = ssr_grants_resolve(s, layout, segments, err);
	if (!rc)
		rc = ssr_doors_open(s, err);
	if (!rc)
		rc = ssr_alarms_open(s, layout, err);
	for (uint32_t v = 0; v < SSR_VECTORS; v++) {
		h->door[v].event_fd = s->event_fd[v];
		h->door[v].timer_fd = s->timer_fd[v];
	}
	h->bedside.event_fd = s->bedside_fd;
	s->fresh = 1;
	if (!rc)
		rc = ssr_path_start(s, err);
	if (rc)
		qos_stop(self);
	return rc;
}

void qos_stop(void *self)
{
	struct service *s = ((struct qos *)self)->service;
	if (!s || !s->head)
		return;
	ssr_path_stop(s);
	ssr_alarms_close(s);
	ssr_doors_close(s);
	ssr_grants_free(s);
	s->head = NULL;
}

int qos_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_report *report, struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	(void)layout, (void)view;
	int rc = s && s->head ? ssr_path_quiet(s, err) : 0;
	if (rc || !s || !s->head)
		return rc;
	pthread_mutex_lock(&s->drain);
	pthread_mutex_lock(&s->serving);
	uint64_t filled = s->filled, served = s->served + s->dropped;
	rc = ssr_account_report(s, report, err);
	pthread_mutex_unlock(&s->serving);
	pthread_mutex_unlock(&s->drain);
	if (!rc && filled != served)
		rc = LOOM_FAIL(s->host, err, LOOM_EWRONG, "%s: %llu requests were read, %llu completed",
			       s->name, (unsigned long long)filled, (unsigned long long)served);
	return rc;
}
