/* SPDX-License-Identifier: Apache-2.0 */
/* Tests messages between ranks and the hub: the reader of frames with pieces of any size and invalid lengths,
 * addresses, tokens, and keys of memory. */
#include <gpuloom/error.h>
#include <stdlib.h>
#include <string.h>

#include "../plugins/shared/fabric/fabric_key.h"
#include "ranks/boot.h"
#include "ranks/frame.h"
#include "support.h"

#define MEMBER (LOOM__FRAME_BIT(LOOM__FRAME_GIVE) | LOOM__FRAME_BIT(LOOM__FRAME_DONE))

static size_t put(char *at, uint32_t kind, uint32_t value, const void *body, uint64_t bytes)
{
	struct loom__frame_head head = {.kind = kind, .value = value, .bytes = bytes};
	memcpy(at, &head, sizeof(head));
	if (body)
		memcpy(at + sizeof(head), body, bytes);
	return sizeof(head) + (body ? bytes : 0);
}

/* The reader assembles complete frames, in order, from pieces of any size. */
TEST(frames_come_in_pieces_F5)
{
	char in[400], text[100];
	memset(text, 'x', sizeof(text));
	size_t length = put(in, LOOM__FRAME_GIVE, 7, text, sizeof(text));
	length += put(in + length, LOOM__FRAME_DONE, 3, "why", 3);
	length += put(in + length, LOOM__FRAME_GIVE, 8, "", 0);
	for (size_t piece = 1; piece <= length; piece++) {
		struct loom__frame_reader r = {.kinds = MEMBER, .most = 100};
		struct loom__frame f;
		int frames = 0;
		for (size_t at = 0; at < length;) {
			size_t used, n = length - at < piece ? length - at : piece;
			int rc = loom__frame_take(&r, in + at, n, &used, &f);
			at += used;
			CU_ASSERT(rc == 1 || (rc == 0 && used == n));
			if (rc != 1)
				continue;
			frames++;
			CU_ASSERT(frames != 1 ||
				  (f.head.value == 7 && f.head.bytes == 100 && !memcmp(f.body, text, 100)));
			CU_ASSERT(frames != 2 || (f.head.kind == LOOM__FRAME_DONE && !strcmp(f.body, "why")));
			CU_ASSERT(frames != 3 || (f.head.value == 8 && !f.head.bytes && !*f.body));
		}
		CU_ASSERT_EQUAL(frames, 3);
		CU_ASSERT(!loom__frame_is_cut(&r));
		loom__frame_reader_free(&r);
	}
}

/* The reader does not return an incomplete frame, and reports that it is incomplete. */
TEST(a_frame_that_is_cut_waits_F5)
{
	char in[64];
	struct loom__frame_reader r = {.kinds = MEMBER, .most = 100};
	struct loom__frame f;
	size_t used, length = put(in, LOOM__FRAME_GIVE, 0, "12345678", 8);
	CU_ASSERT(!loom__frame_is_cut(&r));
	for (size_t at = 0; at + 1 < length; at++) {
		CU_ASSERT_EQUAL(loom__frame_take(&r, in + at, 1, &used, &f), 0);
		CU_ASSERT(loom__frame_is_cut(&r));
	}
	CU_ASSERT_EQUAL(loom__frame_take(&r, in + length - 1, 1, &used, &f), 1);
	loom__frame_reader_free(&r);
}

/* A length is checked before memory is allocated, and each kind has its own bound. */
TEST(lengths_are_bounded_F2_S1)
{
	static const struct {
		uint32_t kind;
		uint64_t bytes;
		int code;
	} tried[] = {{LOOM__FRAME_GIVE, UINT64_MAX, LOOM_EINVAL},
		     {LOOM__FRAME_GIVE, UINT64_MAX - 1, LOOM_EINVAL},
		     {LOOM__FRAME_GIVE, 1ull << 40, LOOM_EINVAL},
		     {LOOM__FRAME_GIVE, LOOM__GIVE_MOST + 1, LOOM_EINVAL},
		     {LOOM__FRAME_GIVE, LOOM__GIVE_MOST, 0},
		     {LOOM__FRAME_DONE, LOOM__TEXT_MOST + 1, LOOM_EINVAL},
		     {LOOM__FRAME_DONE, LOOM__TEXT_MOST, 0},
		     {LOOM__FRAME_HELLO, sizeof(struct loom__hello), LOOM_EINVAL},
		     {LOOM__FRAME_ALL, 0, LOOM_EINVAL},
		     {LOOM__FRAME_WELCOME, 0, LOOM_EINVAL},
		     {0, 0, LOOM_EINVAL},
		     {LOOM__FRAME_KINDS, 0, LOOM_EINVAL},
		     {32 + LOOM__FRAME_GIVE, 0, LOOM_EINVAL},
		     {UINT32_MAX, 0, LOOM_EINVAL}};
	for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
		struct loom__frame_reader r = {.kinds = MEMBER, .most = LOOM__GIVE_MOST};
		struct loom__frame f;
		char in[64] = {0};
		size_t used, length = put(in, tried[i].kind, 0, NULL, tried[i].bytes);
		CU_ASSERT_EQUAL(loom__frame_take(&r, in, length + 16, &used, &f), tried[i].code);
		CU_ASSERT(r.room <= 8192); /* there is room for the received bytes, but not for the announced length */
		if (tried[i].code) { /* the error is permanent */
			CU_ASSERT_EQUAL(loom__frame_take(&r, in, length, &used, &f), tried[i].code);
			CU_ASSERT_EQUAL(used, 0);
			CU_ASSERT(!r.body);
		}
		loom__frame_reader_free(&r);
	}
}

TEST(a_stranger_may_only_greet_S2)
{
	struct loom__hello hello = {.ranks = 4, .version = LOOM__HELLO_VERSION};
	char in[64];
	size_t used;
	struct loom__frame f;
	struct loom__frame_reader r = {.kinds = LOOM__FRAME_BIT(LOOM__FRAME_HELLO)};
	size_t length = put(in, LOOM__FRAME_HELLO, 2, &hello, sizeof(hello));
	CU_ASSERT_EQUAL(loom__frame_take(&r, in, length, &used, &f), 1);
	CU_ASSERT(f.head.value == 2 && !memcmp(f.body, &hello, sizeof(hello)));
	loom__frame_reader_free(&r);
	static const char web[] = "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n";
	r = (struct loom__frame_reader){.kinds = LOOM__FRAME_BIT(LOOM__FRAME_HELLO)};
	CU_ASSERT_EQUAL(loom__frame_take(&r, web, sizeof(web), &used, &f), LOOM_EINVAL);
	for (uint64_t bytes = 0; bytes < 64; bytes++) {
		r = (struct loom__frame_reader){.kinds = LOOM__FRAME_BIT(LOOM__FRAME_HELLO)};
		length = put(in, LOOM__FRAME_HELLO, 2, NULL, bytes);
		CU_ASSERT_EQUAL(loom__frame_take(&r, in, length, &used, &f), bytes == sizeof(hello) ? 0 : LOOM_EINVAL);
		loom__frame_reader_free(&r);
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

TEST(addresses_of_rank_0_F20_S15)
{
	static const struct {
		const char *text, *host, *port, *words;
	} tried[] = {{"node1:7741", "node1", "7741", NULL},
		     {"10.0.0.1:1", "10.0.0.1", "1", NULL},
		     {"[::1]:65535", "::1", "65535", NULL},
		     {"[fe80::1%eth0]:007", "fe80::1%eth0", "7", NULL},
		     {"::1:7741", NULL, NULL, "in brackets"},
		     {":7741", NULL, NULL, "expected the host name"},
		     {"node1", NULL, NULL, "expected the host name"},
		     {"[]:7741", NULL, NULL, "expected the host name"},
		     {"[::1]", NULL, NULL, "expected the host name"},
		     {"[::1:7741", NULL, NULL, "expected the host name"},
		     {"node1:", NULL, NULL, "1 to 65535"},
		     {"node1:0", NULL, NULL, "1 to 65535"},
		     {"node1:65536", NULL, NULL, "1 to 65535"},
		     {"node1:99999", NULL, NULL, "1 to 65535"},
		     {"node1:18446744073709551617", NULL, NULL, "1 to 65535"},
		     {"node1:+1", NULL, NULL, "1 to 65535"},
		     {"node1:1x", NULL, NULL, "1 to 65535"},
		     {"", NULL, NULL, "expected the host name"}};
	for (size_t i = 0; i < COUNT(tried); i++) {
		struct loom__root root;
		struct loom_error err = {0};
		int rc = loom__root_read(tried[i].text, &root, &err);
		if (tried[i].words)
			REFUSED(rc, LOOM_EINVAL, err, tried[i].words);
		else
			CU_ASSERT(!rc && !strcmp(root.host, tried[i].host) && !strcmp(root.port, tried[i].port));
	}
}

TEST(a_token_is_compared_whole_S2)
{
	unsigned char token[16], other[16];
	struct loom_error err;
	unsetenv("GPULOOM_TOKEN_FILE");
	setenv("GPULOOM_TOKEN", "000102030405060708090a0b0c0d0E0F", 1);
	CU_ASSERT_EQUAL(loom__token_read(token, &err), 0);
	for (unsigned i = 0; i < 16; i++)
		CU_ASSERT_EQUAL(token[i], i);
	CU_ASSERT(loom__token_is(token, token));
	for (unsigned bit = 0; bit < 128; bit++) {
		memcpy(other, token, sizeof(other));
		other[bit / 8] ^= (unsigned char)(1u << bit % 8);
		CU_ASSERT(!loom__token_is(token, other));
	}
}

/* The ranks are threads. In the second call, one rank gives data of a different size. The calls must return an error. */
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
