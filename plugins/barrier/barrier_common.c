/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_common.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { WAIT_AUTO = 0 }; /* values of the option wait: WAIT_AUTO, or 1 + a value of enum wait_end */
const char *const barrier_waits[] = {"auto", "spin", "yield", "nap", "sleep", NULL};

int barrier_create(const struct loom_host *host, const void *opts, const char *name, barrier_plan_fn *plan, void **self,
		   struct loom_error *err)
{
	struct barrier *b = host->alloc(host, sizeof(*b));
	if (!b)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", name);
	*b = (struct barrier){host, opts, plan};
	*self = b;
	return 0;
}

void barrier_destroy(void *self)
{
	struct barrier *b = self;
	if (b)
		b->host->free(b->host, b);
}

/* split = auto. On two H100s of 1,056 workers a round takes 3.78, 3.65, 3.63, 4.92 us with 1, 2, 4, 8 parts: the parts' fences
 * delay each other. With 132 workers it takes as long with one part as with four. */
enum { SPLIT_WORKERS = 512, SPLIT_AUTO = 4 };
const char *const barrier_splits[] = {"auto", "1", "2", "4", "8", NULL};

static struct barrier_plan plan_of(const struct barrier *b, const struct loom_layout *layout)
{
	struct barrier_plan p = {0};
	b->plan(layout, b->opts, &p);
	return p;
}

/* Returns the number of words of each device in the lines of the scope stack, or 0 if this scope has no lines. */
static uint32_t split_of(const struct barrier *b, const struct loom_layout *layout)
{
	uint32_t many = !plan_of(b, layout).single, drops = layout->barrier_scopes && layout->barrier_scopes->drops;
	for (uint32_t d = 0; d < layout->devices; d++) {
		if (layout->device[d].kind != LOOM_ON_GPU)
			return 0;
		many &= layout->device[d].lanes == BARRIER_LINE_WORDS && layout->device[d].workers >= SPLIT_WORKERS;
	}
	if (drops || layout->devices > BARRIER_NEAR)
		return 0;
	return b->opts->split ? 1u << (b->opts->split - 1) : many ? SPLIT_AUTO : 1;
}

#define RELAY_DEVICES 4 /* if there are at least so many devices, one worker of each GPU polls the words of the other devices */
static uint32_t relays_of(const struct barrier *b, const struct loom_layout *layout)
{
	return layout->devices >= RELAY_DEVICES && !split_of(b, layout);
}

static uint64_t state_bytes(const struct loom_layout *layout, const struct barrier_plan *p)
{
	uint64_t words = BARRIER_SLOTS * (p->nodes + 1ull);
	if (p->flags)
		words += (uint64_t)BARRIER_SLOTS * barrier_most_workers(layout);
	return sizeof(struct barrier_state) + words * sizeof(struct barrier_word);
}

static uint64_t groups_bytes(const struct loom_layout *layout)
{
	return barrier_groupings(layout) *
	       barrier_grouping_bytes(barrier_most_workers(layout), layout->devices, layout->workers);
}

static uint32_t ranks_of(const struct loom_host *host)
{
	return LOOM_HAS(host, allgather) ? host->ranks : 1;
}

static uint64_t worker_bytes(const struct barrier_plan *p)
{
	return sizeof(struct barrier_arrival) + p->worker_words * sizeof(struct barrier_word);
}

/* Returns 1 if CPU threads outnumber the cores that this process may use. Assumes that all ranks run on this machine with
 * as many threads as this rank. */
static int oversubscribed(const struct loom_host *host, const struct loom_layout *layout)
{
	uint64_t threads = 0;
	cpu_set_t cores;
	for (uint32_t d = 0; d < layout->devices; d++)
		if (layout->device[d].kind != LOOM_ON_GPU)
			threads += (uint64_t)layout->device[d].workers * layout->device[d].lanes;
	threads *= ranks_of(host);
	return sched_getaffinity(0, sizeof(cores), &cores) || threads > (uint64_t)CPU_COUNT(&cores);
}

static uint32_t how_of(const struct barrier *b, const struct barrier_plan *p, const struct loom_device_shape *device,
		       int many)
{
	return p->how ? p->how(b->opts, device, many) : 1;
}

static uint32_t end_of(const struct barrier *b, int many)
{
	return b->opts->wait != WAIT_AUTO ? b->opts->wait - 1 : many ? WAIT_SLEEP : WAIT_NAP;
}

/* Reports for each device what barrier_auto and `wait = auto` have chosen. */
static void report_choices(const struct barrier *b, const struct loom_layout *layout, const struct barrier_plan *p)
{
	int many = oversubscribed(b->host, layout);
	char name[64];
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *device = &layout->device[d];
		snprintf(name, sizeof(name), "barrier.%.48s.how", device->name);
		if (p->chooses)
			LOOM_CHOICE(b->host, name, "%s",
				    how_of(b, p, device, many) == BARRIER_COUNTED ? "counter" : "released word");
		snprintf(name, sizeof(name), "barrier.%.48s.end", device->name);
		if (device->kind != LOOM_ON_GPU && b->opts->wait == WAIT_AUTO)
			LOOM_CHOICE(b->host, name, "%s", barrier_waits[1 + end_of(b, many)]);
	}
}

int barrier_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct barrier *b = self;
	struct barrier_plan p = plan_of(b, layout);
	(void)err;
	report_choices(b, layout, &p);
	need->device = state_bytes(layout, &p) + groups_bytes(layout);
	need->device_place = LOOM_PLACE_DEVICE;
	need->worker = worker_bytes(&p);
	/* Non-coherent devices have only host memory in common. */
	need->worker_place = layout->noncoherent ? LOOM_PLACE_HOST : LOOM_PLACE_ANY;
	need->local = sizeof(struct barrier_local);
	need->global = ranks_of(b->host) > 1 ? sizeof(struct barrier_messages) : 0;
	for (uint32_t k = 0; 1u << k < ranks_of(b->host); k++)
		need->net = (struct loom_net_need){.posts = k + 1, .tags = k + 1, .arrivals = b->opts->tag + k + 1};
	/* The trigger determines the place of the messages, because some triggers cannot send from host memory. */
	need->global_place = LOOM_PLACE_NET;
	return 0;
}

static uint32_t drops_of(const struct loom_layout *layout)
{
	return layout->barrier_scopes && layout->barrier_scopes->drops ? BARRIER_DROP : BARRIER_STAY;
}

enum { MIXED = ~0 }; /* value of barrier_constants()' variable `how` if GPUs differ */

int barrier_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err)
{
	const struct barrier *b = self;
	struct barrier_plan p = plan_of(b, layout);
	uint32_t how = 0;
	int n;
	(void)err;
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint32_t one = how_of(b, &p, &layout->device[d], 0);
		if (layout->device[d].kind != LOOM_ON_GPU)
			continue;
		how = how && one != how ? (uint32_t)MIXED : one;
	}
	n = snprintf(text, room, "#define BARRIER_IS_drops %u\n#define BARRIER_IS_relays %u\n", drops_of(layout),
		     relays_of(b, layout));
	if (how && how != (uint32_t)MIXED)
		snprintf(text + n, room - (size_t)n, "#define BARRIER_IS_how %u\n", how);
	return 0;
}

/* Fills in the tables of one grouping in a device's block. group: the group of each worker of the stack. place, firsts and
 * of are the tables that barrier_group_places(), barrier_group_firsts() and barrier_group_of() return. */
static void place_groups(const struct loom_layout *layout, uint32_t device, const uint32_t *group,
			 struct barrier_place *place, uint32_t *firsts, uint32_t *of)
{
	const struct loom_device_shape *own = &layout->device[device];
	uint32_t *first = of; /* until the last line of this function, `of` has the first worker of each group on this device */
	memset(first, 0xff, layout->workers * sizeof(*first));
	for (uint32_t w = 0; w < own->workers; w++) {
		uint32_t g = group[own->first_worker + w];
		if (g == LOOM_NO_GROUP)
			continue;
		first[g] = first[g] == LOOM_NO_GROUP ? w : first[g];
		place[w].first = first[g];
		place[first[g]].count++;
	}
	memset(firsts, 0xff, (uint64_t)own->workers * layout->devices * sizeof(*firsts));
	for (uint32_t d = layout->devices; d-- > 0;)
		for (uint32_t w = layout->device[d].workers; w-- > 0;) {
			uint32_t one = layout->device[d].first_worker + w,
				 at = group[one] == LOOM_NO_GROUP ? LOOM_NO_GROUP : first[group[one]];
			if (at == LOOM_NO_GROUP)
				continue;
			firsts[(uint64_t)at * layout->devices + d] = one;
			place[at].wide |= d != device;
		}
	for (uint32_t w = 0; w < own->workers; w++)
		if (group[own->first_worker + w] != LOOM_NO_GROUP) {
			place[w].count = place[place[w].first].count;
			place[w].wide = place[place[w].first].wide;
		}
	memcpy(of, group, layout->workers * sizeof(*of));
}

int barrier_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	const struct barrier *b = self;
	struct barrier_plan p = plan_of(b, layout);
	int many = oversubscribed(b->host, layout), full = b->opts->wait == WAIT_AUTO && many;
	uint32_t no_wake = layout->noncoherent;
	(void)err;
	for (uint32_t d = 0; d < layout->devices; d++)
		no_wake |= layout->device[d].kind == LOOM_ON_GPU;
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct barrier_state *h = view->device[d];
		memset(h, 0, state_bytes(layout, &p) + groups_bytes(layout));
		h->spin = full ? 0 : b->opts->polls; /* 0: the workers that have not arrived need the core of this worker */
		h->end = end_of(b, many);
		if (layout->device[d].kind == LOOM_ON_GPU) /* on a GPU it polls; on a CPU that emulates a GPU it yields the core */
			h->end = WAIT_YIELD;
		h->no_wake = no_wake;
		/* If there are fewer devices, all workers poll the words of the other devices. On two H100s a round then takes
		 * 4.0 us; with a worker that relays, it would take 5.0 us. */
		h->relays = layout->device[d].kind == LOOM_ON_GPU && relays_of(b, layout);
		h->split[BARRIER_STACK - 1] = h->split[BARRIER_JOB - 1] = split_of(b, layout);
		h->ranks = ranks_of(b->host);
		h->direct = 1; /* barrier_wire() may change it */
		h->tag = b->opts->tag;
		h->how = how_of(b, &p, &layout->device[d], many);
		h->stride = layout->device[d].kind == LOOM_ON_GPU ? sizeof(uint32_t) : sizeof(struct barrier_word);
		for (uint32_t i = 0; i < layout->devices; i++)
			h->first[i] = layout->device[i].first_worker;
		h->drops = drops_of(layout);
		h->groupings = (uint32_t)barrier_groupings(layout);
		h->most = barrier_most_workers(layout);
		h->groups_at = state_bytes(layout, &p);
		for (uint32_t k = 0; k < h->groupings; k++) {
			struct loom_ctx c = {.devices = layout->devices, .workers = layout->workers};
			place_groups(layout, d, layout->barrier_scopes->group + (uint64_t)k * layout->workers,
				     barrier_group_places(&c, h, BARRIER_GROUP + k),
				     barrier_group_firsts(&c, h, BARRIER_GROUP + k, 0),
				     barrier_group_of(&c, h, BARRIER_GROUP + k));
		}
	}
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, worker_bytes(&p));
	if (ranks_of(b->host) > 1)
		memset(view->global, 0, sizeof(struct barrier_messages));
	return 0;
}

/* If all ranks have one GPU, and reach each other's memory, lets them write into each other's words. Collective. Ranks on
 * CPUs use messages, because workers of different ranks cannot wake each other. */
static int wire_words(const struct barrier *b, const struct loom_layout *layout, const struct loom_view *view,
		      loom_ref global, const struct loom_trigger *trigger, struct loom_error *err)
{
	struct barrier_state *h = view->device[0];
	struct loom_error unused = {0};
	uint32_t n = trigger->ranks, all[BARRIER_NEAR], least = BARRIER_SPLIT;
	uint32_t mine = layout->devices == 1 ? h->split[BARRIER_JOB - 1] : 0;
	if (n > BARRIER_NEAR || !LOOM_HAS(trigger->ops, reach))
		return 0;
	for (uint32_t r = 0; r < n && mine; r++)
		if (r != trigger->rank &&
		    trigger->ops->reach(trigger->self, r, global + offsetof(struct barrier_messages, word),
					sizeof(((struct barrier_messages *)0)->word), &h->far[r], &unused))
			mine = 0;
	int rc = b->host->allgather(b->host, &mine, all, sizeof(mine), err);
	for (uint32_t r = 0; r < n && !rc; r++)
		least = all[r] < least ? all[r] : least;
	h->rank = trigger->rank;
	h->direct = least && !rc ? n : 1;
	h->split[BARRIER_JOB - 1] = least; /* all ranks must have the same lines */
	return rc;
}

/* Posts the messages of a dissemination among ranks: in step k a rank notifies the rank 2^k places after it. */
int barrier_wire(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		 const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct barrier *b = self;
	struct loom_trigger_post post = {.size = sizeof(post),
					 .threshold = 1,
					 .rearm = 1,
					 .op = LOOM_NET_PUT,
					 .local = global + offsetof(struct barrier_messages, out),
					 .remote = global + offsetof(struct barrier_messages, in),
					 .bytes = sizeof(uint64_t),
					 .paired = 1};
	if (LOOM_HAS(trigger->ops, edge))
		return LOOM_FAIL(
		    b->host, err, LOOM_ENOTSUP,
		    "the barrier's scope 'job' needs a trigger that sends while a kernel runs, which gds and hdn do "
		    "not: set use = gputn in [trigger]");
	int rc = wire_words(b, layout, view, global, trigger, err);
	for (uint32_t k = 0; 1u << k < trigger->ranks && !rc; k++) {
		uint64_t id;
		post.tag = post.notify = b->opts->tag + k;
		post.target = (trigger->rank + (1u << k)) % trigger->ranks;
		rc = trigger->ops->post(trigger->self, &post, &id, err);
	}
	return rc;
}
