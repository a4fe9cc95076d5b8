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
 * Within a burst tenants are served by deficit round robin in CPU time. A tenant that begins to wait is
 * served before those that have waited, once per round: it cannot gain more than its share by that. */
#include <time.h>

#include "qos_budget.dev.h"
#include "service.h"

struct budget_opts {
	double limit;
	uint64_t stall, quantum, latency;
	uint8_t tick;
};

struct account {
	double deficit;	  /* ns of CPU time that it may spend in this round */
	double cost;	  /* of a request, ns: decayed mean */
	uint64_t round;	  /* in which it was last given its quantum */
	int waited;	  /* when we last looked */
};

struct budget {
	struct qos base;
	const struct budget_opts *opts;
	double tokens;	 /* ns */
	uint64_t seen_ns, seen_cpu;
	double tick_ns, wake_ns; /* what it costs to wake: decayed mean */
	int open;		 /* a burst is under way: */
	uint32_t in_burst;	 /* requests served in it, */
	double burst_ns;	 /* CPU time since it began to wake */
	int slept;
	uint64_t round;
	uint32_t current;
	struct account account[LOOM_MAX_TENANTS];
	/* For the report: slots of 100 ms in which more was spent than gained. */
	uint64_t slot_ns, slot_cpu, slots, over;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct budget_opts, limit, LOOM_OPT_SHARE, "5%",
		 "Share of the machine's CPU time for requests, all threads of the path together.",
		 .min = 1e-4, .max = 1),
	LOOM_OPT(struct budget_opts, stall, LOOM_OPT_TIME, "150us",
		 "Longest time that a burst of requests takes from whatever else runs on its core, for limits "
		 "below nine tenths of one core.",
		 .min = 3e4, .max = 1e8),
	LOOM_OPT(struct budget_opts, latency, LOOM_OPT_TIME, "0",
		 "Bursts follow each other at least as often, at the price of throughput. 0: as seldom as "
		 "`stall` allows.",
		 .min = 0, .max = 1e10),
	LOOM_OPT(struct budget_opts, quantum, LOOM_OPT_TIME, "20us",
		 "CPU time of a tenant of weight 1 before the next one's turn.", .min = 1e3, .max = 1e9),
	LOOM_OPT(struct budget_opts, tick, LOOM_OPT_BOOL, "yes",
		 "Whether bursts may wait for the kernel's tick where they are that far apart."),
	{.name = NULL},
};

#define COST_AT_FIRST 2000.0
#define SLEEP_NS 2500.0 /* going to sleep, paid after the burst's last look at the clock */
#define BURST_LEAST 30000.0
#define CRUMBS 16

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct budget *p = host->alloc(host, sizeof(*p));
	struct timespec tick = {0};
	int rc = qos_create(&p->base, host, "qos_budget", err);
	*self = p;
	if (rc)
		return rc;
	p->opts = opts;
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	p->tick_ns = (double)tick.tv_nsec;
	for (uint32_t i = 0; i < LOOM_MAX_TENANTS; i++)
		p->account[i].cost = COST_AT_FIRST;
	return 0;
}

static void arrange(void *self, struct loom_qos_path *path)
{
	(void)self;
	path->mask = 1; /* an interrupt while there are no tokens would only cost some */
	path->batch = SSR_BATCH_MOST; /* turns end by what they cost */
}

/* ---- tokens --------------------------------------------------------------------------------------- */

#define DEPTH 0.012 /* of a second's gain: with one burst more still below 1.02 */

/* What is known for one decision. */
struct law {
	double gain;  /* CPU time per time */
	double burst; /* longest, ns */
	double depth;
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
	if (law.depth < law.burst)
		law.depth = law.burst;
	return law;
}

/* Tokens that a full burst needs when it begins: it gains while it pays. */
static double price(const struct law *law)
{
	double rest = law->gain < 0.9 ? 1 - law->gain : 0.1;
	return law->burst * rest;
}

static void begin_again(struct budget *p, const struct loom_qos_load *load)
{
	p->seen_ns = p->slot_ns = load->now_ns;
	p->seen_cpu = p->slot_cpu = load->cpu_ns;
	p->tokens = 0;
	p->open = p->slept = 0;
}

static void settle(struct budget *p, const struct loom_qos_load *load, const struct law *law)
{
	if (!p->seen_ns || load->cpu_ns < p->seen_cpu)
		begin_again(p, load);
	double spent = (double)(load->cpu_ns - p->seen_cpu);
	p->tokens += (double)(load->now_ns - p->seen_ns) * law->gain - spent;
	p->tokens = p->tokens < law->depth ? p->tokens : law->depth;
	/* Who had as long a rest as a burst lasts begins another. */
	int rested = (double)(load->now_ns - p->seen_ns) - spent > law->burst;
	p->burst_ns = rested && !p->slept ? spent : p->burst_ns + spent;
	p->seen_ns = load->now_ns;
	p->seen_cpu = load->cpu_ns;
	if (p->slept) {
		p->wake_ns += (spent - p->wake_ns) / 16;
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
	double missing = (price(law) - p->wake_ns * law->gain - p->tokens) / law->gain;
	double period = law->burst / law->gain, least = (period - law->burst) / 2;
	missing = missing > least ? missing : least;
	missing = missing > 1000 ? missing : 1000;
	int tick = p->opts->tick && period > 1.5 * p->tick_ns;
	/* With the tick: from half a tick too early, so that it is late as often as early. */
	if (tick && missing > p->tick_ns / 2)
		missing -= p->tick_ns / 2;
	uint64_t at = load->now_ns + (uint64_t)missing;
	p->open = 0;
	p->slept = 1;
	p->burst_ns = 0;
	turn->requests = 0;
	if (turn->retry_ns < at)
		turn->retry_ns = at;
	turn->slack_ns = (uint64_t)(tick ? p->tick_ns : period / 32);
	if (!tick)
		turn->then_ns = at + (uint64_t)period;
}

/* ---- tenants -------------------------------------------------------------------------------------- */

static int may_spend(struct budget *p, const struct loom_qos_load *load, uint32_t i)
{
	struct account *a = &p->account[i];
	if (!load->tenant[i].waiting)
		return 0;
	if (a->round != p->round) {
		a->round = p->round;
		a->deficit = (a->deficit < 0 ? a->deficit : 0) +
			     (double)p->opts->quantum * load->tenant[i].weight;
	}
	return a->deficit > 0;
}

static uint32_t choose(struct budget *p, const struct loom_qos_load *load)
{
	uint32_t fresh = load->tenants;
	for (uint32_t i = load->tenants; i-- > 0;) {
		int waits = load->tenant[i].waiting != 0;
		if (waits && !p->account[i].waited && may_spend(p, load, i))
			fresh = i;
		p->account[i].waited = waits;
	}
	if (fresh < load->tenants)
		return p->current = fresh;
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

static void admit(void *self, const struct loom_qos_load *load, struct loom_qos_turn *turn)
{
	struct budget *p = self;
	struct law law = law_of(p, load);
	int slept = p->slept;
	settle(p, load, &law);
	if (!p->open) {
		/* After a sleep a burst begins with what waking has left: were it too little, and were
		 * we to sleep again, waking would take all tokens for ever. */
		if (!slept && p->tokens < price(&law) / 2) {
			sleep_until_paid(p, load, turn, &law);
			return;
		}
		p->open = 1;
		p->in_burst = 0;
	}
	uint32_t tenant = choose(p, load);
	const struct account *a = &p->account[tenant];
	double left = law.burst - p->burst_ns < p->tokens ? law.burst - p->burst_ns : p->tokens;
	double pays = (left - SLEEP_NS) / a->cost, fair = a->deficit / a->cost + 1;
	/* The first request of a burst is served even if it costs more than a bucket: else never. A last
	 * turn of a few would cost more than it serves: what it could spend stays in the bucket. */
	if (p->in_burst && (pays < 1 || left - SLEEP_NS < law.burst / CRUMBS)) {
		sleep_until_paid(p, load, turn, &law);
		return;
	}
	pays = pays < 1 ? 1 : pays;
	pays = pays < fair || load->waiting == load->tenant[tenant].waiting ? pays : fair;
	turn->tenant = tenant;
	if (turn->requests > pays)
		turn->requests = (uint32_t)pays;
	/* Ends a turn whose requests turn out dear, or that is preempted. */
	uint64_t most = (uint64_t)(left > SLEEP_NS ? left : SLEEP_NS);
	if (!turn->cpu_ns || turn->cpu_ns > most)
		turn->cpu_ns = most;
}

static void account(void *self, const struct loom_qos_load *load, uint32_t tenant, uint32_t served,
		    uint64_t cpu_ns)
{
	struct budget *p = self;
	struct account *a = &p->account[tenant];
	(void)load;
	if (!served)
		return;
	/* A small turn says little: its fixed part weighs more. */
	double weight = served >= 16 ? 1.0 / 8 : 1.0 / 32;
	a->cost += weight * ((double)cpu_ns / served - a->cost);
	a->cost = a->cost > 20 ? a->cost : 20;
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
	.size = sizeof(ops),
	.create = create,
	.destroy = qos_destroy,
	.need = qos_need,
	.init = qos_init,
	.collect = collect,
	.start = qos_start,
	.stop = qos_stop,
	.lead = qos_lead,
	.tenants = qos_tenants,
	.grants = qos_grants,
	.arrange = arrange,
	.admit = admit,
	.account = account,
};

QOS_PLUGIN(qos_budget, "A share of CPU time, kept to the letter and used to the full", rows,
	   struct budget_opts, ops)
