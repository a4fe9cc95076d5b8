/* SPDX-License-Identifier: Apache-2.0 */
/* qos_budget: a share of the machine's CPU time that requests never exceed, and that they use as fully as possible.
 *
 * A token bucket of CPU time gains `limit` of the machine over time. The CPU time of the path's threads is taken from the
 * bucket, including the time for waking and going to sleep. A burst is a time in which requests are served. It is as long as
 * `stall` allows, because each burst takes a fixed time for waking with cold caches. A burst is not longer, because the victim
 * on the core waits for its end. The bucket can hold more than a burst takes, namely a small part of what it gains in a second.
 * So if a burst starts late or ends early, later bursts can make up for it, with a pause between them. In no second do requests
 * exceed the limit by more than that small part.
 *
 * If the time between bursts is longer than the kernel's timer tick, bursts may wait for a tick. A timer of their own would
 * have to be programmed and would cause an interrupt. Programming a timer and its interrupt take long in a virtual machine, and
 * no thread's clock shows this time.
 *
 * Within a burst tenants are served by deficit round robin in CPU time. So CPU time that a tenant does not use goes to other
 * tenants. In addition each tenant has a bucket of its own. This bucket gains the tenant's share of the limit, and pays for the
 * tenant's requests and for the wake-ups that they cause. While this bucket is positive, the tenant's requests are served at
 * once, between bursts and within the burst of another tenant. The common bucket may be overdrawn for this. As a result,
 * tenants that have used the time of other tenants wait longer for the next burst. */
#include <time.h>

#include "service.h"

#define QUANTUM_NS 20e3 /* CPU time that a tenant of weight 1 gets in a round of the round robin */

struct budget_opts {
	double limit;
	uint64_t stall, latency;
	uint8_t tick;
};

struct account {
	double deficit;	  /* CPU time in ns that the tenant may spend in this round of the round robin */
	double cost;	  /* CPU time of a request in ns, as an exponentially weighted mean */
	uint64_t drr_round;	  /* number of the round in which the tenant last got its quantum */
	double own;	  /* level of the tenant's bucket in ns; below 0: it has used time of other tenants */
	int saved;	  /* 1: `own` was half full while no request waited, and has stayed above 0 since then */
};

struct budget {
	struct qos base;
	const struct budget_opts *opts;
	double tokens;	 /* level of the common bucket in ns of CPU time */
	uint64_t seen_ns, seen_cpu; /* time and CPU time of the path at the last update of the buckets */
	double tick_ns, wake_ns; /* time of a kernel tick; CPU time of a wake-up, as an exponentially weighted mean */
	int open;		 /* 1: a burst is in progress */
	uint32_t in_burst;	 /* number of requests served in the burst */
	double burst_ns;	 /* CPU time for which other programs on the core have waited, minus pauses since */
	int slept;		 /* 1: the path has slept since the last update of the buckets */
	uint64_t until_ns; /* time at which the next burst is due */
	double after_ns;   /* earliest start of the next burst, so that the victim has a pause */
	double woken_ns;   /* CPU time of a wake-up that is not charged to a tenant yet */
	uint64_t drr_round; /* number of the current round of the round robin */
	uint32_t current;   /* the tenant that the round robin chose last */
	int urgent; /* 1: this round serves a tenant with savings, outside the round robin */
	struct account account[LOOM_MAX_TENANTS];
	/* For the report: start time and CPU time of a slot of 100 ms; number of slots, and of slots above the limit. */
	uint64_t slot_ns, slot_cpu, slots, over;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct budget_opts, limit, LOOM_OPT_SHARE, "5%",
			 "Share of the machine's CPU time for requests, of all threads of the path together.",
			 .from = 1e-4, .to = 1),
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

#define COST_AT_FIRST 2000.0 /* initial value of account.cost */
#define SLEEP_NS 2500.0 /* CPU time for going to sleep, which is spent after the burst's last read of the clock */
#define BURST_LEAST 30000.0 /* shortest burst in ns with the option latency */
#define CRUMBS 16 /* a burst ends if less than 1/CRUMBS of its CPU time is left */

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
	path->mask = 1; /* while the bucket is empty, an interrupt would only take more tokens */
	path->batch = QOS_BATCH_MAX; /* the CPU time ends a round, not the number of requests */
}

/* ---- tokens --------------------------------------------------------------------------------------- */

#define DEPTH 0.012 /* limits.depth / gain of a second; with one more burst, a second stays below 1.02 */
#define LENT 0.005 /* limits.lent divided by what the bucket gains in one second */

/* Values that admit() derives from the options and the load. */
struct limits {
	double gain;  /* ns of CPU time that the common bucket gains per ns */
	double burst; /* longest burst in ns */
	double depth; /* most tokens in the common bucket, in ns */
	double lent;  /* ns by which tenants with savings may overdraw the common bucket */
	double weights; /* sum of the weights of all tenants */
};

static struct limits limits_of(const struct budget *p, const struct loom_qos_load *load)
{
	struct limits limits = {.gain = p->opts->limit * load->machine};
	/* The higher the limit, the more of the victim's work overlaps bursts, and the higher each percentile of the victim's
	 * stalls is. So bursts are up to a quarter shorter than `stall`. */
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

/* Returns the tokens that the bucket needs at the start of a full burst. This price is less than the burst takes, because the
 * bucket gains tokens during the burst. */
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

/* Returns whether the next burst may start. It may start a quarter of a period early, because a timer that was set in advance
 * may expire this much early. */
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

/* Sets the round to a sleep until the bucket has the tokens for the next burst. The sleep after a burst lasts at least half
 * of the usual pause, to limit the victim's stalls. */
static void sleep_until_paid(struct budget *p, const struct loom_qos_load *load,
			     struct loom_qos_round *round, const struct limits *limits)
{
	/* The wake-up time is subtracted, because the bucket gains tokens while the thread wakes up. */
	double now = (double)load->now_ns,
	       missing = (price(limits) - p->wake_ns * limits->gain - p->tokens) / limits->gain;
	double period = period_of(limits);
	if (p->open)
		p->after_ns = now + (period - limits->burst) / 2;
	missing = missing > p->after_ns - now ? missing : p->after_ns - now;
	missing = missing > 1000 ? missing : 1000;
	int tick = p->opts->tick && period > 1.5 * p->tick_ns;
	/* A sleep that waits for a tick is half a tick shorter, so that bursts are early as often as late. */
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

/* Returns the tenant to serve at once: of the tenants with savings and waiting requests, the tenant with the largest savings.
 * Returns load->tenants if there is none. *wake_mask: set to the other tenants with savings, whose next request ends a wait
 * or a round. */
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
	/* An expensive request makes the credit (`deficit`) of a tenant negative, and a round adds only a quantum. */
	for (uint32_t rounds = 0; rounds < 1000; rounds++, p->drr_round++)
		for (uint32_t i = 0; i < load->tenants; i++) {
			uint32_t at = (p->current + i) % load->tenants;
			if (may_spend(p, load, at))
				return p->current = at;
		}
	return p->current;
}

/* ---- decisions ------------------------------------------------------------------------------------ */

/* Admits as many requests of the tenant as `ns` of CPU time allow, but at least one. The round ends after at most
 * `most_ns` of CPU time. */
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
		/* If the burst was too long already, still admits a little, because no sleep precedes this round. */
		double most = room > limits.burst / CRUMBS ? room : limits.burst / CRUMBS;
		most = p->account[first].own < most ? p->account[first].own : most;
		allow(p, round, first, most, most);
		return;
	}
	if (p->urgent) { /* the last burst was much too long, so a pause for the victim comes first */
		round->requests = 0;
		if (round->retry_ns < load->now_ns + (uint64_t)limits.burst / 4)
			round->retry_ns = load->now_ns + (uint64_t)limits.burst / 4;
		return;
	}
	p->woken_ns = 0;
	if (!p->open) {
		/* Starts no burst if it is not due, or if the tokens suffice for less than half of a burst. But after a sleep a
		 * burst starts with any number of tokens. If it did not, the path might sleep again after each wake-up, and
		 * spend all tokens on wake-ups. */
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
	/* The first request of a burst is served even if it takes more than all tokens, because it would otherwise never be
	 * served. The burst ends when few tokens are left: a round of a few requests takes too much time per request. */
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
	/* A small round changes the mean less, because its fixed cost makes it a poor estimate. */
	double weight = served >= 16 ? 1.0 / 8 : 1.0 / 32;
	a->cost += weight * ((double)cpu_ns / served - a->cost);
	a->cost = a->cost > 20 ? a->cost : 20;
	a->own -= (double)cpu_ns + p->woken_ns;
	a->own = a->own > debt ? a->own : debt; /* a larger debt is not remembered */
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
