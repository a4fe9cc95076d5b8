/* SPDX-License-Identifier: Apache-2.0 */
/* The composed programs over dev/hip.h, without a GPU and without ROCm: clang compiles every scheduler
 * with every termination detector and each of four workloads for wavefronts of 64 and of 32. */
#include <sys/wait.h>
#include <unistd.h>

#include "compose_pick.h"

static const struct {
	const char *arch;
	uint32_t lanes;
} targets[] = {{"gfx90a", 64}, {"gfx1030", 32}};

static char folder[] = "/tmp/gpuloom-hip-XXXXXX";

static void need_clang(void)
{
	if (system("clang --print-targets 2>/dev/null | grep -q amdgcn") != 0)
		test_skip("no clang with the AMDGPU target here: install clang");
}

/* What HIP's own headers would define. */
#define KEYWORDS                                                                                   \
	"-D__device__='__attribute__((device))' -D__global__='__attribute__((global))' "           \
	"-D__shared__='__attribute__((shared))' -D__constant__='__attribute__((constant))'"

static int compile(const char *text, const char *arch)
{
	char path[100], command[1000];
	snprintf(path, sizeof(path), "%s/program.hip", folder);
	FILE *file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	CU_ASSERT_EQUAL(fclose(file), 0);
	snprintf(command, sizeof(command),
		 "clang -x hip --cuda-device-only --offload-arch=%s -nogpuinc -nogpulib -std=c++20 -O1 "
		 "-Wall -Wno-unused-function " KEYWORDS
		 " -Icore/include -Iplugins/compose -S %s/program.hip -o %s/program.s",
		 arch, folder, folder);
	int status = system(command);
	snprintf(path, sizeof(path), "%s/program.s", folder);
	CU_ASSERT_EQUAL(access(path, R_OK), 0);
	unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static struct compose_target target_of(size_t i)
{
	return (struct compose_target){.who = "hip:0",
				       .dialect = compose_hip,
				       .lanes = targets[i].lanes,
				       .per_block = 1,
				       .blocks = 1,
				       .nesting = 2};
}

static void check_combination(struct selection *s, const char *label)
{
	if (strcmp(s->policy[LOOM_TERM]->name, "term_counter") && !getenv("COMPOSE_ALL") &&
	    strcmp(s->policy[LOOM_WORKLOAD]->name, "workload_memset"))
		return; /* a detector's code does not depend on the workload's */
	for (size_t i = 0; i < COUNT(targets); i++) {
		struct compose_target target = target_of(i);
		struct text text;
		struct loom_error err = {0};
		int rc = compose_work(&fake_host, &target, &s->program, &text, &err);
		CU_ASSERT_EQUAL_FATAL(rc, 0);
		rc = compile(text.at, targets[i].arch);
		printf("  %-48s %-8s %s\n", label, targets[i].arch, rc ? "does not compile" : "compiles");
		CU_ASSERT_EQUAL(rc, 0);
		text_free(&text);
	}
}

static void test_combinations(void)
{
	need_clang();
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	each_combination(check_combination);
	/* And a worker of several wavefronts. */
	for (size_t i = 0; i < COUNT(targets); i++) {
		struct compose_target target = target_of(i);
		struct text text;
		struct loom_error err = {0};
		target.lanes = 256;
		CU_ASSERT_EQUAL_FATAL(compose_probe(&fake_host, &target, &text, &err), 0);
		CU_ASSERT_EQUAL(compile(text.at, targets[i].arch), 0);
		text_free(&text);
	}
	char path[100];
	snprintf(path, sizeof(path), "%s/program.hip", folder);
	unlink(path);
	rmdir(folder);
}

static const struct test tests[] = {{"combinations", test_combinations}};
TEST_MAIN("compose_hip", 300, tests)
