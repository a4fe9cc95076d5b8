/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the composed programs for AMD GPUs, without a GPU. device_hip's loader loads hipRTC, which compiles every
 * combination of tests/test_compose.c for wavefronts of 64 and of 32. The tests read the resources of a program from
 * its code object. */
#ifdef WITH_HIP /* plugins/device_hip/plugin.mk defines it */
#include <unistd.h>

#include "compose_pick.h"
#include "device_hip/runtime.h"

static const struct {
	const char *arch, *defines;
	uint32_t wave;
} targets[] = {{"gfx90a", "#define LOOM_HIP_WAVEFRONT 64\n", 64},
	       {"gfx1030", "#define LOOM_HIP_WAVEFRONT 32\n#define LOOM_HIP_CLOCK_KHZ 27000u\n", 32}};

/* The parts of the combinations that this run tests. With CHECK=all, any two values of factors meet in some program. Otherwise
 * each value is in some program, because test_compose compiles the pairs from the same source. */
static int parts(void)
{
	const char *check = getenv("CHECK");
	return getenv("COMPOSE_ALL") || (check && !strcmp(check, "all")) ? MATRIX_VALUE | MATRIX_REST : MATRIX_VALUE;
}

static struct rtc hiprtc;

static void need_hiprtc(void)
{
	struct loom_error err;
	if (hiprtc.so)
		return;
	if (rtc_open(&fake_host, "test", &hip_compiler, NULL, &hiprtc, &err) != 0)
		test_skip(err.text);
	printf("\n  %-54s %-8s %9s %7s %6s %7s\n", "program", "arch", "registers", "shared", "stack", "spills");
}

/* Returns the defaults of device_hip, with 8 blocks of one wavefront per compute unit, for architecture i. */
static struct compose_target target_of(size_t i)
{
	return (struct compose_target){.label = "hip:0",
				       .layer = &hip_layer,
				       .defines = targets[i].defines,
				       .lanes = targets[i].wave,
				       .per_block = 1,
				       .blocks = 8,
				       .nesting = 0};
}

static int compile(const char *text, const char *arch, struct compiled *out, struct loom_error *err)
{
	char option[32];
	snprintf(option, sizeof(option), "--offload-arch=%s", arch);
	const char *const options[] = {option, HIP_COMPILER_FLAGS};
	return rtc_run(&fake_host, "hip:0", &hiprtc, text, options, COUNT(options), 0, out, err);
}

enum { MAY_SPILL = 1 /* registers, to memory */, WAVES = 2 /* several workers share a block */, LAUNCHED = 4 /* a kernel launch for each step */ };

static void check_program(const char *text, const char *label, const char *arch, int flags)
{
	struct compiled out;
	struct loom_error err = {0};
	struct resources r;
	if (compile(text, arch, &out, &err) != 0) {
		printf("%s %s: %s\n", label, arch, err.text);
		CU_FAIL("does not compile");
		return;
	}
	CU_ASSERT(out.bytes > 64 && !memcmp(out.code, "\177ELF", 4));
	CU_ASSERT(code_resources(out.code, out.bytes, &r));
	printf("  %-54s %-8s %9u %7u %6u %7u\n", label, arch, r.registers, r.shared, r.stack, r.spills);
	CU_ASSERT(r.spills == 0 || flags & MAY_SPILL);
	CU_ASSERT(r.registers <= 256);
	/* `nested` is the stack, in bytes, that each level of nested tasks needs. */
	CU_ASSERT(r.nested <= 4096);
	/* A program must not have static shared memory, which would move the dynamic shared memory in the kernel but
	 * not in its callees (hip.dev.h). */
	CU_ASSERT_EQUAL(r.shared, 0);
	compiled_free(&fake_host, &out);
}

static void compose_and_check(struct selection *s, const char *label, size_t first, size_t count, int flags)
{
	for (size_t i = first; i < first + count; i++) {
		struct compose_target target = target_of(i);
		struct loom__text text;
		struct loom_error err = {0};
		if (flags & WAVES) {
			target.per_block = 4;
			target.blocks = 2;
		}
		target.launched = (flags & LAUNCHED) != 0;
		int rc = compose_work(&fake_host, &target, &s->program, &text, &err);
		if (compose_watches(&s->program)) { /* a HIP program has no wavefront for a monitor */
			CU_ASSERT_EQUAL(rc, LOOM_ENOTSUP);
			continue;
		}
		CU_ASSERT_EQUAL(rc, 0);
		if (rc) {
			printf("%s: %s\n", label, err.text);
			return;
		}
		check_program(text.at, label, targets[i].arch, flags);
		loom__text_free(&text);
	}
}

static void check_combination(struct selection *s, const char *label, size_t arch, int warps)
{
	compose_and_check(s, label, arch, 1, warps ? WAVES : 0);
}

/* Checks each program for one of the architectures, in turn. With COMPOSE_ALL=1 each program is checked for all. */
static void check_turn(struct selection *s, const char *label, int flags)
{
	static size_t turn;
	if (getenv("COMPOSE_ALL"))
		compose_and_check(s, label, 0, COUNT(targets), flags);
	else
		compose_and_check(s, label, turn++ % COUNT(targets), 1, flags);
}

static void check_one(struct selection *s, const char *label)
{
	check_turn(s, label, 0);
}

/* These programs may spill registers, because the author of a workload's kernel decides whether the kernel spills. */
static void check_kernel(struct selection *s, const char *label)
{
	check_turn(s, label, MAY_SPILL);
	if (has_steps(s))
		check_turn(s, "... launched", MAY_SPILL | LAUNCHED);
}

TEST(combinations)
{
	need_hiprtc();
	static const char *const archs[] = {"gfx90a", "gfx1030"};
	_Static_assert(COUNT(archs) == COUNT(targets), "in that order");
	each_combination(archs, COUNT(archs), parts(), check_combination);
}

TEST(kernels)
{
	need_hiprtc();
	each_kernel(parts(), check_kernel);
}

TEST(syncs)
{
	need_hiprtc();
	each_sync(check_one);
}

TEST(noncoherent)
{
	need_hiprtc();
	each_apart(check_one);
	each_other(check_one);
}

static void check_tile(struct selection *s, const char *label, uint32_t lanes)
{
	static size_t turn;
	size_t i = turn++ % COUNT(targets);
	struct compose_target target = target_of(i);
	target.lanes = lanes / 64 * target.lanes;
	target.blocks = 2;
	struct loom__text text = composed(&target, s);
	check_program(text.at, label, targets[i].arch, MAY_SPILL);
	loom__text_free(&text);
}

TEST(tiles)
{
	need_hiprtc();
	each_tile(64, MATRIX_VALUE | MATRIX_REST, 0, check_tile);
}

/* Checks workers of several wavefronts, several workers in a block, and the program of the probe. */
TEST(shapes)
{
	struct selection s = {0};
	need_hiprtc();
	pick(&s, "sched_static");
	pick(&s, "term_counter");
	pick(&s, "workload_fib");
	for (size_t i = 0; i < COUNT(targets); i++)
		for (int shape = 0; shape < 3; shape++) {
			struct compose_target target = target_of(i);
			struct loom__text text;
			struct loom_error err = {0};
			char label[64];
			target.lanes *= shape == 0 ? 4 : 1;
			target.per_block = shape == 1 ? 4 : 1;
			target.nesting = shape == 1 ? 2 : 0;
			target.blocks = shape == 2 ? 1 : 2;
			int rc = shape == 2 ? compose_probe(&fake_host, &target, &text, &err) :
					      compose_work(&fake_host, &target, &s.program, &text, &err);
			CU_ASSERT_EQUAL_FATAL(rc, 0);
			snprintf(label, sizeof(label), "%s%u lanes, %u workers a block",
				 shape == 2 ? "probe, " : "", target.lanes, target.per_block);
			check_program(text.at, label, targets[i].arch, target.nesting ? MAY_SPILL : 0);
			loom__text_free(&text);
		}
}

TEST(collective)
{
	need_hiprtc();
	for (size_t i = 0; i < COUNT(targets); i++) {
		struct compose_target target = target_of(i);
		struct loom__text text;
		struct loom_error err = {0};
		target.lanes = 512;
		target.per_block = target.blocks = 1;
		CU_ASSERT_EQUAL_FATAL(compose_collective(&fake_host, &target, &text, &err), 0);
		struct compiled out;
		struct resources r;
		CU_ASSERT_EQUAL_FATAL(compile(text.at, targets[i].arch, &out, &err), 0);
		CU_ASSERT(code_resources(out.code, out.bytes, &r));
		CU_ASSERT(r.registers <= 256);
		compiled_free(&fake_host, &out);
		loom__text_free(&text);
	}
}

/* The message about a compile error names the plug-in, the file and the line. */
TEST(source_error)
{
	struct selection s = {0};
	struct compose_target target = target_of(0);
	struct compiled out;
	struct loom_error err = {0};
	need_hiprtc();
	pick_broken(&s);
	struct loom__text text = composed(&target, &s);
	REFUSED(compile(text.at, "gfx90a", &out, &err), LOOM_EPLUGIN, err,
		"term_broken: term_broken.dev.h:3:&no_such_function");
	loom__text_free(&text);
}

/* ---- the notes of a code object ---- */

TEST(resources)
{
	/* The notes are in MessagePack. Each entry has the length of a text, the text, and a number of 1, 2, 3 or 5
	 * bytes. */
	static const char notes[] = "\xab.vgpr_count\xcd\x01\x02"
				    "\xb9.group_segment_fixed_size\x10"
				    "\xbb.private_segment_fixed_size\xce\x00\x01\x00\x00"
				    "\xb1.vgpr_spill_count\xcc\xff"
				    "\xab.agpr_count\x0f ......";
	struct resources r;
	CU_ASSERT(code_resources(notes, sizeof(notes), &r));
	CU_ASSERT_EQUAL(r.registers, 258);
	CU_ASSERT_EQUAL(r.shared, 16);
	CU_ASSERT_EQUAL(r.stack, 65536);
	CU_ASSERT_EQUAL(r.nested, 65536 - 16384);
	CU_ASSERT_EQUAL(r.spills, 4 * (255 - 15)); /* 15 are in accumulation registers */
	CU_ASSERT(!code_resources(notes, 8, &r));
	CU_ASSERT(!code_resources("", 0, &r));
}

TEST_MAIN("compose_hip", getenv("COMPOSE_ALL") ? 7200 : 540)

#else
#include "support.h"

int main(void)
{
	test_skip("device_hip is not built here");
}
#endif
