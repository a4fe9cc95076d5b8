/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks send any bytes to the hub, and end in any way. The first byte of the input gives the number of ranks. Each
 * following record has a rank, a length and bytes to send, or a rank that ends, and its wait status. Ranks are no
 * processes here. Time is virtual, and advances with each read of the clock. A rank also ends at SIGTERM and SIGKILL,
 * and after a while. For any input the hub must return a status, and close all connections. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "formats.h"
#include "input.h"
#include "lib/child.h"

static int poll_now(struct pollfd *on, unsigned long n, int ms);
static int kill_rank(int pid, int number);
static int rank_ended(const struct child *c);
static int rank_status(struct child *c);
#define poll(...)           poll_now(__VA_ARGS__)
#define kill(pid, number)   kill_rank(pid, number)
#define child_ended(c, ns)  rank_ended(c)
#define child_wait(c, used) rank_status(c)
#include "lab/ranks/hub.c"
#undef poll
#undef kill
#undef child_ended
#undef child_wait

enum {
	RANKS = 4,
	FIRST = 1 << 30, /* process number of rank 0, which no process has */
	POLLS = 10000,
	PATIENCE = 2000 /* after this many calls of poll(), all remaining ranks end */
};

static uint64_t clock_ns;
static unsigned polls, ranks;
static struct rank {
	int fd, ended, status;
} rank[RANKS];

static void end(struct rank *r, int status)
{
	if (r->ended)
		return;
	shutdown(r->fd, SHUT_WR);
	r->ended = 1;
	r->status = status;
}

/* poll() without a timeout, because all input has been sent before. */
static int poll_now(struct pollfd *on, unsigned long n, int ms)
{
	(void)ms;
	FUZZ_CHECK(++polls < POLLS);
	for (unsigned i = 0; i < ranks && polls == PATIENCE; i++)
		end(&rank[i], 0);
	return poll(on, n, 0);
}

static int kill_rank(int pid, int number)
{
	FUZZ_CHECK(pid >= FIRST && (unsigned)(pid - FIRST) < ranks);
	end(&rank[pid - FIRST], number);
	return 0;
}

static int rank_ended(const struct child *c)
{
	return rank[c->pid - FIRST].ended;
}

static int rank_status(struct child *c)
{
	return rank[c->pid - FIRST].status;
}

uint64_t loom__now_ns(void)
{
	return clock_ns += 50000000;
}

static void logged(void *arg, const char *text)
{
	(void)arg;
	fuzz_say(text);
}

static int lowest(void)
{
	int fd = dup(0);
	close(fd);
	return fd;
}

static void send_all(const uint8_t *at, size_t left)
{
	while (left > 1) {
		unsigned who = at[0] % ranks, ends = at[0] >= 0xf0;
		size_t n = at[1] < left - 2 ? at[1] : left - 2;
		if (ends)
			end(&rank[who],
			    at[1] % 2 ? at[1] / 2 % 64 + 1 : at[1] / 2 << 8); /* a signal, or an exit status */
		else if (!rank[who].ended)
			(void)!send(rank[who].fd, at + 2, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		at += 2 + (ends ? 0 : n);
		left -= 2 + (ends ? 0 : n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loom__member member[RANKS] = {0};
	struct pollfd on[RANKS];
	struct sigaction interrupt, stop, alarm;
	int before = lowest();
	if (!size)
		return 0;
	ranks = 1 + data[0] % RANKS;
	for (uint32_t r = 0; r < ranks; r++) {
		int pair[2] = {-1, -1};
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
			abort();
		member[r].link = (struct loom__link){.fd = pair[0]};
		member[r].pid = FIRST + (int)r;
		rank[r] = (struct rank){.fd = pair[1]};
	}
	send_all(data + 1, size - 1);
	sigaction(SIGINT, NULL, &interrupt);
	sigaction(SIGTERM, NULL, &stop);
	sigaction(SIGALRM, NULL, &alarm);
	polls = 0;
	int status = loom__hub_run(member, on, ranks, logged, NULL);
	FUZZ_CHECK(status >= 0);
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGALRM, &alarm, NULL); /* libFuzzer limits the time of an input by it */
	for (unsigned i = 0; i < ranks; i++)
		close(rank[i].fd);
	FUZZ_CHECK(lowest() == before); /* every connection was closed */
	return 0;
}
