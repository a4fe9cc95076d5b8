/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the victims that have a name: their commands, their input, and those that are built in. */
#include "../plugins/workloads/requests/victims.c"
#undef SECOND
#include "support.h"

TEST(commands)
{
	struct request_victim v;
	request_victim_set("@openssl", 4, 0, &v);
	CU_ASSERT_STRING_EQUAL(v.command, "openssl speed -elapsed -seconds 1 -bytes 8192 -multi 4 -evp sha256");
	CU_ASSERT_STRING_EQUAL(v.package, "openssl");
	request_victim_set("sleep 1 %u", 4, 0, &v);
	CU_ASSERT_STRING_EQUAL(v.command, "sleep 1 %u");
	request_victim_set("@idle", 4, 0, &v);
	CU_ASSERT_STRING_EQUAL(v.command, "");
	request_victim_set("@memory", 3, 0, &v);
	CU_ASSERT_TRUE(v.built_in == REQUEST_MEMORY && v.cores == 3);
	CU_ASSERT_EQUAL(v.built_in_ns, 1000000000u); /* without a duration: a second */
	request_victim_set("@memory", 3, 200000000u, &v);
	CU_ASSERT_EQUAL(v.built_in_ns, 200000000u);
}

TEST(input)
{
	int fd = request_victim_input("P5 ", 2);
	char text[100];
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(read(fd, text, sizeof(text)), (ssize_t)sizeof(text));
	CU_ASSERT_TRUE(!memcmp(text, "P5 ", 3) && strspn(text + 3, "abcdefghijklmnop") >= sizeof(text) - 3);
	CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_END), (2 << 20) + 3);
	close(fd);
}

/* Both built-in victims count their work. The threads of @barrier must end together. */
TEST(built_in)
{
	static const char *const name[] = {"@memory", "@barrier"};
	for (size_t i = 0; i < COUNT(name); i++)
		for (uint32_t cores = 1; cores <= 3; cores++) {
			struct request_victim v;
			double rate = 0;
			request_victim_set(name[i], cores, 100000000u, &v);
			CU_ASSERT_EQUAL(request_victim_run_built_in(&v, &rate), 0);
			CU_ASSERT_TRUE(rate > 0);
		}
}

TEST_MAIN("victims", 120)
