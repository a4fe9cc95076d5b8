/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of other hosts, and processes outside the job, connect to the hub. The first byte of the input gives the number
 * of ranks and of outside processes. Each following record has a sender, a length and bytes to send, or a sender that
 * disconnects. Time is virtual, and advances with each read of the clock. After a while all remaining senders
 * disconnect. For any input the hub must return a status, and close all connections. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "formats.h"
#include "input.h"

static int poll_now(struct pollfd *on, unsigned long n, int ms);
#define poll(...) poll_now(__VA_ARGS__)
#include "lab/ranks/hub.c"
#undef poll

enum {
	RANKS = 4,
	STRANGERS = 3,
	READS = 10000,
	PATIENCE = 2000 /* after this many reads of the clock, all remaining senders disconnect */
};

/* poll() without a timeout, because all input has been sent before. */
static int poll_now(struct pollfd *on, unsigned long n, int ms)
{
	(void)ms;
	return poll(on, n, 0);
}

static uint64_t clock_ns;
static unsigned reads, peers;
static int peer[RANKS + STRANGERS];

uint64_t loom__now_ns(void)
{
	FUZZ_CHECK(++reads < READS);
	for (unsigned i = 0; i < peers && reads == PATIENCE; i++)
		shutdown(peer[i], SHUT_WR);
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

static int listen_here(struct sockaddr_un *at, socklen_t *length)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	*length = sizeof(*at);
	if (bind(fd, (struct sockaddr *)at, sizeof(sa_family_t)) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)at, length))
		abort();
	return fd;
}

static void send_all(const uint8_t *at, size_t left)
{
	while (left > 1) {
		unsigned who = at[0] % peers, hangs_up = at[0] >= 0xf0;
		size_t n = at[1] < left - 2 ? at[1] : left - 2;
		if (hangs_up)
			shutdown(peer[who], SHUT_WR);
		else
			(void)!send(peer[who], at + 2, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		at += 2 + (hangs_up ? 0 : n);
		left -= 2 + (hangs_up ? 0 : n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned char token[16];
	struct loom__member member[RANKS] = {0};
	struct pollfd on[RANKS + LOOM__LISTENER_FDS];
	struct loom__listener listener = {.token = token};
	struct sigaction interrupt, end, alarm;
	struct sockaddr_un at;
	socklen_t length;
	int before = lowest();
	if (!size)
		return 0;
	peers = 0;
	uint32_t n = 1 + data[0] % RANKS, strangers = data[0] / RANKS % (STRANGERS + 1);
	for (uint32_t r = 0; r < n; r++) {
		int pair[2] = {-1, -1};
		if (r && strangers) { /* this rank is absent; a stranger may claim its place */
			member[r].link.fd = -1;
			continue;
		}
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
			abort();
		member[r].link =
		    (struct loom__link){.fd = pair[0], .in = {.kinds = LOOM__HUB_ACCEPTS, .most = LOOM__GIVE_MOST}};
		peer[peers++] = pair[1];
	}
	if (strangers) {
		listener.ranks = n;
		listener.listener[listener.listeners++] = listen_here(&at, &length);
		for (unsigned i = 0; i < LOOM__LISTENER_PENDING; i++)
			listener.pending[i].link.fd = -1;
		for (uint32_t i = 0; i < strangers; i++) {
			peer[peers] = socket(AF_UNIX, SOCK_STREAM, 0);
			if (connect(peer[peers++], (struct sockaddr *)&at, length))
				abort();
		}
	}
	send_all(data + 1, size - 1);
	sigaction(SIGINT, NULL, &interrupt);
	sigaction(SIGTERM, NULL, &end);
	sigaction(SIGALRM, NULL, &alarm);
	reads = 0;
	int status = loom__hub_run(member, on, n, strangers ? &listener : NULL, logged, NULL);
	FUZZ_CHECK(status >= 0);
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGALRM, &alarm, NULL); /* libFuzzer limits the time of an input by it */
	for (unsigned i = 0; i < peers; i++)
		close(peer[i]);
	FUZZ_CHECK(lowest() == before); /* every connection was closed */
	return 0;
}
