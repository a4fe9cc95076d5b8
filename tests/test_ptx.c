/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the interpreter of inline PTX with a runtime that records the calls. */
#include "support.h"

#include <sys/mman.h>

#include "fake_explore.h"

static uint32_t *memory; /* 4 KiB below 4 GiB, for "r" has addresses in shared memory */

/* ---- statements ------------------------------------------------------------------------------------------- */

enum { MOST = 8 };
static struct explore_operand operand[MOST];

/* Executes a statement. operands: separated by spaces, such as "=r l@ r7": @ is the address of `memory`, which has the
 * words 100, 101, 102 ... Returns 0 if it was refused. */
static int ptx(const char *text, const char *operands)
{
	static const struct explore_place at = {"asm", "x.cu", 9};
	static char constraint[MOST][4];
	static uint32_t n;
	n = 0;
	memset(operand, 0, sizeof(operand));
	for (const char *p = operands; *p && n < MOST; p += *p == ' ', n++) {
		size_t length = strspn(p, "=+&hrlfdnC");
		memcpy(constraint[n], p, length);
		constraint[n][length] = 0;
		p += length;
		operand[n].constraint = constraint[n];
		operand[n].bits = *p == '@' ? (uintptr_t)memory : strtoull(p, NULL, 0);
		p += strcspn(p, " ");
	}
	for (uint32_t k = 0; k < 1024; k++)
		memory[k] = 100 + k;
	calls[0] = refusal[0] = 0;
	if (setjmp(refused))
		return 0;
	explore_ptx(&at, text, operand, n);
	return 1;
}

static void begin(void)
{
	if (!memory)
		memory = mmap((void *)0x20000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || (uintptr_t)memory >> 32)
		test_skip("no memory below 4 GiB");
}

static const struct {
	const char *text, *operands, *calls;
} statements[] = {
    /* loads and stores of flags */
    {"ld.acquire.sys.global.u32 %0, [%1];", "=r l@", "load4.1.3 "},
    {"ld.acquire.gpu.global.s32 %0, [%1];", "=r l@", "load4.1.2 "},
    {"ld.acquire.cta.b64 %0, [%1];", "=l l@", "load8.1.1 "},
    {"ld.acquire.sys.global.u64 %0, [%1+8];", "=l l@", "load8.1.3 "},
    {"ld.relaxed.sys.global.u32 %0, [%1];", "=r l@", "load4.0.3 "},
    {"ld.relaxed.gpu.global.L1::no_allocate.s32 %0, [%1];", "=r l@", "load4.0.2 "},
    {"ld.mmio.relaxed.sys.global.u32 %0, [%1];", "=r l@", "load4.0.3 "},
    {"ld.volatile.global.u32 %0, [%1];", "=r l@", "load4.0.3 "},
    {"ld.volatile.global.u64 %0, [%1];", "=l l@", "load8.0.3 "},
    {"ld.volatile.shared.u32 %0, [%1];", "=r r@", "load4.0.3 "},
    {"ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];", "=r =r =r =r l@", "load8.0.3 load8.0.3 "},
    {"ld.volatile.global.v2.u64 {%0,%1}, [%2];", "=l =l l@", "load8.0.3 load8.0.3 "},
    {"ld.relaxed.gpu.global.v2.b16 {%0,%1}, [%2];", "=h =h l@", "load4.0.2 "},
    {"ld.relaxed.sys.v2.f32 {%0, %1}, [%2];", "=f =f l@", "load8.0.3 "},
    {"ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];", "=r =r =r =r l@", "plain16.0 "},
    {"ld.global.nc.L1::no_allocate.L2::256B.v4.s32 {%0, %1, %2, %3}, [%4];", "=r =r =r =r l@", "plain16.0 "},
    {"ld.global.L1::no_allocate.v2.s64 {%0, %1}, [%2];", "=l =l l@", "plain16.0 "},
    {"ld.global.L2::cache_hint.v2.u64 {%0, %1}, [%2], %3;", "=l =l l@ l1", "plain16.0 "},
    {"ld.global.cv.u32 %0, [%1];", "=r l@", "plain4.0 "},
    {"ld.global.ca.b8 %0, [%1+1];", "=r l@", "plain1.0 "},
    {"ld.weak.global.cg.u16 %0, [%1];", "=h l@", "plain2.0 "},
    {"ld.shared.f64 %0, [%1];", "=d r@", "plain8.0 "},
    {"st.release.sys.global.u32 [%0], %1;", "l@ r7", "store4.2.3=7 "},
    {"st.release.gpu.global.u64 [%0], %1;", "l@ l7", "store8.2.2=7 "},
    {"st.relaxed.sys.global.s32 [%0], %1;", "l@ r-1", "store4.0.3=ffffffff "},
    {"st.mmio.relaxed.sys.u32 [%0], %1;", "l@ r7", "store4.0.3=7 "},
    {"st.volatile.global.u32 [%0], %1;", "l@ r7", "store4.0.3=7 "},
    {"st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};", "l@ r1 r2 r3 r4", "store8.0.3=200000001 store8.0.3=400000003 "},
    {"st.volatile.global.v2.u64 [%0], {%1,%2};", "l@ l1 l2", "store8.0.3=1 store8.0.3=2 "},
    {"st.volatile.shared.u32 [%0], %1;", "r@ r7", "store4.0.3=7 "},
    {"st.relaxed.gpu.global.v2.f32 [%0], {%1, %2};", "l@ f1 f2", "store8.0.2=200000001 "},
    {"st.global.L1::no_allocate.v4.s32 [%0], {%1, %2, %3, %4};", "l@ r1 r2 r3 r4", "plain16.1 "},
    {"st.global.cs.v2.b32 [%0], {%1, 0};", "l@ r7", "plain8.1 "},
    {"st.shared.v4.f32 [%0+16], {%1, %1, %1, %1};", "r@ f1", "plain16.1 "},
    {"st.weak.global.wt.u8 [%0], %1;", "l@ r300", "plain1.1 "},
    /* atomics */
    {"atom.add.release.gpu.global.u32 %0, [%1], %2;", "=r l@ r7", "change4.2.2=6b "},
    {"atom.add.acquire.gpu.global.s32 %0, [%1], %2;", "=r l@ r-1", "change4.1.2=63 "},
    {"atom.acq_rel.sys.global.add.u32 %0, [%1], 1;", "=r l@", "change4.3.3=65 "},
    {"atom.global.add.u32 %0, [%1], %2;", "=r l@ r1", "change4.0.2=65 "},
    {"atom.relaxed.sys.global.exch.b32 %0, [%1], %2;", "=r l@ r7", "change4.0.3=7 "},
    {"atom.shared.exch.b64 %0, [%1], %2;", "=l r@ l7", "change8.0.2=7 "},
    {"atom.acquire.sys.global.cas.b32 %0, [%1], %2, %3;", "=r l@ r100 r1", "cas4.1.3=1 "},
    {"atom.cas.release.sys.global.b64 %0, [%1], %2, %3;", "=l l@ l0 l1", "cas8.2.3=1 "},
    {"atom.inc.u32 %0, [%1], 100;", "=r l@", "change4.0.2=0 "},
    {"atom.relaxed.gpu.dec.u32 %0, [%1], 5;", "=r l@", "change4.0.2=5 "},
    {"atom.max.s32 %0, [%1], %2;", "=r l@ r-1", "change4.0.2=64 "},
    {"atom.or.b32 _, [%0], 3;", "l@", "change4.0.2=67 "},
    {"red.release.gpu.global.add.s32 [%0], %1;", "l@ r1", "change4.2.2=65 "},
    {"red.release.sys.global.add.u32 [%0], 1;", "l@", "change4.2.3=65 "},
    {"red.async.sys.global.add.u32 [%0], 1;", "l@", NULL},
    {"red.relaxed.gpu.global.and.b32 [%0], %1;", "l@ r0xf", "change4.0.2=4 "},
    {"red.global.add.f32 [%0], %1;", "l@ f0x3f800000", "change4.0.2=3f800000 "},
    {"red.add.f64 [%0], %1;", "l@ d0x3ff0000000000000", "change8.0.2=3ff0000000000000 "},
    {"red.min.u64 [%0], %1;", "l@ l2", "change8.0.2=2 "},
    /* fences and barriers */
    {"fence.acq_rel.gpu;", "", "fence.3.2 "},
    {"fence.acq_rel.sys;", "", "fence.3.3 "},
    {"fence.sc.sys;", "", "fence.7.3 "},
    {"fence.release.sys;", "", "fence.2.3 "},
    {"fence.acquire.gpu;", "", "fence.1.2 "},
    {"fence.cta;", "", "fence.3.1 "},
    {"membar.gl;", "", "fence.7.2 "},
    {"membar.sys;", "", "fence.7.3 "},
    {"fence.proxy.async;", "", "proxy "},
    {"fence.proxy.async.shared::cta;", "", "proxy "},
    {"fence.proxy.async.global;", "", "proxy "},
    {"fence.proxy.alias;", "", ""},
    {"fence.mbarrier_init.release.cluster; ", "", ""},
    {"bar.sync 0;", "", "barrier0.0.1 "},
    {"bar.sync %0, %1;", "r2 n64", "barrier2.64.1 "},
    {"barrier.sync.aligned %0, %1;", "r1 r128", "barrier1.128.1 "},
    {"barrier.cta.arrive %0, 96;", "r1", "barrier1.96.0 "},
    {"bar.arrive 3, 64;", "", "barrier3.64.0 "},
    {"bar.warp.sync 0xffffffff;", "", "warpffffffff "},
    /* mbarriers and bulk copies */
    {"mbarrier.init.shared::cta.b64 [%1], %0;", "r1 r@", "init1 "},
    {"mbarrier.inval.shared::cta.b64 [%0];", "r@", ""},
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%1], %0; \n\t", "r512 r@", "arrive1.512.2.1 "},
    {"mbarrier.arrive.shared::cta.b64 _, [%0];", "r@", "arrive1.0.2.1 "},
    {"mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], 2;", "=l r@", "arrive2.0.2.1 "},
    {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;", "r@ r64", "arrive0.64.0.1 "},
    {"{\n"
     ".reg .pred P1;\n"
     "LAB_WAIT:\n"
     "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
     "@P1 bra DONE;\n"
     "bra LAB_WAIT;\n"
     "DONE:\n"
     "}",
     "r@ r1", "test1.1.1 pause pause test1.1.1 "},
    {"{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
     "selp.u32 %0, 1, 0, p;\n\t}",
     "=r r@ r0", "test0.1.1 "},
    {"{ .reg .pred P1; mbarrier.try_wait.shared.b64 P1, [%1], %2, 0x989680; selp.b32 %0, 1, 0, P1; }", "=r r@ l5",
     "test1.1.1 pause "},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];", "r@ l@ r64 r@",
     "bulk64.1 "},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;\n",
     "r@ l@ r64 r@ l1", "bulk64.1 "},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];", "r@ l@ r64 r@",
     "bulk64.1 "},
    {"cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;", "l@ r@ r32", "bulk32.0 "},
    {"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;", "l@ r@ r32 l1", "bulk32.0 "},
    {"cp.async.bulk.commit_group;", "", "commit "},
    {"cp.async.bulk.wait_group.read %0;", "n2", "await2.1 "},
    {"cp.async.bulk.wait_group 0;", "", "await0.0 "},
    /* others */
    {"", "", ""},
    {"nanosleep.u32 %0;", "r20", "pause "},
    {"mov.u32 %0, %laneid;", "=r", "%laneid "},
    {"mov.u64 %0, %%globaltimer;", "=l", "%globaltimer "},
    {"{\n\t.reg .pred %%px;\n\telect.sync _|%%px, %1;\n\t@%%px mov.s32 %0, 1;\n\t}\n", "+r r0xfffffff8", "%laneid "},
    {"createpolicy.fractional.L2::evict_first.b64 %0, 1.0;", "=l", ""},
    {"prefetch.global.L2 [%0];", "l@", ""},
    {"prefetchu.L1 [%0];", "l@", ""},
    {"discard.global.L2 [%0], 128;", "l@", ""},
    {"applypriority.global.L2::evict_normal [%0], 128;", "l@", ""},
    {"griddepcontrol.wait;", "", ""},
    {"setmaxnreg.dec.sync.aligned.u32 %0;", "n40", ""},
    {"trap;", "", "wrong: the kernel executed trap"},
    {"griddepcontrol.launch_dependents;", "", ""},
    {"{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }", "=r l@", ""},
    {"{ // a poll with a limit\n"
     ".reg .pred p, q; .reg .b32 v, n; mov.b32 n, 0;\n"
     "L_%=: ld.relaxed.gpu.global.b32 v, [%1]; add.u32 n, n, 1; /* the flag is 100 */\n"
     "setp.ne.u32 p, v, 7; setp.lt.s32 q, n, 3; and.pred p, p, q; @p bra.uni L_%=; mov.b32 %0, n; }",
     "=r l@", "load4.0.2 pause load4.0.2 pause load4.0.2 "},
    /* what is not modelled */
    {"multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0,%0,%0,%0}, [%1];", "=f l@", NULL},
    {"multimem.red.release.sys.global.add.u32 [%0], 1;", "l@", NULL},
    {"cp.async.cg.shared.global [%0], [%1], 16;", "r@ l@", NULL},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];",
     "r@ l@ r0 r@", NULL},
    {"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];", "r@ r@ r16 r@",
     NULL},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2;", "r@ l@ r16", NULL},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;", "l@ r@ r16", NULL},
    {"fence.proxy.tensormap::generic.acquire.gpu [%0], 128;", "l@", NULL},
    {"barrier.cluster.arrive.aligned;", "", NULL},
    {"bar.red.popc.u32 %0, 0, 1;", "=r", NULL},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%1}, {%0};", "=f r1", NULL},
    {"shfl.sync.bfly.b32 %0, %1, 1, 31, 0xffffffff;", "=r r1", NULL},
    {"ld.acquire.cluster.u32 %0, [%1];", "=r l@", NULL},
    {"ld.shared::cluster.u32 %0, [%1];", "=r r@", NULL},
    {"mbarrier.arrive.noComplete.shared.b64 %0, [%1], 1;", "=l r@", NULL},
    {"red.global.add.noftz.f16x2 [%0], %1;", "l@ r1", NULL},
    {"atom.add.global.b32 %0, [%1], 1;", "=r l@", NULL},
    {"atom.weak.add.u32 %0, [%1], 1;", "=r l@", NULL},
    {"cvt.rn.f32.u32 %0, %1;", "=f r1", NULL},
    {"cvt.f32.u32 %0, %1;", "=f r1", NULL},
    {"mul.hi.u32 %0, %1, %1;", "=r r5", NULL},
    {"mapa.shared::cluster.u32 %0, %1, 0;", "=r r@", NULL},
};

/* Each statement makes these calls, or is refused by the name of its instruction. */
TEST(statements)
{
	begin();
	for (uint32_t k = 0; k < COUNT(statements); k++) {
		const char *text = statements[k].text, *want = statements[k].calls;
		waits = 1;
		int ran = ptx(text, statements[k].operands);
		int right = want ? ran && !strcmp(calls, want) : !ran && strstr(refusal, "is not modelled");
		CU_ASSERT(right);
		if (!right)
			printf("  %s\n    has: %s%s\n    expected: %s\n", text, calls, refusal,
			       want ? want : "a refusal");
	}
	CU_ASSERT(COUNT(statements) >= 60);
	fake_forget();
}

/* The refusal names the whole instruction. */
TEST(names)
{
	begin();
	CU_ASSERT_FALSE(ptx("mov.u32 %0, 1; multimem.red.release.sys.global.add.u32 [%1], 1;", "=r l@"));
	CU_ASSERT_STRING_EQUAL(refusal, "PTX instruction multimem.red.release.sys.global.add.u32 is not modelled");
	CU_ASSERT_FALSE(ptx("ld.acquire.cluster.u32 %0, [%1];", "=r l@"));
	CU_ASSERT(test_says(refusal, "ld.acquire.cluster.u32&cluster"));
	CU_ASSERT_FALSE(ptx("fence.acq_rel;", ""));
	CU_ASSERT(test_says(refusal, "fence.acq_rel&scope"));
	fake_forget();
}

/* Results, with signs and parts of vectors. */
TEST(values)
{
	static const struct {
		const char *text, *operands;
		uint64_t result;
	} row[] = {
	    {"ld.global.s8 %0, [%1];", "=r l@", 100},
	    {"st.global.s32 [%1], -2; ld.global.s8 %0, [%1];", "=r l@", ~1ull},
	    {"st.global.s32 [%1], -2; ld.global.u8 %0, [%1];", "=r l@", 254},
	    {"{ .reg .b32 r<4>; ld.global.v4.b32 {r0,r1,r2,r3}, [%1+16]; mov.b32 %0, r3; }", "=r l@", 107},
	    {"ld.volatile.global.v2.u32 {_, %0}, [%1];", "=r l@", 101},
	    {"{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %1; mov.b32 %0, hi; }", "=r l0x700000005", 7},
	    {"mov.b64 %0, {%1, %2};", "=l r5 r7", 0x700000005},
	    {"shl.b32 %0, %1, 4;", "=r r0xf0000001", 16},
	    {"shr.s32 %0, %1, 4;", "=r r0x80000000", 0xfffffffff8000000},
	    {"shr.u32 %0, %1, 4;", "=r r0x80000000", 0x08000000},
	    {"sub.s64 %0, %1, %2;", "=l l1 l2", ~0ull},
	    {"min.s32 %0, %1, 3;", "=r r-5", (uint64_t)-5},
	    {"max.u32 %0, %1, 3;", "=r r-5", 0xfffffffb},
	    {"xor.b32 %0, %1, 0xff;", "=r r0x0f", 0xf0},
	    {"add.f32 %0, %1, 0f3F800000;", "=f f0x40000000", 0x40400000},
	    {"add.f64 %0, %1, 0d3FF0000000000000;", "=d d0x3ff0000000000000", 0x4000000000000000},
	    {"{ .reg .pred p; setp.gt.s32 p, %1, 0; selp.s32 %0, 1, 2, p; }", "=r r-5", 2},
	    {"{ .reg .pred p; setp.hi.u32 p, %1, 0; selp.s32 %0, 1, 2, p; }", "=r r-5", 1},
	    {"{ .reg .pred p, q; setp.eq.f32 p|q, %1, 0f00000000; selp.s32 %0, 1, 2, q; }", "=r f0x80000000", 2},
	    {"{ .reg .pred p; setp.ge.f32 p, %1, %1; selp.s32 %0, 1, 2, p; }", "=r f0x7fc00000", 2},
	    {"{ .reg .pred p; setp.ne.b32 p, %1, 0; @p mov.b32 %0, 1; @!p mov.b32 %0, 2; }", "=r r0", 2},
	    {"add.s32 %0, %0, %1;", "+r5 r7", 12},
	    {"mul.wide.s32 %0, %1, -3;", "=l r0x7fffffff", 0xfffffffe80000003},
	    {"mul.lo.u32 %0, %1, %1;", "=r r0x10001", 0x20001},
	    {"mad.lo.u32 %0, %1, %2, %0;", "+r5 r7 r2", 19},
	    {"cvt.s64.s32 %0, %1;", "=l r-1", ~0ull},
	    {"cvt.u64.u32 %0, %1;", "=l r-1", 0xffffffff},
	    {"atom.exch.b32 %0, [%1], 0x80000000; ld.global.s32 %0, [%1];", "=r l@", 0xffffffff80000000},
	    {"atom.cas.b32 %0, [%1], 100, 9; ld.global.u32 %0, [%1];", "=r l@", 9},
	    {"atom.cas.b32 %0, [%1], 99, 9; ld.global.u32 %0, [%1];", "=r l@", 100},
	    {"mbarrier.arrive.shared::cta.b64 %0, [%1];", "=l r@", 5},
	    {"createpolicy.fractional.L2::evict_last.b64 %0;", "=l", 0},
	    {"bra END; mov.b32 %0, 1; END:", "+r6", 6},
	};
	begin();
	for (uint32_t k = 0; k < COUNT(row); k++) {
		int right = ptx(row[k].text, row[k].operands) && operand[0].bits == row[k].result;
		CU_ASSERT(right);
		if (!right)
			printf("  %s: %s%llx\n", row[k].text, refusal, (unsigned long long)operand[0].bits);
	}
	fake_forget();
}

/* Malformed statements are refused with the cause, and do not crash. */
TEST(malformed)
{
	static const struct {
		const char *text, *operands, *words;
	} row[] = {
	    {"mov.u32 %0, %9;", "=r", "%9 has no operand&has 1"},
	    {"ld.acquire.sys.u32 %0;", "=r", "ld.acquire.sys.u32 has 1&too few"},
	    {"atom.cas.b32 %0, [%1], 1;", "=r l@", "too few"},
	    {"mbarrier.arrive.expect_tx.shared.b64 _, [%0];", "r@", "too few"},
	    {"fence.sc.sys %0;", "r1", "too many"},
	    {"ld.acquire.sys.u32 %0, [%1;", "=r l@", "] is missing"},
	    {"ld.acquire.sys.u32 %0, %1;", "=r l@", "operand 2 has a wrong form"},
	    {"ld.acquire.sys.u32 5, [%0];", "l@", "operand 1 has a wrong form"},
	    {"ld.volatile.v2.u32 {%0, %0, [%1];", "=r l@", "a name is missing"},
	    {"ld.volatile.v2.u32 {%0}, [%1];", "=r l@", "1 values, needs 2"},
	    {"ld.volatile.v2.u32 {%0, %0}, [%1+4];", "=r l@", "not a multiple of 8"},
	    {"ld.volatile.u32 %0, [%1];", "=r l0", "not a multiple"},
	    {"ld.volatile.v2.u32 {1,2,3,4,5,6,7,8,9}, [%0];", "l@", "more than 8"},
	    {"mov.b32 %0, x;", "=r", "x is not declared"},
	    {"@p mov.b32 %0, 1;", "=r", "the guard @"},
	    {"bra NOWHERE;", "", "NOWHERE"},
	    {"mov.b32 %1, 1;", "=r r1", "writes operand %1"},
	    {"mov.b32 %0, 1 2;", "=r", ", is missing"},
	    {"mov.b32 %0,", "=r", "too few"},
	    {".reg .b32 r<70>; mov.b32 %0, 1;", "=r", "more than 64 registers"},
	    {".reg .b32 r<2; mov.b32 %0, 1;", "=r", "> is missing"},
	    {".shared .b32 x;", "", ".shared is not modelled"},
	    {"mov.b32 %0, 1,2,3,4,5,6,7;", "=r", "more than 6"},
	    {"mov %0, 1;", "=r", "its type"},
	    {"ld.release.sys.u32 %0, [%1];", "=r l@", "order"},
	    {"st.acquire.sys.u32 [%0], 1;", "l@", "order"},
	    {"ld.acquire.u32 %0, [%1];", "=r l@", "scope"},
	    {"atom.u32 %0, [%1], 1;", "=r l@", "its type, order or scope"},
	    {"setp.u32 %0, 1, 1;", "=r", "its type"},
	    {"mov.b32 %0, 1;", "=C", "constraint \"=C\""},
	    {"!", "", "a name is missing"},
	    {"/* open", "", "a name is missing"},
	    {":", "", "a name is missing"},
	};
	begin();
	for (uint32_t k = 0; k < COUNT(row); k++) {
		CU_ASSERT_FALSE(ptx(row[k].text, row[k].operands));
		CU_ASSERT(test_says(refusal, row[k].words));
	}
	fake_forget();
}

/* A prefix of a statement, and a statement with a byte that is replaced, are accepted or refused with a reason. */
TEST(spoiled)
{
	uint64_t seed = 11;
	uint32_t accepted = 0, all = 0;
	for (uint32_t k = 0; k < COUNT(statements); k++)
		for (size_t cut = 0, n = strlen(statements[k].text); cut < n; cut++, all += 2) {
			char text[400];
			snprintf(text, sizeof(text), "%.*s", (int)cut, statements[k].text);
			int rc = fake_parse(text, 5);
			CU_ASSERT(rc == !*refusal);
			fake_forget();
			snprintf(text, sizeof(text), "%s", statements[k].text);
			text[cut] = "{}[]@!%_;:.,09aZ|<>/*\" \n"[xorshift(&seed) % 24];
			accepted += (uint32_t)(rc + fake_parse(text, 5));
			fake_forget();
		}
	CU_ASSERT(accepted > 100 && accepted < all);
}

TEST_MAIN("ptx", 60)
