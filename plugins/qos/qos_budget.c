/* SPDX-License-Identifier: Apache-2.0 */
/* qos_budget: a share of the machine's CPU time that requests never exceed and use as fully as possible.
 *
 * A token bucket of CPU time gains `limit` of the machine over time, and pays the CPU time of the path's threads,
 * including waking and going to sleep. Two sizes are separate. A burst is as long as `stall` allows, because each burst
 * pays a fixed price for waking with cold caches, and the victim on that core waits for its end. The bucket is deeper,
 * by a small part of the gain of a second. So later bursts compensate for one that starts late or ends early, with a
 * pause between them. No second exceeds the limit by more than that part.
 *
 * If the time between bursts exceeds the kernel's tick, bursts may wait for a tick. A timer of their own takes a
 * reprogramming and an interrupt, which are expensive in a virtual machine and visible in no thread's clock.
 *
 * Within a burst tenants are served by deficit round robin in CPU time: CPU time that a tenant leaves unused goes to
 * the others. In addition each tenant has a bucket of its own, which gains the tenant's share of the limit and pays for
 * its requests and the wake-ups that they cause. While that bucket is positive, the tenant's requests are served at
 * once, between bursts and within another tenant's. The common bucket is overdrawn for that, and tenants that have used
 * the time of others wait longer for the next burst. */
#include <time.h>

#include "service.h"

#define QUANTUM_NS 20e3 /* CPU time of a tenant of weight 1 in a round */

struct budget_opts {
	double limit;
	uint64_t stall, latency;
	uint8_t tick;
};

struct account {
	double deficit;	  /* CPU time in ns that the tenant may spend in this round of the round robin */
	double cost;	  /* CPU time of a request in ns: decayed mean */
	uint64_t drr_round;	  /* the round in which the tenant last received its quantum */
	double own;	  /* ns of its share that the tenant has not used; below 0: it has used time of others */
	int saved;	  /* 1: `own` was half full while no request waited, and has not been used up since */
};

struct budget {
	struct qos base;
	const struct budget_opts *opts;
	double tokens;	 /* tokens in ns */
	uint64_t seen_ns, seen_cpu;
	double tick_ns, wake_ns; /* cost of a wake-up in ns: decayed mean */
	int open;		 /* 1: a burst is in progress */
	uint32_t in_burst;	 /* requests served in the burst */
	double burst_ns;	 /* CPU time for which other programs on the core waited, minus the pauses */
	int slept;
	uint64_t until_ns; /* when the next burst is due */
	double after_ns;   /* the earliest start of that burst, which limits the victim's stalls */
	double woken_ns;   /* cost of a wake-up that is not charged yet */
	uint64_t drr_round;
	uint32_t current;
	int urgent; /* 1: the current round is outside the round robin */
	struct account account[LOOM_MAX_TENANTS];
	/* For the report: slots of 100 ms, and how many spent more than they gained. */
	uint64_t slot_ns, slot_cpu, slots, over;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct budget_opts, limit, LOOM_OPT_SHARE, "5%",
			 "Share of the machine's CPU time for requests, of all threads of the path together.",
			 .min = 1e-4, .max = 1),
	LOOM_OPT(struct budget_opts, stall, LOOM_OPT_TIME, "165us",
			 "Longest time that a burst of requests takes from other threads on its core, for limits below "
			 "0.9 cores.", .min = 3e4, .max = 1e8),
	LOOM_OPT(struct budget_opts, latency, LOOM_OPT_TIME, "0",
			 "Longest time between two bursts; a short time reduces throughput. 0: as long as `stall` "
			 "allows.", .min = 0, .max = 1e10),
	LOOM_OPT(struct budget_opts, tick, LOOM_OPT_BOOL, "yes",
			 "Whether bursts may wait for the kernel's timer tick if the time between them exceeds it."),
	{.name = NULL},
};

#define COST_AT_FIRST 2000.0
#define SLEEP_NS 2500.0 /* going to sleep, paid after the burst's last read of the clock */
#define BURST_LEAST 30000.0
#define CRUMBS 16 /* a burst ends when less than 1/CRUMBS of it is left */

static void begin(struct budget *p)
{
	struct timespec tick = {0};
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	p->tick_ns = (double)tick.tv_nsec;
	for (uint32_t i = 0; i < LOOM_MAX_TENANTS; i++)
		p->account[i].cost = COST_AT_FIRST;
}
QOS_CREATE(budget, begin(p))

static void arrange(void *self, struct loom_qos_path *path)
{
	(void)self;
	path->mask = 1; /* an interrupt without tokens would only cost tokens */
	path->batch = QOS_BATCH_MAX; /* rounds end by their cost */
}

/* ---- tokens --------------------------------------------------------------------------------------- */

#define DEPTH 0.012 /* part of a second's gain; with one more burst the sum stays below 1.02 */
#define LENT 0.005

/* The limits of one decision. */
struct limits {
	double gain;  /* CPU time per unit of time */
	double burst; /* longest burst in ns */
	double depth;
	double lent;  /* how far tenants within their shares may overdraw the bucket */
	double weights; /* sum over all tenants */
};

static struct limits limits_of(const struct budget *p, const struct loom_qos_load *load)
{
	struct limits limits = {.gain = p->opts->limit * load->machine};
	/* The more of the victim's work overlaps bursts, the deeper a percentile of its stalls reaches into the spread
	 * of burst lengths. Bursts are then slightly shorter. */
	limits.burst = (double)p->opts->stall * (1 - (limits.gain < 1 ? limits.gain : 1) / 4);
	double often = (double)p->opts->latency * limits.gain;
	if (p->opts->latency && often < limits.burst)
		limits.burst = often > BURST_LEAST ? often : BURST_LEAST;
	limits.depth = DEPTH * limits.gain * 1e9;
	if (load->tenants > 1) {
		limits.lent = LENT * limits.gain * 1e9 < limits.burst ? LENT * limits.gain * 1e9 : limits.burst;
		limits.depth -= limits.lent;
	}
	if (limits.depth < limits.burst)
		limits.depth = limits.burst;
	for (uint32_t i = 0; i < load->tenants; i++)
		limits.weights += load->tenant[i].weight;
	return limits;
}

/* Returns the tokens that a full burst needs at its start, since it gains while it pays. */
static double price(const struct limits *limits)
{
	double rest = limits->gain < 0.9 ? 1 - limits->gain : 0.1;
	return limits->burst * rest;
}

/* Returns the time from one burst to the next. */
static double period_of(const struct limits *limits)
{
	return limits->burst / limits->gain;
}

/* Timers that were set ahead may expire a quarter of a period early. */
static int is_due(const struct budget *p, const struct loom_qos_load *load, const struct limits *limits)
{
	return (double)load->now_ns + period_of(limits) / 4 >= (double)p->until_ns;
}

static void reset(struct budget *p, const struct loom_qos_load *load)
{
	p->seen_ns = p->slot_ns = load->now_ns;
	p->seen_cpu = p->slot_cpu = load->cpu_ns;
	p->tokens = p->after_ns = p->woken_ns = 0;
	p->until_ns = 0;
	p->open = p->slept = 0;
	for (uint32_t i = 0; i < LOOM_MAX_TENANTS; i++)
		p->account[i].own = p->account[i].saved = 0;
}

static void update_tokens(struct budget *p, const struct loom_qos_load *load, const struct limits *limits)
{
	if (!p->seen_ns || load->cpu_ns < p->seen_cpu)
		reset(p, load);
	double spent = (double)(load->cpu_ns - p->seen_cpu), passed = (double)(load->now_ns - p->seen_ns);
	p->tokens += passed * limits->gain - spent;
	p->tokens = p->tokens < limits->depth ? p->tokens : limits->depth;
	for (uint32_t i = 0; i < load->tenants; i++) {
		struct account *a = &p->account[i];
		a->own += passed * limits->gain * load->tenant[i].weight / limits->weights;
		a->own = a->own < limits->lent ? a->own : limits->lent;
	}
	double rested = passed > spent ? passed - spent : 0;
	p->burst_ns = (p->burst_ns > rested ? p->burst_ns - rested : 0) + spent;
	p->seen_ns = load->now_ns;
	p->seen_cpu = load->cpu_ns;
	if (p->slept) {
		if (is_due(p, load, limits))
			p->wake_ns += (spent - p->wake_ns) / 16;
		p->woken_ns = spent;
		p->slept = 0;
	}
	if (load->now_ns - p->slot_ns >= 100000000u) {
		p->slots++;
		p->over += (double)(load->cpu_ns - p->slot_cpu) >
			   1.02 * limits->gain * (double)(load->now_ns - p->slot_ns) + limits->burst;
		p->slot_ns = load->now_ns;
		p->slot_cpu = load->cpu_ns;
	}
}

/* Sleeps until the next burst is paid for, but at least half a period, to limit the victim's stalls. */
static void sleep_until_paid(struct budget *p, const struct loom_qos_load *load,
			     struct loom_qos_round *round, const struct limits *limits)
{
	/* The bucket fills while the thread wakes up. */
	double now = (double)load->now_ns,
	       missing = (price(limits) - p->wake_ns * limits->gain - p->tokens) / limits->gain;
	double period = period_of(limits);
	if (p->open)
		p->after_ns = now + (period - limits->burst) / 2;
	missing = missing > p->after_ns - now ? missing : p->after_ns - now;
	missing = missing > 1000 ? missing : 1000;
	int tick = p->opts->tick && period > 1.5 * p->tick_ns;
	/* With the tick, starts half a tick early, so that it is early as often as late. */
	if (tick && missing > p->tick_ns / 2)
		missing -= p->tick_ns / 2;
	p->until_ns = load->now_ns + (uint64_t)missing;
	p->open = 0;
	p->slept = 1;
	p->burst_ns = 0;
	round->requests = 0;
	if (round->retry_ns < p->until_ns)
		round->retry_ns = p->until_ns;
	round->slack_ns = (uint64_t)(tick ? p->tick_ns : period / 32);
	if (!tick)
		round->then_ns = p->until_ns + (uint64_t)period;
}

/* ---- tenants -------------------------------------------------------------------------------------- */

/* Tenants with savings may interrupt others. Returns the waiting tenant with most savings, which is served first. */
static uint32_t find_saver(struct budget *p, const struct loom_qos_load *load, const struct limits *limits,
				uint64_t *wake_mask)
{
	uint32_t first = load->tenants;
	int lends = p->tokens > -limits->lent;
	*wake_mask = 0;
	for (uint32_t i = 0; load->tenants > 1 && i < load->tenants; i++) {
		struct account *a = &p->account[i];
		int waits = load->tenant[i].waiting != 0;
		if (a->own <= 0)
			a->saved = 0;
		else if (!waits && a->own >= limits->lent / 2)
			a->saved = 1;
		if (!a->saved || !lends)
			continue;
		if (!waits)
			*wake_mask |= 1ull << i;
		else if (first == load->tenants || a->own > p->account[first].own)
			first = i;
	}
	return first;
}

static int may_spend(struct budget *p, const struct loom_qos_load *load, uint32_t i)
{
	struct account *a = &p->account[i];
	if (!load->tenant[i].waiting)
		return 0;
	if (a->drr_round != p->drr_round) {
		a->drr_round = p->drr_round;
		a->deficit = (a->deficit < 0 ? a->deficit : 0) +
			     QUANTUM_NS * load->tenant[i].weight;
	}
	return a->deficit > 0;
}

static uint32_t choose(struct budget *p, const struct loom_qos_load *load)
{
	/* A tenant with a large debt from one expensive request needs several rounds. */
	for (uint32_t rounds = 0; rounds < 1000; rounds++, p->drr_round++)
		for (uint32_t i = 0; i < load->tenants; i++) {
			uint32_t at = (p->current + i) % load->tenants;
			if (may_spend(p, load, at))
				return p->current = at;
		}
	return p->current;
}

/* ---- decisions ------------------------------------------------------------------------------------ */

/* Admits as many requests as `ns` pay for, at least one. The round ends after `most_ns`, even if others arrive. */
static void allow(const struct budget *p, struct loom_qos_round *round, uint32_t tenant, double ns, double most_ns)
{
	double pays = ns / p->account[tenant].cost;
	uint64_t most = (uint64_t)(most_ns > SLEEP_NS ? most_ns : SLEEP_NS);
	pays = pays < 1 ? 1 : pays;
	round->tenant = tenant;
	if (round->requests > pays)
		round->requests = (uint32_t)pays;
	if (!round->cpu_ns || round->cpu_ns > most)
		round->cpu_ns = most;
}

static void admit(void *self, const struct loom_qos_load *load, struct loom_qos_round *round)
{
	struct budget *p = self;
	struct limits limits = limits_of(p, load);
	int slept = p->slept;
	update_tokens(p, load, &limits);
	uint32_t first = find_saver(p, load, &limits, &round->wake_mask);
	double room = limits.burst - p->burst_ns;
	p->urgent = first < load->tenants;
	if (p->urgent && room > -limits.burst / CRUMBS) {
		/* After a burst that was too long, admits slightly more, since no sleep precedes it. */
		double most = room > limits.burst / CRUMBS ? room : limits.burst / CRUMBS;
		most = p->account[first].own < most ? p->account[first].own : most;
		allow(p, round, first, most, most);
		return;
	}
	if (p->urgent) { /* a pause for the victim */
		round->requests = 0;
		if (round->retry_ns < load->now_ns + (uint64_t)limits.burst / 4)
			round->retry_ns = load->now_ns + (uint64_t)limits.burst / 4;
		return;
	}
	p->woken_ns = 0;
	if (!p->open) {
		/* Does not start after an early wake-up, or for an eighth of a burst. But after a complete sleep a
		 * burst starts with the tokens that the wake-up has left: sleeping again would spend all tokens on
		 * wake-ups without end. */
		if (!is_due(p, load, &limits) || (!slept && p->tokens < price(&limits) / 2)) {
			sleep_until_paid(p, load, round, &limits);
			return;
		}
		p->open = 1;
		p->in_burst = 0;
	}
	uint32_t tenant = choose(p, load);
	const struct account *a = &p->account[tenant];
	double left = room < p->tokens ? room : p->tokens, pays = left - SLEEP_NS;
	/* The first request of a burst is served even if it costs more than a bucket; otherwise it would never be
	 * served. A last round of a few requests would cost more than it serves, so its tokens stay in the bucket. */
	if (p->in_burst && (pays < a->cost || pays < limits.burst / CRUMBS)) {
		sleep_until_paid(p, load, round, &limits);
		return;
	}
	double fair = a->deficit + a->cost;
	allow(p, round, tenant,
	      pays < fair || load->waiting == load->tenant[tenant].waiting ? pays : fair, left);
}

static void account(void *self, const struct loom_qos_load *load, uint32_t tenant, uint32_t served,
		    uint64_t cpu_ns)
{
	struct budget *p = self;
	struct account *a = &p->account[tenant];
	double debt = -limits_of(p, load).lent;
	if (!served)
		return;
	/* A small round is a poor estimate, because its fixed cost weighs more. */
	double weight = served >= 16 ? 1.0 / 8 : 1.0 / 32;
	a->cost += weight * ((double)cpu_ns / served - a->cost);
	a->cost = a->cost > 20 ? a->cost : 20;
	a->own -= (double)cpu_ns + p->woken_ns;
	a->own = a->own > debt ? a->own : debt; /* older debt is forgiven */
	p->woken_ns = 0;
	if (p->urgent)
		return;
	a->deficit -= (double)cpu_ns;
	p->in_burst += served;
}

static int collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   struct loom_report *report, struct loom_error *err)
{
	struct budget *p = self;
	const struct loom_host *host = p->base.host;
	host->metric(host, report, "budget_over_share", "", LOOM_BETTER_LESS,
		     p->slots ? (double)p->over / (double)p->slots : 0.0);
	host->metric(host, report, "budget_wake", "ns", LOOM_BETTER_LESS, p->wake_ns);
	host->metric(host, report, "budget_cost", "ns", LOOM_BETTER_LESS, p->account[0].cost);
	p->slots = p->over = 0;
	return qos_collect(self, layout, view, report, err);
}

static const struct loom_qos_ops ops = {
	QOS_OPS(collect), .arrange = arrange, .admit = admit, .account = account};

QOS_PLUGIN(qos_budget, "A share of CPU time that is never exceeded and fully used", rows,
	   struct budget_opts, ops)
