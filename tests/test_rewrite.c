/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the rewriter of `gpuloom explore`, which makes C++ of preprocessed CUDA. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore/rewrite.c"

static char *output, why[300];

/* Rewrites the text, which begins at line 7 of k.cu. Returns the result of explore_rewrite(). */
static int rewrite(const char *body)
{
	size_t bytes = 0, n = strlen(body) + 20;
	char *text = malloc(n);
	free(output);
	FILE *out = open_memstream(&output, &bytes);
	snprintf(text, n, "# 7 \"k.cu\"\n%s", body);
	why[0] = 0;
	int rc = explore_rewrite(text, strlen(text), out, why, sizeof(why));
	fclose(out);
	free(text);
	return rc;
}

#define AT(what, line) "::explore_place{\"" what "\", \"k.cu\", " #line "}"
#define PTX(line)      "::explore::ptx(" AT("asm", line) ", "
#define LAUNCH(kernel, line)                                                                                           \
	"::explore::launch(" AT("launch", line) ", [=](auto... explore_a) { " kernel                                   \
						"(explore_a...); }, ::explore::grid("

/* Each text becomes exactly this one. */
TEST(constructs)
{
	static const struct {
		const char *from, *to;
	} row[] = {
	    {"int x = 1'000'000; char c = '\\''; auto s = \"asm(\\\"\";", NULL},
	    {"auto s = R\"x(asm(\")\" __shared__ )x\"; auto t = u8R\"(a<<<b>>>(c))\"; char q = u8'\"';", NULL},
	    {"std::cout << a << b; x = a <b> (c); y = v<w<x>>(3); int asmx, my__shared__;", NULL},
	    {"std::ostream &operator<<<>(std::ostream &, T);", NULL},
	    {"asm volatile(\"\" ::: \"memory\");", PTX(7) "\"\");"},
	    {"asm(\"fence.sc.sys;\");", PTX(7) "\"fence.sc.sys;\");"},
	    {"__asm__ __volatile__ (\"membar.gl;\" : : : \"memory\") ;", PTX(7) "\"membar.gl;\") ;"},
	    {"if (a) asm volatile(\"bar.sync 0;\"); else b();", "if (a) " PTX(7) "\"bar.sync 0;\"); else b();"},
	    {"asm volatile(\"ld.acquire.sys.u32 %0, [%1];\" : \"=r\"(v) : \"l\"(p + f(1, 2)) : \"memory\");",
	     PTX(7) "\"ld.acquire.sys.u32 %0, [%1];\", ::explore::out(\"=r\", v), ::explore::in(\"l\", p + f(1, 2)));"},
	    {"asm(\"add.s32 %0, %0, %1;\" : \"+r\"(a[i]) : \"n\"(4));",
	     PTX(7) "\"add.s32 %0, %0, %1;\", ::explore::out(\"+r\", a[i]), ::explore::in(\"n\", 4));"},
	    {"asm(\"mov.b32 %[to], %[a]; // 100%% %1\" : [to] \"=r\"(x) : [a] \"r\"(y));",
	     PTX(7) "\"mov.b32 %0, %1; // 100%% %1\", ::explore::out(\"=r\", x), ::explore::in(\"r\", y));"},
	    {"asm(\"a %0;\" : \"=\" \"r\"(x));", PTX(7) "\"a %0;\", ::explore::out(\"=\"\"r\", x));"},
	    {"__device__ struct X { int a; };", " struct X { int a; };"},
	    {"asm(\"st.u32 [%0], %1;\" :: \"l\"(p), \"r\"(ns::g<A, B>(x)));",
	     PTX(7) "\"st.u32 [%0], %1;\", ::explore::in(\"l\", p), ::explore::in(\"r\", ns::g<A, B>(x)));"},
	    {"asm(\"a;\"\"b;\"\n  R\"(c;)\"\n  : \"=r\"(x)\n);\ny;",
	     PTX(7) "\"a;\"\"b;\"R\"(c;)\", ::explore::out(\"=r\", x))\n# 10 \"k.cu\"\n;\ny;"},
	    {"asm(\"x;\" :: \"r\"(\n# 30 \"lib.h\" 3\n(2\n# 8 \"k.cu\"\n)));",
	     PTX(7) "\"x;\", ::explore::in(\"r\", (2 )))\n# 8 \"k.cu\"\n;"},
	    {"{ __shared__ float a[2][N + 1]; }", "{ auto &a = ::explore::shared<float[2][N + 1]>([]{});  }"},
	    {"static __shared__ volatile int f;", "auto &f = ::explore::shared<volatile int>([]{}); "},
	    {"volatile __shared__ int f;", "auto &f = ::explore::shared<volatile int>([]{}); "},
	    {"__shared__ __attribute__((aligned(16))) unsigned long long *a, b[4];",
	     "auto &a = ::explore::shared<unsigned long long*>([]{}); auto &b = ::explore::shared<unsigned long "
	     "long[4]>([]{}); "},
	    {"alignas(128) __shared__ T<A, B> a[4];", "auto &a = ::explore::shared<T<A, B>[4]>([]{}); "},
	    {"__shared__ alignas(8) typename R<T>::S s;", "auto &s = ::explore::shared<typename R<T>::S>([]{}); "},
	    {"void k() { extern __shared__ __attribute__((aligned(1024))) uint8_t smem[]; }",
	     "void k() { auto *smem = ::explore::dynamic_shared<uint8_t>();  }"},
	    {"namespace a { struct B { void k() { extern volatile __shared__ int x[]; } }; }",
	     "namespace a { struct B { void k() { auto *x = ::explore::dynamic_shared<volatile int>();  } }; }"},
	    {"k<<<1, 32>>>();", LAUNCH("k", 7) "1, 32));"},
	    {"a::k<T, (N > 2)><<<dim3(2, 1), b[1], 64 << 10, s>>>(p, q);",
	     LAUNCH("a::k<T, (N > 2)>", 7) "dim3(2, 1), b[1], 64 << 10, s), p, q);"},
	    {"for (;;) { ::n::k<<<g,\n  b>>>(p,\n  f(x)); } y;",
	     "for (;;) { " LAUNCH("::n::k", 7) "g, b), p, f(x))\n# 9 \"k.cu\"\n; } y;"},
	    {"if (x) (this->*f)<<<g, b>>>(1); else t.f<<<g, b>>>(2);",
	     "if (x) " LAUNCH("(this->*f)", 7) "g, b), 1); else " LAUNCH("t.f", 7) "g, b), 2);"},
	    {"__device__ inline T f(int a = 3) { return a; }", " inline T f(int a = 3) { return a; }"},
	    {"struct S { __device__ S() = default; __device__ bool operator==(S) const; };",
	     "struct S {  S() = default;  bool operator==(S) const; };"},
	    {"auto l = [=] __device__ { return 1; }; static constexpr __device__ int four = 4; __device__ constexpr "
	     "float t[] = {1};",
	     "auto l = [=]  { return 1; }; static constexpr  int four = 4;  constexpr float t[] = {1};"},
	    {"# 1 \"sys.h\" 1 3\nint f() __asm__(\"g\"); __device__ int v;\n# 8 \"k.cu\" 2\nasm(\"a;\");",
	     "# 1 \"sys.h\" 1 3\nint f() __asm__(\"g\"); __device__ int v;\n# 8 \"k.cu\" 2\n" PTX(8) "\"a;\");"},
	    {"#pragma unroll\nx;\n\n  # 5 \"other.cu\"\nasm(\"a;\");",
	     "#pragma unroll\nx;\n\n  # 5 \"other.cu\"\n::explore::ptx("
	     "::explore_place{\"asm\", \"other.cu\", 5}, \"a;\");"},
	    {"int texture, surface; a < b;", NULL},
	};
	for (uint32_t k = 0; k < COUNT(row); k++) {
		const char *want = row[k].to ? row[k].to : row[k].from;
		int rc = rewrite(row[k].from), right = !rc && !strcmp(output + strlen("# 7 \"k.cu\"\n"), want);
		CU_ASSERT(right);
		if (!right)
			printf("  %s\n    has: %s%s\n    expected: %s\n", row[k].from, output, why, want);
	}
}

/* What is not supported, or malformed, is refused with its place, its name and advice. */
TEST(refused)
{
	static const struct {
		const char *from, *words;
	} row[] = {
	    {"__device__ int counter;", "k.cu:7: counter&__device__&for each rank"},
	    {"int a;\n\nstatic __device__ volatile unsigned int bar[2] = {0};", "k.cu:9: bar&for each rank"},
	    {"__constant__ float c[4];", "k.cu:7: c&__constant__"},
	    {"__device__ __managed__ std::array<int, (3)> m;", "k.cu:7: m&__device__"},
	    {"__managed__ int m{};", "m&__managed__"},
	    {"alignas(16) __device__ int a[2]; [[x]] __device__ int f();", "k.cu:7: a&__device__"},
	    {"[[x]] __device__ int b;", "b&__device__"},
	    {"__device__ __attribute__((aligned(16))) int4 v = f(3);", "v&__device__"},
	    {"texture<float, 2> t;", "texture&not supported"},
	    {"extern __shared__ float a[]; void k() {}", "outside of a kernel&move it"},
	    {"namespace x { extern __shared__ float a[]; }", "outside of a kernel"},
	    {"void k() { extern __shared__ float a[4]; }", "a: not an array without size&write a[]"},
	    {"__shared__ int x = 4;", "x&without values"},
	    {"__shared__ struct { int a; } s;", "no declaration"},
	    {"__shared__ int (*f)(int);", "__shared__"},
	    {"__shared__ int x", "__shared__: no declaration"},
	    {"__shared__;", "__shared__: no declaration"},
	    {"k<<<1>>>();", "1 values&write <<<GRID, BLOCK, SHARED, STREAM>>>"},
	    {"k<<<1, 2, 3, 4, 5>>>();", "5 values"},
	    {"k<<<1, 2;", "<<< is not closed"},
	    {"k<<<1, 2>>>", "<<< is not closed"},
	    {"k<<<1, 2>>>(a", "( is not closed"},
	    {"; <<<1, 2>>>()", "without the name of a kernel"},
	    {"asm goto(\"a;\");", "asm without a text"},
	    {"asm;", "asm without a text"},
	    {"asm(\"a;\" : \"=r\"(x)", "( is not closed"},
	    {"asm(\"a;\" : \"=r\" x);", "is no operand"},
	    {"asm(\"a;\" : x);", "x is no operand"},
	    {"asm(\"a;\" \"b;\", x);", "is no operand"},
	    {"asm(\"%[y];\" : [x] \"=r\"(x));", "%[y] names no operand"},
	    {"asm(\"%[x;\" : [x] \"=r\"(x));", "names no operand"},
	    {"a\n\"not closed\n", "k.cu:8: \"not closed"},
	    {"R\"x(never )\"", "k.cu:7: R\"x(never"},
	    {"c = 'x", "'x: a string or character that is not closed"},
	};
	for (uint32_t k = 0; k < COUNT(row); k++) {
		CU_ASSERT_EQUAL(rewrite(row[k].from), -1);
		CU_ASSERT(test_says(why, row[k].words));
	}
	char text[1000]; /* a long name of a file leaves room for the reason */
	snprintf(text, sizeof(text), "# 3 \"%0900d\"\nasm;", 0);
	CU_ASSERT_EQUAL(rewrite(text), -1);
	CU_ASSERT(test_says(why, ":3: asm without a text"));
	CU_ASSERT_EQUAL(explore_rewrite("a\0b", 3, stdout, why, sizeof(why)), -1);
	CU_ASSERT(test_says(why, "source:1:&byte 0"));
	CU_ASSERT_EQUAL(explore_rewrite("", 0, stdout, why, sizeof(why)), 0);
	free(output);
	output = NULL;
}

/* Texts with bytes that are replaced are rewritten or refused with a reason. */
TEST(spoiled)
{
	static const char text[] =
	    "namespace n { __device__ int f(T<a> x) { asm volatile(\"a %[b];\" : [b] \"=r\"(x) :: \"m\"); }\n"
	    "void k() { static __shared__ int *a[2], b; extern __shared__ T s[]; k<<<1, (2)>>>(x, 'c'); } }";
	uint64_t seed = 5;
	for (uint32_t k = 0; k < 20000; k++) {
		char spoiled[sizeof(text)];
		memcpy(spoiled, text, sizeof(text));
		for (uint32_t n = 0; n < 1 + k % 3; n++)
			spoiled[xorshift(&seed) % (sizeof(text) - 1)] = "()[]{}<>\"':;,#%R \n*&"[xorshift(&seed) % 20];
		spoiled[k % 2 ? sizeof(text) - 1 : xorshift(&seed) % sizeof(text)] = 0;
		int rc = rewrite(spoiled);
		CU_ASSERT_EQUAL(rc, *why ? -1 : 0);
	}
	free(output);
	output = NULL;
}

TEST_MAIN("rewrite", 60)
