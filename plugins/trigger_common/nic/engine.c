/* SPDX-License-Identifier: Apache-2.0 */
/* The engine passes due runs to the provider, and counts completions and arrivals. */
#include "nic.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/align.h"

enum { FREE = 0, OPERATION, NOTIFICATION };
#define NIC_EINVAL 22 /* the value of EINVAL in libfabric */

int nic_size(struct nic *nic, const struct loom_layout *layout)
{
	struct nic_table options = NIC_TABLE(nic->opts), table = nic_table(&options, layout, &nic->needs);
	if (nic->list.post && !memcmp(&table, &nic->table, sizeof(table)))
		return 0;
	list_close(nic->host, &nic->list);
	nic->table = table;
	return list_open(nic->host, &nic->list, table.tags, table.posts);
}

int nic_open(struct nic *nic, const struct loom_host *host, const struct nic_opts *opts,
	     const struct nic_ops *ops, struct loom_error *err)
{
	*nic = (struct nic){.host = host, .opts = opts, .ops = ops, .first_notify = LIST_NONE};
	nic->fifo = (uint32_t)loom__power_of_two(opts->fifo);
	pthread_mutex_init(&nic->lock, NULL);
	nic->request = host->alloc(host, opts->in_flight * sizeof(*nic->request));
	if (!nic->request || nic_size(nic, NULL)) {
		nic_close(nic);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", ops->name);
	}
	for (uint32_t i = 0; i < opts->in_flight; i++)
		nic->request[i].next = i + 1 < opts->in_flight ? i + 1 : LIST_NONE;
	return 0;
}

void nic_close(struct nic *nic)
{
	const struct loom_host *host = nic->host;
	if (nic->fabric)
		nic->fabric->ops->close(nic->fabric);
	nic->fabric = NULL;
	list_close(host, &nic->list);
	host->free(host, nic->request);
	host->free(host, nic->fifos);
	host->free(host, nic->cursor);
	host->free(host, nic->record);
	host->free(host, nic->own);
	nic->request = NULL;
	nic->fifos = NULL;
	nic->cursor = NULL;
	nic->record = NULL;
	nic->own = NULL;
	pthread_mutex_destroy(&nic->lock);
}

/* The engine thread yields while `waiters` is not 0. Without `waiters`, the mutex would starve other threads, because
 * the engine thread locks it again at once. */
void nic_lock(struct nic *nic)
{
	__atomic_fetch_add(&nic->waiters, 1, __ATOMIC_RELAXED); /* relaxed: the count is a hint */
	pthread_mutex_lock(&nic->lock);
	__atomic_fetch_sub(&nic->waiters, 1, __ATOMIC_RELAXED);
}

void nic_unlock(struct nic *nic)
{
	pthread_mutex_unlock(&nic->lock);
}

uint64_t nic_now(const struct nic *nic)
{
	return nic->clock ? nic->clock->now_ns(nic->clock) : nic->host->now_ns(nic->host);
}

static struct nic_arrival *arrival(const struct nic *nic, uint64_t index)
{
	return (struct nic_arrival *)(nic->base + nic->shape.arrival_at) + index;
}

/* Stores the first failure for flush(), and ends the waits of workers. */
void nic_fail(struct nic *nic, int code, const char *fmt, ...)
{
	if (nic->status)
		return;
	nic->status = code;
	va_list args;
	va_start(args, fmt);
	vsnprintf(nic->failure, sizeof(nic->failure), fmt, args);
	va_end(args);
	/* The failure belongs to no arrival word in particular, so all arrival words are set, which ends every wait.
	 * Relaxed: these stores publish nothing else. */
	for (uint32_t i = 0; nic->base && i < nic->shape.arrivals; i++)
		__atomic_store_n(&arrival(nic, i)->count, (int64_t)code, __ATOMIC_RELAXED);
}

void nic_count(struct nic *nic, uint64_t tag, uint64_t n, uint64_t argument)
{
	if (list_count(&nic->list, tag, n, argument))
		nic_fail(nic, LOOM_EFULL, "tag %#llx finds no counter: %u tags are in use; %s", (unsigned long long)tag,
			 nic->list.counters, nic_raise("tags", nic_more_tags(&nic->table, &nic->needs)));
}

/* ---- completion ---------------------------------------------------------------------------------- */

void nic_complete(struct nic *nic, uint32_t slot, uint64_t chain, int status)
{
	if (slot) {
		struct nic_slot *s = (struct nic_slot *)(nic->base + nic->shape.slot_at) + slot;
		if (nic->opts->stamp)
			__atomic_store_n(&s->at_ns, nic_now(nic), __ATOMIC_RELAXED);
		/* Release: pairs with the acquire in nic_poll_word(). The data of a get have been written before. */
		if (s->completed >= 0)
			__atomic_store_n(&s->completed, status ? (int64_t)LOOM_EIO : s->completed + 1,
					 __ATOMIC_RELEASE);
	}
	if (chain && !status)
		nic_count(nic, chain, 1, 0);
}

static struct nic_request *take_request(struct nic *nic, uint32_t state)
{
	if (nic->free_request == LIST_NONE)
		return NULL;
	struct nic_request *f = &nic->request[nic->free_request];
	nic->free_request = f->next;
	f->state = state;
	f->sample = nic->sample;
	f->began_ns = 0;
	f->awaited = 0;
	f->next = LIST_NONE;
	nic->in_flight++;
	return f;
}

static void release_request(struct nic *nic, struct nic_request *f)
{
	/* `receiving` also counts requests of an earlier sample: nic_policy_init(). */
	if (f->sample != nic->sample || f->io.op == LOOM_NET_RECV)
		nic->receiving--;
	nic->awaited -= f->sample == nic->sample && f->awaited;
	f->state = FREE;
	f->next = nic->free_request;
	nic->free_request = (uint32_t)(f - nic->request);
	nic->in_flight--;
}

static void complete_request(struct nic *nic, struct nic_request *f, int status)
{
	if (f->sample == nic->sample) {
		if (status)
			nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", f->io.target,
				 fabric_strerror(status));
		if (f->began_ns && !status) {
			nic->timed++;
			nic->timed_ns += nic_now(nic) - f->began_ns;
		}
		nic_complete(nic, f->slot, f->chain, status);
		if (f->post != LIST_NONE)
			list_done(&nic->list, f->post);
	}
	release_request(nic, f);
}

/* Sends the notifications that are due after operations whose data carry no immediate data. */
static void notify(struct nic *nic)
{
	while (nic->first_notify != LIST_NONE) {
		struct nic_request *f = &nic->request[nic->first_notify];
		int status = 0;
		if (f->sample != nic->sample) { /* a request of an earlier sample */
			nic->first_notify = f->next;
			release_request(nic, f);
			continue;
		}
		int rc = nic->fabric->ops->notify(nic->fabric, f->io.target, f->notify, &f->context, &status);
		if (rc == LOOM_EAGAIN)
			return;
		nic->first_notify = f->next;
		if (rc)
			complete_request(nic, f, status);
	}
}

int nic_notify(struct nic *nic, const struct loom_trigger_post *what)
{
	struct nic_request *f = take_request(nic, NOTIFICATION);
	if (!f)
		return LOOM_EAGAIN;
	f->io = (struct fabric_io){.op = what->op, .target = what->target};
	f->chain = what->chain;
	f->slot = what->slot;
	f->notify = what->notify;
	f->post = LIST_NONE;
	f->next = nic->first_notify;
	nic->first_notify = (uint32_t)(f - nic->request);
	return 0;
}

static void arrive(struct nic *nic, uint64_t index)
{
	if (index == 0 || index >= nic->shape.arrivals) {
		nic_fail(nic, LOOM_EINVAL, "a notification for arrival word %llu of %u",
			 (unsigned long long)index, nic->shape.arrivals);
		return;
	}
	struct nic_arrival *a = arrival(nic, index);
	if (nic->opts->stamp)
		__atomic_store_n(&a->at_ns, nic_now(nic), __ATOMIC_RELAXED);
	/* If the run fails on a GPU, chain_release() may also write to this word. */
	int64_t count = __atomic_load_n(&a->count, __ATOMIC_RELAXED);
	/* Release: pairs with the acquire in nic_poll_word(). */
	if (count >= 0)
		__atomic_store_n(&a->count, count + 1, __ATOMIC_RELEASE);
	nic->arrivals++;
	if (nic->counts_arrivals)
		nic_count(nic, LOOM_TAG_ARRIVAL(index), 1, 0);
}

static void done(struct nic *nic, struct nic_request *f, int status)
{
	if (f < nic->request || f >= nic->request + nic->opts->in_flight || f->state == FREE) {
		nic_fail(nic, LOOM_EIO,
			 "provider %s ended an operation that was not in flight: choose another provider",
			 nic->fabric->name);
		return;
	}
	if (f->io.op == LOOM_NET_RECV && f->notify && !status && f->sample == nic->sample) {
		arrive(nic, f->notify);
	} else if (f->state == OPERATION && f->notify && !status && f->sample == nic->sample) {
		f->state = NOTIFICATION;
		f->next = nic->first_notify;
		nic->first_notify = (uint32_t)(f - nic->request);
		notify(nic);
		return;
	}
	complete_request(nic, f, status);
}

/* If no post waits for arrivals, no counters are created for arrivals, because each counter takes a cache line in the
 * list. */
void nic_count_arrivals(struct nic *nic)
{
	for (uint64_t i = 1; !nic->counts_arrivals && i < nic->shape.arrivals; i++) {
		int64_t n = __atomic_load_n(&arrival(nic, i)->count, __ATOMIC_RELAXED);
		if (n > 0)
			nic_count(nic, LOOM_TAG_ARRIVAL(i), (uint64_t)n, 0);
	}
	nic->counts_arrivals = 1;
}

/* ---- checks of posts ------------------------------------------------------------------------------- */

static int reaches(const void *of, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	return !nic_fabric_check(of, rank, ref, bytes);
}

static int adds(const void *of, const struct loom_trigger_post *what)
{
	const struct fabric *f = ((const struct nic *)of)->fabric;
	return !f->ops->can_add(f, what->type, what->bytes);
}

int nic_check(const struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err)
{
	struct nic_bounds b = {.host = nic->host,
			       .name = nic->ops->name,
			       .adder = nic->fabric->name,
			       .table = nic->table,
			       .needs = nic->needs,
			       .of = nic,
			       .reaches = reaches,
			       .adds = adds};
	const struct fabric *f = nic->fabric;
	if (what->flags && nic->ops->no_argument)
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP, "%s: %s", nic->ops->name, nic->ops->no_argument);
	/* In libfabric 1.17, provider shm loses or mixes up messages that come before their receives are posted. */
	if (what->op == LOOM_NET_RECV && what->threshold && !what->chain && !strcmp(f->name, "shm"))
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "%s: provider shm loses messages that come before a worker has fired their receive: set "
				 "provider = tcp in [trigger], or use a put (two_sided = no)",
				 nic->ops->name);
	int rc = nic_check_bounds(&b, what, err);
	if (rc || (what->op != LOOM_NET_GET && what->op != LOOM_NET_ADD) || !f->ops->staged ||
	    !f->ops->staged(f, what->target, what->remote))
		return rc;
	return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
			 "%s: the network accesses only a copy of the memory of rank %u's GPU, and %s needs the memory "
			 "itself: use put or send, or set memory = host",
			 nic->ops->name, what->target, what->op == LOOM_NET_GET ? "a get" : "an addition");
}

int nic_full(const struct nic *nic, struct loom_error *err)
{
	const char *more = nic->list.room ? nic_raise("tags", nic_more_tags(&nic->table, &nic->needs)) :
					    nic_raise("posts", nic_more_posts(&nic->table, &nic->needs));
	return LOOM_FAIL(nic->host, err, LOOM_EFULL,
			 "%s: no room for another post: %u of %u posts are free, %u tags are in use; %s",
			 nic->ops->name, nic->list.room, nic->list.posts, nic->list.counters, more);
}

/* ---- runs ---------------------------------------------------------------------------------------- */

/* Applies the argument of the fire (GPU-TN, 3.4) to an operation, within the window of its post. Returns 0 or
 * LOOM_EINVAL. */
static int apply_argument(const struct nic *nic, const struct loom_trigger_post *what, uint64_t argument,
		 struct fabric_io *io)
{
	uint64_t offset = argument & 0xffffffffffffull;
	if (what->flags & (LOOM_NET_LOCAL_FROM_FIRE | LOOM_NET_REMOTE_FROM_FIRE) && offset > what->window)
		return LOOM_EINVAL;
	if (what->flags & LOOM_NET_TARGET_FROM_FIRE) {
		io->target = (uint32_t)(argument >> 48);
		if (io->target >= nic->host->ranks)
			return LOOM_EINVAL;
	}
	if (what->flags & LOOM_NET_LOCAL_FROM_FIRE)
		io->local += offset;
	if (what->flags & LOOM_NET_REMOTE_FROM_FIRE)
		io->remote += offset;
	/* The fire may name a target that has less memory than the target in the post, which nic_check() has
	 * checked. */
	return what->flags && io->op != LOOM_NET_SEND ?
		       nic_fabric_check(nic, io->target, io->remote, io->bytes) :
		       0;
}

int nic_run(struct nic *nic, const struct loom_trigger_post *what, uint32_t post, uint64_t argument)
{
	if (what->op == LOOM_NET_COUNT) {
		nic->runs++;
		nic_complete(nic, what->slot, what->chain, 0);
		if (post != LIST_NONE)
			list_done(&nic->list, post);
		return 0;
	}
	struct nic_request *f = take_request(nic, OPERATION);
	if (!f)
		return LOOM_EAGAIN;
	int native = what->op == LOOM_NET_PUT; /* a put carries its notification */
	f->io = (struct fabric_io){.op = what->op,
				   .target = what->target,
				   .local = what->local,
				   .remote = what->remote,
				   .bytes = what->bytes,
				   .match = what->match,
				   .type = what->type,
				   .notify = native ? what->notify : 0};
	f->chain = what->chain;
	f->slot = what->slot;
	f->notify = native ? 0 : what->notify;
	f->post = post;
	/* Prefetches the post behind this one, because this post is usually due next and not in the cache. */
	/* An integer, because a pointer may not point behind the last post's end. */
	uintptr_t behind = (uintptr_t)what + sizeof(*what);
	for (uint32_t i = 0; i < 192; i += 64)
		__builtin_prefetch((const void *)(behind + i));
	f->awaited = what->op == LOOM_NET_RECV && what->threshold && !what->chain;
	nic->awaited += f->awaited;
	if (what->op == LOOM_NET_RECV)
		nic->receiving++;
	else if (nic->opts->stamp)
		f->began_ns = nic_now(nic);
	int status = NIC_EINVAL;
	int rc = what->flags ? apply_argument(nic, what, argument, &f->io) : 0;
	if (!rc)
		rc = nic->fabric->ops->start(nic->fabric, &f->io, &f->context, &status);
	if (rc == LOOM_EAGAIN) {
		release_request(nic, f);
		return rc;
	}
	nic->runs++;
	if (rc)
		complete_request(nic, f, status);
	return 0;
}

int nic_backlog(const struct nic *nic)
{
	return nic->is_stalled || list_queued(&nic->list);
}

uint32_t nic_run_due(struct nic *nic)
{
	uint32_t work = 0;
	for (;;) {
		if (!nic->is_stalled && !list_next(&nic->list, &nic->stalled))
			return work;
		nic->is_stalled = 1;
		if (nic_run(nic, &nic->list.post[nic->stalled.post].what, nic->stalled.post, nic->stalled.argument))
			return work;
		nic->is_stalled = 0;
		if (++work == 256) /* ends the loop, so that a long chain does not delay completions */
			return work;
	}
}

static uint32_t reap(struct nic *nic)
{
	struct fabric_event e[16];
	int n = nic->fabric->ops->poll(nic->fabric, e, 16);
	if (n < 0) {
		nic_fail(nic, LOOM_EIO, "the completion queue of provider %s failed", nic->fabric->name);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		int status = e[i].what == FABRIC_FAILED ? e[i].status : 0;
		if (nic->rma && (e[i].what == FABRIC_ARRIVED ? nic->rma_ops->arrive(nic, e[i].notify) :
								nic->rma_ops->event(nic, e[i].context, status)))
			continue;
		if (e[i].what == FABRIC_ARRIVED)
			arrive(nic, e[i].notify);
		else if (e[i].context)
			done(nic, (struct nic_request *)e[i].context, status);
		else
			nic_fail(nic, LOOM_EIO, "provider %s: %s", nic->fabric->name, fabric_strerror(e[i].status));
	}
	return (uint32_t)n;
}

uint32_t nic_step(struct nic *nic)
{
	/* Runs due operations before it polls, so that the queue of runs is empty when a fire with an argument is
	 * counted. */
	uint32_t work = nic_run_due(nic);
	if (!nic_backlog(nic))
		work += nic->ops->poll(nic);
	work += nic_run_due(nic);
	if (nic->first_notify != LIST_NONE)
		notify(nic);
	if (nic->rma)
		work += nic->rma_ops->serve(nic);
	return work + reap(nic);
}

int nic_idle(struct nic *nic)
{
	return !nic_backlog(nic) && nic->in_flight == nic->receiving && nic->first_notify == LIST_NONE &&
	       !(nic->rma && nic->rma_ops->busy(nic)) &&
	       !(nic->ops->busy && nic->ops->busy(nic));
}
