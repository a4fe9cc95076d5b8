/* SPDX-License-Identifier: Apache-2.0 */
/* The bottom half: reads the rings, checks each request, and queues it for the worker thread. A request
 * is copied first and checked then, for its tenant can change the words at any time. */
#include <errno.h>
#include <limits.h>

#include "service.h"

static struct ssr_grant *grant_of(const struct ssr_tenant *t, uint32_t number)
{
	return number < t->grants ? t->grant[number] : NULL;
}

/* A GPU keeps the host's pages that it was shown: it would go on with those that were taken away, or moved. */
static int is_kept(const struct ssr_grant *g, int gpu)
{
	return gpu && !g->is.device && g->is.kind != LOOM_GRANT_BUFFER;
}

/* Memory: what kinds of grant the service takes, in whole pages or not. `gpu`: its worker is on one. */
static int check_memory(const struct ssr_tenant *t, const struct loom_request *r, uint32_t kinds,
			int pages, int gpu, struct ssr_call *call)
{
	struct ssr_grant *g = grant_of(t, r->buffer);
	if (!g || !(kinds >> g->is.kind & 1) || (g->is.device && g->is.kind == LOOM_GRANT_HEAP))
		return -EFAULT;
	if (is_kept(g, gpu))
		return -EOPNOTSUPP;
	if (!r->bytes)
		return -EINVAL;
	if (r->bytes > LOOM_REQUEST_BYTES_MAX)
		return -E2BIG;
	if (r->offset > g->is.bytes || r->bytes > g->is.bytes - r->offset)
		return -EFAULT;
	if (pages && ((r->offset | r->bytes) & (SSR_PAGE - 1)))
		return -EINVAL;
	call->grant = g;
	call->at = g->at + r->offset;
	return 0;
}

/* File, socket or process. */
static int check_handle(const struct ssr_tenant *t, const struct loom_request *r, uint32_t kind,
			uint32_t access, struct ssr_call *call)
{
	const struct ssr_grant *g = grant_of(t, r->handle);
	if (!g || g->is.kind != kind)
		return -EBADF;
	if ((g->is.access & access) != access)
		return -EACCES;
	if (kind == LOOM_GRANT_FILE && r->argument > (uint64_t)LLONG_MAX - LOOM_REQUEST_BYTES_MAX)
		return -EOVERFLOW;
	if (kind == LOOM_GRANT_PROCESS &&
	    (r->argument - 1 > 63 || !(g->is.signals >> (r->argument - 1) & 1)))
		return -EPERM;
	call->fd = g->is.fd;
	return 0;
}

#define BUFFERS (1u << LOOM_GRANT_BUFFER | 1u << LOOM_GRANT_HEAP)

static int check(const struct ssr_tenant *t, const struct loom_request *r, int gpu, struct ssr_call *call)
{
	int rc;
	if (r->reserved)
		return -EINVAL;
	switch (r->service) {
	case LOOM_SERVICE_NOTHING:
		return 0;
	case LOOM_SERVICE_SIGNAL:
		return check_handle(t, r, LOOM_GRANT_PROCESS, 0, call);
	case LOOM_SERVICE_FAULT:
	case LOOM_SERVICE_EVICT:
		return check_memory(t, r, 1u << LOOM_GRANT_DEMAND, 1, gpu, call);
	case LOOM_SERVICE_ALLOC:
	case LOOM_SERVICE_FREE:
		call->grant = grant_of(t, r->buffer);
		if (!call->grant || call->grant->is.kind != LOOM_GRANT_HEAP)
			return -EFAULT;
		if (r->service == LOOM_SERVICE_ALLOC && r->bytes > LOOM_REQUEST_BYTES_MAX)
			return -E2BIG;
		if (is_kept(call->grant, gpu))
			return -EOPNOTSUPP;
		call->argument = r->offset; /* what FREE frees */
		return 0;
	case LOOM_SERVICE_READ:
	case LOOM_SERVICE_WRITE:
		rc = check_handle(t, r, LOOM_GRANT_FILE,
				  r->service == LOOM_SERVICE_READ ? LOOM_READ : LOOM_WRITE, call);
		return rc ? rc : check_memory(t, r, BUFFERS, 0, gpu, call);
	case LOOM_SERVICE_MIGRATE:
		if (r->argument > 1023)
			return -EINVAL;
		rc = check_memory(t, r, BUFFERS | 1u << LOOM_GRANT_DEMAND, 0, gpu, call);
		return !rc && gpu && !call->grant->is.device ? -EOPNOTSUPP : rc;
	case LOOM_SERVICE_SEND:
		rc = check_handle(t, r, LOOM_GRANT_SOCKET, 0, call);
		return rc ? rc : check_memory(t, r, BUFFERS, 0, gpu, call);
	default:
		return -ENOSYS;
	}
}

/* 0: this slot's last request is still to be served. */
static int queue_one(struct service *s, struct ssr_source *from, uint64_t position)
{
	struct ssr_tenant *t = &s->tenant[from->tenant];
	struct ssr_queue *q = &t->queue;
	uint32_t at = (uint32_t)(position & (from->slots - 1)), number = from->first + at;
	struct ssr_call *call = &q->call[number];
	const struct ssr_slot *slot = &from->slot[at];
	/* Acquire: pairs with the completion's release; nobody reads this call any more. */
	if (__atomic_load_n(&call->busy, __ATOMIC_ACQUIRE))
		return 0;
	struct loom_request copy = *(const volatile struct loom_request *)&slot->request;
	/* What these words cannot hold is refused. */
	*call = (struct ssr_call){.source = from,
				  .position = position,
				  .posted_ns = slot->posted_ns,
				  .service = (uint16_t)copy.service,
				  .bytes = (uint32_t)copy.bytes,
				  .argument = copy.argument,
				  .fd = -1,
				  .busy = 1};
	call->error = check(t, &copy, (int)(s->gpus >> from->device & 1), call);
	uint64_t head = q->head;
	q->number[head & q->mask] = number;
	/* Release: pairs with the acquire of the worker thread. */
	__atomic_store_n(&q->head, head + 1, __ATOMIC_RELEASE);
	return 1;
}

/* Of one ring at a time. Who fills and serves would else serve nobody as long as a burst of thousands takes; a bottom
 * half, which serves nobody, looks again at once, and gives other rings their turn in between. */
#define FILL_MOST 256u

static uint32_t fill_ring(struct service *s, struct ssr_source *from)
{
	if (!from->slots || from->broken)
		return 0;
	/* Acquire: pairs with the worker's release; the slots up to there are written. */
	uint32_t told = __atomic_load_n(from->told, __ATOMIC_ACQUIRE);
	uint64_t first = from->taken, head = first + (told - (uint32_t)first);
	uint64_t end = head - first > FILL_MOST ? first + FILL_MOST : head;
	uint32_t worker = (uint32_t)(from - s->source);
	int sane = head - first <= from->slots;
	while (sane && from->taken < end && (sane = queue_one(s, from, from->taken)))
		from->taken++;
	if (!sane) {
		__atomic_store_n(&from->broken, 1, __ATOMIC_RELAXED); /* ssr_path_quiet() reads it */
		__atomic_store_n(&s->deaf, 1, __ATOMIC_RELEASE); /* what it has counted would ring for ever */
		LOOM_LOG(s->host, LOOM_LOG_WARN, s->name,
			 "worker %u wrote nonsense into its request ring: it is not served any more", worker);
	} else if (end < head && !s->told) {
		__atomic_fetch_or(&s->bits[worker / 64], 1ull << worker % 64, __ATOMIC_ACQ_REL);
	}
	/* Release: pairs with the controller's acquire. */
	__atomic_fetch_add(&s->interrupt[from->device].taken, from->taken - first, __ATOMIC_RELEASE);
	/* Relaxed: who sees it late looks at this ring again. */
	__atomic_store_n(&s->known[worker], (uint32_t)from->taken, __ATOMIC_RELAXED);
	return (uint32_t)(from->taken - first);
}

/* Of 64 workers from `first` on: the bits of those who have posted what is not taken yet. */
uint64_t ssr_posted_from(const struct service *s, uint32_t first)
{
	uint64_t bits = 0;
	/* Acquire, both: pair with the worker's release. */
	if (!s->told)
		return __atomic_load_n(&s->bits[first / 64], __ATOMIC_ACQUIRE);
	uint32_t end = s->workers - first < 64 ? s->workers : first + 64;
	for (uint32_t w = first; w < end; w++)
		if (__atomic_load_n(&s->told[w], __ATOMIC_ACQUIRE) != __atomic_load_n(&s->known[w], __ATOMIC_RELAXED) &&
		    !__atomic_load_n(&s->source[w].broken, __ATOMIC_RELAXED))
			bits |= 1ull << (w - first);
	return bits;
}

uint32_t ssr_fill(struct service *s)
{
	uint32_t n = 0;
	for (uint32_t w = 0; w < s->workers; w += 64) {
		uint64_t bits = ssr_posted_from(s, w);
		if (!bits)
			continue;
		if (!s->told)
			bits = __atomic_exchange_n(&s->bits[w / 64], 0, __ATOMIC_ACQ_REL);
		/* Pairs with the worker's fence between its head and its look at the bit. */
		loom_fence_seq_cst_sys();
		for (; bits; bits &= bits - 1) {
			uint32_t worker = w + (uint32_t)__builtin_ctzll(bits);
			if (worker < s->workers)
				n += fill_ring(s, &s->source[worker]);
		}
	}
	s->filled += n;
	return n;
}

uint64_t ssr_waiting(const struct service *s)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->tenants; i++)
		n += ssr_queue_waiting(&s->tenant[i].queue);
	return n;
}
