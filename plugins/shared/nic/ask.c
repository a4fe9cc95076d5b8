/* SPDX-License-Identifier: Apache-2.0 */
/* What workers ask of other ranks' memory (struct loom_rma), done one-sided: reads by the provider, additions by it too
 * where its atomics are safe beside those of CPUs (fabric_test.c). Elsewhere the NIC's thread of the other rank adds: a
 * request is put into that rank's memory with a notification, and so is the reply.
 *
 * Two ranks have SLOTS places for requests from one to the other. A place is taken until its reply has come, so nothing is
 * overwritten before it was read. */
#include <errno.h>
#include <gpuloom/fd.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nic.h"

#define SLOTS 8u
/* Notifications that are no workload's. The rest: from whom, and which place. */
#define REQUEST 0x80000000u
#define REPLY 0x40000000u

struct request { /* a line; replies use `value` alone */
	loom_ref at;
	uint64_t value;
	uint64_t pad[6];
};
enum { SENT, TAKEN, ANSWERED, BACK, BOXES }; /* what this rank wants, what others want; the replies to either */

enum { FREE, BEGINS, FLIES, WAITS };
struct asking { /* by worker */
	struct fabric_context context;
	uint32_t state, taken; /* taken: how many of its wishes were seen */
	uint32_t place;	       /* in SENT */
	int by_request;
	uint64_t epoch;
};
struct replying { /* by place */
	struct fabric_context context;
	uint32_t state;
	int more; /* another one came while this was under way: `was` is its answer */
	uint64_t was;
};

struct asks {
	uint32_t ranks, places; /* to or from all ranks */
	loom_ref own;		/* the part of the block, as others know it ... */
	loom_ref *theirs;	/* ... and those of all ranks */
	uint32_t *box_at;	/* [ranks]: bytes from there to the boxes */
	char **memory;		/* of this rank, by segment */
	struct asking *asking;	/* [workers] */
	uint32_t *holder;	/* [places]: 1 plus the worker whose request is under way */
	struct replying *reply; /* [places] */
	int bell;		/* an eventfd, or -1 ... */
	uint32_t place;		/* ... and where workers find it */
};

static uint64_t box_at(uint32_t workers)
{
	return sizeof(struct nic_bell) + workers * sizeof(struct nic_ask);
}

/* A network under virtual time adds by itself. Which of the others do is not known yet. */
static int needs_boxes(const struct nic *nic)
{
	return strcmp(fabric_name(nic->fabric), "sim") != 0;
}

uint64_t asks_bytes(const struct nic *nic, uint32_t ranks, uint32_t workers)
{
	return box_at(workers) + (needs_boxes(nic) ? (uint64_t)BOXES * ranks * SLOTS * sizeof(struct request) : 0);
}

static struct nic_bell *bell_of(const struct nic *nic)
{
	return (struct nic_bell *)(nic->base + nic->shape.ask_at);
}

static struct nic_ask *line(const struct nic *nic, uint32_t worker)
{
	return (struct nic_ask *)(nic->base + nic->shape.ask_at + sizeof(struct nic_bell)) + worker;
}

static uint64_t offset(const struct asks *a, uint32_t rank, uint32_t box, uint32_t place)
{
	return a->box_at[rank] + ((uint64_t)box * a->places + place) * sizeof(struct request);
}

static struct request *at(const struct nic *nic, uint32_t box, uint32_t place)
{
	return (struct request *)(nic->base + nic->shape.ask_at + offset(nic->rma, nic->host->rank, box, place));
}

/* ---- samples --------------------------------------------------------------------------------------- */

void asks_close(struct nic *nic)
{
	const struct loom_host *host = nic->host;
	struct asks *a = nic->rma;
	if (!a)
		return;
	nic_bell_remove(a->place);
	if (a->bell >= 0)
		close(a->bell);
	host->free(host, a->theirs);
	host->free(host, a->box_at);
	host->free(host, a->memory);
	host->free(host, a->asking);
	host->free(host, a->holder);
	host->free(host, a->reply);
	host->free(host, a);
	nic->rma = NULL;
}

int asks_bell(const struct nic *nic)
{
	return nic->rma->bell;
}

void asks_begin(struct nic *nic)
{
	*bell_of(nic) = (struct nic_bell){.place = nic->rma->place};
	for (uint32_t w = 0; w < nic->workers; w++)
		nic->rma->asking[w].taken = 0;
}

void asks_heard(struct nic *nic)
{
	uint64_t rings;
	if (read(nic->rma->bell, &rings, sizeof(rings)) < 0)
		return; /* EAGAIN: heard before */
}

/* ---- this rank asks ---------------------------------------------------------------------------------- */

static void answer(struct nic *nic, uint32_t w, int status)
{
	struct asking *k = &nic->rma->asking[w];
	struct nic_ask *l = line(nic, w);
	k->state = FREE;
	if (k->epoch != nic->epoch)
		return;
	if (status)
		nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", l->rank, fabric_strerror(status));
	l->status = status;
	/* Release: pairs with the acquire in nic_await_answer(). */
	__atomic_store_n(&l->answered, k->taken, __ATOMIC_RELEASE);
	loom_fence_seq_cst_sys(); /* pairs with the fence there */
	if (__atomic_load_n(&l->sleeps, __ATOMIC_RELAXED))
		loom_wake(NULL, &l->answered, 1);
}

static int is_possible(const struct nic *nic, const struct nic_ask *l)
{
	const struct fabric *f = nic->fabric;
	if (l->rank >= nic->host->ranks)
		return 0;
	if (l->op == LOOM_NET_GET)
		return !fabric_check(f, nic->host->rank, l->local, l->bytes) && !fabric_check(f, l->rank, l->remote, l->bytes);
	return l->op == LOOM_NET_ADD && l->remote % 8 == 0 && !fabric_check(f, l->rank, l->remote, 8);
}

/* Puts `place` of one box of this rank into another box of rank `to`. */
static int put(struct nic *nic, uint32_t from, uint32_t to, uint32_t box, uint32_t mine, uint32_t theirs, uint32_t notify,
	       struct fabric_context *context, int *status)
{
	const struct asks *a = nic->rma;
	struct fabric_io io = {.op = LOOM_NET_PUT,
			       .target = to,
			       .local = a->own + offset(a, nic->host->rank, from, mine),
			       .remote = a->theirs[to] + offset(a, to, box, theirs),
			       .bytes = 2 * sizeof(uint64_t),
			       .notify = notify};
	return fabric_start(nic->fabric, &io, context, status);
}

/* Has the other rank's NIC add. */
static int request(struct nic *nic, uint32_t w, int *status)
{
	struct asks *a = nic->rma;
	struct asking *k = &a->asking[w];
	const struct nic_ask *l = line(nic, w);
	uint32_t slot = 0, first = l->rank * SLOTS, me = nic->host->rank * SLOTS;
	while (slot < SLOTS && a->holder[first + slot])
		slot++;
	if (slot == SLOTS)
		return LOOM_EAGAIN;
	*at(nic, SENT, first + slot) = (struct request){.at = l->remote, .value = l->value};
	int rc = put(nic, SENT, l->rank, TAKEN, first + slot, me + slot, REQUEST | (me + slot), &k->context, status);
	if (rc)
		return rc;
	k->place = first + slot;
	k->by_request = 1;
	a->holder[k->place] = w + 1;
	return 0;
}

static int start(struct nic *nic, uint32_t w)
{
	struct asking *k = &nic->rma->asking[w];
	const struct nic_ask *l = line(nic, w);
	int status = EINVAL, rc = LOOM_EINVAL;
	k->by_request = 0;
	if (is_possible(nic, l) && l->op == LOOM_NET_ADD && !nic->fabric->fetches) {
		rc = request(nic, w, &status);
	} else if (is_possible(nic, l)) {
		struct fabric_io io = {.op = l->op, .target = l->rank, .local = l->local, .remote = l->remote, .bytes = l->bytes};
		if (l->op == LOOM_NET_ADD) {
			io.local = nic->rma->own + sizeof(struct nic_bell) + w * sizeof(*l) + offsetof(struct nic_ask, value);
			io.bytes = 8;
			io.fetch = 1;
		}
		rc = fabric_start(nic->fabric, &io, &k->context, &status);
	}
	if (rc == LOOM_EAGAIN)
		return 0;
	k->state = FLIES;
	if (rc)
		answer(nic, w, status);
	return 1;
}

/* ---- other ranks ask ---------------------------------------------------------------------------------- */

static void send_reply(struct nic *nic, uint32_t place)
{
	struct replying *r = &nic->rma->reply[place];
	uint32_t to = place / SLOTS, theirs = nic->host->rank * SLOTS + place % SLOTS;
	int status = 0;
	at(nic, ANSWERED, place)->value = r->was;
	int rc = put(nic, ANSWERED, to, BACK, place, theirs, REPLY | theirs, &r->context, &status);
	r->state = rc == LOOM_EAGAIN ? BEGINS : rc ? FREE : FLIES;
	r->more = 0;
	if (r->state == FREE)
		nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", to, fabric_strerror(status));
}

/* Believes nothing that another rank wrote. */
static void obey(struct nic *nic, uint32_t place)
{
	struct asks *a = nic->rma;
	const struct request *q = at(nic, TAKEN, place);
	struct replying *r = &a->reply[place];
	if (q->at % 8 || fabric_check(nic->fabric, nic->host->rank, q->at, 8)) {
		nic_fail(nic, LOOM_EINVAL, "rank %u asks for memory that there is not", place / SLOTS);
		return;
	}
	/* Both orders: as if the worker there had done it here. */
	r->was = __atomic_fetch_add((uint64_t *)(a->memory[LOOM_REF_SEGMENT(q->at)] + LOOM_REF_OFFSET(q->at)), q->value,
				    __ATOMIC_ACQ_REL);
	if (r->state == FREE)
		send_reply(nic, place);
	else
		r->more = 1;
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static int arrive(struct nic *nic, uint64_t notify)
{
	struct asks *a = nic->rma;
	uint32_t place = (uint32_t)notify & (REPLY - 1), w;
	if (!(notify & (REQUEST | REPLY)) || place >= a->places)
		return 0;
	if (notify & REQUEST) {
		obey(nic, place);
		return 1;
	}
	w = a->holder[place];
	if (!w--)
		return 1;
	a->holder[place] = 0;
	line(nic, w)->was = at(nic, BACK, place)->value;
	if (a->asking[w].state == WAITS)
		answer(nic, w, 0);
	else /* the put is not known to be complete yet */
		a->asking[w].by_request = 0;
	return 1;
}

static int event(struct nic *nic, const void *context, int status)
{
	struct asks *a = nic->rma;
	const char *what = context;
	if (what >= (const char *)a->asking && what < (const char *)&a->asking[nic->workers]) {
		uint32_t w = (uint32_t)((uint64_t)(what - (const char *)a->asking) / sizeof(*a->asking));
		struct asking *k = &a->asking[w];
		if (!k->by_request || status)
			answer(nic, w, status);
		else
			k->state = WAITS;
		return 1;
	}
	if (what < (const char *)a->reply || what >= (const char *)&a->reply[a->places])
		return 0;
	uint32_t place = (uint32_t)((uint64_t)(what - (const char *)a->reply) / sizeof(*a->reply));
	struct replying *r = &a->reply[place];
	r->state = FREE;
	if (status)
		nic_fail(nic, LOOM_EIO, "an operation with rank %u failed: %s", place / SLOTS, fabric_strerror(status));
	else if (r->more)
		send_reply(nic, place);
	return 1;
}

/* Acquire: pairs with the release in nic_do_ask(). */
static uint32_t asked(const struct nic *nic, uint32_t w)
{
	return __atomic_load_n(&line(nic, w)->asked, __ATOMIC_ACQUIRE);
}

int asks_wait(const struct nic *nic)
{
	for (uint32_t w = 0; w < nic->workers; w++)
		if (asked(nic, w) != nic->rma->asking[w].taken)
			return 1;
	return 0;
}

static uint32_t serve(struct nic *nic)
{
	struct asks *a = nic->rma;
	uint32_t work = 0;
	for (uint32_t w = 0; w < nic->workers; w++) {
		struct asking *k = &a->asking[w];
		if (k->state == FREE && asked(nic, w) != k->taken) {
			k->taken++;
			k->state = BEGINS;
			k->epoch = nic->epoch;
		}
		if (k->state == BEGINS)
			work += (uint32_t)start(nic, w);
	}
	for (uint32_t p = 0; !nic->fabric->fetches && p < a->places; p++)
		if (a->reply[p].state == BEGINS)
			send_reply(nic, p);
	return work;
}

static int busy(const struct nic *nic)
{
	const struct asks *a = nic->rma;
	for (uint32_t w = 0; w < nic->workers; w++)
		if (a->asking[w].state != FREE)
			return 1;
	for (uint32_t p = 0; p < a->places; p++)
		if (a->reply[p].state != FREE)
			return 1;
	return 0;
}

static const struct asks_ops ops = {.serve = serve, .busy = busy, .event = event, .arrive = arrive};

/* ---- start ----------------------------------------------------------------------------------------- */

static loom_ref find(const struct loom_segments *s, const char *what)
{
	for (uint32_t i = 1; i < s->count; i++) {
		const char *from = s->at[i];
		if (from && what >= from && (uint64_t)(what - from) < s->bytes[i])
			return LOOM_REF(i, what - from);
	}
	return 0;
}

int asks_start(struct nic *nic, const struct loom_segments *segments, struct loom_error *err)
{
	const struct loom_host *host = nic->host;
	struct {
		loom_ref own;
		uint64_t box_at;
	} mine = {find(segments, nic->base + nic->shape.ask_at), box_at(nic->workers)}, *all;
	struct asks *a;
	/* libfabric 1.17's shm reads other memory than it is told, or crashes, when three ranks and more read from each other
	 * and put at the same time. Ranks of one host need it not: they reach each other's memory. */
	if (!strcmp(fabric_name(nic->fabric), "shm"))
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "%s: provider shm reads wrong memory where ranks steal from each other: say provider = auto or tcp in "
				 "[trigger], or choose trigger peer where all ranks are on one host",
				 nic->way->name);
	all = host->alloc(host, host->ranks * sizeof(*all));
	a = nic->rma = host->alloc(host, sizeof(*a));
	nic->asker = &ops;
	if (a) {
		a->bell = nic->fabric->fd < 0 ? -1 : loom_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		a->place = nic_bell_add(nic, bell_of(nic), a->bell);
		a->ranks = host->ranks;
		a->places = needs_boxes(nic) ? host->ranks * SLOTS : 0;
		a->own = mine.own;
		a->theirs = host->alloc(host, host->ranks * sizeof(*a->theirs));
		a->box_at = host->alloc(host, host->ranks * sizeof(*a->box_at));
		a->memory = host->alloc(host, segments->count * sizeof(*a->memory));
		a->asking = host->alloc(host, nic->workers * sizeof(*a->asking));
		a->holder = host->alloc(host, a->places * sizeof(*a->holder));
		a->reply = host->alloc(host, a->places * sizeof(*a->reply));
	}
	if (!all || !a || !a->theirs || !a->box_at || !a->memory || !a->asking || !a->holder || !a->reply) {
		host->free(host, all);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", nic->way->name);
	}
	memcpy(a->memory, segments->at, segments->count * sizeof(*a->memory));
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	for (uint32_t r = 0; !rc && r < host->ranks; r++) {
		uint64_t bytes = (uint64_t)BOXES * a->places * sizeof(struct request);
		if (a->places && (all[r].box_at > UINT32_MAX - bytes || all[r].own % 8 || all[r].box_at % 8 ||
				  fabric_check(nic->fabric, r, all[r].own, all[r].box_at + bytes)))
			rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: rank %u names a place for requests that it does not have",
				       nic->way->name, r);
		a->theirs[r] = all[r].own;
		a->box_at[r] = (uint32_t)all[r].box_at;
	}
	host->free(host, all);
	return rc;
}

