/* SPDX-License-Identifier: Apache-2.0 */
/* The counterpart of bench/peers/ring_simgrid.c with parts of gpuloom. Each rank is a fiber that sends to the next rank
 * and sleeps until a message arrives, in 2 (N - 1) steps. The clock and the agents are those of device_sim, and the
 * network is that of the triggers. The program has no workers, triggers, memory or data.
 *   sim_ring RANKS BYTES queue|fair
 * prints the simulated seconds and the CPU seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../plugins/device_sim/simulation.h"
#include "../plugins/trigger_common/simnet/wire.h"

#define STACK_BYTES 16384u

struct message {
	struct wire_message ops; /* the first member, because wire_take() returns its address */
	struct message *next;
};
struct rank {
	struct wire_port port;
	struct fiber fiber;
	struct rank *to;
	struct message *unused;
	uint32_t came, awaited; /* the number of received messages; the number at which the fiber continues */
	uint64_t began, ended;
	struct loom_agent *agent;
	struct sim_member member;
	struct loom_host host;
};

static struct rank *ranks, *running;
static struct fiber home;
static uint32_t steps;
static uint64_t bytes;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "sim_ring: %s\n", what);
	exit(1);
}

static uint64_t now_of(const struct rank *r)
{
	return r->port.clock->now_ns(r->port.clock);
}

/* ---- a rank ------------------------------------------------------------------------------------------ */

static void sleep_until_woken(struct rank *r)
{
	fiber_switch(&r->fiber, &home);
	fiber_arrive(&r->fiber, &home);
}

static void main_of_rank(void)
{
	struct rank *r = running;
	fiber_arrive(&r->fiber, &home);
	r->began = now_of(r);
	for (uint32_t i = 0; i < steps; i++) {
		struct message *x = r->unused;
		r->unused = x ? x->next : NULL;
		must(x || (x = calloc(1, sizeof(*x))), "out of memory");
		wire_send(&r->port, &r->to->port, &x->ops, now_of(r), bytes);
		for (r->awaited = i + 1; r->came < r->awaited;)
			sleep_until_woken(r);
	}
	r->ended = now_of(r);
	for (r->awaited = UINT32_MAX;;)
		sleep_until_woken(r);
}

static uint64_t step(void *arg, uint64_t now_ns)
{
	struct rank *r = arg;
	(void)now_ns;
	for (struct message *x; (x = (struct message *)wire_take(&r->port)); r->came++) {
		struct rank *sender = (struct rank *)x->ops.from; /* `port` is the first member of struct rank */
		x->next = sender->unused;
		sender->unused = x;
	}
	if (r->came >= r->awaited) {
		running = r;
		fiber_switch(&home, &r->fiber);
		fiber_arrive(&home, &r->fiber);
	}
	return wire_due(&r->port);
}

/* ---- main ------------------------------------------------------------------------------------ */

static int log_on(const struct loom_host *host, int level)
{
	(void)host, (void)level;
	return 0;
}

static int fail(const struct loom_host *host, struct loom_error *err, int code, const char *file, int line,
		const char *fmt, ...)
{
	(void)host, (void)err, (void)code, (void)file, (void)line;
	must(0, fmt);
	return code;
}

int main(int argc, char *argv[])
{
	struct simnet_model model = {.sim_latency = 800, .sim_rate = 12.5e9, .sim_ranks_per_host = 1, .sim_uplinks = 1,
				      .sim_dead = ""};
	uint32_t all = argc == 4 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	must(all > 1, "usage: sim_ring RANKS BYTES queue|fair");
	bytes = strtoull(argv[2], NULL, 10);
	model.sim_sharing = strcmp(argv[3], "fair") ? SIMNET_QUEUE : SIMNET_FAIR;
	steps = 2 * (all - 1);
	static struct loom_ctl ctl;
	struct simulation *s = NULL;
	struct wire *wire = NULL;
	ranks = calloc(all, sizeof(*ranks));
	must(ranks != NULL, "out of memory");
	for (uint32_t i = 0; i < all; i++) {
		struct rank *r = &ranks[i];
		r->host = (struct loom_host){
		    .size = sizeof(r->host), .log_on = log_on, .fail = fail, .rank = i, .ranks = all, .job = ranks};
		r->member.name = "ring";
		simulation_join(&r->host, 1, &r->member, &s, NULL);
		r->member.group->ctl = &ctl;
		if (!wire)
			wire_create(&r->host, &model, &wire, NULL);
		wire_join(wire, i, &r->port);
		r->to = &ranks[(i + 1) % all];
		const struct loom_clock *clock = &r->member.group->clock;
		must(!fiber_make(&r->fiber, STACK_BYTES, main_of_rank) && !clock->start(clock, "rank", step, r, &r->agent), "out of memory");
		wire_attach(&r->port, clock, r->agent);
	}
	struct timespec begin, end;
	fiber_home(&home);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	simulation_run(s);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	uint64_t last = 0;
	for (uint32_t i = 0; i < all; i++) {
		must(ranks[i].came == steps && ranks[i].ended, "a rank waits forever");
		last = ranks[i].ended > last ? ranks[i].ended : last;
	}
	printf("%.9g %.6g\n", (double)(last - ranks[0].began) / 1e9,
	       (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	return 0; /* all resources end with the process */
}
