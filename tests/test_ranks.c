/* SPDX-License-Identifier: Apache-2.0 */
/* Tests messages between ranks and the hub: frames in pieces of any size and with invalid lengths, wrong
 * messages, ranks that cannot be started, and keys of memory. */
#include <errno.h>
#include <gpuloom/error.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../plugins/trigger_common/fabric/fabric_key.h"
#include "ranks/boot.h"
#include "support.h"

static size_t put(char *at, uint32_t kind, uint32_t value, const void *body, uint64_t bytes)
{
	struct loom__frame_head head = {.kind = kind, .value = value, .bytes = bytes};
	memcpy(at, &head, sizeof(head));
	if (body)
		memcpy(at + sizeof(head), body, bytes);
	return sizeof(head) + (body ? bytes : 0);
}

/* Opens a link. Returns the other end of its connection. */
static int open_link(struct loom__link *l)
{
	int pair[2] = {-1, -1};
	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	*l = (struct loom__link){.fd = pair[0]};
	return pair[1];
}

/* A link assembles complete frames, in order, from pieces of any size, and never returns a part of one. */
TEST(frames_come_in_pieces_F5)
{
	char in[400], text[100];
	memset(text, 'x', sizeof(text));
	size_t length = put(in, LOOM__FRAME_GIVE, 7, text, sizeof(text)), end[3] = {length};
	end[1] = length += put(in + length, LOOM__FRAME_DONE, 3, "why", 3);
	end[2] = length += put(in + length, LOOM__FRAME_GIVE, 8, "", 0);
	for (size_t piece = 1; piece <= length; piece++) {
		struct loom__link l;
		int frames = 0, fd = open_link(&l);
		for (size_t at = 0; at < length;) {
			size_t n = length - at < piece ? length - at : piece;
			CU_ASSERT_EQUAL(send(fd, in + at, n, 0), (ssize_t)n);
			at += n;
			while (loom__link_read(&l) == 1) {
				frames++;
				CU_ASSERT(frames != 1 ||
					  (l.in.value == 7 && l.in.bytes == 100 && !memcmp(l.in_body, text, 100)));
				CU_ASSERT(frames != 2 || (l.in.kind == LOOM__FRAME_DONE && !strcmp(l.in_body, "why")));
				CU_ASSERT(frames != 3 || (l.in.value == 8 && !l.in.bytes && !*l.in_body));
			}
			CU_ASSERT_EQUAL(frames, (at >= end[0]) + (at >= end[1]) + (at >= end[2]));
		}
		close(fd);
		CU_ASSERT(loom__link_read(&l) == -1 && errno == ECONNRESET);
		loom__link_close(&l);
	}
}

/* A length is checked before memory is allocated, and each kind has its own bound. */
TEST(lengths_are_bounded_F2_S1)
{
	static const struct {
		uint32_t kind;
		uint64_t bytes;
		int code;
	} tried[] = {{LOOM__FRAME_GIVE, UINT64_MAX, EPROTO},
		     {LOOM__FRAME_GIVE, UINT64_MAX - 1, EPROTO},
		     {LOOM__FRAME_GIVE, 1ull << 40, EPROTO},
		     {LOOM__FRAME_GIVE, LOOM__GIVE_MOST + 1, EPROTO},
		     {LOOM__FRAME_GIVE, LOOM__GIVE_MOST, 0},
		     {LOOM__FRAME_DONE, LOOM__TEXT_MOST + 1, EPROTO},
		     {LOOM__FRAME_DONE, LOOM__TEXT_MOST, 0},
		     {LOOM__FRAME_ALL, 0, EPROTO},
		     {LOOM__FRAME_END, 0, EPROTO},
		     {0, 0, EPROTO},
		     {LOOM__FRAME_END + 1, 0, EPROTO},
		     {32 + LOOM__FRAME_GIVE, 0, EPROTO},
		     {UINT32_MAX, 0, EPROTO}};
	for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
		struct loom__link l;
		char in[64] = {0};
		int fd = open_link(&l);
		size_t length = put(in, tried[i].kind, 0, NULL, tried[i].bytes);
		CU_ASSERT_EQUAL(send(fd, in, length + 16, 0), (ssize_t)length + 16);
		errno = 0;
		CU_ASSERT_EQUAL(loom__link_read(&l), tried[i].code ? -1 : 0);
		CU_ASSERT(!tried[i].code || (errno == tried[i].code && !l.in_body));
		close(fd);
		loom__link_close(&l);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* The keys of registered memory are random, so that another process cannot find them by counting. */
TEST(keys_of_memory_are_random_S2)
{
	static uint64_t key[4096];
	uint64_t all = 0, any = UINT64_MAX;
	for (size_t i = 0; i < COUNT(key); i++) {
		CU_ASSERT_EQUAL(fabric_key(8, &key[i]), 0);
		CU_ASSERT(key[i] >= 0x10000);
		all |= key[i];
		any &= key[i];
	}
	CU_ASSERT_EQUAL(all, UINT64_MAX); /* each bit is 1 in some key; below, each is 0 in some key */
	CU_ASSERT_EQUAL(any, 0);
	qsort(key, COUNT(key), sizeof(key[0]), by_value);
	for (size_t i = 1; i < COUNT(key); i++)
		CU_ASSERT_NOT_EQUAL(key[i - 1], key[i]);
	for (uint64_t bytes = 1; bytes < 8; bytes++)
		for (int i = 0; i < 100; i++) {
			CU_ASSERT_EQUAL(fabric_key(bytes, &key[0]), 0);
			CU_ASSERT_EQUAL(key[0] >> 8 * bytes, 0);
			CU_ASSERT(bytes < 4 || key[0] >= 0x10000);
		}
}

static char said[2000];
static void hear(void *arg, const char *text)
{
	size_t at = strlen(said);
	(void)arg;
	snprintf(said + at, sizeof(said) - at, "%s\n", text);
}

/* A rank that sends a wrong message ends the job, and the hub names it. Rank 0 begins an exchange. */
TEST(the_hub_names_a_rank_that_sends_wrong_messages_D3)
{
	static const struct {
		uint32_t kind, value;
		uint64_t announced, sent;
		const char *words;
	} tried[] = {{LOOM__FRAME_GIVE, 5, 8, 8, "rank 1 sent an invalid message"},
		     {LOOM__FRAME_ALL, 0, 8, 8, "rank 1 sent an invalid message"},
		     {LOOM__FRAME_GIVE, 0, UINT64_MAX, 8, "rank 1 sent an invalid message"},
		     {LOOM__FRAME_GIVE, 0, 3, 3, "rank 1 is not in step with rank 0"},
		     {LOOM__FRAME_DONE, 7, 0, 0, "rank 1 ended with status 7"}};
	struct sigaction interrupt, end, alarm;
	sigaction(SIGINT, NULL, &interrupt);
	sigaction(SIGTERM, NULL, &end);
	sigaction(SIGALRM, NULL, &alarm);
	for (size_t i = 0; i < COUNT(tried); i++) {
		struct loom__member member[2] = {0};
		struct pollfd on[2];
		for (uint32_t r = 0; r < 2; r++) {
			int pair[2];
			char frame[64] = {0};
			size_t n =
			    r ? put(frame, tried[i].kind, tried[i].value, NULL, tried[i].announced) + tried[i].sent
			      : put(frame, LOOM__FRAME_GIVE, 0, "12345678", 8);
			CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
			member[r].link = (struct loom__link){.fd = pair[0]};
			member[r].pid = fork();
			if (!member[r].pid) {
				signal(SIGTERM, SIG_DFL);
				if (send(pair[1], frame, n, MSG_NOSIGNAL) == (ssize_t)n &&
				    !(r && tried[i].kind == LOOM__FRAME_DONE))
					pause(); /* until the hub ends it */
				_exit(0);
			}
			close(pair[1]);
		}
		*said = 0;
		CU_ASSERT_NOT_EQUAL(loom__hub_run(member, on, 2, hear, NULL), 0);
		if (!strstr(said, tried[i].words))
			printf("row %zu: %s\n", i, said);
		CU_ASSERT_PTR_NOT_NULL(strstr(said, tried[i].words));
	}
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGALRM, &alarm, NULL);
}

/* If a rank cannot be started, the ranks before it are ended and reaped, and their connections are closed. */
TEST(a_rank_that_cannot_be_started_leaves_nothing)
{
	enum { FREE = 4, MOST = 128 }; /* rank 3 lacks a descriptor */
	struct rlimit before, few;
	struct loom__boot_plan plan = {.how = LOOM__BOOT_FORK, .ranks = 8};
	struct loom__boot boot;
	struct loom_error err = {0};
	int held[MOST], n = 0, status = 0, more = 0;
	getrlimit(RLIMIT_NOFILE, &before);
	few = (struct rlimit){MOST, before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < MOST && (held[n] = dup(2)) >= 0)
		n++;
	for (int i = 0; i < FREE; i++)
		close(held[--n]);
	int rc = loom__boot_begin(&plan, hear, NULL, &boot, &status, &err);
	if (!rc) /* in the process of a rank */
		for (;;)
			pause();
	REFUSED(rc, LOOM_EUNAVAIL, err, "cannot start rank 3 of 8: Too many open files");
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	while (n < MOST && (held[n] = dup(2)) >= 0)
		n++, more++;
	CU_ASSERT_EQUAL(more, FREE);
	while (n)
		close(held[--n]);
	setrlimit(RLIMIT_NOFILE, &before);
}

/* The ranks are threads. In the second call, one rank gives data of a different size. The calls must return an error.
 */
static int give(void *arg, const struct loom_ranks *ranks, struct loom_error *err)
{
	char mine[64] = {0}, all[3 * 64];
	(void)arg;
	int rc = ranks->allgather(ranks->self, mine, all, 8, err);
	return rc ? rc : ranks->allgather(ranks->self, mine, all, ranks->rank == 1 ? 16 : 8, err);
}

TEST(threads_compare_the_sizes_of_an_exchange_D3)
{
	struct loom__threads *t;
	struct loom_error err = {0};
	CU_ASSERT_EQUAL_FATAL(loom__threads_begin(3, give, NULL, &t, &err), 0);
	int rc = give(NULL, loom__threads_first(t), &err);
	REFUSED(loom__threads_end(t, rc, &err), LOOM_EINVAL, err, "is not in step with rank&do all run the same conf");
}

TEST_MAIN("ranks", 0)
