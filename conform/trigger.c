/* SPDX-License-Identifier: Apache-2.0 */
/* Triggers: an operation runs once, in order, when its counter has reached its threshold, whether fire or post comes
 * first. All operations are within one rank. */
#include <gpuloom/trigger.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conform/stand.h"
#include "conform/tests.h"

enum { BYTES = 256, BUFFERS = 8, MOST_FIRES = 400 };

struct net {
	uint64_t trial, rough;
	uint64_t tag; /* The calls of the workers. */
	uint32_t fires, count; /* the number of fires of each worker, and the count of each fire */
	uint32_t await_slot, absent;
	int64_t await_count; /* wait for this many completions in the slot; 0: do not wait */
	uint64_t late;       /* workers whose wait timed out */
	uint64_t left;       /* workers whose boundary returned LOOM_EINTR */
	unsigned char buffer[BUFFERS][BYTES] __attribute__((aligned(64)));
};

struct wire {
	struct loom__rig rig;
	const struct loom_trigger_ops *ops;
	void *self;
	struct net *net;
	struct loom__trial *t;
};

static struct net *net_of(const struct loom_ctx *c)
{
	return c->global[LOOM_WORKLOAD];
}

static void body(struct loom_ctx *c)
{
	struct net *n = net_of(c);
	int code = 0;
	if (c->workers == 1 && n->fires) /* the data to send */
		loom__note_write(n->buffer[0], BYTES);
	for (uint32_t i = 0; i < n->fires && !code && c->lane == 0; i++) {
		if (n->rough)
			loom__dawdle(c);
		code = c->trigger->fire(c, n->tag, n->count);
	}
	if (!code)
		code = c->trigger->deliver(c);
	if (code && !loom_stopped(c))
		loom__fault((struct loom__trial *)(uintptr_t)n->trial,
			    "fire() or deliver() returns %d to worker %u", code, c->worker);
	if (code || c->lane != 0 || !n->await_count)
		return;
	uint64_t until = loom__now_ns() + 5 * LOOM__SECOND;
	int64_t now;
	while ((now = c->trigger->completed(c, n->await_slot)) >= 0 && now < n->await_count) {
		if (loom__now_ns() > until || loom_stopped(c)) {
			__atomic_add_fetch(&n->late, 1, __ATOMIC_RELAXED);
			return;
		}
		loom_pause(c);
	}
	if (now < 0)
		loom__fault((struct loom__trial *)(uintptr_t)n->trial,
			    "completed() reports that an operation failed: %lld", (long long)now);
}

static void boundary_body(struct loom_ctx *c)
{
	struct net *n = net_of(c);
	if (c->worker == n->absent)
		return;
	if (c->trigger->boundary(c) == LOOM_EINTR && c->lane == 0)
		__atomic_add_fetch(&n->left, 1, __ATOMIC_RELAXED);
}

/* ---- the bench ------------------------------------------------------------------------------ */

static int open_wire(struct wire *w, struct loom__trial *t, uint32_t workers)
{
	struct loom__rig_want want = {.devices = 1, .workers = workers, .lanes = 1, .seed = t->seed};
	w->t = t;
	w->ops = t->plugin->ops;
	want.bytes[LOOM_WORKLOAD] = sizeof(struct net);
	LOOM__TRY(loom__stand_open(&w->rig, t, &want, NULL));
	w->self = loom__stand_self(&w->rig);
	return 0;
}

/* Begins a sample with counters at 0, no posts, and buffers with new contents. */
static int begin(struct wire *w)
{
	w->net = loom__rig_block(&w->rig, LOOM_WORKLOAD);
	memset(w->net, 0, sizeof(*w->net));
	w->net->trial = (uint64_t)(uintptr_t)w->t;
	w->net->rough = (uint64_t)w->t->rough;
	for (int i = 0; i < BUFFERS; i++)
		memset(w->net->buffer[i], 0x10 + i, BYTES);
	return loom__stand_init(&w->rig);
}

static loom_ref buffer(const struct wire *w, int i)
{
	return loom__rig_ref(&w->rig, w->net->buffer[i]);
}

static struct loom_trigger_post put(const struct wire *w, uint64_t tag, uint64_t threshold,
				    int from, int to)
{
	return (struct loom_trigger_post){.size = sizeof(struct loom_trigger_post),
					  .tag = tag,
					  .threshold = threshold,
					  .op = LOOM_NET_PUT,
					  .local = buffer(w, from),
					  .remote = buffer(w, to),
					  .bytes = BYTES,
					  .slot = 1};
}

static int post(struct wire *w, const struct loom_trigger_post *p, uint64_t *id)
{
	struct loom_error err = {0};
	int code = w->ops->post(w->self, p, id, &err);
	if (!code)
		return 0;
	LOOM__TRY(loom__judge_error(w->t, "post()", code, &err));
	return code == LOOM_ENOTSUP ? loom__skip(w->t, "not supported: %s", err.text)
				    : loom__fault(w->t, "post() fails: %s", err.text);
}

/* Runs the workers, then waits until all fired operations are complete. */
static int fire_by(struct wire *w, uint64_t tag, uint32_t fires, uint32_t count,
		   int64_t await_count)
{
	struct loom_error err = {0};
	w->net->tag = tag;
	w->net->fires = fires;
	w->net->count = count;
	w->net->await_slot = 1;
	w->net->await_count = await_count;
	int late = loom__rig_run(&w->rig, body, 8 * LOOM__SECOND);
	if (loom__faulted(w->t))
		return LOOM__FAILED;
	if (late || w->net->late)
		return loom__fault(
		    w->t,
		    "an operation whose counter reached its threshold is not complete after 5 s");
	int code = w->ops->flush(w->self, 5 * LOOM__SECOND, &err);
	return code ? loom__fault(w->t, "flush() returns %d (%s): %s", code, loom_strerror(code),
				  err.text)
		    : 0;
}

static int fire(struct wire *w, uint64_t tag, uint32_t fires, int64_t await_count)
{
	return fire_by(w, tag, fires, 1, await_count);
}

static int64_t completed(struct wire *w)
{
	const struct loom_trigger_dev *dev = w->t->plugin->dev->cpu;
	return dev->completed(&w->rig.ctx[0], 1);
}

static int holds(const struct wire *w, int i, int value)
{
	for (int k = 0; k < BYTES; k++)
		if (w->net->buffer[i][k] != value)
			return 0;
	return 1;
}

static int expect(struct wire *w, int64_t count, int target, int value, const char *when)
{
	int64_t is = completed(w);
	if (is != count)
		return loom__fault(w->t, "%s: %lld operations are complete, where %lld should be",
				   when, (long long)is, (long long)count);
	if (!holds(w, target, value))
		return loom__fault(w->t, "%s: the target holds %#x, where %#x should be", when,
				   w->net->buffer[target][0], (unsigned)value);
	return 0;
}

/* ---- tests ---------------------------------------------------------------------------------- */

int loom__test_trigger_threshold(struct loom__trial *t)
{
	struct wire w;
	uint64_t id;
	LOOM__TRY(open_wire(&w, t, 1));
	for (int n = 0; n < 3; n++) {
		LOOM__TRY(begin(&w));
		struct loom_trigger_post p = put(&w, 7, 3, 0, 1);
		LOOM__TRY(post(&w, &p, &id));
		LOOM__TRY(fire(&w, 7, 2, 0));
		LOOM__TRY(expect(&w, 0, 1, 0x11, "after 2 fires of a threshold of 3"));
		LOOM__TRY(fire(&w, 8, 5, 0));
		LOOM__TRY(expect(&w, 0, 1, 0x11, "after fires of another tag"));
		LOOM__TRY(fire(&w, 7, 1, 1));
		LOOM__TRY(expect(&w, 1, 1, 0x10, "after 3 fires of a threshold of 3"));
		LOOM__TRY(fire(&w, 7, 3, 0));
		LOOM__TRY(expect(&w, 1, 1, 0x10, "after more fires than the threshold"));
	}
	loom__stand_close(&w.rig);
	return 0;
}

int loom__test_trigger_fire_first(struct loom__trial *t)
{
	struct wire w;
	uint64_t id;
	LOOM__TRY(open_wire(&w, t, 1));
	for (int n = 0; n < 3; n++) {
		LOOM__TRY(begin(&w));
		LOOM__TRY(fire(&w, 9, 2, 0));
		struct loom_trigger_post p = put(&w, 9, 2, 2, 3);
		LOOM__TRY(post(&w, &p, &id));
		LOOM__TRY(fire(&w, 1, 0, 1));
		LOOM__TRY(expect(&w, 1, 3, 0x12, "with fires before the post"));
	}
	loom__stand_close(&w.rig);
	return 0;
}

int loom__test_trigger_chain(struct loom__trial *t)
{
	struct wire w;
	uint64_t id;
	LOOM__TRY(open_wire(&w, t, 1));
	LOOM__TRY(begin(&w));
	/* Chain 0 -> 1 -> 2 -> 3: each operation increments the counter of the next. The last one is posted first. */
	for (int i = 2; i >= 0; i--) {
		struct loom_trigger_post p = put(&w, 20 + (uint64_t)i, 1, i, i + 1);
		p.chain = i < 2 ? 21 + (uint64_t)i : 0;
		LOOM__TRY(post(&w, &p, &id));
	}
	LOOM__TRY(fire(&w, 20, 1, 3));
	LOOM__TRY(expect(&w, 3, 3, 0x10, "after a chain of three operations"));
	/* Of two operations of one counter, the lower threshold must run first, in any order of posting. */
	LOOM__TRY(begin(&w));
	struct loom_trigger_post late = put(&w, 30, 2, 4, 5), early = put(&w, 30, 1, 0, 5);
	LOOM__TRY(post(&w, &late, &id));
	LOOM__TRY(post(&w, &early, &id));
	LOOM__TRY(fire_by(&w, 30, 1, 2, 2)); /* the counter skips the lower threshold */
	LOOM__TRY(expect(&w, 2, 5, 0x14, "after two operations into one buffer, in the order of thresholds"));
	loom__stand_close(&w.rig);
	return 0;
}

int loom__test_trigger_rearm(struct loom__trial *t)
{
	static const struct {
		uint32_t fires;
		int64_t done;
	} step[] = {{1, 0}, {1, 1}, {2, 1}, {1, 2}, {6, 4}};
	struct wire w;
	uint64_t id;
	LOOM__TRY(open_wire(&w, t, 1));
	LOOM__TRY(begin(&w));
	struct loom_trigger_post p = put(&w, 5, 2, 0, 1);
	p.rearm = 3;
	LOOM__TRY(post(&w, &p, &id));
	for (size_t i = 0; i < LOOM__COUNT(step); i++) {
		LOOM__TRY(fire(&w, 5, step[i].fires, step[i].done));
		LOOM__TRY(expect(&w, step[i].done, 1, step[i].done ? 0x10 : 0x11,
				 "with threshold 2 and then every 3 counts"));
	}
	loom__stand_close(&w.rig);
	return 0;
}

static int race(struct loom__trial *t, uint32_t workers, uint32_t fires)
{
	struct wire w;
	uint64_t id, total = (uint64_t)workers * fires;
	LOOM__TRY(open_wire(&w, t, workers));
	LOOM__TRY(begin(&w));
	loom__say_case(t, t->seed, "%u workers, %u fires each", workers, fires);
	struct loom_trigger_post all = put(&w, 3, total, 0, 1), more = put(&w, 3, total + 1, 2, 3);
	LOOM__TRY(post(&w, &more, &id));
	LOOM__TRY(post(&w, &all, &id));
	LOOM__TRY(fire(&w, 3, fires, 1));
	LOOM__TRY(expect(&w, 1, 1, 0x10, "after as many fires, by all workers at once, as the threshold"));
	if (!holds(&w, 3, 0x13))
		return loom__fault(t, "fires are counted twice: an operation with a higher threshold ran");
	LOOM__TRY(loom__stand_check(&w.rig));
	loom__stand_close(&w.rig);
	return 0;
}

int loom__test_trigger_race(struct loom__trial *t)
{
	LOOM__TRY(race(t, 4, MOST_FIRES));
	return race(t, 3, 1);
}

int loom__test_trigger_rough(struct loom__trial *t)
{
	for (uint32_t workers = 2; workers < 14; workers += 4)
		LOOM__TRY(race(t, workers, 60));
	return 0;
}

int loom__test_trigger_stop(struct loom__trial *t)
{
	struct wire w;
	LOOM__TRY(open_wire(&w, t, 3));
	LOOM__TRY(begin(&w));
	w.net->absent = 1;
	loom__rig_run(&w.rig, boundary_body, LOOM__SECOND / 20);
	LOOM__TRY(loom__faulted(t));
	if (w.net->left != 2)
		return loom__fault(
		    t,
		    "%llu of 2 workers at a boundary that a third never reaches returned LOOM_EINTR when "
		    "the run was stopped",
		    (unsigned long long)w.net->left);
	loom__stand_close(&w.rig);
	return 0;
}

static int fuzz(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s)
{
	(void)seed;
	loom__settings_free(s); /* keeps the given options: random ones may need another network */
	return race(t, 1 + (uint32_t)loom__draw_below(chance, 8), 1 + (uint32_t)loom__draw_below(chance, 200));
}

int loom__test_trigger_fuzz(struct loom__trial *t)
{
	return loom__fuzz(t, fuzz, 0);
}
