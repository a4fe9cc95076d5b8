/* SPDX-License-Identifier: Apache-2.0 */
/* scatter: a distributed histogram. Each worker draws keys and sends each key to the rank that owns its bin. The
 * kernel chooses the target and the place of a message at run time (GPU-TN, 3.4: dynamic communication). Device code.
 *
 * A worker has one post for its messages and one for its notes. A rank has an outbox, and an inbox for each rank. A
 * message has the same offset in the sender's outbox and in the target's inbox for the sender. So a fire needs only
 * one offset. At the end a worker sends each rank a note with the number of messages that it sent there. When all
 * notes have arrived, a rank knows how many messages to await. */
#ifndef WORKLOAD_SCATTER_DEV_H
#define WORKLOAD_SCATTER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../collective/net.dev.h"
#endif

#define SCATTER_TAG(worker) (1u + 2 * (worker)) /* tag of messages; notes have the next tag */
enum { SCATTER_MESSAGES = 1, SCATTER_NOTES };	/* indices of arrivals */
#define SCATTER_NONE 0xffffffffu

/* Head of the block for the stack, equal on all ranks. */
struct scatter {
	uint64_t records, per;	 /* keys of each worker; keys of a message */
	uint64_t bins;		 /* bins of each rank */
	uint64_t messages;	 /* upper limit on the messages of each worker */
	uint64_t message_bytes, rank_bytes; /* `rank_bytes`: size of a rank's outbox */
	uint64_t seed;
	uint32_t rank, ranks;
	uint64_t out_at, in_at; /* outbox: [worker][message]; inboxes: [rank][worker][message] */
	uint64_t note_out_at, note_in_at; /* notes to send and received notes, both [rank][worker] */
	uint64_t bins_at;
	uint64_t wrong; /* number of received keys that another rank owns */
	uint64_t pad[1];
};
/* The head of a message. The keys follow. */
struct scatter_message {
	uint64_t count; /* number of keys; 0: not received */
	uint64_t pad[7];
};
struct scatter_note {
	uint64_t sent;
	uint64_t pad[7];
};
/* A worker's own block. A struct scatter_open for each rank follows. */
struct scatter_own {
	uint64_t ns;
	uint64_t next; /* index of the first message that is not in use */
	uint64_t pad[6];
};
struct scatter_open {
	uint32_t message; /* index of the message that is being filled; SCATTER_NONE: none */
	uint32_t sent;
};

/* Returns key i of a worker. Rank key % ranks owns the key, in its bin key / ranks. */
LOOM_FN uint64_t scatter_key(const struct scatter *s, uint32_t rank, uint32_t workers, uint32_t worker, uint64_t i)
{
	uint64_t x = s->seed + (((uint64_t)rank * workers + worker) * s->records + i) * 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) % (s->bins * s->ranks);
}

/* Returns the offset of a message in bytes from the start of its rank's outbox. */
LOOM_FN uint64_t scatter_offset(const struct scatter *s, uint32_t worker, uint64_t message)
{
	return (worker * s->messages + message) * s->message_bytes;
}

LOOM_FN int scatter_fire(struct loom_ctx *c, uint64_t tag, uint32_t target, uint64_t offset)
{
	int rc = LOOM_CALL(trigger, fire_with, c, tag, LOOM_ARGUMENT(target, offset));
	if (rc && rc != LOOM_EINTR)
		loom_worker_fail(c, rc, tag);
	return rc == 0;
}

/* Sends the message that is being filled for rank `target`. Returns 1, or 0 when the run is over. */
LOOM_FN int scatter_send(struct loom_ctx *c, const struct scatter *s, struct scatter_open *open, uint32_t target)
{
	uint64_t offset = scatter_offset(s, c->worker, open[target].message);
	loom_stream(c, 2 * s->message_bytes);
	open[target].message = SCATTER_NONE;
	open[target].sent++;
	return scatter_fire(c, SCATTER_TAG(c->worker), target, offset);
}

/* Called by lane 0. Sends all keys of this worker, then its notes. Returns 1, or 0 when the run is over. */
LOOM_FN int scatter_keys(struct loom_ctx *c, const struct scatter *s)
{
	char *all = (char *)c->global[LOOM_WORKLOAD];
	struct scatter_own *own = (struct scatter_own *)c->own[LOOM_WORKLOAD];
	struct scatter_open *open = (struct scatter_open *)(own + 1);
	for (uint64_t i = 0; i < s->records; i++) {
		uint64_t key = scatter_key(s, s->rank, c->workers, c->worker, i);
		uint32_t owner = (uint32_t)(key % s->ranks);
		if (open[owner].message == SCATTER_NONE)
			open[owner].message = (uint32_t)own->next++;
		struct scatter_message *m =
			(struct scatter_message *)(all + s->out_at + scatter_offset(s, c->worker, open[owner].message));
		((uint64_t *)(m + 1))[m->count++] = key;
		if (m->count == s->per && !scatter_send(c, s, open, owner))
			return 0;
	}
	for (uint32_t r = 0; r < s->ranks; r++) {
		uint64_t at = ((uint64_t)r * c->workers + c->worker) * sizeof(struct scatter_note);
		if (open[r].message != SCATTER_NONE && !scatter_send(c, s, open, r))
			return 0;
		((struct scatter_note *)(all + s->note_out_at + at))->sent = open[r].sent;
		if (!scatter_fire(c, SCATTER_TAG(c->worker) + 1, r, at))
			return 0;
	}
	return 1;
}

/* Counts the received keys. This worker handles the messages of those workers of all ranks that have its index. */
LOOM_FN void scatter_count(struct loom_ctx *c, const struct scatter *s)
{
	char *all = (char *)c->global[LOOM_WORKLOAD];
	uint64_t *bins = (uint64_t *)(all + s->bins_at), wrong = 0;
	for (uint32_t r = 0; r < s->ranks; r++)
		for (uint64_t k = 0; k < s->messages; k++) {
			const struct scatter_message *m =
			    (const struct scatter_message *)(all + s->in_at + r * s->rank_bytes +
							     scatter_offset(s, c->worker, k));
			const uint64_t *key = (const uint64_t *)(m + 1);
			loom_stream(c, 2 * sizeof(uint64_t) * m->count);
			for (uint64_t i = c->lane; i < m->count; i += c->lanes)
				if (key[i] % s->ranks == s->rank)
					loom_fetch_add_relaxed_sys(&bins[key[i] / s->ranks], (uint64_t)1);
				else
					wrong++;
		}
	if (wrong)
		loom_fetch_add_relaxed_sys(&((struct scatter *)all)->wrong, wrong);
}

LOOM_FN void workload_scatter_kernel(struct loom_ctx *c)
{
	const struct scatter copy = LOOM_NET_HEAD(c, struct scatter), *s = &copy;
	uint64_t begin = loom_clock_ns(c), messages = 0;
	int going = c->lane == 0 ? scatter_keys(c, s) : 1;
	if (!loom_from_lane0(c, (uint64_t)going) || !loom_net_deliver(c) ||
	    !loom_net_await(c, SCATTER_NOTES, (uint64_t)s->ranks * c->workers))
		return;
	const struct scatter_note *note =
		(const struct scatter_note *)((char *)c->global[LOOM_WORKLOAD] + s->note_in_at);
	for (uint64_t i = 0; i < (uint64_t)s->ranks * c->workers; i++)
		messages += note[i].sent;
	if (!loom_net_await(c, SCATTER_MESSAGES, messages))
		return;
	scatter_count(c, s);
	loom_barrier_lanes(c);
	if (c->lane == 0)
		((struct scatter_own *)c->own[LOOM_WORKLOAD])->ns = loom_clock_ns(c) - begin;
}

#endif
