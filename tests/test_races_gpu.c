/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the code for GPUs of barrier and sync plug-ins with the machine model of docs/races.md. Each lane writes a plain
 * word before a round of a barrier, and reads those of all lanes of the scope after it. Items of channels are plain
 * words, too. So an order that is missing is a race. */
#include <gpuloom/barrier.h>
#include <gpuloom/sync.h>

#include "races_gpu.h"
#undef loom_barrier_lanes
#undef loom_from_lane0

#include "fake_host.h"
#include "rig/rig.h"
#include "races_lanes.h"
#include "races_weaken.h"

extern const struct loom_barrier_dev races_barrier_auto, races_barrier_central, races_barrier_dissemination,
    races_barrier_flags, races_barrier_release, races_barrier_tree;
extern const struct loom_sync_dev races_sync_backoff, races_sync_poll;
static const struct part {
	const char *name, *opts;
	const void *dev;
	int drops, kind;
} parts[] = {{"barrier_auto", NULL, &races_barrier_auto, 1, LOOM_BARRIER},
	     {"barrier_central", NULL, &races_barrier_central, 1, LOOM_BARRIER},
	     {"barrier_dissemination", NULL, &races_barrier_dissemination, 0, LOOM_BARRIER},
	     {"barrier_flags", NULL, &races_barrier_flags, 0, LOOM_BARRIER},
	     {"barrier_release", NULL, &races_barrier_release, 1, LOOM_BARRIER},
	     {"barrier_tree", NULL, &races_barrier_tree, 0, LOOM_BARRIER},
	     {"barrier_tree", "arity=2", &races_barrier_tree, 0, LOOM_BARRIER},
	     {"sync_backoff", NULL, &races_sync_backoff, 0, LOOM_SYNC},
	     {"sync_poll", NULL, &races_sync_poll, 0, LOOM_SYNC},
	     {"sync_poll", "probe=atomic transfer=push", &races_sync_poll, 0, LOOM_SYNC},
	     {"sync_poll", "transfer=demand", &races_sync_poll, 0, LOOM_SYNC}};

/* leave: a bit for each worker; 1: it leaves after two rounds. mixed: the first device is a CPU, so the devices have no
 * lines, and with 4 devices one worker of each GPU relays. late: between arrive and await, workers with even numbers
 * wait until the next worker has ended the round. */
static const struct setup {
	uint32_t devices, workers, lanes, scope, split, leave, mixed, late;
} setups[] = {
    {1, 3, 1, LOOM_SCOPE_DEVICE, 0, 0, 0, 0}, {1, 3, 2, LOOM_SCOPE_DEVICE, 1, 0, 0, 0},
    {2, 4, 1, LOOM_SCOPE_STACK, 0, 0, 0, 0},  {2, 5, 2, LOOM_SCOPE_STACK, 1, 0, 0, 0},
    {2, 4, 1, LOOM_SCOPE_STACK, 0, 10, 0, 0}, {1, 4, 1, LOOM_SCOPE_DEVICE, 0, 5, 0, 0},
    {2, 4, 2, LOOM_SCOPE_STACK, 0, 0, 1, 0},  {2, 4, 1, LOOM_SCOPE_STACK, 0, 3, 0, 0},
    {2, 5, 1, LOOM_SCOPE_STACK, 0, 28, 1, 0}, {4, 8, 1, LOOM_SCOPE_STACK, 1, 0, 1, 1},
};

enum { ROUNDS = 4 };
static struct {
	const struct setup *setup;
	struct loom__rig rig;
	uint32_t ended[8];       /* [worker]: the number of rounds that it has ended */
	uint32_t wrote[2][8][2]; /* [round % 2][worker][lane]: the round, by plain stores */
} now;

static int meet(struct loom_ctx *c, enum loom_scope scope, uint32_t split)
{
	if (!split)
		return c->barrier->wait(c, scope);
	int rc = c->barrier->arrive(c, scope);
	while (now.setup->late && c->worker % 2 == 0 &&
	       __atomic_load_n(&now.ended[c->worker + 1], __ATOMIC_RELAXED) == now.ended[c->worker])
		loom__explore_pause();
	if (!rc)
		rc = c->barrier->test(c, scope);
	return rc == LOOM_EAGAIN ? c->barrier->await(c, scope, 0) : rc;
}

static void body(uint32_t i)
{
	struct loom_ctx *c = &now.rig.ctx[i];
	const struct setup *s = now.setup;
	enum loom_scope scope = (enum loom_scope)s->scope;
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		int leaves = s->leave >> c->worker & 1 && round == 2 + c->worker % 2;
		now.wrote[round % 2][c->worker][c->lane] = round;
		if (leaves) {
			wrong(c->barrier->drop(c, scope) != 0);
			return;
		}
		wrong(meet(c, scope, s->split && round % 2) != 0);
		__atomic_store_n(&now.ended[c->worker], round, __ATOMIC_RELAXED);
		for (uint32_t w = 0; w < c->workers; w++)
			for (uint32_t l = 0; l < c->lanes; l++)
				wrong((now.wrote[round % 2][w][l] != round) & !s->leave);
	}
}

/* The default channels of the rig: 0 has 4 slots of 64 bytes, 1 has one slot of 200 bytes and two readers. */
static const uint32_t words_of[] = {64 / 4, 200 / 4}, tags_of[] = {6, 3};

static void produce(struct loom_ctx *c, uint32_t channel)
{
	static uint32_t item[2][64];
	for (uint32_t tag = 0; tag < tags_of[channel]; tag++) {
		void *at = item[channel];
		if (tag % 2)
			wrong(c->sync->reserve(c, channel, tag, 0, &at) != 0);
		for (uint32_t i = c->lane; i < words_of[channel]; i += c->lanes)
			((uint32_t *)at)[i] = tag * 64 + i;
		races_lanes(c); /* publish() copies, and each lane copies words that other lanes have written */
		wrong(c->sync->publish(c, channel, tag, tag % 2 ? NULL : at, 4 * words_of[channel], 0) != 0);
		races_lanes(c);
	}
}

static void consume(struct loom_ctx *c, uint32_t channel)
{
	for (uint32_t tag = 0; tag < tags_of[channel]; tag++) {
		const void *data = NULL;
		wrong(tag % 3 ? c->sync->wait(c, channel, tag, 0, &data)
			      : c->sync->wait_all(c, channel, &tag, 1, 0, &data));
		for (uint32_t i = 0; i < words_of[channel] && data; i++)
			wrong(((const uint32_t *)data)[i] != tag * 64 + i);
		wrong(c->sync->release(c, channel, tag) != 0);
	}
}

/* Workers 0 to 2 are on the first device. Channel 0 leads from worker 3 to worker 0, channel 1 from worker 2 to 0
 * and 1. */
static void exchange(uint32_t i)
{
	struct loom_ctx *c = &now.rig.ctx[i];
	if (c->worker >= 2)
		produce(c, c->worker == 2);
	if (c->worker == 0)
		consume(c, 0);
	if (c->worker < 2)
		consume(c, 1);
}

/* Explores `count` schedules of the setup. Ends the process at the first fault if `quiet`. */
static void explore_setup(const struct part *part, const struct setup *s, uint64_t first, uint64_t count, int quiet)
{
	const struct loom_barrier_scopes scopes = {.drops = s->leave > 0};
	struct loom__rig_want want = {
	    .devices = s->devices,
	    .workers = s->workers,
	    .lanes = s->lanes,
	    .first = part->kind == LOOM_SYNC ? 3 : 0,
	    .kind = {s->mixed ? LOOM_ON_CPU : LOOM_ON_GPU, LOOM_ON_GPU, LOOM_ON_GPU, LOOM_ON_GPU},
	    .barrier_scopes = &scopes,
	    .one_view = 1};
	struct loom_error err = {0};
	const char *what, *fault = NULL;
	const struct loom_plugin *p = fake_load(part->name);
	uint8_t device[RACE_FIBERS];
	now.setup = s;
	want.table[part->kind] = part->dev;
	loom__rig_shape(&now.rig, &want);
	fake_must(!loom__rig_add(&now.rig, p, &fake_host, fake_settings(p, part->opts), &err), "add", &err);
	fake_must(!loom__rig_need(&now.rig, &err) && !loom__rig_furnish(&now.rig), "need", &err);
	fake_must(!loom__rig_begin(&now.rig, &what, &err), "begin", &err);
	for (uint64_t seed = first; seed < first + count && !fault; seed++) {
		fake_must(!loom__rig_init(&now.rig, &err), "init", &err);
		memset(races_block, 0, sizeof(races_block));
		memset(now.wrote, 0, sizeof(now.wrote));
		memset(now.ended, 0, sizeof(now.ended));
		for (uint32_t f = 0; f < s->workers * s->lanes; f++)
			device[f] = (uint8_t)now.rig.ctx[f].device;
		fault = races_run(s->workers * s->lanes, device, part->kind == LOOM_SYNC ? exchange : body, seed, 400);
		if (fault && quiet)
			_exit(1);
		if (fault)
			fprintf(stderr, "%s %s, setup %d, seed %llu: %s\n", part->name, part->opts ? part->opts : "",
				(int)(s - setups), (unsigned long long)seed, fault);
	}
	CU_ASSERT_PTR_NULL(fault);
	loom__rig_close(&now.rig);
}

static void explore(uint64_t first, uint64_t count, int quiet)
{
	static const struct setup channels[] = {{2, 4, 1, 0, 0, 0, 0, 0}, {2, 4, 2, 0, 0, 0, 0, 0}};
	for (const struct part *p = parts; p < parts + COUNT(parts); p++)
		for (const struct setup *s = p->kind == LOOM_SYNC ? channels : setups,
					*end = s + (p->kind == LOOM_SYNC ? COUNT(channels) : COUNT(setups));
		     s < end; s++)
			if (!s->leave || p->drops)
				explore_setup(p, s, first, count, quiet);
}

TEST(shipped)
{
	explore(0, 100, 0);
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
	    /* the fence of barrier_release() comes before this store */
	    {"barrier_close_device", "store_release_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"barrier_stop_code", "load_acquire_sys", RACE_ACQUIRE, RACES_UNREACHED}, /* no run is stopped */
	    {"barrier_store", "store_release_sys", RACE_RELEASE, RACES_UNREACHED}, /* only CPUs call it with wide = 1 */
	    {"sync_store_rounds", "fetch_add_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS}, /* it only publishes */
	    {"sync_await", "fetch_add_acquire_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS}, /* sync_acquire() follows */
	    {"sync_poisoned", "load_acquire_sys", RACE_ACQUIRE, RACES_UNREACHED},     /* no wait is poisoned */
	    {"sync_poisoned", "fence_acquire_sys", RACE_ACQUIRE, RACES_UNREACHED},
	};
	races_weaken(known, COUNT(known), explore_more);
}

TEST_MAIN("races_gpu", 120)
