/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the products that warps of a GPU compute for the workload sgd, compared with products in double. Lanes are
 * threads, and this file has the instruction of the tensor cores, as PTX defines it. */
#include <math.h>

#include "support.h"
#include "tile_rig.h"

#define SGD_RIG      1
#define SGD_PRODUCTS 3

static int not_tf32; /* 1: a factor was not a number of TF32 */

/* mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32. As the hardware, adds exact products and rounds the sum towards
 * 0. Lane l has elements (l / 4, l % 4), (l / 4 + 8, l % 4), (l / 4, l % 4 + 4), (l / 4 + 8, l % 4 + 4) of the first
 * factor, (l % 4, l / 4), (l % 4 + 4, l / 4) of the second, and of the sum the rows l / 4, l / 4, l / 4 + 8, l / 4 + 8
 * in columns 2 (l % 4) and 2 (l % 4) + 1 (PTX ISA, "Matrix fragments for mma.m16n8k8"). */
static void sgd_multiply(float *sum, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
	uint32_t all[32][6];
	tile_rig_exchange((uint32_t[]){a0, a1, a2, a3, b0, b1}, 6, all);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t row = tile_rig_lane / 4 + i / 2 * 8, column = tile_rig_lane % 4 * 2 + i % 2;
		double to = sum[i];
		for (uint32_t k = 0; k < 8; k++) {
			union {
				uint32_t bits;
				float is;
			} a = {all[row % 8 * 4 + k % 4][k / 4 * 2 + row / 8]}, b = {all[column * 4 + k % 4][4 + k / 4]};
			if ((a.bits | b.bits) & 0x1fff)
				__atomic_store_n(&not_tf32, 1, __ATOMIC_RELAXED);
			to += (double)a.is * b.is;
		}
		sum[i] = (float)to;
		if (fabs(sum[i]) > fabs(to))
			sum[i] = nextafterf(sum[i], 0);
	}
}

#include "../plugins/workloads/net/workload_sgd.dev.h"

#define LANES_MOST 96u
#define GLOBAL     (1u << 20)

static struct sgd_test {
	uint32_t batch, before, rows; /* before: neurons of the layer before */
	uint32_t workers, lanes;
	uint64_t slice;  /* floats of a worker's slice */
	uint32_t layers; /* 2: negative results of the layer are cut */
	int positive;	 /* 1: all factors are positive, so that errors of one sign add up */
} test;
static char global[GLOBAL] __attribute__((aligned(64))), state[GLOBAL] __attribute__((aligned(64)));
static float gradients[GLOBAL / 4]; /* of all workers */
static char private[SGD_ROOM(LANES_MOST)] __attribute__((aligned(64)));
static struct loom_lanes together;
static int which;

static float random_of(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15ull;
	i ^= i >> 29;
	float x = (float)(int32_t)(i * 0xbf58476d1ce4e5b9ull >> 32) / 2147483648.0f;
	return test.positive ? fabsf(x) : x;
}

static struct sgd *the_state(void)
{
	return (struct sgd *)state;
}

static float *floats(uint64_t at)
{
	return sgd_floats(the_state(), at);
}

/* Layer 0 has the neurons before the tested layer 1. Padding is 0, but the derivative of a bias is not. */
static void fill(void)
{
	struct sgd *s = the_state();
	uint64_t at = sizeof(*s);
	memset(state, 0, sizeof(state));
	memset(gradients, 0xff, sizeof(gradients));
	*s = (struct sgd){
	    .layers = 1 + test.layers, .batch = test.batch, .batches = 1, .classes = test.rows, .scale = 0.5f};
	s->label_at = at;
	s->odds_at = at + test.batch * sizeof(uint32_t);
	at = s->odds_at + test.batch * sizeof(struct sgd_odds);
	for (uint32_t b = 0; b < test.batch; b++)
		((uint32_t *)(state + s->label_at))[b] = b * 5 % test.rows;
	for (uint32_t i = 0; i < 2; i++) {
		struct sgd_layer *l = &s->layer[i];
		l->rows = i ? test.rows : test.before;
		l->cols = i ? (test.before + 1 + 7) & ~7u : 8;
		l->width = (l->rows + 1 + 7) & ~7u;
		uint64_t *of[] = {&l->weight_at, &l->out_at, &l->back_at},
			 bytes[] = {((uint64_t)l->rows + SGD_SPARE) * l->cols * 4,
				    ((uint64_t)test.batch + SGD_SPARE) * l->width * 4,
				    ((uint64_t)test.batch + SGD_SPARE) * l->width * 4};
		for (uint32_t k = 0; k < 3; k++) {
			*of[k] = at = (at + 63) & ~63ull;
			at += bytes[k];
		}
		for (uint64_t k = 0; k < (uint64_t)l->rows * l->cols; k++)
			floats(l->weight_at)[k] = random_of(k);
		for (uint32_t b = 0; b < test.batch; b++)
			for (uint32_t k = 0; k <= l->rows; k++) {
				floats(l->out_at)[b * l->width + k] = k < l->rows ? random_of(1000 + b * 1000 + k) : 1;
				floats(l->back_at)[b * l->width + k] = k < l->rows ? random_of(5000 + b * 999 + k) : 77;
			}
	}
	CU_ASSERT_FATAL(at <= sizeof(state));
	struct loom_allreduce *a = &s->sum[1];
	a->algorithm = LOOM_ALLREDUCE_PULL;
	a->group = 1;
	a->slice = test.slice, a->share = 1;
	a->floats = test.slice * test.workers;
	a->cycle = 1;
	CU_ASSERT_FATAL(a->floats >= (uint64_t)test.rows * s->layer[1].cols && a->floats * 4 <= sizeof(global));
}

static void *lane(void *c_)
{
	struct loom_ctx *c = c_;
	tile_rig_enter(c);
	if (which == SGD_BACK) /* in two parts, as if there were polls */
		for (uint32_t part = 0; part < 2; part++)
			sgd_product(c, the_state(), which, 1, 0, part, 2);
	else
		sgd_product(c, the_state(), which, 1, 0, 0, 1);
	return NULL;
}

/* Lets all workers compute a product of layer 1, one worker after the other. */
static void compute(int product)
{
	which = product;
	for (uint32_t worker = 0; worker < test.workers; worker++) {
		pthread_t thread[LANES_MOST];
		static struct loom_ctx c[LANES_MOST];
		memset(private, 0xff, sizeof(private));
		memset(global, 0xff, sizeof(global));
		for (uint32_t i = 0; i < test.lanes; i++) {
			c[i] = (struct loom_ctx){.worker = worker,
						 .workers = test.workers,
						 .lane = i,
						 .lanes = test.lanes,
						 .together = &together};
			c[i].global[LOOM_WORKLOAD] = global;
			c[i].local[LOOM_WORKLOAD] = private;
			CU_ASSERT_FATAL(!pthread_create(&thread[i], NULL, lane, &c[i]));
		}
		for (uint32_t i = 0; i < test.lanes; i++)
			pthread_join(thread[i], NULL);
		for (uint64_t k = 0; k < GLOBAL / 4; k++) {
			float got = ((const float *)global)[k];
			if (!isnan(got) && k / test.slice != worker)
				CU_FAIL("a worker stores a gradient of another worker");
			if (k / test.slice == worker)
				gradients[k] = got;
		}
	}
}

/* The error of a sum may be 2^-21 of the sum of the magnitudes. With one product of TF32 it would be 2^-13. If tensor cores
 * computed a sum of 1,000 products, it would be 2^-18. */
static int near(double got, double want, double size)
{
	if (fabs(got - want) <= ldexp(size, -21) + 1e-30)
		return 1;
	printf("  %u x %u x %u: %.9g instead of %.9g, of %.9g\n", test.batch, test.rows, test.before, got, want, size);
	return 0;
}

static void check_forward(void)
{
	const struct sgd_layer *l = &the_state()->layer[1];
	const float *in = floats(the_state()->layer[0].out_at);
	for (uint32_t b = 0; b < test.batch; b++)
		for (uint32_t e = 0; e < l->width; e++) {
			double want = 0, size = 0, got = floats(l->out_at)[b * l->width + e];
			for (uint32_t k = 0; k < l->cols && e < l->rows; k++) {
				double term = (double)in[b * l->cols + k] * floats(l->weight_at)[e * l->cols + k];
				want += term;
				size += fabs(term);
			}
			want = e == l->rows ? 1 : test.layers > 1 && want < 0 ? 0 : want;
			CU_ASSERT(near(got, want, size));
		}
}

/* The forward pass of the last layer also computes the losses, if there are few classes. */
static void check_losses(void)
{
	const struct sgd *s = the_state();
	const struct sgd_layer *l = &s->layer[1];
	const struct sgd_odds *odds = (const struct sgd_odds *)(state + s->odds_at);
	for (uint32_t b = 0; b < test.batch && test.layers == 1; b++) {
		const float *out = floats(l->out_at) + b * l->width, *back = floats(l->back_at) + b * l->width;
		uint32_t label = b * 5 % test.rows;
		double sum = 0;
		for (uint32_t e = 0; e < test.rows; e++)
			sum += exp((double)out[e] - out[label]);
		if (test.rows > 16) {
			CU_ASSERT_EQUAL(odds[b].sum, 0);
			continue;
		}
		CU_ASSERT(near(log(odds[b].sum) + odds[b].behind, log(sum), 4));
		for (uint32_t e = 0; e < test.rows; e++)
			CU_ASSERT(near(back[e], (exp((double)out[e] - out[label]) / sum - (e == label)) / 2, 4));
	}
}

static void check_gradient(void)
{
	const struct sgd_layer *l = &the_state()->layer[1];
	const float *in = floats(the_state()->layer[0].out_at), *got = gradients;
	for (uint32_t e = 0; e < l->rows; e++)
		for (uint32_t k = 0; k < l->cols; k++) {
			double want = 0, size = 0;
			for (uint32_t b = 0; b < test.batch; b++) {
				double term = (double)in[b * l->cols + k] * floats(l->back_at)[b * l->width + e];
				want += term;
				size += fabs(term);
			}
			CU_ASSERT(near(got[e * l->cols + k], want, size));
		}
	for (uint64_t k = (uint64_t)l->rows * l->cols; k < GLOBAL / 4; k++)
		if (!isnan(got[k]))
			CU_FAIL("a gradient behind the last neuron");
}

static void check_back(void)
{
	const struct sgd_layer *l = &the_state()->layer[1], *first = &the_state()->layer[0];
	const float *in = floats(first->out_at);
	for (uint32_t b = 0; b < test.batch; b++)
		for (uint32_t k = 0; k < l->cols; k++) {
			double want = 0, size = 0;
			for (uint32_t e = 0; e < l->rows; e++) {
				double term = (double)floats(l->back_at)[b * l->width + e] *
					      floats(l->weight_at)[e * l->cols + k];
				want += term;
				size += fabs(term);
			}
			CU_ASSERT(near(floats(first->back_at)[b * l->cols + k], in[b * l->cols + k] > 0 ? want : 0,
				       size));
		}
	for (uint64_t k = (uint64_t)test.batch * l->cols; k < ((uint64_t)test.batch + SGD_SPARE) * l->cols; k++)
		if (floats(first->back_at)[k] != 0)
			CU_FAIL("a derivative behind the last sample");
}

TEST(products)
{
	static const struct sgd_test tests[] = {
	    {.batch = 1, .before = 3, .rows = 1, .workers = 1, .lanes = 32, .slice = 8, .layers = 1},
	    {.batch = 20, .before = 40, .rows = 24, .workers = 3, .lanes = 64, .slice = 8 * 48, .layers = 2},
	    {.batch = 33, .before = 71, .rows = 17, .workers = 2, .lanes = 96, .slice = 700, .layers = 2},
	    {.batch = 37, .before = 20, .rows = 16, .workers = 3, .lanes = 64, .slice = 128, .layers = 1},
	    {.batch = 9, .before = 100, .rows = 35, .workers = 40, .lanes = 32, .slice = 92, .layers = 1},
	    {.batch = 8, .before = 100, .rows = 35, .workers = 14, .lanes = 64, .slice = 272, .layers = 1},
	    {.batch = 8, .before = 999, .rows = 9, .workers = 1, .lanes = 32, .slice = 9 * 1000, .layers = 2, .positive = 1},
	    {.batch = 500, .before = 23, .rows = 8, .workers = 1, .lanes = 32, .slice = 8 * 24, .layers = 2, .positive = 1},
	    {.batch = 3, .before = 7, .rows = 999, .workers = 1, .lanes = 32, .slice = 8 * 999, .layers = 2, .positive = 1},
	};
	tile_rig_start();
	for (size_t i = 0; i < COUNT(tests); i++) {
		test = tests[i];
		fill();
		compute(SGD_GRADIENT);
		check_gradient();
		compute(SGD_BACK);
		check_back();
		compute(SGD_FORWARD);
		check_forward();
		check_losses();
	}
	CU_ASSERT_EQUAL(not_tf32, 0);
}

TEST(split)
{
	for (uint64_t i = 0; i < 100000; i++) {
		union loom_allreduce_bits high, low;
		float x = random_of(i) * ldexpf(1, (int)(i % 60) - 30);
		struct sgd_terms t = sgd_split(x);
		high.bits = t.high;
		low.bits = t.low;
		CU_ASSERT_EQUAL((t.high | t.low) & 0x1fff, 0);
		CU_ASSERT(fabs((double)high.is + low.is - x) <= ldexp(fabs(x), -22));
	}
}

TEST_MAIN("sgd", 120)
