/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that all qos plug-ins share. Only the plug-in that leads the pipeline has a service. For other plug-ins need()
 * requests no memory, and the other ops do nothing. */
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
		qos_queue_close(&s->tenant[i].queue);
		s->host->free(s->host, s->tenant[i].grant);
	}
	s->host->free(s->host, s->ring);
	s->host->free(s->host, s->consumed);
	s->host->free(s->host, s->granted);
	s->ring = NULL;
	s->consumed = NULL;
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
		pthread_mutex_destroy(&s->fill_lock);
		pthread_mutex_destroy(&s->serve_lock);
		q->host->free(q->host, s);
	}
	if (q)
		q->host->free(q->host, q);
}

/* ---- cores and tenants ---- */

/* Makes a vector for each core that both this process and the path may use. */
static void take_cores(struct service *s)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	s->machine = (uint32_t)CPU_COUNT(&set);
	/* pass 1 ignores path.cores; it runs only if they leave no core */
	for (int pass = 0; pass < 2 && !s->vectors; pass++)
		for (uint32_t core = 0; core < CPU_SETSIZE && s->vectors < QOS_VECTORS; core++)
			if (CPU_ISSET(core, &set) &&
			    (pass || !s->path.cores || (core < 64 && s->path.cores >> core & 1)))
				s->core[s->vectors++] = core;
}

int qos_lead(void *self, const struct loom_qos_stage *stage, uint32_t n, struct loom_error *err)
{
	struct qos *q = self;
	struct service *s = q->host->alloc(q->host, sizeof(*s));
	if (!s || n > QOS_STAGES_MAX) {
		q->host->free(q->host, s);
		return LOOM_FAIL(q->host, err, LOOM_ENOMEM, "%s: out of memory", q->name);
	}
	s->host = q->host;
	s->name = q->name;
	s->fault_fd = s->awake_fd = s->server_fd = -1;
	s->quiesce_ns = QOS_QUIESCE_NS;
	pthread_mutex_init(&s->fill_lock, NULL);
	pthread_mutex_init(&s->serve_lock, NULL);
	memcpy(s->stage, stage, n * sizeof(*stage));
	s->stages = n;
	s->path = (struct loom_qos_path){.size = sizeof(s->path), .batch = 64};
	for (uint32_t i = 0; i < n; i++) {
		if (LOOM_HAS(stage[i].ops, arrange))
			stage[i].ops->arrange(stage[i].self, &s->path);
		s->timed |= LOOM_HAS(stage[i].ops, interrupt) != 0;
	}
	if (s->path.batch < 1 || s->path.batch > QOS_BATCH_MAX)
		s->path.batch = QOS_BATCH_MAX;
	take_cores(s);
	for (uint32_t v = 0; v < QOS_VECTORS; v++)
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
	s->ring = s->host->alloc(s->host, layout->workers * sizeof(*s->ring));
	s->consumed = s->host->alloc(s->host, layout->workers * sizeof(*s->consumed));
	if (!s->ring || !s->consumed || n > LOOM_MAX_TENANTS)
		return no_memory(s, err);
	for (s->tenants = 0; s->tenants < n; s->tenants++) {
		struct qos_tenant *t = &s->tenant[s->tenants];
		const struct loom_tenant *is = &tenant[s->tenants];
		*t = (struct qos_tenant){.is = *is};
		if (qos_queue_open(&t->queue, (uint64_t)is->count * is->outstanding, s->path.order))
			return no_memory(s, err);
		for (uint32_t w = is->first; w < is->first + is->count; w++)
			s->ring[w] = (struct qos_ring){
				.tenant = s->tenants,
				.first = (w - is->first) * is->outstanding,
				.slots = is->outstanding,
				.shift = (uint32_t)__builtin_ctz(is->outstanding)};
	}
	s->by_count = 0;
	s->gpus = 0;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		s->by_count |= has->kind != LOOM_ON_CPU;
		s->gpus |= (uint64_t)(has->kind == LOOM_ON_GPU) << d;
		for (uint32_t w = 0; w < has->workers; w++)
			s->ring[has->first_worker + w].device = d;
	}
	/* A GPU has no eventfd, so the host polls. */
	if (s->by_count && s->path.notify < LOOM_QOS_POLL)
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
		struct qos_tenant *t = &s->tenant[i];
		s->host->free(s->host, t->grant);
		t->grant = s->host->alloc(s->host, (n + 1) * sizeof(*t->grant));
		t->grants = 0;
		if (!t->grant)
			return no_memory(s, err);
	}
	return 0;
}

/* ---- memory ---- */

/* Lays out the stack's block and returns its size: the head, the bits, the published counts, then the slots and answers of
 * each worker. If `h` is not NULL, fills in h->bits_at and the host's pointers into the block. */
static uint64_t lay_out(struct service *s, struct qos_head *h)
{
	uint64_t bits = sizeof(struct qos_head);
	uint64_t published = bits + loom__align((s->workers / 64 + 1) * sizeof(uint64_t), 64);
	/* With by_count the host reads all published counts, so they are adjacent. Without by_count, each count has a cache
	 * line of its own. */
	uint64_t step = s->by_count ? sizeof(uint32_t) : 64;
	uint64_t at = published + loom__align(s->workers * step, 64);
	if (h) {
		s->head = h;
		s->bits = (uint64_t *)((char *)h + bits);
		s->published = s->by_count ? (uint32_t *)((char *)h + published) : NULL;
		h->bits_at = bits;
	}
	for (uint32_t w = 0; w < s->workers; w++) {
		struct qos_ring *from = &s->ring[w];
		uint64_t answers = at + from->slots * sizeof(struct qos_slot);
		if (h) {
			from->published = (uint32_t *)((char *)h + published + w * step);
			from->slot = (struct qos_slot *)((char *)h + at);
			from->answer = (uint64_t *)((char *)h + answers);
		}
		at = answers + loom__align(from->slots * sizeof(uint64_t), 64);
	}
	return at;
}

/* The most polls for answers per second, of all workers of a GPU together. This rate is limited because each poll is a read
 * over the link. */
#define POLLS_PER_S 200000000ull

/* Returns the initial value of a worker's port. neighbours: number of workers of its device. */
static struct qos_port port_of(const struct service *s, uint32_t worker, uint32_t neighbours)
{
	const struct qos_ring *from = &s->ring[worker];
	return (struct qos_port){.published_at = (uint64_t)((char *)from->published - (char *)s->head),
				 .slot_at = (uint64_t)((char *)from->slot - (char *)s->head),
				 .answer_at = (uint64_t)((char *)from->answer - (char *)s->head),
				 .slots = from->slots,
				 .shift = from->shift,
				 .tenant = from->tenant,
				 .by_count = (uint32_t)s->by_count,
				 .counts_posted = s->interrupt[from->device].interrupt != NULL,
				 .nap_ns = 32 + (uint32_t)(neighbours * 1000000000ull / POLLS_PER_S)};
}

/* The largest size of the stack's block. It has a limit because a GPU's driver pins this memory. */
#define RINGS_MOST (1ull << 30)

int qos_need(void *self, const struct loom_layout *layout, struct loom_need *need,
	     struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	need->global_place = LOOM_PLACE_HOST;
	need->device_place = LOOM_PLACE_DEVICE;
	if (!s || !s->ring)
		return 0;
	need->global = lay_out(s, NULL);
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint64_t bytes = sizeof(struct qos_device_block) + layout->device[d].workers * sizeof(struct qos_port);
		need->device = bytes > need->device ? bytes : need->device;
	}
	if (need->global > RINGS_MOST)
		return LOOM_FAIL(s->host, err, LOOM_EINVAL,
				 "%s: the rings of %u workers would take %llu MiB, and the limit is 1024: lower "
				 "`outstanding`, or the "
				 "number of workers",
				 s->name, s->workers, (unsigned long long)(need->global >> 20));
	return 0;
}

int qos_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	     struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	int rc = s && s->head ? qos_path_quiesce(s, err) : 0;
	if (rc || !s || !s->head)
		return rc;
	pthread_mutex_lock(&s->fill_lock);
	pthread_mutex_lock(&s->serve_lock);
	for (uint32_t w = 0; w < s->workers; w++) {
		struct qos_ring *from = &s->ring[w];
		from->taken = from->served = 0;
		/* Atomic, because the polling top half may read these words meanwhile. */
		__atomic_store_n(&from->broken, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->consumed[w], 0, __ATOMIC_RELAXED);
		__atomic_store_n(from->published, 0, __ATOMIC_RELAXED);
		memset(from->answer, 0, from->slots * sizeof(*from->answer));
	}
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		struct qos_device_block *near = view->device[d];
		struct qos_port *port = (struct qos_port *)(near + 1);
		/* The two counts continue from sample to sample, because a wait for the next interrupt may be pending. */
		if (s->first_sample) {
			near->posted = 0;
			__atomic_store_n(&s->interrupt[d].taken, 0, __ATOMIC_RELEASE);
		}
		for (uint32_t i = 0; i < has->workers; i++)
			port[i] = port_of(s, has->first_worker + i, has->workers);
	}
	s->first_sample = 0;
	for (struct qos_grant *g = s->grants; g; g = g->next) {
		qos_heap_reset(&g->heap);
		qos_frames_reset(g);
	}
	s->last_tenant = 0;
	qos_account_begin(s);
	pthread_mutex_unlock(&s->serve_lock);
	pthread_mutex_unlock(&s->fill_lock);
	return 0;
}

/* ---- start, stop, results ---- */

int qos_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
	      const struct loom_segments *segments, struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	if (!s || !s->tenants)
		return 0;
	struct qos_head *h = view->global;
	memset(h, 0, sizeof(*h));
	lay_out(s, h);
	/* Resets rings and queues, because an earlier run may have ended with requests in flight. */
	for (uint32_t w = 0; w < s->workers; w++) {
		s->ring[w].taken = s->ring[w].served = 0;
		s->ring[w].broken = 0;
		s->consumed[w] = *s->ring[w].published = 0;
	}
	for (uint32_t t = 0; t < s->tenants; t++)
		qos_queue_reset(&s->tenant[t].queue);
	h->notify = s->path.notify;
	h->vectors = s->vectors;
	h->every = s->path.halves == LOOM_QOS_SPLIT && !s->path.mask;
	h->count = 1;
	int rc = qos_grants_resolve(s, layout, segments, err);
	if (!rc)
		rc = qos_doorbells_open(s, err);
	if (!rc)
		rc = qos_interrupts_open(s, layout, err);
	for (uint32_t v = 0; v < QOS_VECTORS; v++) {
		h->doorbell[v].event_fd = s->event_fd[v];
		h->doorbell[v].timer_fd = s->timer_fd[v];
	}
	h->server_doorbell.event_fd = s->server_fd;
	s->first_sample = 1;
	if (!rc)
		rc = qos_path_start(s, err);
	if (rc)
		qos_stop(self);
	return rc;
}

void qos_stop(void *self)
{
	struct service *s = ((struct qos *)self)->service;
	if (!s || !s->head)
		return;
	qos_path_stop(s);
	qos_interrupts_close(s);
	qos_doorbells_close(s);
	qos_grants_free(s);
	s->head = NULL;
}

int qos_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_report *report, struct loom_error *err)
{
	struct service *s = ((struct qos *)self)->service;
	(void)layout, (void)view;
	int rc = s && s->head ? qos_path_quiesce(s, err) : 0;
	if (rc || !s || !s->head)
		return rc;
	pthread_mutex_lock(&s->fill_lock);
	pthread_mutex_lock(&s->serve_lock);
	uint64_t filled = s->filled, served = s->served + s->dropped;
	rc = qos_account_report(s, report, err);
	pthread_mutex_unlock(&s->serve_lock);
	pthread_mutex_unlock(&s->fill_lock);
	if (!rc && filled != served)
		rc = LOOM_FAIL(s->host, err, LOOM_EWRONG, "%s: %llu requests were read, %llu completed",
			       s->name, (unsigned long long)filled, (unsigned long long)served);
	return rc;
}
