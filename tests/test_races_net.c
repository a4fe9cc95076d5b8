/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the device code of triggers, collectives, dependent tasks and the service path with the machine model of
 * docs/races.md. The NIC, the host and the other rank are fibers of another device, which use the same words and orders
 * as their code in plugins/trigger_common/nic, plugins/trigger_nic and plugins/qos. Payloads are plain words: the
 * sender writes them before a fire, and again after its completion; the receiver reads them after the arrival. So an
 * order that is missing is a race. */
#include <gpuloom/qos.h>
#include <gpuloom/sched.h>
#include <gpuloom/trigger.h>

#include "races_gpu.h"

#include "fake_host.h"
#include "lib/eventcount.h"
#include "races_lanes.h"
#include "races_weaken.h"

/* On GPUs a marked word is loaded and stored by one access. So the data of a mark are in a table, not in memory. */
static struct marked {
	const uint64_t *at;
	uint64_t mark, data;
} marked_words[4096];

__attribute__((no_sanitize("thread"))) static uint64_t *marked_data(const uint64_t *at, uint64_t mark)
{
	uint64_t i = ((uintptr_t)at * 31 + mark) * 0x9e3779b97f4a7c15ull >> 52;
	while (marked_words[i % COUNT(marked_words)].at &&
	       (marked_words[i % COUNT(marked_words)].at != at || marked_words[i % COUNT(marked_words)].mark != mark))
		i++;
	marked_words[i % COUNT(marked_words)].at = at;
	marked_words[i % COUNT(marked_words)].mark = mark;
	return &marked_words[i % COUNT(marked_words)].data;
}
__attribute__((no_sanitize("thread"))) static void marked_set(const uint64_t *at, uint64_t mark, uint64_t data)
{
	*marked_data(at, mark) = data;
}
__attribute__((no_sanitize("thread"))) static uint64_t marked_get(const uint64_t *at, uint64_t mark)
{
	return *marked_data(at, mark);
}

#undef loom_store_marked_sys
#define loom_store_marked_sys(p, v, mark)                                                                              \
	(__extension__({                                                                                               \
		marked_set(p, mark, v);                                                                                \
		RACES_STORE("store_marked_sys", &(p)[1], mark, RACE_RELAXED, RACE_SYS);                                \
	}))
#undef loom_load_marked_sys
#define loom_load_marked_sys(p, data)                                                                                  \
	(__extension__({                                                                                               \
		uint64_t mark_ = RACES_LOAD("load_marked_sys", &(p)[1], RACE_RELAXED, RACE_SYS);                       \
		*(data) = marked_get(p, mark_);                                                                        \
		mark_;                                                                                                 \
	}))

#include "../plugins/trigger_common/nic/bell.h"
#include "../plugins/trigger_common/nic/nic.dev.h"
#include "../plugins/trigger_nic/trigger_gds.dev.h"
#include "../plugins/trigger_nic/trigger_gputn.dev.h"
#include "../plugins/trigger_nic/trigger_hdn.dev.h"
#include "../plugins/trigger_nic/trigger_proxy.dev.h"

static struct loom_ctx ctx[RACE_FIBERS];
static struct loom_ctl ctl;
static struct loom_counters counters[RACE_FIBERS];

/* Waits on lane 0 until seen() is `n`, for all lanes. */
static void await(struct loom_ctx *c, int64_t (*seen)(struct loom_ctx *, uint32_t), uint32_t index, int64_t n)
{
	int64_t is = n;
	while (c->lane == 0 && (is = seen(c, index)) < n && is >= 0)
		loom__explore_pause();
	wrong(is < 0);
	loom_barrier_lanes(c);
}

/* ---- trigger_peer: the workers of two ranks, and a host thread of rank 0 that posts ------------------------- */

#include "../plugins/trigger_peer/trigger_peer.dev.h"

/* Tags, which are also arrival words and regions of the data: 4 words that rank 0 puts into the same place of rank 1.
 */
enum { BOTH = 1, CHAIN, TOGETHER, PAIR, ARGUMENT, LATE, ACK = 1, FAILS = 7, TAGS = 8, PEER_ROUNDS = 3, PEER_LANES = 2 };
static struct peer_memory {
	struct peer_head head;
	struct nic_slot slot[4];
	struct nic_arrival arrival[TAGS];
	struct peer_counter counter[TAGS];
	struct peer_post post[TAGS];
	struct peer_flat flat[TAGS];
	struct peer_flow flow[TAGS];
	struct peer_window window[2 * PEER_WINDOWS(2)];
	uint64_t stage[16] __attribute__((aligned(16)));
	uint64_t data[TAGS * 4];
	struct nic_device device;
	char *segment[2];
	uint32_t posts;
} peer[2];

/* Posts as trigger_peer.c does. The caller has claimed the counter, or no worker runs. */
static void peer_posts(const struct loom_ctx *c, uint32_t counter, uint32_t at, struct peer_post w)
{
	*peer_post(c, at) = w;
	peer_insert(c, peer_counter(c, counter), at);
}

static void peer_begin(uint32_t unused)
{
	(void)unused;
	memset(peer, 0, sizeof(peer));
	for (uint32_t r = 0; r < 2; r++) {
		struct peer_memory *m = &peer[r];
		m->device.shape = (struct nic_shape){.slots = COUNT(m->slot),
						     .arrivals = TAGS,
						     .extra = TAGS,
						     .slot_at = offsetof(struct peer_memory, slot),
						     .arrival_at = offsetof(struct peer_memory, arrival),
						     .extra_at = offsetof(struct peer_memory, counter)};
		m->head = (struct peer_head){.post_at = offsetof(struct peer_memory, post),
					     .window_at = offsetof(struct peer_memory, window),
					     .rank = r,
					     .ranks = 2,
					     .segments = 2,
					     .flat_at = offsetof(struct peer_memory, flat),
					     .stage_at = offsetof(struct peer_memory, stage),
					     .flats = TAGS};
		m->segment[1] = (char *)m->data;
		for (uint32_t q = 0; q < 2; q++) {
			struct peer_window *w = m->window + q * PEER_WINDOWS(2);
			w[1] = (struct peer_window){(uint64_t)(uintptr_t)peer[q].data, sizeof(peer[q].data)};
			w[2 + PEER_ARRIVALS] =
			    (struct peer_window){(uint64_t)(uintptr_t)peer[q].arrival, sizeof(peer[q].arrival)};
			w[2 + PEER_STAGE] =
			    (struct peer_window){(uint64_t)(uintptr_t)peer[q].stage, sizeof(peer[q].stage)};
		}
	}
	for (uint32_t i = 0; i < RACE_FIBERS; i++) {
		struct peer_memory *m = &peer[i / 4 % 2];
		ctx[i].segment = m->segment;
		ctx[i].global[LOOM_TRIGGER] = m;
		ctx[i].on_device[LOOM_TRIGGER] = &m->device;
	}
#define AT(tag) LOOM_REF(1, (tag)*32)
	static const struct {
		uint32_t rank;
		uint64_t tag;
		struct peer_post post;
	} posts[] = {
	    {0, BOTH, {2, 2, AT(BOTH), AT(BOTH), 32, 0, CHAIN, LOOM_NET_PUT, 1, 1, BOTH, 0, 0, 0, 0, 0, 0}},
	    {0, CHAIN, {1, 1, 0, 0, 0, 0, 0, LOOM_NET_COUNT, 1, 0, CHAIN, 0, 0, 0, 0, 0, 0}},
	    {0,
	     ARGUMENT,
	     {1, 1, AT(ARGUMENT), AT(ARGUMENT), 16, 16, 0, LOOM_NET_PUT, 1, 3, ARGUMENT, 0,
	      LOOM_NET_LOCAL_FROM_FIRE | LOOM_NET_REMOTE_FROM_FIRE, 0, 0, 0, 0}},
	    {1, ACK, {2, 2, 0, 0, 0, 0, 0, LOOM_NET_COUNT, 0, 0, ACK, 0, 0, 0, 0, 0, 0}},
	};
	for (size_t i = 0; i < COUNT(posts); i++) {
		const struct loom_ctx *c = &ctx[posts[i].rank * 4];
		peer_posts(c, peer_find(c, posts[i].tag), ++peer[posts[i].rank].posts, posts[i].post);
	}
	for (uint64_t tag = TOGETHER; tag <= PAIR; tag++) { /* as post_flat() in trigger_peer.c */
		uint32_t at = (uint32_t)((tag * 0x9e3779b97f4a7c15ull) >> 32);
		while (peer[0].flat[at % TAGS].tag)
			at++;
		peer[0].flat[at % TAGS] = (struct peer_flat){
		    .tag = tag,
		    .local = AT(tag),
		    .remote = AT(tag),
		    .line = (uint64_t)(uintptr_t)&peer[1].arrival[tag],
		    .to = (uint64_t)(uintptr_t)(tag == PAIR ? peer[1].data + 4 * tag : peer[1].stage),
		    .words = 4,
		    .threshold = tag == PAIR ? 2 : 1,
		    .notify = (uint32_t)tag,
		    .staged = tag == TOGETHER};
	}
}

/* Writes this lane's word of a region, or all words of its worker's half. */
static void peer_write(struct loom_ctx *c, uint32_t tag, uint64_t n)
{
	peer[0].data[4 * tag + 2 * c->worker + c->lane] = n;
}

static void peer_read(uint32_t tag, uint64_t n)
{
	for (uint32_t i = 0; i < 4; i++)
		wrong(peer[1].data[4 * tag + i] != n);
}

static void peer_sender(struct loom_ctx *c)
{
	for (uint64_t n = 1; n <= PEER_ROUNDS; n++) {
		if (n > 1)
			await(c, trigger_peer_completed, 1, (int64_t)n - 1);
		peer_write(c, BOTH, n); /* the put has read the region */
		if (n > 1)
			await(c, trigger_peer_completed, 3, 2 * ((int64_t)n - 1));
		peer_write(c, ARGUMENT, n);
		await(c, trigger_peer_arrived, ACK, (int64_t)n - 1);
		peer_write(c, PAIR, n);
		if (c->worker == 0)
			peer[0].data[4 * TOGETHER + c->lane] = peer[0].data[4 * TOGETHER + 2 + c->lane] = n;
		if (c->worker == 1 && n == 1)
			peer[0].data[4 * LATE + 2 * c->lane] = peer[0].data[4 * LATE + 2 * c->lane + 1] = n;
		loom_barrier_lanes(c);
		if (c->lane == 0) {
			wrong(trigger_peer_fire(c, BOTH, 1) | trigger_peer_fire(c, PAIR, 1));
			wrong(trigger_peer_fire_with(c, ARGUMENT, LOOM_ARGUMENT(1, 16 * c->worker)));
			wrong(c->worker == 1 && n < 3 && trigger_peer_fire(c, LATE, 1));
		}
		if (c->worker == 0)
			wrong(trigger_peer_fire_together(c, TOGETHER));
	}
	/* Worker 0 uses up the counters, and worker 1 waits for the failure. */
	if (c->worker == 0)
		await(c, trigger_peer_arrived, ACK, PEER_ROUNDS);
	for (uint64_t tag = 100; c->worker == 0 && c->lane == 0 && tag < 100 + TAGS; tag++)
		wrong(trigger_peer_fire(c, tag, 1));
	int64_t is = 0;
	while (c->worker == 1 && c->lane == 0 && (is = trigger_peer_arrived(c, FAILS)) >= 0)
		loom__explore_pause();
	wrong(is && is != LOOM_EFULL);
}

static void peer_receiver(struct loom_ctx *c)
{
	for (uint64_t n = 1; n <= PEER_ROUNDS; n++) {
		if (c->worker == 2) {
			await(c, trigger_peer_arrived, BOTH, (int64_t)n);
			peer_read(BOTH, n);
			await(c, trigger_peer_arrived, PAIR, (int64_t)n);
			peer_read(PAIR, n);
		} else {
			await(c, trigger_peer_arrived, CHAIN, (int64_t)n);
			peer_read(BOTH, n);
			await(c, trigger_peer_arrived, ARGUMENT, 2 * (int64_t)n);
			peer_read(ARGUMENT, n);
			int rc = trigger_peer_await_together(c, TOGETHER, n);
			wrong(rc < 0);
			if (!rc)
				await(c, trigger_peer_arrived, TOGETHER, (int64_t)n);
			peer_read(TOGETHER, n);
		}
		if (c->worker == 2 && n == PEER_ROUNDS) {
			await(c, trigger_peer_arrived, LATE, 2);
			peer_read(LATE, 1);
		}
		loom_barrier_lanes(c);
		wrong(c->lane == 0 && trigger_peer_fire(c, ACK, 1));
	}
}

/* The host posts while workers fire. Its second post takes the place of the first one. */
static void peer_host(struct loom_ctx *c)
{
	uint32_t at = ++peer[0].posts;
	for (uint32_t n = 1; n <= 2; n++) {
		uint32_t counter = peer_find(c, LATE);
		while (!peer_claim(peer_counter(c, counter)))
			loom__explore_pause();
		peer_posts(c, counter, at,
			   (struct peer_post){.threshold = n,
					      .local = AT(LATE),
					      .remote = AT(LATE),
					      .bytes = 32,
					      .op = n == 1 ? LOOM_NET_PUT : LOOM_NET_COUNT,
					      .target = 1,
					      .notify = LATE,
					      .state = PEER_WAITS});
		peer_serve(c, counter, 0);
		while (loom_load_acquire_sys(&peer_post(c, at)->state) != PEER_FREE) /* as free_post() */
			loom__explore_pause();
	}
}

static void peer_body(uint32_t i)
{
	(i < 4 ? peer_sender : i < 8 ? peer_receiver : peer_host)(&ctx[i]);
}

/* ---- triggers with a NIC --------------------------------------------------------------------------------------- */

enum { NET_ROUNDS = 3, NET_ENTRIES = 2, UNORDERED = 3, WITH, SHARED, NET_TAGS = 6, RECORDS = 8 };
enum net_way { BY_FIFO, BY_RECORDS, BY_RING };
static struct net_memory {
	struct nic_slot slot[NET_TAGS];
	struct nic_arrival arrival[NET_TAGS];
	struct nic_fifo fifo;
	uint64_t words[2 * NET_ENTRIES];
	struct nic_kernel_ends ends;
	struct proxy_entry table[4];
	struct proxy_ring ring;
	uint64_t descriptor[NET_ENTRIES * PROXY_WORDS];
	struct nic_bell bell;
	struct nic_rma rma[2];
	/* The device's block. */
	struct nic_device device;
	struct nic_ring producers;
	struct nic_cached cached[2 * NET_TAGS];
	struct net_record {
		struct nic_record head;
		uint64_t word[RECORDS];
	} record[2];
	/* payload: [worker][lane], written by workers; inbox: [tag][round], written by the NIC. */
	uint64_t payload[2][2], inbox[NET_TAGS][NET_ROUNDS + 1], got[NET_TAGS], cursor, together[2], added[2],
	    rma_word[2];
	uint32_t ended; /* number of lanes */
} net;
static char *net_segment[2];
static loom_ref net_registry[2];

static const struct net_trigger {
	int (*fire)(struct loom_ctx *, uint64_t, uint32_t);
	int (*boundary)(struct loom_ctx *);
	int64_t (*completed)(struct loom_ctx *, uint32_t), (*arrived)(struct loom_ctx *, uint32_t);
	enum net_way way;
	uint32_t link;
} net_triggers[] = {
    {trigger_gputn_fire, trigger_gputn_boundary, trigger_gputn_completed, trigger_gputn_arrived, BY_FIFO,
     NIC_LINK_MANY},
    {trigger_gputn_fire, trigger_gputn_boundary, trigger_gputn_completed, trigger_gputn_arrived, BY_FIFO,
     NIC_LINK_NONE},
    {trigger_gds_fire, trigger_gds_boundary, trigger_gds_completed, trigger_gds_arrived, BY_FIFO, 0},
    {trigger_hdn_fire, trigger_hdn_boundary, trigger_hdn_completed, trigger_hdn_arrived, BY_RECORDS, 0},
    {trigger_proxy_fire, trigger_proxy_boundary, trigger_proxy_completed, trigger_proxy_arrived, BY_RING, 0},
};
static const struct net_trigger *net_trigger;

int nic_help(const struct nic_bell *bell)
{
	(void)bell;
	loom__explore_pause();
	return 1;
}
void nic_leave(struct nic_bell *bell)
{
	(void)bell;
}
int nic_bell_fd(const struct nic_bell *bell)
{
	(void)bell;
	return -1;
}

static void net_begin(uint32_t which)
{
	net_trigger = &net_triggers[which];
	memset(&net, 0, sizeof(net));
	net_segment[1] = (char *)&net;
	net.device.shape = (struct nic_shape){
	    .entries = NET_ENTRIES,
	    .slots = NET_TAGS,
	    .arrivals = NET_TAGS,
	    .recorded = RECORDS,
	    .slot_at = offsetof(struct net_memory, slot),
	    .arrival_at = offsetof(struct net_memory, arrival),
	    .fifo_at = offsetof(struct net_memory, fifo),
	    .ends_at = offsetof(struct net_memory, ends),
	    .extra_at = offsetof(struct net_memory, table),
	    .extra = COUNT(net.table),
	    .link = net_trigger->link,
	    .rma_at = offsetof(struct net_memory, bell)};
	for (uint32_t w = 0; w < 2; w++)
		net_registry[w] = LOOM_REF(1, offsetof(struct net_memory, record) + w * sizeof(struct net_record));
	for (uint32_t i = 0; i < RACE_FIBERS; i++) {
		ctx[i].segment = net_segment;
		ctx[i].global[LOOM_TRIGGER] = &net;
		ctx[i].on_device[LOOM_TRIGGER] = &net.device;
		ctx[i].own[LOOM_TRIGGER] = &net.record[ctx[i].worker % 2];
		ctx[i].registry[LOOM_TRIGGER] = net_registry;
	}
}

/* Worker w fires tag w + 1 in each round. */
static void net_worker(struct loom_ctx *c)
{
	uint64_t tag = c->worker + 1, at = 0, was = 0;
	int fifo = net_trigger->boundary == trigger_gputn_boundary;
	for (uint64_t n = 1; n <= NET_ROUNDS; n++) {
		net.payload[c->worker][c->lane] = n; /* the NIC has read the payload of the round before */
		loom_barrier_lanes(c);
		if (c->lane == 0) {
			wrong(net_trigger->fire(c, tag, 1));
			if (fifo) {
				wrong(trigger_gputn_fire_relaxed(c, UNORDERED, 1));
				wrong(c->worker == 1 && trigger_gputn_fire_with(c, WITH, n));
			}
			if (fifo && n == 1) { /* both workers fire one message */
				net.together[c->worker] = 1;
				wrong(trigger_gputn_fire(c, SHARED, 1));
			}
			if (net_trigger->way == BY_RING)
				wrong(c->worker == 1 && trigger_proxy_fire_with(c, WITH, n));
		}
		wrong(net_trigger->boundary(c));
		await(c, net_trigger->completed, (uint32_t)tag, (int64_t)n);
		for (uint32_t t = 1; t <= 2; t++) {
			await(c, net_trigger->arrived, t, (int64_t)n);
			wrong(net.inbox[t][n] != n);
		}
		if (c->lane == 0 && net_trigger->way == BY_RING) { /* gets a word, then adds without waiting */
			wrong(trigger_proxy_rma(c, &(struct loom_rma){.op = LOOM_NET_GET, .bytes = n}, &at));
			wrong(net.rma_word[c->worker] != n || at != n);
			wrong(trigger_proxy_rma(c, &(struct loom_rma){.op = LOOM_NET_ADD, .value = 1}, NULL));
		}
	}
	if (c->lane == 0 && net_trigger->way == BY_RING)
		wrong(trigger_proxy_rma(c, &(struct loom_rma){.op = LOOM_NET_ADD}, &was) || was != NET_ROUNDS);
}

/* The NIC: counts the fires of a tag, reads the payload, delivers and completes. */
static void net_fired(uint64_t tag, uint64_t count, int has_argument, uint64_t argument)
{
	for (; count; count--) {
		uint64_t n = ++net.got[tag];
		wrong(has_argument && argument != n);
		if (tag == SHARED && n == 2)
			wrong(net.together[0] != 1 || net.together[1] != 1);
		if (tag > 2)
			continue;
		for (uint32_t lane = 0; lane < 2; lane++)
			wrong(net.payload[tag - 1][lane] != n);
		loom_store_release_sys((uint64_t *)&net.slot[tag].completed, n);
		net.inbox[tag][n] = n;
		loom_store_release_sys((uint64_t *)&net.arrival[tag].count, n);
	}
}

static void net_poll_fifo(void)
{
	uint64_t i = net.cursor & (NET_ENTRIES - 1), word = loom_load_acquire_sys(&net.words[i]);
	if ((word & 1) != nic_lap(net.cursor, NET_ENTRIES))
		return;
	net_fired(word >> 16, word >> 2 & NIC_COUNT_MAX, (word & 2) != 0, word & 2 ? net.words[NET_ENTRIES + i] : 0);
	loom_store_release_sys(&net.fifo.tail, ++net.cursor);
}

static void net_poll_rma(void)
{
	for (uint32_t w = 0; w < 2; w++) { /* as rma.c */
		struct nic_rma *a = &net.rma[w];
		uint32_t issued = loom_load_acquire_sys(&a->issued);
		if (issued == a->completed)
			continue;
		if (a->op == LOOM_NET_GET)
			net.rma_word[w] = a->was = a->bytes;
		if (a->op == LOOM_NET_ADD)
			net.added[w] = (a->was = net.added[w]) + a->value;
		loom_store_release_sys(&a->completed, issued);
	}
}

static void net_poll_records(void)
{
	uint64_t ended = loom_load_acquire_sys(&net.ends.ended);
	if (ended <= net.ends.begun)
		return;
	for (struct net_record *r = net.record; r < net.record + 2; r++) {
		for (uint64_t i = 0; i < r->head.fires; i++)
			net_fired(r->word[i] >> 16, r->word[i] >> 2 & NIC_COUNT_MAX, 0, 0);
		r->head.fires = 0;
	}
	loom_store_release_sys(&net.ends.begun, ended);
}

/* Takes a descriptor, and then changes the table's entry of tag 1, as trigger_proxy.c does after an operation. All
 * words of the new entry have the number of its version, so a reader detects a mixture. */
static void net_poll_ring(void)
{
	const uint64_t *d = &net.descriptor[(net.cursor & (NET_ENTRIES - 1)) * PROXY_WORDS];
	uint64_t word = loom_load_acquire_sys(&d[PROXY_COMMIT]), version;
	struct proxy_entry *e = &net.table[nic_hash(1) % COUNT(net.table)];
	if ((word & 1) != nic_lap(net.cursor, NET_ENTRIES))
		return;
	for (uint32_t k = 0; k < PROXY_BUILT && d[PROXY_ID]; k++)
		wrong(d[k] != d[PROXY_ID]);
	net_fired(word >> 16, word >> 2 & NIC_COUNT_MAX, (word & 2) != 0, d[PROXY_ARGUMENT]);
	loom_store_release_sys(&net.ring.tail, ++net.cursor);
	version = loom_load_relaxed_sys(&e->version);
	loom_store_relaxed_sys(&e->version, version + 1);
	for (uint32_t k = 0; k < PROXY_BUILT; k++)
		loom_store_release_sys(&e->word[k], version / 2 + 1);
	loom_store_release_sys(&e->version, version + 2);
	loom_store_release_sys(&e->tag, 1ull);
}

static void net_body(uint32_t i)
{
	static void (*const poll[])(void) = {net_poll_fifo, net_poll_records, net_poll_ring};
	if (i < 4) {
		net_worker(&ctx[i]);
		loom_fetch_add_relaxed_sys(&net.ended, 1u);
		return;
	}
	while (loom_load_relaxed_sys(&net.ended) < 4) {
		poll[net_trigger->way]();
		net_poll_rma();
		loom__explore_pause();
	}
}

/* ---- the service path ------------------------------------------------------------------------------------------ */

#define loom_nap(waited_ns, least_ns) loom__explore_pause()
#include "../plugins/qos/service.dev.h"

enum { QOS_SLOTS = 2, QOS_REQUESTS = 6 };
static struct qos_memory {
	struct qos_head head;
	uint64_t bits;
	uint32_t published[2];
	struct qos_slot slot[2][QOS_SLOTS];
	uint64_t answer[2][QOS_SLOTS];
	struct {
		struct qos_device_block head;
		struct qos_port port[2];
	} device;
	uint64_t ask[2][QOS_REQUESTS], reply[2][QOS_REQUESTS]; /* memory to which requests refer */
	uint32_t served[2], by_count;
} qos;

static void qos_begin(uint32_t by_count)
{
	memset(&qos, 0, sizeof(qos));
	qos.by_count = by_count;
	qos.head.notify = LOOM_QOS_POLL;
	qos.head.vectors = 1;
	qos.head.route = 1;
	qos.head.bits_at = offsetof(struct qos_memory, bits);
	qos.head.server_doorbell.event_fd = -1;
	for (uint32_t w = 0; w < 2; w++)
		qos.device.port[w] =
		    (struct qos_port){.published_at = offsetof(struct qos_memory, published) + w * sizeof(uint32_t),
				      .slot_at = offsetof(struct qos_memory, slot) + w * sizeof(qos.slot[0]),
				      .answer_at = offsetof(struct qos_memory, answer) + w * sizeof(qos.answer[0]),
				      .slots = QOS_SLOTS,
				      .shift = 1,
				      .by_count = by_count};
	for (uint32_t i = 0; i < 2; i++) {
		ctx[i].global[LOOM_QOS] = &qos;
		ctx[i].on_device[LOOM_QOS] = &qos.device;
	}
}

/* Worker 1 waits only for its last two requests, so it posts when a slot is free. */
static void qos_worker(struct loom_ctx *c)
{
	uint64_t id = 0;
	int64_t result = 0;
	for (uint64_t n = 0; n < QOS_REQUESTS; n++) {
		struct loom_request request = {.argument = n + 1};
		int rc;
		qos.ask[c->worker][n] = n + 1;
		while ((rc = qos_request(c, &request, &id)) == LOOM_EAGAIN)
			loom__explore_pause();
		wrong(rc || id != n);
		if (c->worker == 0 ? n % 2 == 0 : n < QOS_REQUESTS - 1)
			continue;
		for (uint64_t w = n - 1; w <= n; w++) {
			wrong(qos_wait(c, w, 0, &result) || result != (int64_t)w + 1);
			wrong(qos.reply[c->worker][w] != w + 1);
		}
	}
}

/* Serves the requests that a worker has published. */
static uint32_t qos_serve(uint32_t w)
{
	struct qos_port *p = &qos.device.port[w];
	uint32_t published = loom_load_acquire_sys(&qos.published[w]), done = 0;
	for (; qos.served[w] != published; qos.served[w]++, done++) {
		uint32_t n = qos.served[w], at = n % QOS_SLOTS;
		wrong(qos.slot[w][at].request.argument != n + 1 || qos.ask[w][n] != n + 1);
		qos.reply[w][n] = n + 1;
		loom_store_release_sys(&qos.answer[w][at], 2 * (n + 1) + qos_phase(n, p->shift));
	}
	return done;
}

/* The host sleeps at a doorbell after it has found no request. */
static void qos_host(void)
{
	struct qos_doorbell *d = qos.by_count ? &qos.head.server_doorbell : &qos.head.doorbell[0];
	while (qos.served[0] + qos.served[1] < 2 * QOS_REQUESTS) {
		uint32_t work = 0;
		if (qos.by_count)
			loom_store_relaxed_sys(&qos.head.wake_mask, 1ull);
		loom_store_release_sys(&d->armed, (uint32_t)QOS_ARMED); /* as qos_wake_arm() and qos_doorbells_arm() */
		loom_fence_seq_cst_sys();
		if (qos.by_count)
			work = qos_serve(0) + qos_serve(1);
		else
			work = loom_load_relaxed_sys(&qos.bits) != 0;
		while (!work && loom_load_relaxed_sys(&d->armed) == QOS_ARMED)
			loom__explore_pause();
		if (qos.by_count)
			continue;
		loom_exchange_acq_rel_sys(&d->armed, (uint32_t)QOS_DISARMED);
		loom_exchange_acq_rel_sys(&qos.bits, 0ull); /* as qos_fill() */
		loom_fence_seq_cst_sys();
		(void)qos_serve(0), (void)qos_serve(1);
	}
}

static void qos_body(uint32_t i)
{
	if (i < 2)
		qos_worker(&ctx[i]);
	else
		qos_host();
}

/* ---- collectives --------------------------------------------------------------------------------------------------
 */

static struct loom_ctx *me(void)
{
	return &ctx[loom__explore_now()];
}

/* Returns whether x is set in any thread of the block. */
__attribute__((no_sanitize("thread"))) static int any(int x)
{
	static int given[RACE_FIBERS][2];
	struct loom_ctx *c = me();
	uint32_t turn = c->turn ^= 1, first = loom__explore_now() - c->lane;
	int is = 0;
	given[first + c->lane][turn] = x;
	races_lanes(c);
	for (uint32_t l = 0; l < c->lanes; l++)
		is |= given[first + l][turn];
	return is;
}

static struct {
	uint32_t x;
} blockIdx, gridDim, threadIdx, blockDim;
#define LOOM_COMM_SYNC() races_lanes(me())
#define LOOM_COMM_ANY(x) any(x)
static uint32_t team_lanes = 64; /* a team of one lane needs no barrier */
#define LOOM_COMM_TEAM team_lanes
#define LOOM_COMM_TEAM_ANY(team, lanes, x) ((void)(lanes), x)
#include "races_comm.h"

/* ---- the last of several predecessors (dev/after.h) ------------------------------------------------------------- */

enum { LAST_DEVICES = 3, LAST_WORKERS = 6, LAST_TASKS = 3 };
static struct {
	struct loom_onebit_lock turn[LAST_DEVICES], *turns; /* turns: NULL if the devices are coherent */
	uint64_t local[LAST_DEVICES][LOOM_ONEBIT_LOCAL_BYTES / 8];
	uint64_t pending[LAST_TASKS], result[LAST_TASKS][LAST_WORKERS];
	uint32_t lasts, ended;
} after;

static void last_begin(uint32_t noncoherent)
{
	memset(&after, 0, sizeof(after));
	after.turns = noncoherent ? after.turn : NULL;
	for (uint32_t k = 0; k < LAST_TASKS; k++)
		after.pending[k] = LAST_WORKERS;
	for (uint32_t i = 0; i < LAST_WORKERS; i++) {
		ctx[i].devices = LAST_DEVICES;
		ctx[i].on_device[LOOM_WORKLOAD] = after.local[ctx[i].device];
	}
}

static void last_body(uint32_t w)
{
	struct loom_ctx *c = &ctx[w];
	for (uint32_t k = 0; k < LAST_TASKS; k++) {
		after.result[k][w] = k + 1;
		if (!(after.turns ? loom_last_noncoherent(c, after.turns, &after.pending[k])
				  : loom_last(c, &after.pending[k])))
			continue;
		loom_fetch_add_relaxed_sys(&after.lasts, 1u);
		for (uint32_t i = 0; i < LAST_WORKERS; i++)
			wrong(after.result[k][i] != k + 1);
	}
	if (loom_fetch_add_acq_rel_sys(&after.ended, 1u) == LAST_WORKERS - 1)
		wrong(loom_fetch_add_relaxed_sys(&after.lasts, 0u) != LAST_TASKS);
}

/* ---- allreduce of workloads, without posts: two ranks of two workers -----------------------------------------------
 */

#include "../plugins/workloads/collective/net.dev.h"

#include "../plugins/workloads/collective/allreduce.dev.h"

enum { SUM_RANKS = 2, SUM_WORKERS = 2, SUM_FLOATS = 16, SUM_ROUNDS = 4 };
static struct sum_memory {
	float input[SUM_FLOATS] __attribute__((aligned(16))), sum[SUM_FLOATS];
	uint64_t inbox[2 * SUM_RANKS * SUM_FLOATS], base[SUM_RANKS];
	struct loom_allreduce_flag flag[2 * SUM_RANKS * SUM_WORKERS];
} sum_memory[SUM_RANKS];
static struct loom_allreduce sums[SUM_RANKS];

static void sum_begin(uint32_t algorithm)
{
	uint32_t group = algorithm == LOOM_ALLREDUCE_TWOSHOT ? SUM_RANKS : 1;
	memset(sum_memory, 0, sizeof(sum_memory));
	for (uint32_t r = 0; r < SUM_RANKS; r++) {
		sums[r] = (struct loom_allreduce){.share = 1, .floats = SUM_FLOATS, .slice = SUM_FLOATS / SUM_WORKERS / group,
						  .rank = r, .ranks = SUM_RANKS, .group = group, .algorithm = algorithm, .cycle = 1,
						  .inbox_at = offsetof(struct sum_memory, inbox),
						  .base_at = offsetof(struct sum_memory, base),
						  .sum_at = offsetof(struct sum_memory, sum),
						  .flag_at = offsetof(struct sum_memory, flag)};
		for (uint32_t other = 0; other < SUM_RANKS; other++)
			sum_memory[r].base[other] = (uint64_t)(uintptr_t)&sum_memory[other];
	}
	for (uint32_t i = 0; i < RACE_FIBERS; i++) {
		ctx[i].global[LOOM_WORKLOAD] = &sum_memory[ctx[i].device % SUM_RANKS];
		ctx[i].worker %= SUM_WORKERS;
		ctx[i].workers = SUM_WORKERS;
	}
}

/* Each worker writes the input of its own slices, and reads the sums of these slices. */
static void sum_body(uint32_t fiber)
{
	struct loom_ctx *c = &ctx[fiber];
	const struct loom_allreduce *a = &sums[c->device];
	uint64_t begin, end;
	for (uint64_t round = 0; round < SUM_ROUNDS; round++) {
		struct loom_allreduce_at at = {.round = round};
		for (uint32_t run = 0; run < loom_allreduce_runs(a); run++) {
			loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
			for (uint64_t i = begin + c->lane; i < end; i += c->lanes)
				loom_allreduce_input(c, a, round)[i] = (float)((a->rank + 1) * (100 * round + i));
		}
		wrong(!loom_allreduce_finish(c, a, &at, 1));
		for (uint32_t run = 0; run < loom_allreduce_runs(a); run++) {
			loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
			for (uint64_t i = begin; i < end; i++)
				wrong(loom_allreduce_sums(c, a, round)[i] != (float)(3 * (100 * round + i)));
		}
		loom_barrier_lanes(c);
	}
}

/* ---- experts in parallel: two ranks of two workers --------------------------------------------------------------- */

#include "../plugins/workloads/tasks/task.dev.h"
#include "../plugins/workloads/tasks/tile.dev.h"

#include "../plugins/workloads/tasks/workload_dispatch.dev.h"

enum { ROW_RANKS = 2, ROW_WORKERS = 2, ROW_TOKENS = 2, ROW_TOP = 2, ROW_EXPERTS = 4, ROW_DIM = 16, ROW_ROUNDS = 2 };
static struct row_memory {
	struct dispatch head;
	uint64_t base[ROW_RANKS], meet[ROW_RANKS * ROW_WORKERS], done[ROW_TOKENS * ROW_RANKS];
	uint64_t note[ROW_RANKS * ROW_TOKENS][8];
	uint64_t stamp[ROW_WORKERS][(ROW_ROUNDS + 1) * DISPATCH_STAMPS];
	uint32_t choice[ROW_TOKENS][ROW_TOP];
	uint16_t x[ROW_TOKENS][ROW_DIM] __attribute__((aligned(16))), factor[ROW_EXPERTS][ROW_DIM],
	    in[ROW_RANKS * ROW_TOKENS][ROW_DIM], back[ROW_TOKENS * ROW_RANKS][ROW_DIM], out[2 * ROW_TOKENS][ROW_DIM];
} row_memory[ROW_RANKS];

/* Rank 0 has the experts 0 and 1. Rank 1 has one token, whose experts it has itself, so rank 0 gets two empty notes. */
static const uint32_t row_choice[ROW_RANKS][ROW_TOKENS][ROW_TOP] = {{{0, 2}, {3, 1}}, {{3, 2}, {0, 0}}};

static void row_begin(uint32_t unused)
{
	(void)unused;
	memset(row_memory, 0, sizeof(row_memory));
	for (uint32_t r = 0; r < ROW_RANKS; r++) {
		struct row_memory *m = &row_memory[r];
#define ROW_AT(what) .what##_at = offsetof(struct row_memory, what)
		m->head = (struct dispatch){.rank = r, .ranks = ROW_RANKS, .own = r ? 1 : ROW_TOKENS, .most = ROW_TOKENS,
					    .experts = ROW_EXPERTS, .top = ROW_TOP, .dim = ROW_DIM, .rounds = ROW_ROUNDS,
					    .note_bytes = sizeof(m->note[0]), ROW_AT(base), ROW_AT(meet), ROW_AT(choice), ROW_AT(x),
					    ROW_AT(factor), ROW_AT(note), ROW_AT(in), ROW_AT(done), ROW_AT(back), ROW_AT(out)};
		memcpy(m->choice, row_choice[r], sizeof(m->choice));
		for (uint32_t q = 0; q < ROW_RANKS; q++)
			m->base[q] = (uint64_t)(uintptr_t)&row_memory[q];
		for (uint32_t j = 0; j < ROW_DIM; j++) {
			for (uint32_t t = 0; t < ROW_TOKENS; t++)
				m->x[t][j] = (uint16_t)dispatch_round((float)(1 + r + t));
			for (uint32_t e = 0; e < ROW_EXPERTS; e++)
				m->factor[e][j] = (uint16_t)dispatch_round((float)(1 + e));
		}
	}
	for (uint32_t i = 0; i < RACE_FIBERS; i++) {
		struct row_memory *m = &row_memory[ctx[i].device % ROW_RANKS];
		ctx[i].worker %= ROW_WORKERS;
		ctx[i].workers = ROW_WORKERS;
		ctx[i].global[LOOM_WORKLOAD] = m;
		ctx[i].own[LOOM_WORKLOAD] = m->stamp[ctx[i].worker];
	}
}

static void row_check(const struct dispatch *d, const struct row_memory *m, uint32_t token, uint32_t which)
{
	float sum = 0;
	for (uint32_t k = 0; k < ROW_TOP; k++)
		sum += dispatch_weight(d->rank, token, k) * (float)(1 + row_choice[d->rank][token][k]) * (float)(1 + d->rank + token);
	for (uint32_t j = 0; j < ROW_DIM && token < d->own; j++)
		wrong(m->out[which * ROW_TOKENS + token][j] != dispatch_round(sum));
}

/* The rounds, then the step. */
static void row_body(uint32_t fiber)
{
	struct loom_ctx *c = &ctx[fiber];
	struct row_memory *m = c->global[LOOM_WORKLOAD];
	const struct dispatch *d = &m->head;
	for (uint64_t round = 1; round <= ROW_ROUNDS; round++) {
		wrong(!dispatch_one_round(c, d, round));
		row_check(d, m, c->worker, 0);
		loom_barrier_lanes(c);
		for (uint32_t j = c->lane; j < ROW_DIM; j += c->lanes) /* overwritten, as another job would */
			m->out[c->worker][j] = 0;
	}
	wrong(!dispatch_meet(c, d, 2 * ROW_ROUNDS + 1));
	dispatch_send(c, d, ROW_ROUNDS + 1);
	for (uint64_t i = c->worker; i < ROW_RANKS * ROW_TOKENS; i += ROW_WORKERS) {
		struct loom_task task = {.param = {i}};
		workload_dispatch_row(c, &task);
	}
	wrong(c->worker < d->own && !dispatch_combine(c, d, c->worker, ROW_ROUNDS + 1, 1));
	loom_barrier_lanes(c);
	row_check(d, m, c->worker, 1);
}

/* ---- schedules -------------------------------------------------------------------------------------------------- */

static void comm_two(uint32_t lanes)
{
	comm_begin(2, lanes);
}
static void comm_three(uint32_t lanes)
{
	comm_begin(3, lanes);
}
static void comm_teams(uint32_t lanes)
{
	comm_begin(3, lanes);
	team_lanes = 1;
}

/* Fibers from `others` on have one lane, and a device of their own. */
static const struct scene {
	const char *name;
	void (*begin)(uint32_t), (*body)(uint32_t);
	uint32_t which, n, lanes, per_device, others;
} scenes[] = {
    {"peer", peer_begin, peer_body, 0, 9, PEER_LANES, 4, 8},
    {"gputn, many", net_begin, net_body, 0, 5, 2, 4, 4},
    {"gputn", net_begin, net_body, 1, 5, 2, 4, 4},
    {"gds", net_begin, net_body, 2, 5, 2, 4, 4},
    {"hdn", net_begin, net_body, 3, 5, 2, 4, 4},
    {"proxy", net_begin, net_body, 4, 5, 2, 4, 4},
    {"qos", qos_begin, qos_body, 0, 3, 1, 2, 2},
    {"qos by count", qos_begin, qos_body, 1, 3, 1, 2, 2},
    {"last", last_begin, last_body, 0, 6, 1, 2, 6},
    {"last, non-coherent", last_begin, last_body, 1, 6, 1, 2, 6},
    {"oneshot", sum_begin, sum_body, LOOM_ALLREDUCE_ONESHOT, 8, 2, 4, 8},
    {"twoshot", sum_begin, sum_body, LOOM_ALLREDUCE_TWOSHOT, 8, 2, 4, 8},
    {"pull", sum_begin, sum_body, LOOM_ALLREDUCE_PULL, 8, 2, 4, 8},
    {"dispatch", row_begin, row_body, 0, 8, 2, 4, 8},
    {"collectives, two ranks", comm_two, comm_body, 1, 2, 1, 1, 2},
    {"collectives, two lanes", comm_two, comm_body, 2, 4, 2, 2, 4},
    {"collectives, three ranks", comm_three, comm_body, 2, 6, 2, 2, 6},
    {"collectives, two teams", comm_teams, comm_body, 2, 6, 2, 2, 6},
};

static void explore_scene(const struct scene *s, uint64_t first, uint64_t count, int quiet)
{
	const char *fault = NULL;
	uint8_t device[RACE_FIBERS];
	for (uint64_t seed = first; seed < first + count && !fault; seed++) {
		memset(races_block, 0, sizeof(races_block));
		memset(ctx, 0, sizeof(ctx));
		memset(&ctl, 0, sizeof(ctl));
		for (uint32_t i = 0; i < RACE_FIBERS; i++) {
			uint32_t worker = i < s->others ? i / s->lanes : s->others / s->lanes + i - s->others;
			device[i] = (uint8_t)(i / s->per_device);
			/* The host thread of trigger_peer works on the memory of rank 0. */
			if (s->body == peer_body && i >= s->others)
				device[i] = 0;
			ctx[i].worker = worker;
			ctx[i].device = device[i];
			ctx[i].lane = i < s->others ? i % s->lanes : 0;
			ctx[i].lanes = i < s->others ? s->lanes : 1;
			ctx[i].count = s->per_device / s->lanes;
			ctx[i].first = device[i] * ctx[i].count;
			ctx[i].ctl = &ctl;
			ctx[i].counters = &counters[i];
		}
		team_lanes = 64;
		s->begin(s->body == comm_body ? s->lanes : s->which);
		fault = races_run(s->n, device, s->body, seed, 600);
		if (fault && quiet)
			_exit(1);
		if (fault)
			fprintf(stderr, "%s, seed %llu: %s\n", s->name, (unsigned long long)seed, fault);
	}
	CU_ASSERT_PTR_NULL(fault);
}

static void explore(uint64_t first, uint64_t count, int quiet)
{
	const char *only = getenv("RACES_SCENE");
	for (const struct scene *s = scenes; s < scenes + COUNT(scenes); s++)
		if (!only || strstr(s->name, only))
			explore_scene(s, first, count, quiet);
}

TEST(shipped)
{
	explore(0, 200, 0);
	printf("%llu schedules\n", (unsigned long long)*races_schedules);
}

static void explore_more(void)
{
	explore(0, 10, 1);
	explore(10, 190, 1);
}

TEST(weakened)
{
	static const struct races_known known[] = {
	    {"loom_comm_gives_up", "load_acquire_sys", RACE_ACQUIRE, RACES_UNREACHED}, /* no rank closes or dies */
	    /* Only the order of a store and a load counts; the published count releases the request. */
	    {"qos_request", "fence_seq_cst_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"qos_request", "fence_seq_cst_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"qos_request", "fetch_or_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"qos_request", "fetch_or_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"qos_doorbell_ring", "exchange_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"qos_doorbell_ring", "exchange_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"qos_doorbell_ring", "fetch_add_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"qos_doorbell_ring", "fetch_add_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"qos_wake_server", "exchange_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"qos_wake_server", "exchange_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"qos_wake_server", "load_acquire_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"qos_notify_host", "fetch_add_acq_rel_sys", RACE_ACQUIRE, RACES_UNREACHED}, /* no moderation */
	    {"qos_notify_host", "fetch_add_acq_rel_sys", RACE_RELEASE, RACES_UNREACHED},
	    {"peer_claim", "cas_acq_rel_dev", RACE_RELEASE,
	     RACES_SUPERFLUOUS}, /* the taker of a lock releases nothing */
	    {"peer_serve", "cas_acq_rel_dev", RACE_ACQUIRE,
	     RACES_SUPERFLUOUS}, /* if it fails, an acquire load follows */
	    /* No other lane serves the counter of the chain when the chain adds to it. */
	    {"peer_first", "fetch_add_acq_rel_dev", RACE_ACQUIRE, RACES_OPEN},
	    {"peer_first", "fetch_add_acq_rel_dev", RACE_RELEASE, RACES_OPEN},
	    {"peer_first", "store_release_sys", RACE_RELEASE, RACES_OPEN}, /* the host claims the same counter again */
	    {"peer_first", "store_release_dev", RACE_RELEASE, RACES_UNREACHED}, /* no operation with a slot fails */
	    {"peer_add_floats", "cas_acq_rel_sys", RACE_ACQUIRE, RACES_UNREACHED},
	    {"peer_add_floats", "cas_acq_rel_sys", RACE_RELEASE, RACES_UNREACHED},
	    {"peer_fail", "cas_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS}, /* release stores follow */
	    {"peer_fail", "cas_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"peer_find", "cas_acq_rel_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS}, /* the tag publishes no other data */
	    {"peer_find", "cas_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},
	    /* The copy of a word could go back. No test reads it again. */
	    {"nic_poll_word", "store_release_dev", RACE_RELEASE, RACES_OPEN},
	    {"nic_poll_word", "exchange_acq_rel_dev", RACE_ACQUIRE, RACES_OPEN},
	    {"nic_poll_word", "exchange_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"nic_await_slot", "store_release_dev", RACE_RELEASE, RACES_OPEN},
	    {"nic_await_slot", "exchange_acq_rel_dev", RACE_ACQUIRE, RACES_OPEN},
	    {"nic_await_slot", "exchange_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"proxy_read_entry", "load_acquire_sys", RACE_ACQUIRE,
	     RACES_SUPERFLUOUS}, /* an incomplete entry has no id */
	    /* The fence follows the lock. It also releases the last turn before the device gives way. */
	    {"loom_last_noncoherent", "cas_acq_rel_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"loom_last_noncoherent", "cas_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"loom_onebit_lock_acquire", "fence_seq_cst_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"loom_onebit_lock_acquire", "fence_seq_cst_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"loom_onebit_lock_acquire", "store_release_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	};
	races_weaken(known, COUNT(known), explore_more);
}

TEST_MAIN("races_net", 300)
