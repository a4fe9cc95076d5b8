/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the composed GPU programs without a GPU. Each scheduler, with its policies and granularities, is combined with
 * each termination detector and each of four workloads. The programs must compile to machine code for three
 * architectures. They must not spill registers or make indirect calls, and must need few enough registers that the
 * promised number of blocks is resident. */
#ifdef WITH_CUDA /* plugins/device_cuda/plugin.mk defines it */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compose_pick.h"
#include "device_cuda/driver.h"
#include "device_cuda/jitlink.h"
#include "device_cuda/ptxas.h"

static const char *const archs[] = {"sm_75", "sm_80", "sm_90"};

/* The defaults of device_cuda. On each of these GPUs, a multiprocessor has room for 8 blocks of one warp with 255
 * registers per thread. */
static const struct compose_target standard = {.label = "cuda:0",
					       .lanes = 32,
					       .per_block = 1,
					       .blocks = 8,
					       .watch = 32,
					       .nesting = 0};
#define REGISTERS_MAX 255u

/* The parts that this run tests (MATRIX_...). Without CHECK each policy is in some program, and CHECK=rest has the
 * other combinations. CHECK=all and COMPOSE_ALL have both. */
static int parts(void)
{
	const char *check = getenv("CHECK");
	if (getenv("COMPOSE_ALL") || (check && !strcmp(check, "all")))
		return MATRIX_VALUE | MATRIX_REST;
	return check && !strcmp(check, "rest") ? MATRIX_REST : MATRIX_VALUE;
}

static int in_check(void)
{
	return parts() & MATRIX_VALUE;
}

static int in_rest(void)
{
	return parts() & MATRIX_REST;
}

static struct rtc nvrtc;

static void need_nvrtc(void)
{
	struct loom_error err;
	if (nvrtc.so)
		return;
	if (rtc_open(&fake_host, "test", &cuda_compiler, NULL, &nvrtc, &err) != 0)
		test_skip(err.text);
	printf("\n  %-54s %-6s %9s %7s %6s %7s %7s\n", "program", "arch", "registers", "shared", "stack", "spills",
	       "nested");
}

static struct compose_target target_of(const struct compose_target *base)
{
	struct compose_target t = *base;
	t.layer = &cuda_layer;
	return t;
}

static int compile(const char *text, const char *arch, enum rtc_want want, struct compiled *out,
		   struct loom_error *err)
{
	char arch_is[32];
	const char *option[CUDA_OPTIONS_MOST + 1] = {arch_is};
	int n = 1 + cuda_compiler_options(&nvrtc, want == RTC_IR, option + 1);
	snprintf(arch_is, sizeof(arch_is), "-arch=%s", arch);
	return rtc_run(&fake_host, "cuda:0", &nvrtc, text, option, n, want, out, err);
}

static void must_not_compile(const char *text, const char *arch, int code, const char *words)
{
	struct compiled out;
	struct loom_error err = {0};
	REFUSED(compile(text, arch, RTC_CODE, &out, &err), code, err, words);
}

/* ---- requirements of the machine code ---- */

/* In PTX, an indirect call needs a prototype or a list of targets. */
static int has_indirect_call(const char *ptx)
{
	return strstr(ptx, ".callprototype") || strstr(ptx, ".calltargets");
}

/* Returns the body of a function, not its declaration. */
static const char *body_of(const char *ptx, const char *head)
{
	const char *at = strstr(ptx, head);
	while (at && at[strcspn(at, ";{")] != '{')
		at = strstr(at + 1, head);
	return at;
}

/* Returns the callee of the last call before `end`, or NULL. */
static const char *next_call(const char *at, const char *end, char *callee, size_t room)
{
	at = strstr(at, "\tcall");
	if (!at || at >= end)
		return NULL;
	at += strcspn(at, " ");
	at += strspn(at, " \n\t");
	if (*at == '(') /* skips the result of the call */
		at += strcspn(at, ")") + 1;
	at += strspn(at, ", \n\t");
	snprintf(callee, room, "%.*s", (int)strcspn(at, ", \n\t;"), at);
	return at;
}

static int calls_nothing(const char *ptx, const char *name)
{
	char callee[600];
	const char *body = body_of(ptx, name), *end = body ? strstr(body, "\n}") : NULL;
	return end && !next_call(body, end, callee, sizeof(callee));
}

/* Checks that the worker's loop calls only nested tasks, functions marked LOOM_OUTLINED, and functions that make no
 * calls. All else must be inlined. */
static int calls_only_outlined(const char *ptx)
{
	char callee[600];
	const char *at = body_of(ptx, ".entry " COMPOSE_KERNEL), *end = at ? strstr(at, "\n}") : NULL;
	while (end && (at = next_call(at, end, callee, sizeof(callee))) != NULL)
		if (!strstr(callee, "loom_gpu_nested") && !strstr(callee, "loom_gpu_out_of_line") &&
		    !calls_nothing(ptx, callee)) {
			printf("the worker's loop calls %s\n", callee);
			return 0;
		}
	return end != NULL;
}

/* A program with this flag may spill registers. Whether a workload's own kernel spills is up to the workload's author. */
enum { MAY_SPILL = 1 };

/* Compiles and checks a program. `has` is a text that its assembly must contain. */
static void check_program_has(const char *text, const char *label, const char *arch, int flags, const char *has)
{
	struct compiled out;
	struct loom_error err = {0};
	struct resources r;
	if (compile(text, arch, 1, &out, &err) != 0) {
		printf("%s %s: %s\n", label, arch, err.text);
		CU_FAIL("does not compile");
		return;
	}
	CU_ASSERT(resources_read(out.log, COMPOSE_KERNEL, &r));
	printf("  %-54s %-6s %9u %7u %6u %7u %7u\n", label, arch, r.registers, r.shared, r.stack,
	       r.spills, r.nested);
	CU_ASSERT(r.spills == 0 || flags & MAY_SPILL);
	CU_ASSERT(r.registers <= REGISTERS_MAX);
	CU_ASSERT(!has_indirect_call(out.assembly));
	CU_ASSERT(calls_only_outlined(out.assembly));
	CU_ASSERT(out.bytes > 64 && !memcmp(out.code, "\177ELF", 4));
	if (!strstr(out.assembly, has)) {
		printf("%s: no %s\n", arch, has);
		CU_FAIL("another program than expected");
	}
	compiled_free(&fake_host, &out);
}

static void check_program(const char *text, const char *label, const char *arch, int flags)
{
	check_program_has(text, label, arch, flags, "");
}

/* Composes the selected policies for workers like those of `base`, and checks the program. */
static void compose_and_check(const struct compose_target *base, struct selection *s, const char *label,
			      const char *arch, int flags)
{
	struct compose_target target = target_of(base);
	struct loom__text text = composed(&target, s);
	check_program(text.at, label, arch, flags);
	loom__text_free(&text);
}

static void check_combination(struct selection *s, const char *label, size_t arch, int warps)
{
	struct compose_target target = standard;
	if (warps) {
		target.per_block = 4;
		target.blocks = 2;
	}
	compose_and_check(&target, s, label, archs[arch], 0);
}

TEST(combinations)
{
	need_nvrtc();
	each_combination(archs, COUNT(archs), parts(), check_combination);
}

/* ---- workloads with a kernel of their own, combined with the plug-ins that they use ---- */

static void check_kernel(struct selection *s, const char *label)
{
	struct compose_target launched = standard;
	compose_and_check(&standard, s, label, "sm_90", MAY_SPILL);
	launched.launched = 1;
	if (has_steps(s))
		compose_and_check(&launched, s, "... launched", "sm_90", MAY_SPILL);
}

TEST(kernels)
{
	need_nvrtc();
	each_kernel(parts(), check_kernel);
}

TEST(syncs)
{
	if (!in_check())
		return;
	need_nvrtc();
	each_sync(check_kernel);
}

/* Parked workers wait in hardware: by mbarriers from sm_90 on, and by named barriers or nanosleep on older GPUs. A
 * worker of several warps also has a barrier for its lanes, in which the monitor takes no part. */
TEST(parking)
{
	static const struct {
		uint32_t lanes, per_block;
		const char *arch, *has;
	} way[] = {{32, 1, "sm_90", "mbarrier.try_wait.parity"}, {32, 4, "sm_90", "mbarrier.arrive"},
		   {32, 1, "sm_75", "bar.arrive"},		 {32, 14, "sm_80", "bar.arrive"},
		   {32, 16, "sm_80", "nanosleep"},		 {64, 1, "sm_80", "bar.sync 1, 64"},
		   {64, 1, "sm_90", "bar.sync 1, 64"}};
	if (!in_check())
		return;
	need_nvrtc();
	for (size_t i = 0; i < COUNT(way); i++) {
		struct compose_target target = target_of(&standard);
		struct selection s = {0};
		struct loom_error err = {0};
		pick(&s, "sync_warp");
		pick(&s, "workload_stn");
		target.lanes = way[i].lanes;
		target.per_block = way[i].per_block;
		target.blocks = 1;
		struct loom__text text = composed(&target, &s);
		check_program_has(text.at, "stn, parked", way[i].arch, MAY_SPILL, way[i].has);
		target.watch = 0;
		loom__text_free(&text);
		REFUSED(compose_work(&fake_host, &target, &s.program, &text, &err), LOOM_ENOTSUP, err,
			"choose another sync");
	}
}

/* ---- a GPU that is non-coherent with a CPU ---- */

static void check_noncoherent(struct selection *s, const char *label)
{
	int has_options = strchr(label, '=') != NULL, only_rest = has_options && !strncmp(label, "non-coherent", 12);
	for (size_t i = 0; i < COUNT(archs); i++)
		if (!has_options || !strcmp(archs[i], "sm_90") || getenv("COMPOSE_ALL"))
			if (only_rest || strcmp(archs[i], "sm_90") ? in_rest() : in_check())
				compose_and_check(&standard, s, label, archs[i], 0);
}

TEST(noncoherent)
{
	need_nvrtc();
	each_apart(check_noncoherent);
	each_other(check_noncoherent);
}

/* ---- tasks that are tiles ---- */

/* Checks a program for the number of blocks per multiprocessor that device_cuda promises by default. */
static void check_tile(struct selection *s, const char *label, uint32_t lanes)
{
	struct compose_target target = standard;
	target.watch = 0;
	target.lanes = lanes;
	target.blocks = 256 / lanes;
	compose_and_check(&target, s, label, "sm_90", 0);
	if (strstr(label, "sched_counter"))
		compose_and_check(&target, s, label, strstr(s->constants, "PRODUCTS 1") ? "sm_80" : "sm_75", 0);
}

TEST(tiles)
{
	need_nvrtc();
	each_tile(32, parts(), 0, check_tile);
	each_tile(32, parts(), LOOM_SHAPE_PRODUCTS, check_tile);
}

/* ---- training by tensor cores ---- */

/* Programs of workers with several warps, as docs/collectives.md recommends. */
TEST(training)
{
	static const char *const settings[] = {"precision=tf32x3", "precision=tf32"};
	static const char has[] = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32";
	if (!in_check())
		return;
	need_nvrtc();
	for (size_t i = 0; i < COUNT(settings); i++) {
		struct loom_device_shape shape = {
			.workers = 132, .lanes = 256, .kind = LOOM_ON_GPU, .flags = LOOM_SHAPE_PRODUCTS};
		struct loom_layout layout = compose_alone;
		struct compose_target target = target_of(&standard);
		struct selection s = {0};
		layout.device = &shape;
		target.lanes = shape.lanes;
		target.blocks = 1;
		target.watch = 0;
		pick(&s, "trigger_peer");
		pick(&s, "barrier_auto");
		pick_workload(&s, &layout, "workload_sgd", settings[i]);
		s.program.constants = s.constants;
		struct loom__text text = composed(&target, &s);
		check_program_has(text.at, settings[i], i == 1 ? "sm_80" : "sm_90", 0, has);
		loom__text_free(&text);
	}
}

/* ---- other shapes of workers ---- */

TEST(shapes)
{
	static const struct compose_target shapes[] = {
		{.label = "cuda:0", .lanes = 32, .per_block = 4, .blocks = 2, .nesting = 2},
		{.label = "cuda:0", .lanes = 64, .per_block = 1, .blocks = 4, .nesting = 0},
		{.label = "cuda:0", .lanes = 256, .per_block = 1, .blocks = 1, .nesting = 0},
	};
	struct selection s = {0};
	if (!in_check())
		return;
	need_nvrtc();
	pick(&s, "sched_mgws");
	pick(&s, "term_counter");
	pick(&s, "workload_fib");
	for (size_t i = 0; i < COUNT(shapes); i++) {
		char label[64];
		snprintf(label, sizeof(label), "%u lanes, %u workers a block", shapes[i].lanes, shapes[i].per_block);
		/* Programs with nested tasks are recursive. Recursive functions are not inlined, so they may spill. */
		compose_and_check(&shapes[i], &s, label, "sm_90", shapes[i].nesting ? MAY_SPILL : 0);
	}
}

/* A program with quick = yes in [device.gpu]. Its worker also calls functions of the gate. */
TEST(quick)
{
	struct compose_target target = target_of(&standard);
	struct selection s = {0};
	struct compiled out;
	struct resources r;
	struct loom_error err = {0};
	if (!in_check())
		return;
	need_nvrtc();
	target.defines = "#define LOOM_GPU_QUICK 1\n";
	pick(&s, "sched_mgws");
	pick(&s, "term_hcounter");
	pick(&s, "workload_fib");
	struct loom__text text = composed(&target, &s);
	CU_ASSERT_EQUAL_FATAL(compile(text.at, "sm_90", RTC_CODE, &out, &err), 0);
	CU_ASSERT_FATAL(resources_read(out.log, COMPOSE_KERNEL, &r));
	printf("  %-54s %-6s %9u %7u %6u %7u %7u\n", "quick = yes", "sm_90", r.registers, r.shared, r.stack, r.spills, r.nested);
	CU_ASSERT_EQUAL(r.spills, 0);
	compiled_free(&fake_host, &out);
	loom__text_free(&text);
}

TEST(probe)
{
	struct compose_target target = target_of(&standard);
	struct loom__text text;
	struct loom_error err;
	if (!in_check())
		return;
	need_nvrtc();
	CU_ASSERT_EQUAL_FATAL(compose_probe(&fake_host, &target, &text, &err), 0);
	for (size_t i = 0; i < COUNT(archs); i++)
		check_program(text.at, "coherence probe", archs[i], 0);
	loom__text_free(&text);
}

/* The kernel for collectives keeps a few registers in memory, because its blocks are large. */
TEST(collective)
{
	static const struct compose_target shape = {.label = "cuda:0", .lanes = 512, .per_block = 1, .blocks = 1};
	struct compose_target target = target_of(&shape);
	struct loom__text text;
	struct loom_error err;
	need_nvrtc();
	CU_ASSERT_EQUAL_FATAL(compose_collective(&fake_host, &target, &text, &err), 0);
	for (size_t i = 0; i < COUNT(archs); i++) {
		struct compiled out;
		struct resources r;
		CU_ASSERT_EQUAL_FATAL(compile(text.at, archs[i], 1, &out, &err), 0);
		CU_ASSERT(resources_read(out.log, COMPOSE_COLLECTIVE, &r));
		CU_ASSERT(r.registers <= 128 && r.spills <= 128 && r.nested == 0);
		compiled_free(&fake_host, &out);
	}
	loom__text_free(&text);
}

/* ---- mistakes ---- */

static const struct loom_device_code no_code = {.size = sizeof(no_code)};

/* The message about a compile error names the plug-in, the file and the line. */
TEST(source_error)
{
	struct selection s = {0};
	struct compose_target target = target_of(&standard);
	if (!in_check())
		return;
	need_nvrtc();
	pick_broken(&s);
	struct loom__text text = composed(&target, &s);
	must_not_compile(text.at, "sm_80", LOOM_EPLUGIN, "term_broken: term_broken.dev.h(3): error&no_such_function");
	loom__text_free(&text);
}

/* The message names the right file also if the code of a plug-in consists of several files. */
TEST(source_files)
{
	static const char mark[] = "#line 1 \"steal.dev.h\"\n", word[] = "loom_random_below(c, c->workers - 1)";
	struct selection s = {0};
	struct compose_target target = target_of(&standard);
	char wanted[80];
	if (!in_check())
		return;
	need_nvrtc();
	pick(&s, "sched_mgws");
	pick(&s, "term_counter");
	pick(&s, "workload_memset");
	struct loom_plugin spoilt = *s.policy[LOOM_SCHED];
	struct loom_device_code code = *spoilt.dev;
	size_t length = (size_t)(code.source_end - code.source);
	char *copy = fake_host.alloc(&fake_host, length + 1);
	memcpy(copy, code.source, length);
	char *file = strstr(copy, mark), *place = file ? strstr(file, word) : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(place);
	int line = 0;
	for (const char *at = file; at < place; at++)
		line += *at == '\n';
	memcpy(place, "no", 2);
	code.source = copy;
	code.source_end = copy + length;
	spoilt.dev = &code;
	s.policy[LOOM_SCHED] = &spoilt;
	struct loom__text text = composed(&target, &s);
	snprintf(wanted, sizeof(wanted), "sched_mgws: steal.dev.h(%d): error&noom_random_below", line);
	must_not_compile(text.at, "sm_80", LOOM_EPLUGIN, wanted);
	loom__text_free(&text);
	fake_host.free(&fake_host, copy);
}

/* Returns `head`, followed by the task functions of the example program examples/embed/collatz.c. */
static char *collatz(const char *head)
{
	static char text[8192];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s", head);
	FILE *f = fopen("examples/embed/collatz.dev.h", "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	n += fread(text + n, 1, sizeof(text) - 1 - n, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static void pick_collatz(struct selection *s)
{
	static const struct loom_task_entry tasks[] = {{.name = "collatz_range"}};
	pick(s, "sched_mgws");
	pick(s, "term_counter");
	pick_options(s, "");
	s->program.task = tasks;
	s->program.tasks = 1;
}

/* The example's source compiles. With an error in it, it does not. */
TEST(source_tasks)
{
	struct loom_program_source source = {.file = "collatz.dev.h", .text = collatz("")};
	struct selection s = {0};
	struct compose_target target = target_of(&standard);
	if (!in_check())
		return;
	need_nvrtc();
	pick_collatz(&s);
	s.program.source = &source;
	s.program.sources = 1;
	struct loom__text text = composed(&target, &s);
	for (size_t i = 0; i < COUNT(archs); i++)
		check_program(text.at, "task functions as source", archs[i], 0);
	loom__text_free(&text);
	source.text = collatz("\nno_such_type twice;\n");
	text = composed(&target, &s);
	must_not_compile(text.at, "sm_80", LOOM_EPLUGIN, "collatz.dev.h(2): error");
	loom__text_free(&text);
}

/* Compiles the example's task functions to IR, as an embedding program would do in its build. */
static void make_ir(const char *head, const char *arch, enum rtc_want want, struct loom_program_ir *ir,
		    struct compiled *out)
{
	static const uint32_t tag = 0;
	struct loom_error err = {0};
	char option[32];
	snprintf(option, sizeof(option), "-arch=%s", arch);
	const char *const options[] = {option, "-std=c++20", "-default-device", "-rdc=true", "-dlto"};
	if (rtc_run(&fake_host, "test", &nvrtc, collatz(head), options, want == RTC_IR ? 5 : 4, want, out, &err) != 0) {
		printf("%s\n", err.text);
		CU_FAIL_FATAL("IR does not compile");
	}
	/* the size of PTX counts its NUL byte, that of the IR does not */
	*ir = (struct loom_program_ir){.file = want == RTC_IR ? "collatz.ltoir" : "collatz.ptx",
				       .data = out->code,
				       .bytes = out->bytes - (want == RTC_ASSEMBLY),
				       .tag = &tag,
				       .tags = 1};
}

#define IR_HEAD                                                                                    \
	"#include <gpuloom/dev/ir.h>\nLOOM_IR_TASK(collatz_range)\n"                               \
	"#define LOOM_TAG_collatz_range LOOM_IR_TAG(collatz_range)\n"

/* Links `text` with the IR, and returns the error code. */
static int link_ir(const char *text, const char *arch, const struct loom_program_ir *ir, enum jitlink_want want,
		   struct compiled *out, struct loom_error *err)
{
	int rc = compile(text, arch, RTC_IR, out, err);
	CU_ASSERT_EQUAL(rc, 0);
	return rc ? rc : jitlink_run(&fake_host, "cuda:0", arch, &ir, 1, 128, want, out, err);
}

static void must_not_link(const char *text, const struct loom_program_ir *ir, const char *says)
{
	struct compiled out;
	struct loom_error err = {0};
	CU_ASSERT_EQUAL(link_ir(text, "sm_80", ir, JITLINK_CUBIN, &out, &err), LOOM_EPLUGIN);
	if (!strstr(err.text, says) || !strstr(err.text, ir->file) || strchr(err.text, '\n')) {
		printf("%s\n", err.text);
		CU_FAIL("another error, or none that names the file in a sentence");
	}
}

static void link_and_check(const char *text, const char *arch, const struct loom_program_ir *ir)
{
	struct compiled out;
	struct loom_error err = {0};
	struct resources r;
	int rc = link_ir(text, arch, ir, JITLINK_CUBIN, &out, &err);
	if (rc) {
		printf("%s\n", err.text);
		CU_FAIL("does not link");
		return;
	}
	CU_ASSERT(out.bytes > 64 && !memcmp(out.code, "\177ELF", 4));
	CU_ASSERT(resources_read(out.log, COMPOSE_KERNEL, &r));
	printf("  %-54s %-6s %9u %7u %6u %7u %7u\n", ir->file, arch, r.registers, r.shared, r.stack, r.spills,
	       r.nested);
	compiled_free(&fake_host, &out);
	if (compose_format(ir) == COMPOSE_PTX)
		return; /* PTX is linked as machine code, which contains its callees */
	CU_ASSERT_EQUAL_FATAL(link_ir(text, arch, ir, JITLINK_PTX, &out, &err), 0);
	CU_ASSERT(!has_indirect_call(out.code));
	CU_ASSERT_PTR_NULL(strstr(out.code, "loom_ir1_")); /* the task functions are fully inlined */
	compiled_free(&fake_host, &out);
}

/* Programs that include task functions of an embedding program as IR. */
TEST(ir_tasks)
{
	struct compose_target target = target_of(&standard);
	struct loom_program_ir ir[2];
	struct compiled of[2];
	struct selection s = {0};
	struct loom_error err = {0};
	if (!in_check())
		return;
	need_nvrtc();
	pick_collatz(&s);
	s.program.ir = ir;
	s.program.irs = 1;
	target.blocks = 16; /* 16 blocks of 32 threads leave 128 registers per thread */
	make_ir(IR_HEAD, "compute_75", RTC_ASSEMBLY, &ir[1], &of[1]);
	make_ir(IR_HEAD, "compute_75", RTC_IR, &ir[0], &of[0]);
	CU_ASSERT_EQUAL(compose_format(&ir[0]), COMPOSE_LTO);
	CU_ASSERT_EQUAL(compose_format(&ir[1]), COMPOSE_PTX);
	CU_ASSERT(!has_indirect_call(ir[1].data));
	struct loom__text text = composed(&target, &s);
	for (size_t k = 0; k < 2; k++) {
		link_and_check(text.at, "sm_80", &ir[k]);
		link_and_check(text.at, "sm_90", &ir[k]);
	}
	/* IR of a later version of the compiler is rejected. */
	char *version = strstr(of[1].code, ".version ");
	CU_ASSERT_PTR_NOT_NULL_FATAL(version);
	memcpy(version, ".version 9.9", 12);
	must_not_link(text.at, &ir[1], "newer CUDA toolkit");
	of[0].code[4] = 99;
	must_not_link(text.at, &ir[0], "newer CUDA toolkit");
	compiled_free(&fake_host, &of[0]);
	make_ir(IR_HEAD, "compute_90", RTC_IR, &ir[0], &of[0]);
	must_not_link(text.at, &ir[0], "collatz.ltoir");
	compiled_free(&fake_host, &of[0]);
	make_ir("#include <gpuloom/dev/ir.h>\n#define LOOM_TAG_collatz_range 0\n", "compute_75", RTC_IR, &ir[0],
		&of[0]);
	must_not_link(text.at, &ir[0], "no task function 'collatz_range'");
	loom__text_free(&text);
	/* A device accepts only its own kind of IR. */
	REFUSED(compose_check_ir(&fake_host, "hip:0", &s.program, 0, NULL, &err), LOOM_ENOTSUP, err,
		"hip:0: collatz.ltoir: task function 'collatz_range' is LTO-IR: this device takes source only");
	REFUSED(compose_check_ir(&fake_host, "cpu:0", &s.program, COMPOSE_OBJECT, "a shared object", &err),
		LOOM_ENOTSUP, err, "add a shared object of it");
	compiled_free(&fake_host, &of[0]);
	compiled_free(&fake_host, &of[1]);
}

static void of_embedder(struct loom_ctx *c, const struct loom_task *t)
{
	(void)c, (void)t;
}

TEST(refusals)
{
	const struct loom_plugin cpu_only = {.kind = LOOM_TERM, .name = "term_cpu", .dev = &no_code};
	struct loom_task_entry tasks[] = {{.name = "workload_memset_task"},
					  {.name = "of_embedder", .fn = of_embedder}};
	struct selection s = {0};
	struct compose_target target = target_of(&standard);
	struct loom__text text;
	struct loom_error err = {0};
	pick(&s, "workload_memset");
	REFUSED(compose_work(&fake_host, &target, &s.program, &text, &err), LOOM_EINVAL, err,
		"no scheduler is selected");
	pick(&s, "sched_static");
	s.policy[LOOM_TERM] = &cpu_only;
	REFUSED(compose_work(&fake_host, &target, &s.program, &text, &err), LOOM_ENOTSUP, err,
		"term_cpu has no device code for GPUs");
	pick(&s, "term_counter");
	s.program.task = tasks;
	s.program.tasks = 2;
	REFUSED(compose_work(&fake_host, &target, &s.program, &text, &err), LOOM_ENOTSUP, err, "of_embedder");
}

/* A workload calls ops of a kind without declaring that it needs this kind. */
TEST(undeclared)
{
	struct selection s = {0};
	struct compose_target target = target_of(&standard);
	need_nvrtc();
	pick(&s, "sched_static");
	pick(&s, "term_counter");
	pick(&s, "workload_pingpong");
	struct loom__text text = composed(&target, &s);
	must_not_compile(text.at, "sm_90", LOOM_ENOENT,
			 "cuda:0: device code calls a trigger, and the conf selects none: say 'use = NAME' in "
			 "[trigger]&workload_pingpong");
	loom__text_free(&text);
}

/* ---- the assembler's report and the cache ---- */

TEST(resources)
{
	static const char log[] =
		"ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
		"ptxas info    : Function properties for k\n"
		"ptxas         .     144 bytes stack frame, 24 bytes spill stores, 20 bytes spill loads\n"
		"ptxas info    : Used 64 registers, used 1 barriers, 144 bytes cumulative stack size, "
		"16 bytes smem\n"
		"ptxas info    : Function properties for f\n"
		"ptxas         .     40 bytes stack frame, 36 bytes spill stores, 36 bytes spill loads\n"
		"ptxas info    : Function properties for g\n"
		"ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
	struct resources r;
	CU_ASSERT(resources_read(log, "k", &r));
	CU_ASSERT_EQUAL(r.registers, 64);
	CU_ASSERT_EQUAL(r.shared, 16);
	CU_ASSERT_EQUAL(r.stack, 144);
	CU_ASSERT_EQUAL(r.spills, 44 + 72);
	CU_ASSERT_EQUAL(r.nested, 48);
	CU_ASSERT(!resources_read("", "k", &r));
	CU_ASSERT(!resources_read(log, "other", &r));
}

/* Returns the only file in a folder. */
static void only_file(const char *folder, char *path, size_t room)
{
	DIR *dir = opendir(folder);
	int files = 0;
	*path = 0;
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.') {
			snprintf(path, room, "%s/%s", folder, e->d_name);
			files++;
		}
	if (dir)
		closedir(dir);
	CU_ASSERT_EQUAL(files, 1);
}

TEST(cache)
{
	char folder[] = "/tmp/gpuloom-test-XXXXXX", deep[64], path[400];
	char code[] = "machine code";
	struct cached in = {.resources = {.registers = 7}, .code = code, .bytes = sizeof(code)}, out;
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(deep, sizeof(deep), "%s/a/b", folder);
	CU_ASSERT(!cache_get(&fake_host, deep, "key", 3, &out));
	CU_ASSERT_EQUAL(cache_put(deep, "key", 3, &in), 0);
	CU_ASSERT_EQUAL(cache_put(deep, "key", 3, &in), 0); /* the new file replaces the older one */
	CU_ASSERT_FATAL(cache_get(&fake_host, deep, "key", 3, &out));
	CU_ASSERT_EQUAL(out.bytes, sizeof(code));
	CU_ASSERT_EQUAL(out.resources.registers, 7);
	CU_ASSERT(!memcmp(out.code, code, sizeof(code)));
	fake_host.free(&fake_host, out.code);
	CU_ASSERT(!cache_get(&fake_host, deep, "kez", 3, &out));
	only_file(deep, path, sizeof(path));
	CU_ASSERT_EQUAL(chmod(path, 0622), 0); /* other users could have written the file */
	CU_ASSERT(!cache_get(&fake_host, deep, "key", 3, &out));
	CU_ASSERT_EQUAL(chmod(path, 0600), 0);
	int fd = open(path, O_WRONLY);
	CU_ASSERT_EQUAL(pwrite(fd, "X", 1, lseek(fd, 0, SEEK_END) - 2), 1); /* a byte is changed, as by a faulty disk */
	CU_ASSERT(!cache_get(&fake_host, deep, "key", 3, &out));
	CU_ASSERT_EQUAL(cache_put(deep, "key", 3, &in), 0);
	close(fd);
	fd = open(path, O_WRONLY);
	CU_ASSERT_EQUAL(pwrite(fd, "X", 1, 32), 1); /* this byte belongs to the recorded resources of the code */
	CU_ASSERT(!cache_get(&fake_host, deep, "key", 3, &out));
	CU_ASSERT_EQUAL(ftruncate(fd, 20), 0);
	close(fd);
	CU_ASSERT(!cache_get(&fake_host, deep, "key", 3, &out));
	unlink(path);
	rmdir(deep);
	snprintf(deep, sizeof(deep), "%s/a", folder);
	rmdir(deep);
	CU_ASSERT_EQUAL(rmdir(folder), 0); /* no file was left */
	CU_ASSERT_EQUAL(cache_put("", "key", 3, &in), ENOENT);
}

/* The cache rejects a file in which a bit of the recorded resources is flipped. It rejects a FIFO in place of a file, and does
 * not wait for its writer. It removes files of killed writers. If there are too many programs, it removes old ones. */
TEST(cache_keeps_itself_S15)
{
	char folder[] = "/tmp/gpuloom-test-XXXXXX", path[400], stale[408], key[16];
	char code[] = "machine code", byte;
	struct cached in = {.resources = {.registers = 7}, .code = code, .bytes = sizeof(code)}, out;
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	CU_ASSERT_EQUAL(cache_put(folder, "key", 3, &in), 0);
	only_file(folder, path, sizeof(path));
	int fd = open(path, O_RDWR), at = 4 * 8; /* the first byte of `resources` */
	CU_ASSERT(pread(fd, &byte, 1, at) == 1 && byte == 7);
	byte ^= 1;
	CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, at), 1);
	close(fd);
	CU_ASSERT(!cache_get(&fake_host, folder, "key", 3, &out));
	unlink(path);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	CU_ASSERT(!cache_get(&fake_host, folder, "key", 3, &out)); /* the cache does not wait for a writer */
	unlink(path);

	snprintf(stale, sizeof(stale), "%s.abcdef", path);
	CU_ASSERT(close(open(stale, O_CREAT | O_WRONLY, 0600)) == 0);
	CU_ASSERT_EQUAL(cache_put(folder, "key", 3, &in), 0);
	CU_ASSERT(!access(stale, F_OK)); /* the writer of the file may still run */
	const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, stale, long_ago, 0), 0);
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, path, long_ago, 0), 0);
	CU_ASSERT_EQUAL(cache_put(folder, "kez", 3, &in), 0);
	CU_ASSERT(access(stale, F_OK));
	for (int i = 0; i < 600; i++) {
		snprintf(key, sizeof(key), "%d", i);
		CU_ASSERT_EQUAL(cache_put(folder, key, strlen(key), &in), 0);
	}
	CU_ASSERT(access(path, F_OK)); /* the oldest program was removed */
	CU_ASSERT_FATAL(cache_get(&fake_host, folder, "599", 3, &out));
	fake_host.free(&fake_host, out.code);
	int files = 0;
	DIR *dir = opendir(folder);
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.') {
			files++;
			unlinkat(dirfd(dir), e->d_name, 0);
		}
	closedir(dir);
	CU_ASSERT_EQUAL(files, 512);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

TEST_MAIN("compose", getenv("COMPOSE_ALL") ? 7200 : 540)

#else
#include "support.h"

int main(void)
{
	test_skip("device_cuda is not built here");
}
#endif
