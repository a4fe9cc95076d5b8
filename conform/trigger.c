/* SPDX-License-Identifier: Apache-2.0 */
/* Triggers: an operation runs once, in order, when its counter has reached its threshold, whether fire or post comes
 * first. All operations are within one rank. */
#include <gpuloom/device.h>
#include <gpuloom/trigger.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conform/stand.h"
#include "conform/tests.h"

enum { BYTES = 256, BUFFERS = 8, MOST_FIRES = 400 };

struct net {
	uint64_t trial, rough;
	uint64_t tag;          /* The calls of the workers. */
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
	const struct loom_trigger_dev *dev;
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
		loom__fault((struct loom__trial *)(uintptr_t)n->trial, "fire() or deliver() returns %d to worker %u",
			    code, c->worker);
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

static int open_with(struct wire *w, struct loom__trial *t, uint32_t workers, struct loom__settings *s)
{
	struct loom__rig_want want = {.devices = 1, .workers = workers, .lanes = 1, .seed = t->seed};
	w->t = t;
	w->ops = t->plugin->ops;
	want.bytes[LOOM_WORKLOAD] = sizeof(struct net);
	LOOM__TRY(loom__stand_open(&w->rig, t, &want, s));
	w->self = loom__stand_self(&w->rig);
	w->dev = t->plugin->dev->cpu;
	return 0;
}

static int open_wire(struct wire *w, struct loom__trial *t, uint32_t workers)
{
	return open_with(w, t, workers, NULL);
}

/* Opens with tables of 16 places, if the plug-in has options with the usual names. */
static int open_small(struct wire *w, struct loom__trial *t)
{
	struct loom__settings s;
	if (loom__settings_create(t, &s))
		return loom__skip(t, "out of memory");
	loom__settings_name(t, &s, "posts", "16");
	loom__settings_name(t, &s, "tags", "16");
	int verdict = open_with(w, t, 1, &s);
	return verdict == LOOM__REFUSED ? loom__skip(t, "it refuses tables of 16 places: %s", t->refusal) : verdict;
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

static struct loom_trigger_post put(const struct wire *w, uint64_t tag, uint64_t threshold, int from, int to)
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
static int fire_by(struct wire *w, uint64_t tag, uint32_t fires, uint32_t count, int64_t await_count)
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
		return loom__fault(w->t, "an operation whose counter reached its threshold is not complete after 5 s");
	int code = w->ops->flush(w->self, 5 * LOOM__SECOND, &err);
	return code ? loom__fault(w->t, "flush() returns %d (%s): %s", code, loom_strerror(code), err.text) : 0;
}

static int fire(struct wire *w, uint64_t tag, uint32_t fires, int64_t await_count)
{
	return fire_by(w, tag, fires, 1, await_count);
}

static int64_t completed(struct wire *w)
{
	return w->dev->completed(&w->rig.ctx[0], 1);
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
		return loom__fault(w->t, "%s: %lld operations are complete, where %lld should be", when, (long long)is,
				   (long long)count);
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
	/* The completions of two operations count towards a third tag, so its put runs after both. */
	LOOM__TRY(begin(&w));
	struct loom_trigger_post after = put(&w, 42, 2, 0, 1);
	LOOM__TRY(post(&w, &after, &id));
	for (uint64_t tag = 40; tag <= 41; tag++) {
		struct loom_trigger_post p = {
		    .size = sizeof(p), .tag = tag, .threshold = 1, .op = LOOM_NET_COUNT, .chain = 42};
		LOOM__TRY(post(&w, &p, &id));
	}
	LOOM__TRY(fire(&w, 41, 1, 0));
	LOOM__TRY(expect(&w, 0, 1, 0x11, "after one of the two operations that are chained to a threshold of 2"));
	LOOM__TRY(fire(&w, 40, 1, 1));
	LOOM__TRY(expect(&w, 1, 1, 0x10, "after both operations that are chained to a threshold of 2"));
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

/* ---- tests in which this thread fires --------------------------------------------------------- */

/* Returns FAILED if a call returns something else. */
static int returns(struct wire *w, const char *what, int is, int due)
{
	return is == due ? 0
			 : loom__fault(w->t, "%s returns %d (%s), where %d (%s) is due", what, is, loom_strerror(is),
				       due, loom_strerror(due));
}

static int fire_here(struct wire *w, uint64_t tag)
{
	return returns(w, "fire()", w->dev->fire(&w->rig.ctx[0], tag, 1), 0);
}

/* flush() must return `due`, with a sentence if that is an error. */
static int flush(struct wire *w, const char *when, int due)
{
	struct loom_error err = {0};
	char what[200];
	int code = w->ops->flush(w->self, 10 * LOOM__SECOND, &err);
	if (code)
		LOOM__TRY(loom__judge_error(w->t, "flush()", code, &err));
	snprintf(what, sizeof(what), "flush() after %s", when);
	return returns(w, what, code, due);
}

/* The arrival of each put lets the next put run. */
int loom__test_trigger_arrivals(struct loom__trial *t)
{
	struct wire w;
	uint64_t id;
	LOOM__TRY(open_wire(&w, t, 1));
	LOOM__TRY(begin(&w));
	for (int i = 0; i < BUFFERS - 1; i++) {
		struct loom_trigger_post p = put(&w, i ? LOOM_TAG_ARRIVAL(i) : 1, 1, i, i + 1);
		p.notify = (uint32_t)i + 1;
		LOOM__TRY(post(&w, &p, &id));
	}
	LOOM__TRY(fire_here(&w, 1));
	uint64_t until = loom__now_ns() + 5 * LOOM__SECOND;
	while (w.dev->arrived(&w.rig.ctx[0], BUFFERS - 1) < 1) {
		if (loom__now_ns() > until)
			return loom__fault(
			    t,
			    "an arrival does not count towards its tag LOOM_TAG_ARRIVAL(): the next put of a "
			    "chain of %d did not run",
			    BUFFERS - 1);
		LOOM__TRY(flush(&w, "a chain of arrivals", 0));
	}
	LOOM__TRY(flush(&w, "a chain of arrivals", 0));
	LOOM__TRY(expect(&w, BUFFERS - 1, BUFFERS - 1, 0x10, "after a chain of arrivals"));
	loom__stand_close(&w.rig);
	return 0;
}

/* The argument of a fire gives the offset and the rank of an operation, within its window. */
int loom__test_trigger_arguments(struct loom__trial *t)
{
	enum { STEP = 8, WINDOW = BYTES - STEP };
	static const struct {
		uint64_t argument;
		const char *when;
	} wrong[] = {{LOOM_ARGUMENT(0, WINDOW + STEP), "an argument beyond the window"},
		     {LOOM_ARGUMENT(3, 0), "an argument with a rank that does not exist"}};
	struct wire w;
	uint64_t id;
	LOOM__TRY(open_wire(&w, t, 1));
	LOOM__TRY(begin(&w));
	struct loom_trigger_post p = put(&w, 6, 1, 0, 1);
	p.rearm = 1;
	p.bytes = STEP;
	p.window = WINDOW;
	p.flags = LOOM_NET_LOCAL_FROM_FIRE | LOOM_NET_REMOTE_FROM_FIRE | LOOM_NET_TARGET_FROM_FIRE;
	LOOM__TRY(post(&w, &p, &id));
	for (uint64_t i = 0; i * STEP < BYTES; i += 3)
		LOOM__TRY(
		    returns(&w, "fire_with()", w.dev->fire_with(&w.rig.ctx[0], 6, LOOM_ARGUMENT(0, i * STEP)), 0));
	LOOM__TRY(flush(&w, "fires with arguments", 0));
	for (int i = 0; i < BYTES; i++)
		if (w.net->buffer[1][i] != (i / STEP % 3 ? 0x11 : 0x10))
			return loom__fault(
			    t, "byte %d of the target is wrong after fires with the offsets 0, 24, 48 and so on", i);
	for (size_t i = 0; i < LOOM__COUNT(wrong); i++) {
		LOOM__TRY(begin(&w));
		LOOM__TRY(post(&w, &p, &id));
		LOOM__TRY(returns(&w, "fire_with()", w.dev->fire_with(&w.rig.ctx[0], 6, wrong[i].argument), 0));
		LOOM__TRY(flush(&w, wrong[i].when, LOOM_EIO));
		if (!holds(&w, 1, 0x11) || !holds(&w, 2, 0x12))
			return loom__fault(t, "%s writes memory", wrong[i].when);
	}
	/* The fire whose argument an operation takes must follow its post. */
	struct loom_error err = {0};
	LOOM__TRY(begin(&w));
	LOOM__TRY(returns(&w, "fire_with()", w.dev->fire_with(&w.rig.ctx[0], 6, LOOM_ARGUMENT(0, 64)), 0));
	LOOM__TRY(flush(&w, "a fire before its post", 0));
	int code = w.ops->post(w.self, &p, &id, &err);
	LOOM__TRY(returns(&w, "post() of an operation that takes the argument of an earlier fire", code, LOOM_EBUSY));
	p.threshold = 2;
	LOOM__TRY(post(&w, &p, &id));
	LOOM__TRY(returns(&w, "fire_with()", w.dev->fire_with(&w.rig.ctx[0], 6, LOOM_ARGUMENT(0, STEP)), 0));
	LOOM__TRY(flush(&w, "the second fire", 0));
	if (w.net->buffer[1][STEP] != 0x10 || w.net->buffer[1][64] != 0x11)
		return loom__fault(t, "an operation with threshold 2 does not take the argument of the second fire");
	loom__stand_close(&w.rig);
	return 0;
}

/* More tags are fired than there may be counters: either all count, or the sample fails. */
static int many_tags(struct wire *w)
{
	enum { TAGS = 300 };
	struct loom_error err = {0};
	struct loom__trial *t = w->t;
	uint64_t id;
	LOOM__TRY(begin(w));
	for (uint64_t tag = 1; tag <= 14; tag++)
		LOOM__TRY(fire_here(w, tag));
	LOOM__TRY(flush(w, "fires of 14 tags without a post", 0));
	int refused = 0; /* fire() may also refuse such a tag: then no fire is lost, either */
	for (uint64_t tag = 101; tag <= TAGS && !refused; tag++)
		refused = w->dev->fire(&w->rig.ctx[0], tag, 1);
	if (refused && !loom__is_error(refused))
		return loom__fault(t, "fire() returns %d, which is no enum loom_err", refused);
	int code = w->ops->flush(w->self, 10 * LOOM__SECOND, &err);
	if (code) {
		LOOM__TRY(loom__judge_error(t, "flush()", code, &err));
		LOOM__TRY(returns(w, "flush() after fires of too many tags", code, LOOM_EFULL));
		LOOM__TRY(returns(w, "arrived() after fires of too many tags", (int)w->dev->arrived(&w->rig.ctx[0], 1),
				  LOOM_EFULL));
		LOOM__TRY(begin(w));
		LOOM__TRY(flush(w, "init()", 0));
	}
	for (uint64_t tag = TAGS - 8; tag <= TAGS && !code && !refused; tag++) {
		struct loom_trigger_post p = {
		    .size = sizeof(p), .tag = tag, .threshold = 1, .op = LOOM_NET_COUNT, .slot = 1};
		LOOM__TRY(post(w, &p, &id));
		LOOM__TRY(flush(w, "a post", 0));
		if (completed(w) != (int64_t)(tag - TAGS + 9))
			return loom__fault(t, "the fires of some of 214 tags are lost, and flush() does not report it");
	}
	return 0;
}

/* post() refuses an operation that can never run, and one for which there is no place. */
int loom__test_trigger_refuses(struct loom__trial *t)
{
	static const uint32_t counts[] = {0, 16384};
	struct wire w;
	uint64_t id;
	LOOM__TRY(open_small(&w, t));
	LOOM__TRY(many_tags(&w));
	LOOM__TRY(begin(&w));
	const struct loom_trigger_post good = put(&w, 1, 5, 0, 1);
	struct {
		const char *what;
		struct loom_trigger_post post;
	} bad[] = {{"with tag 0", good},
		   {"with a tag above the largest", good},
		   {"with op 77", good},
		   {"with slot 2^20", good},
		   {"with rank 1 of 1", good},
		   {"without memory", good},
		   {"of 2^40 bytes", good},
		   {"of 2^64 - 1 bytes", good},
		   {"with a wrong segment", good},
		   {"that adds half a word", good},
		   {"that notifies without data", good},
		   {"without a size", good}};
	bad[0].post.tag = 0;
	bad[1].post.tag = 1ull << 48;
	bad[2].post.op = 77;
	bad[3].post.slot = 1u << 20;
	bad[4].post.target = 1;
	bad[5].post.local = bad[5].post.remote = 0;
	bad[6].post.bytes = 1ull << 40;
	bad[7].post.bytes = ~0ull;
	bad[8].post.remote = LOOM_REF(LOOM_MAX_SEGMENTS - 1, 0);
	bad[9].post.op = LOOM_NET_ADD;
	bad[9].post.bytes = 12;
	bad[10].post = (struct loom_trigger_post){.size = sizeof(good), .tag = 1, .op = LOOM_NET_COUNT, .notify = 3};
	bad[11].post.size = 0;
	for (size_t i = 0; i < LOOM__COUNT(bad); i++) {
		struct loom_error err = {0};
		int code = w.ops->post(w.self, &bad[i].post, &id, &err);
		if (!code)
			return loom__fault(t, "post() accepts an operation %s", bad[i].what);
		LOOM__TRY(loom__judge_error(t, "post()", code, &err));
	}
	LOOM__TRY(returns(&w, "fire() of tag 0", w.dev->fire(&w.rig.ctx[0], 0, 1), LOOM_EINVAL));
	for (size_t i = 0; i < LOOM__COUNT(counts); i++)
		LOOM__TRY(returns(&w, "fire() with a count of 0 or 16384", w.dev->fire(&w.rig.ctx[0], 1, counts[i]),
				  LOOM_EINVAL));
	struct loom_trigger_post more = good;
	int code = 0;
	for (int n = 0; n < 4096 && !code; n++, more.tag = 1 + (uint64_t)n % 8) {
		struct loom_error err = {0};
		code = w.ops->post(w.self, &more, &id, &err);
		if (code)
			LOOM__TRY(loom__judge_error(t, "post()", code, &err));
	}
	if (code)
		LOOM__TRY(returns(&w, "post() in full tables", code, LOOM_EFULL));
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
