/* SPDX-License-Identifier: Apache-2.0 */
/* The bottom half reads the rings, checks each request and queues it for the worker thread. It copies a request before it
 * checks the copy, because the tenant can change the words in the ring at any time. */
#include <errno.h>
#include <limits.h>

#include "service.h"

static struct qos_grant *grant_of(const struct qos_tenant *t, uint32_t number)
{
	return number < t->grants ? t->grant[number] : NULL;
}

/* Returns whether a GPU's driver keeps a mapping of the grant's host pages. In this case the GPU would continue to use pages
 * that were evicted or moved. gpu: 1: the worker is on a GPU. */
static int is_kept(const struct qos_grant *g, int gpu)
{
	return gpu && !g->is.device && g->is.kind != LOOM_GRANT_BUFFER;
}

/* Checks the buffer of a request, and stores it in `call`. Returns 0 or minus an errno. kinds: a bit for each kind of grant
 * that the service accepts. pages: 1: the service takes only whole pages. gpu: 1: the worker is on a GPU. */
static int check_memory(const struct qos_tenant *t, const struct loom_request *r, uint32_t kinds,
			int pages, int gpu, struct qos_call *call)
{
	struct qos_grant *g = grant_of(t, r->buffer);
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
	if (pages && ((r->offset | r->bytes) & (QOS_PAGE - 1)))
		return -EINVAL;
	call->grant = g;
	call->at = g->at + r->offset;
	return 0;
}

/* Checks the file, socket or process of a request, and stores its descriptor in `call`. Returns 0 or minus an errno. */
static int check_handle(const struct qos_tenant *t, const struct loom_request *r, uint32_t kind,
			uint32_t access, struct qos_call *call)
{
	const struct qos_grant *g = grant_of(t, r->handle);
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

static int check(const struct qos_tenant *t, const struct loom_request *r, int gpu, struct qos_call *call)
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
		call->argument = r->offset; /* the offset to free; ALLOC does not use it */
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

/* Queues the request at `position` of the ring. Returns 1, or 0 if the slot's previous request is not complete; with a
 * correct worker this does not happen. */
static int queue_one(struct service *s, struct qos_ring *from, uint64_t position)
{
	struct qos_tenant *t = &s->tenant[from->tenant];
	struct qos_queue *q = &t->queue;
	uint32_t at = (uint32_t)(position & (from->slots - 1)), number = from->first + at;
	struct qos_call *call = &q->call[number];
	const struct qos_slot *slot = &from->slot[at];
	/* Acquire: pairs with the release in completion.c, after which the serving thread no longer reads the call. */
	if (__atomic_load_n(&call->busy, __ATOMIC_ACQUIRE))
		return 0;
	struct loom_request copy = *(const volatile struct loom_request *)&slot->request;
	/* If a value does not fit into its field here, check() rejects the request. */
	*call = (struct qos_call){.ring = from,
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
	/* Release: pairs with the acquires in qos_queue_waiting() and prefetch_calls(). */
	__atomic_store_n(&q->head, head + 1, __ATOMIC_RELEASE);
	return 1;
}

/* The largest number of requests to take from a ring at a time. Without this limit, a thread that both fills and serves
 * would serve none while it takes a burst of thousands. A separate bottom half directly continues with the other rings. */
#define FILL_MOST 256u

static uint32_t fill_ring(struct service *s, struct qos_ring *from)
{
	if (!from->slots || from->broken)
		return 0;
	/* Acquire: pairs with the release in qos_request(), so that the slots up to this count are written. */
	uint32_t published = __atomic_load_n(from->published, __ATOMIC_ACQUIRE);
	uint64_t first = from->taken, head = first + (published - (uint32_t)first);
	uint64_t end = head - first > FILL_MOST ? first + FILL_MOST : head;
	uint32_t worker = (uint32_t)(from - s->ring);
	int sane = head - first <= from->slots;
	while (sane && from->taken < end && (sane = queue_one(s, from, from->taken)))
		from->taken++;
	if (!sane) {
		__atomic_store_n(&from->broken, 1, __ATOMIC_RELAXED); /* read by qos_path_quiesce() */
		/* The requests that are not read would cause interrupts without end, so the host polls. */
		__atomic_store_n(&s->interrupts_failed, 1, __ATOMIC_RELEASE);
		LOOM_LOG(s->host, LOOM_LOG_WARN, s->name,
			 "worker %u wrote invalid counts into its request ring: the ring is not served any "
			 "more", worker);
	} else if (end < head && !s->published) {
		__atomic_fetch_or(&s->bits[worker / 64], 1ull << worker % 64, __ATOMIC_ACQ_REL);
	}
	/* Release: pairs with the acquire in qos_controller(). */
	__atomic_fetch_add(&s->interrupt[from->device].taken, from->taken - first, __ATOMIC_RELEASE);
	/* Relaxed: a thread that reads an old value only checks this ring once more than necessary. */
	__atomic_store_n(&s->consumed[worker], (uint32_t)from->taken, __ATOMIC_RELAXED);
	return (uint32_t)(from->taken - first);
}

uint64_t qos_posted_from(const struct service *s, uint32_t first)
{
	uint64_t bits = 0;
	/* Both acquires pair with the release operations in qos_request(). */
	if (!s->published)
		return __atomic_load_n(&s->bits[first / 64], __ATOMIC_ACQUIRE);
	uint32_t end = s->workers - first < 64 ? s->workers : first + 64;
	for (uint32_t w = first; w < end; w++)
		if (__atomic_load_n(&s->published[w], __ATOMIC_ACQUIRE) !=
			__atomic_load_n(&s->consumed[w], __ATOMIC_RELAXED) &&
		    !__atomic_load_n(&s->ring[w].broken, __ATOMIC_RELAXED))
			bits |= 1ull << (w - first);
	return bits;
}

uint32_t qos_fill(struct service *s)
{
	uint32_t n = 0;
	for (uint32_t w = 0; w < s->workers; w += 64) {
		uint64_t bits = qos_posted_from(s, w);
		if (!bits)
			continue;
		if (!s->published)
			bits = __atomic_exchange_n(&s->bits[w / 64], 0, __ATOMIC_ACQ_REL);
		/* Pairs with the fence in qos_request() between the store of the published count and the load of the bit. */
		loom_fence_seq_cst_sys();
		for (; bits; bits &= bits - 1) {
			uint32_t worker = w + (uint32_t)__builtin_ctzll(bits);
			if (worker < s->workers)
				n += fill_ring(s, &s->ring[worker]);
		}
	}
	s->filled += n;
	return n;
}

uint64_t qos_waiting(const struct service *s)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->tenants; i++)
		n += qos_queue_waiting(&s->tenant[i].queue);
	return n;
}
