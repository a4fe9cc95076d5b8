/* SPDX-License-Identifier: Apache-2.0 */
/* qos_budget: a share of the machine's CPU time that requests never exceed, used as well as it can be.
 *
 * A token bucket of CPU time: it gains `limit` of the machine as time goes by, and pays what the CPU
 * clocks of the path's threads say, waking up and going to sleep included. Two sizes are kept apart.
 * A burst is as long as `stall` allows, for each pays a fixed price for waking with cold caches, and the
 * victim on that core waits for its end. The bucket is deeper, by a small part of what a second gains:
 * a burst that begins late or ends early is made up for by later ones, with a rest between them, and no
 * second takes more than that part too much.
 *
 * Where bursts are further apart than the kernel's tick, they may wait for one: a timer of its own
 * costs a reprogramming and an interrupt, dear ones in a virtual machine, that nobody's clock shows.
 *
 * Within a burst tenants are served by deficit round robin in CPU time: what one leaves, others use. But
 * each has a bucket of its own besides, which gains its share of the limit and pays all that is served to
 * it, and the waking for it. As long as it holds something, a tenant that comes is served at once, between
 * bursts and in the middle of another's: the common bucket is overdrawn for that, and whoever lived on
 * what others left waits the longer for the next burst. */
#include <time.h>

#include "service.h"

#define QUANTUM_NS 20e3 /* CPU time of a tenant of weight 1 in a round */

struct budget_opts {
	double limit;
	uint64_t stall, latency;
	uint8_t tick;
};

struct account {
	double deficit;	  /* ns of CPU time that it may spend in this round */
	double cost;	  /* of a request, ns: decayed mean */
	uint64_t round;	  /* in which it was last given its quantum */
	double own;	  /* ns of its share that it has not used; below 0: it lives on what others left */
	int saved;	  /* `own` was half full when nothing waited, and is not used up since */
};

struct budget {
	struct qos base;
	const struct budget_opts *opts;
	double tokens;	 /* ns */
	uint64_t seen_ns, seen_cpu;
	double tick_ns, wake_ns; /* what it costs to wake: decayed mean */
	int open;		 /* a burst is under way: */
	uint32_t in_burst;	 /* requests served in it */
	double burst_ns;	 /* CPU time that whoever else runs on the core has waited for, less its rests */
	int slept;
	uint64_t until_ns; /* when the next burst is due; it begins after ... */
	double after_ns;   /* ... this, for the victim's sake */
	double woken_ns;   /* cost of a waking that is not charged yet */
	uint64_t round;
	uint32_t current;
	int urgent; /* the turn under way is none of the round's */
	struct account account[LOOM_MAX_TENANTS];
	/* For the report: slots of 100 ms in which more was spent than gained. */
	uint64_t slot_ns, slot_cpu, slots, over;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct budget_opts, limit, LOOM_OPT_SHARE, "5%",
			 "Share of the machine's CPU time for requests, all threads of the path together.",
			 .min = 1e-4, .max = 1),
	LOOM_OPT(struct budget_opts, stall, LOOM_OPT_TIME, "165us",
			 "Longest time that a burst of requests takes from other threads on its core, for limits "
			 "below 0.9 cores.", .min = 3e4, .max = 1e8),
	LOOM_OPT(struct budget_opts, latency, LOOM_OPT_TIME, "0",
			 "Longest time between two bursts; a short one costs throughput. 0: as long as `stall` "
			 "allows.", .min = 0, .max = 1e10),
	LOOM_OPT(struct budget_opts, tick, LOOM_OPT_BOOL, "yes",
			 "Whether bursts may wait for the kernel's timer tick where they are that far between."),
	{.name = NULL},
};

#define COST_AT_FIRST 2000.0
#define SLEEP_NS 2500.0 /* going to sleep, paid after the burst's last look at the clock */
#define BURST_LEAST 30000.0
#define CRUMBS 16

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
	path->mask = 1; /* an interrupt while there are no tokens would only cost some */
	path->batch = SSR_BATCH_MOST; /* turns end by what they cost */
}

/* ---- tokens --------------------------------------------------------------------------------------- */

#define DEPTH 0.012 /* of a second's gain: with one burst more still below 1.02 */
#define LENT 0.005

/* What is known for one decision. */
struct law {
	double gain;  /* CPU time per time */
	double burst; /* longest, ns */
	double depth;
	double lent;  /* how far tenants that are within their shares may overdraw the bucket */
	double weights; /* of all tenants */
};

static struct law law_of(const struct budget *p, const struct loom_qos_load *load)
{
	struct law law = {.gain = p->opts->limit * load->machine};
	/* The more of the victim's chunks meet a burst, the deeper a percentile of them reaches into
	 * the spread of bursts: those stay a little shorter then. */
	law.burst = (double)p->opts->stall * (1 - (law.gain < 1 ? law.gain : 1) / 4);
	double often = (double)p->opts->latency * law.gain;
	if (p->opts->latency && often < law.burst)
		law.burst = often > BURST_LEAST ? often : BURST_LEAST;
	law.depth = DEPTH * law.gain * 1e9;
	if (load->tenants > 1) {
		law.lent = LENT * law.gain * 1e9 < law.burst ? LENT * law.gain * 1e9 : law.burst;
		law.depth -= law.lent;
	}
	if (law.depth < law.burst)
		law.depth = law.burst;
	for (uint32_t i = 0; i < load->tenants; i++)
		law.weights += load->tenant[i].weight;
	return law;
}

/* Tokens that a full burst needs when it begins: it gains while it pays. */
static double price(const struct law *law)
{
	double rest = law->gain < 0.9 ? 1 - law->gain : 0.1;
	return law->burst * rest;
}

/* From one burst to the next. */
static double period_of(const struct law *law)
{
	return law->burst / law->gain;
}

/* Timers that were set ahead may come a quarter early. */
static int is_due(const struct budget *p, const struct loom_qos_load *load, const struct law *law)
{
	return (double)load->now_ns + period_of(law) / 4 >= (double)p->until_ns;
}

static void begin_again(struct budget *p, const struct loom_qos_load *load)
{
	p->seen_ns = p->slot_ns = load->now_ns;
	p->seen_cpu = p->slot_cpu = load->cpu_ns;
	p->tokens = p->after_ns = p->woken_ns = 0;
	p->until_ns = 0;
	p->open = p->slept = 0;
	for (uint32_t i = 0; i < LOOM_MAX_TENANTS; i++)
		p->account[i].own = p->account[i].saved = 0;
}

static void settle(struct budget *p, const struct loom_qos_load *load, const struct law *law)
{
	if (!p->seen_ns || load->cpu_ns < p->seen_cpu)
		begin_again(p, load);
	double spent = (double)(load->cpu_ns - p->seen_cpu), passed = (double)(load->now_ns - p->seen_ns);
	p->tokens += passed * law->gain - spent;
	p->tokens = p->tokens < law->depth ? p->tokens : law->depth;
	for (uint32_t i = 0; i < load->tenants; i++) {
		struct account *a = &p->account[i];
		a->own += passed * law->gain * load->tenant[i].weight / law->weights;
		a->own = a->own < law->lent ? a->own : law->lent;
	}
	double rested = passed > spent ? passed - spent : 0;
	p->burst_ns = (p->burst_ns > rested ? p->burst_ns - rested : 0) + spent;
	p->seen_ns = load->now_ns;
	p->seen_cpu = load->cpu_ns;
	if (p->slept) {
		if (is_due(p, load, law))
			p->wake_ns += (spent - p->wake_ns) / 16;
		p->woken_ns = spent;
		p->slept = 0;
	}
	if (load->now_ns - p->slot_ns >= 100000000u) {
		p->slots++;
		p->over += (double)(load->cpu_ns - p->slot_cpu) >
			   1.02 * law->gain * (double)(load->now_ns - p->slot_ns) + law->burst;
		p->slot_ns = load->now_ns;
		p->slot_cpu = load->cpu_ns;
	}
}

/* Until the next burst is paid for; half a period at least, for the victim's sake. */
static void sleep_until_paid(struct budget *p, const struct loom_qos_load *load,
			     struct loom_qos_turn *turn, const struct law *law)
{
	/* Waking takes its time, in which the bucket goes on filling. */
	double now = (double)load->now_ns, missing = (price(law) - p->wake_ns * law->gain - p->tokens) / law->gain;
	double period = period_of(law);
	if (p->open)
		p->after_ns = now + (period - law->burst) / 2;
	missing = missing > p->after_ns - now ? missing : p->after_ns - now;
	missing = missing > 1000 ? missing : 1000;
	int tick = p->opts->tick && period > 1.5 * p->tick_ns;
	/* With the tick: from half a tick too early, so that it is late as often as early. */
	if (tick && missing > p->tick_ns / 2)
		missing -= p->tick_ns / 2;
	p->until_ns = load->now_ns + (uint64_t)missing;
	p->open = 0;
	p->slept = 1;
	p->burst_ns = 0;
	turn->requests = 0;
	if (turn->retry_ns < p->until_ns)
		turn->retry_ns = p->until_ns;
	turn->slack_ns = (uint64_t)(tick ? p->tick_ns : period / 32);
	if (!tick)
		turn->then_ns = p->until_ns + (uint64_t)period;
}

/* ---- tenants -------------------------------------------------------------------------------------- */

/* Who saved something may interrupt others when it comes; whoever of those is waiting is served first. */
static uint32_t look_at_savings(struct budget *p, const struct loom_qos_load *load, const struct law *law,
				uint64_t *heed)
{
	uint32_t first = load->tenants;
	int lends = p->tokens > -law->lent;
	*heed = 0;
	for (uint32_t i = 0; load->tenants > 1 && i < load->tenants; i++) {
		struct account *a = &p->account[i];
		int waits = load->tenant[i].waiting != 0;
		if (a->own <= 0)
			a->saved = 0;
		else if (!waits && a->own >= law->lent / 2)
			a->saved = 1;
		if (!a->saved || !lends)
			continue;
		if (!waits)
			*heed |= 1ull << i;
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
	if (a->round != p->round) {
		a->round = p->round;
		a->deficit = (a->deficit < 0 ? a->deficit : 0) +
			     QUANTUM_NS * load->tenant[i].weight;
	}
	return a->deficit > 0;
}

static uint32_t choose(struct budget *p, const struct loom_qos_load *load)
{
	/* A tenant deep in debt, for one dear request, needs several rounds. */
	for (uint32_t rounds = 0; rounds < 1000; rounds++, p->round++)
		for (uint32_t i = 0; i < load->tenants; i++) {
			uint32_t at = (p->current + i) % load->tenants;
			if (may_spend(p, load, at))
				return p->current = at;
		}
	return p->current;
}

/* ---- decisions ------------------------------------------------------------------------------------ */

/* What `ns` pay for, one request at least. The turn ends after `most_ns`, should requests turn out dear or
 * others come between. */
static void grant(const struct budget *p, struct loom_qos_turn *turn, uint32_t tenant, double ns, double most_ns)
{
	double pays = ns / p->account[tenant].cost;
	uint64_t most = (uint64_t)(most_ns > SLEEP_NS ? most_ns : SLEEP_NS);
	pays = pays < 1 ? 1 : pays;
	turn->tenant = tenant;
	if (turn->requests > pays)
		turn->requests = (uint32_t)pays;
	if (!turn->cpu_ns || turn->cpu_ns > most)
		turn->cpu_ns = most;
}

static void admit(void *self, const struct loom_qos_load *load, struct loom_qos_turn *turn)
{
	struct budget *p = self;
	struct law law = law_of(p, load);
	int slept = p->slept;
	settle(p, load, &law);
	uint32_t first = look_at_savings(p, load, &law, &turn->wake_mask);
	double room = law.burst - p->burst_ns;
	p->urgent = first < load->tenants;
	if (p->urgent && room > -law.burst / CRUMBS) {
		/* After a burst that took longer than it should, a little more: no sleep comes before it. */
		double most = room > law.burst / CRUMBS ? room : law.burst / CRUMBS;
		most = p->account[first].own < most ? p->account[first].own : most;
		grant(p, turn, first, most, most);
		return;
	}
	if (p->urgent) { /* a pause for the victim */
		turn->requests = 0;
		if (turn->retry_ns < load->now_ns + (uint64_t)law.burst / 4)
			turn->retry_ns = load->now_ns + (uint64_t)law.burst / 4;
		return;
	}
	p->woken_ns = 0;
	if (!p->open) {
		/* Not when somebody woke us before it was due, or for an eighth of a burst. But after a whole
		 * sleep a burst begins with what waking has left: were it too little, and were we to sleep
		 * again, waking would take all tokens for ever. */
		if (!is_due(p, load, &law) || (!slept && p->tokens < price(&law) / 2)) {
			sleep_until_paid(p, load, turn, &law);
			return;
		}
		p->open = 1;
		p->in_burst = 0;
	}
	uint32_t tenant = choose(p, load);
	const struct account *a = &p->account[tenant];
	double left = room < p->tokens ? room : p->tokens, pays = left - SLEEP_NS;
	/* The first request of a burst is served even if it costs more than a bucket: else never. A last
	 * turn of a few would cost more than it serves: what it could spend stays in the bucket. */
	if (p->in_burst && (pays < a->cost || pays < law.burst / CRUMBS)) {
		sleep_until_paid(p, load, turn, &law);
		return;
	}
	double fair = a->deficit + a->cost;
	grant(p, turn, tenant,
	      pays < fair || load->waiting == load->tenant[tenant].waiting ? pays : fair, left);
}

static void account(void *self, const struct loom_qos_load *load, uint32_t tenant, uint32_t served,
		    uint64_t cpu_ns)
{
	struct budget *p = self;
	struct account *a = &p->account[tenant];
	double debt = -law_of(p, load).lent;
	if (!served)
		return;
	/* A small turn says little: its fixed part weighs more. */
	double weight = served >= 16 ? 1.0 / 8 : 1.0 / 32;
	a->cost += weight * ((double)cpu_ns / served - a->cost);
	a->cost = a->cost > 20 ? a->cost : 20;
	a->own -= (double)cpu_ns + p->woken_ns;
	a->own = a->own > debt ? a->own : debt; /* what it borrowed is not held against it for longer */
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

QOS_PLUGIN(qos_budget, "A share of CPU time, never exceeded and fully used", rows,
	   struct budget_opts, ops)
