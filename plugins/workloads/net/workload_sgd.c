/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sgd. The loss of the training must equal that of a sequential computation, and the weights must have
 * the same bits on all ranks. */
#include "workload_sgd.dev.h"

#include <math.h>
#include <pthread.h>

#include "../collective/allreduce.h"
#include "../common/products.h"
#include "net.h"
#include "lib/random.h"

#define TOLERANCE 1e-5 /* tolerance of a step's loss in float32, compared with the sequential loss in double */
#define TOLERANCE_TF32 1e-2 /* the same with precision = tf32, whose factors have 11 binary digits */
#define NEAR_ZERO 1e-6 /* a neuron's sum so near to 0 may have the other sign in float32, and so another derivative */
#define HELD_OUT 512u  /* number of samples that are not used for training; a multiple of BLOCK */

struct sgd_opts {
	uint32_t inputs, layers, width, classes, batch, batches, algorithm, group;
	uint64_t steps, checked, least;
	double rate, accuracy;
	uint32_t precision;
	uint8_t overlap, unused[3];
};
_Static_assert(sizeof(struct sgd_opts) == 80, "solve() compares the bytes of the struct, so it has no padding");
enum { SGD_FLOAT, SGD_TF32X3, SGD_TF32 };

static const char *const precisions[] = {"float", "tf32x3", "tf32", NULL};
static const struct loom_opt sgd_rows[] = {
	LOOM_OPT(struct sgd_opts, inputs, LOOM_OPT_U32, "64",
			 "Numbers of a training sample.", .min = 9, .max = 65536),
	LOOM_OPT(struct sgd_opts, layers, LOOM_OPT_U32, "2", "Hidden layers.", .max = 6),
	LOOM_OPT(struct sgd_opts, width, LOOM_OPT_U32, "64", "Neurons of a hidden layer.", .min = 1, .max = 16384),
	LOOM_OPT(struct sgd_opts, classes, LOOM_OPT_U32, "8",
			 "Classes of the training samples.", .min = 2, .max = 1024),
	LOOM_OPT(struct sgd_opts, batch, LOOM_OPT_U32, "32",
			 "Training samples of a step on each rank.", .min = 1, .max = 65536),
	LOOM_OPT(struct sgd_opts, batches, LOOM_OPT_U32, "16",
			 "Number of steps that have training samples of their own; then the samples are used again.",
			 .min = 1, .max = 65536),
	LOOM_OPT(struct sgd_opts, steps, LOOM_OPT_U64, "60",
			 "Training steps of a sample; each sample begins with the same weights.",
			 .min = 1, .max = 1e6),
	LOOM_OPT(struct sgd_opts, rate, LOOM_OPT_F64, "0.1",
			 "Learning rate: change of a weight per gradient.", .from = 0, .to = 10),
	LOOM_ALLREDUCE_ROWS(struct sgd_opts),
	LOOM_OPT(struct sgd_opts, overlap, LOOM_OPT_BOOL, "yes",
			 "Whether the gradients of a layer are summed over the ranks while those of the previous "
			 "layers are computed. no: all at the end."),
	LOOM_OPT(struct sgd_opts, precision, LOOM_OPT_ENUM, "tf32x3",
			 "How NVIDIA GPUs from compute capability 8.0 on multiply. float: by "
			 "ordinary instructions. tf32x3: by tensor cores, with three products of TF32 in place of each "
			 "product of floats, which is nearly as exact. tf32: with one, whose factors are rounded to 11 "
			 "binary digits; the check of the loss then has a tolerance of 0.01 (1 + loss) instead of "
			 "0.00001 (1 + loss). Other devices multiply floats.",
			 .choices = precisions),
	LOOM_OPT(struct sgd_opts, checked, LOOM_OPT_U64, "60",
			 "Number of steps, from the first one on, that one processor computes again with the training "
			 "samples of all ranks, to verify the loss. Wide networks take minutes, which [run] time_limit bounds.", .min = 1, .max = 1e6),
	LOOM_OPT(struct sgd_opts, accuracy, LOOM_OPT_SHARE, "0%",
			 "Least share of 512 held-out samples that the trained network must classify correctly.",
			 .to = 1),
	{.name = NULL},
};

/* The sequential result for the samples of all ranks. All ranks and samples of this process share it. */
static struct net_reference reference = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct {
	uint32_t ranks;
	uint64_t seed;
	struct sgd_opts opts;
} whole;

static double *shared_loss(void) /* [rank][step], then the tolerance of each step */
{
	return reference.result;
}

/* ---- samples and weights, from a seed ---- */

static double chance(uint64_t seed, uint64_t a, uint64_t b) /* returns a number from -1 to 1 */
{
	return (double)(int64_t)loom__mix64(seed ^ loom__mix64(a ^ loom__mix64(b))) / 9223372036854775808.0;
}

/* Makes sample i, which is near one of the 4 centres of its class. Returns the class. */
static uint32_t sample_of(const struct sgd_opts *o, uint64_t seed, uint64_t i, float *x)
{
	uint64_t at = loom__mix64(seed ^ ~i) % (4ull * o->classes);
	for (uint32_t k = 0; k < o->inputs; k++)
		x[k] = (float)(chance(seed, at, k) + 0.8 * chance(~seed, i, k));
	return (uint32_t)(at % o->classes);
}

/* Returns the number of sample b in a rank's batch. Held-out samples have the numbers of an additional rank. */
static uint64_t sample_number(const struct sgd_opts *o, uint32_t rank, uint64_t batch, uint64_t b)
{
	return ((uint64_t)rank * o->batches + batch % o->batches) * o->batch + b;
}

/* Returns the column of the bias in the weights of layer i. */
static uint32_t bias_of(const struct sgd *s, const struct sgd_opts *o, uint32_t i)
{
	return i ? s->layer[i - 1].rows : o->inputs;
}

static void weights_of(const struct sgd *s, const struct sgd_opts *o, uint64_t seed, uint32_t i, float *weight)
{
	const struct sgd_layer *l = &s->layer[i];
	uint32_t bias = bias_of(s, o, i);
	for (uint64_t e = 0; e < (uint64_t)l->rows * l->cols; e++)
		weight[e] = e % l->cols < bias ? (float)(sqrt(6.0 / bias) * chance(seed, i + 1ull, e + 7)) : 0;
}

/* ---- shape ---- */

static uint64_t take(uint64_t *at, uint64_t bytes)
{
	uint64_t begin = *at;
	*at += loom_net_line(bytes);
	return begin;
}

static struct sgd_layer layer_of(uint32_t rows, uint32_t before)
{
	return (struct sgd_layer){.rows = rows, .cols = (before + 1 + 7) & ~7u, .width = (rows + 1 + 7) & ~7u};
}

/* Returns the value of SGD_PRODUCTS in the device code. */
static uint32_t products_of(const struct sgd_opts *o, const struct loom_layout *layout)
{
	return o->precision == SGD_FLOAT || !workload_products(layout) ? 0 : o->precision == SGD_TF32 ? 1 : 3;
}

/* Returns the number of neurons of which a layer's gradient has room. Warps compute the gradients of whole neurons at
 * the same time, so slices of the sum have whole neurons, if the sum grows by a quarter at most. */
static uint32_t summed_rows(const struct sgd_opts *o, const struct loom_host *host, const struct loom_layout *layout,
			    const struct sgd_layer *l)
{
	uint64_t parts = (uint64_t)loom_net_ranks(host) * layout->workers, rows = (l->rows + parts - 1) / parts * parts;
	return products_of(o, layout) && rows <= l->rows + l->rows / 4 ? (uint32_t)rows : l->rows;
}

/* Returns the head of the state. Sets *all to the bytes of the block for the stack without the state, and *state to
 * the bytes of the state. */
static struct sgd shape_of(const void *self, const struct loom_layout *layout, uint64_t *all, uint64_t *state)
{
	const struct workload *w = self;
	const struct sgd_opts *o = w->opts;
	struct sgd s = {.batch = o->batch,
			.batches = o->batches,
			.classes = o->classes,
			.steps = o->steps,
			.overlap = o->overlap,
			.rate = (float)o->rate,
			.scale = 1.0f / ((float)o->batch * (float)loom_net_ranks(w->host))};
	uint64_t at = loom_net_line(sizeof(s)), samples = (uint64_t)o->batches * o->batch;
	uint32_t before = o->inputs, tag = 1;
	for (; s.layers <= o->layers; before = s.layer[s.layers++].rows)
		s.layer[s.layers] = layer_of(s.layers < o->layers ? o->width : o->classes, before);
	*all = loom_net_line(sizeof(struct sgd_head));
	s.sample_at = take(&at, (samples + SGD_SPARE) * s.layer[0].cols * sizeof(float));
	s.label_at = take(&at, samples * sizeof(uint32_t));
	s.odds_at = take(&at, o->steps * o->batch * sizeof(struct sgd_odds));
	for (uint32_t i = 0; i < s.layers; i++) {
		struct sgd_layer *l = &s.layer[i];
		uint64_t bytes = (uint64_t)l->rows * l->cols * sizeof(float);
		l->weight_at = take(&at, bytes + SGD_SPARE * l->cols * sizeof(float));
		l->out_at = take(&at, ((uint64_t)o->batch + SGD_SPARE) * l->width * sizeof(float));
		l->back_at = take(&at, ((uint64_t)o->batch + SGD_SPARE) * l->width * sizeof(float));
		uint64_t summed = (uint64_t)summed_rows(o, w->host, layout, l) * l->cols * sizeof(float);
		struct loom_allreduce_how how = LOOM_ALLREDUCE_HOW(o, summed);
		if (loom_net_ranks(w->host) == 1)
			how.algorithm = LOOM_ALLREDUCE_RING; /* the sum over a single rank is its input */
		s.sum[i] = loom_allreduce_shape(w->host, layout, &how);
		*all = loom_allreduce_place(&s.sum[i], layout, *all, tag, 2, 0);
		tag += s.sum[i].tags;
	}
	*state = at;
	return s;
}

static struct sgd *state_of(const struct loom_view *view)
{
	const struct sgd_head *head = view->global;
	return head->state_at ? (struct sgd *)((char *)view->global + head->state_at) : view->device[0];
}

static int sgd_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	return net_reference_create(&reference, host, opts, self, err);
}

static void sgd_destroy(void *self)
{
	net_reference_destroy(&reference, self);
}

static int sgd_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct workload *w = self;
	const struct sgd_opts *o = w->opts;
	uint64_t state;
	(void)err;
	struct sgd s = shape_of(self, layout, &need->global, &state);
	for (uint32_t i = 0; i < s.layers; i++)
		loom_allreduce_needs(&s.sum[i], layout, need);
	need->global += layout->devices > 1 ? state : 0;
	need->global_place = LOOM_PLACE_NET;
	need->device = layout->devices > 1 ? 0 : state;
	need->device_place = LOOM_PLACE_DEVICE;
	need->worker = sizeof(struct sgd_times) + loom_net_line(o->steps * sizeof(uint64_t));
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		uint64_t room = shape->kind == LOOM_ON_GPU && !layout->clock ? SGD_ROOM(shape->lanes) : 0;
		need->local = room > need->local ? room : need->local;
	}
	return 0;
}

static int sgd_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err)
{
	const struct workload *w = self;
	const struct sgd_opts *o = w->opts;
	(void)err;
	snprintf(text, room, "#define SGD_PRODUCTS %u\n", products_of(o, layout));
	return 0;
}

static uint32_t sgd_registers(void *self, const struct loom_layout *layout)
{
	const struct workload *w = self;
	return products_of(w->opts, layout) ? workload_product_registers(layout) : 0;
}

static int sgd_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	const struct workload *w = self;
	const struct sgd_opts *o = w->opts;
	struct sgd_head *head = view->global;
	uint64_t all, bytes;
	struct sgd shape = shape_of(self, layout, &all, &bytes);
	(void)err;
	memset(head, 0, all);
	head->state_at = layout->devices > 1 ? all : 0;
	struct sgd *s = state_of(view);
	memset(s, 0, bytes);
	*s = shape;
	for (uint64_t i = 0; i < (uint64_t)o->batches * o->batch; i++) {
		float *x = sgd_floats(s, s->sample_at) + i * s->layer[0].cols;
		uint64_t number = sample_number(o, loom_net_rank(w->host), i / o->batch, i % o->batch);
		((uint32_t *)((char *)s + s->label_at))[i] = sample_of(o, layout->seed, number, x);
		x[o->inputs] = 1; /* for the bias */
	}
	for (uint32_t i = 0; i < s->layers; i++) {
		const struct sgd_layer *l = &s->layer[i];
		weights_of(s, o, layout->seed, i, sgd_floats(s, l->weight_at));
		for (uint32_t b = 0; b < o->batch; b++)
			sgd_floats(s, l->out_at)[(uint64_t)b * l->width + l->rows] = 1;
		loom_allreduce_init(&s->sum[i], layout, view->global);
	}
	for (uint32_t k = 0; k < layout->workers; k++)
		memset(view->worker[k], 0, sizeof(struct sgd_times) + o->steps * sizeof(uint64_t));
	return 0;
}

static int sgd_wire(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		    const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct workload *w = self;
	struct loom_need need = {.size = sizeof(need)};
	struct sgd *s = state_of(view);
	int rc = sgd_need(self, layout, &need, err);
	for (uint32_t i = 0; i < s->layers && !rc; i++)
		rc = loom_allreduce_wire(&s->sum[i], w->host, layout, view, global, need.global, trigger, NULL, NULL,
					 err);
	return rc;
}

/* ---- the sequential computation ---- */

/* Number of samples that are computed together, so that a weight is loaded once for all of them. Neuron k of sample b
 * is at [k * BLOCK + b]. The order of additions in a sample does not depend on the other samples. */
#define BLOCK 16u

/* Computes the forward pass in double. out[i] gets the neurons of layer i, whose weights are weight[i]. near_zero[b]
 * gets the number of hidden neurons of sample b that are near 0. */
static void forward(const struct sgd *s, double *const *weight, const double *in, double *const *out,
		    uint32_t *near_zero)
{
	memset(near_zero, 0, BLOCK * sizeof(*near_zero));
	for (uint32_t i = 0; i < s->layers; in = out[i++]) {
		const struct sgd_layer *l = &s->layer[i];
		for (uint32_t e = 0; e < l->rows; e++) {
			const double *of = weight[i] + (uint64_t)e * l->cols;
			double sum[BLOCK] = {0};
			for (uint32_t k = 0; k < l->cols; k++) {
				const double *x = in + (uint64_t)k * BLOCK;
				double by = of[k];
				for (uint32_t b = 0; b < BLOCK; b++)
					sum[b] += by * x[b];
			}
			for (uint32_t b = 0; b < BLOCK; b++) {
				near_zero[b] += i + 1 < s->layers && fabs(sum[b]) < NEAR_ZERO;
				out[i][(uint64_t)e * BLOCK + b] = i + 1 < s->layers && sum[b] < 0 ? 0 : sum[b];
			}
		}
		for (uint32_t b = 0; b < BLOCK; b++)
			out[i][(uint64_t)l->rows * BLOCK + b] = 1;
	}
}

/* Buffers of the sequential computation. */
struct sequential {
	double *room, *in, *weight[SGD_LAYERS], *gradient[SGD_LAYERS], *out[SGD_LAYERS], *back[SGD_LAYERS];
	float *single;
	uint32_t label[BLOCK], near_zero[BLOCK];
};

static int sequential_create(const struct sgd *s, struct sequential *t)
{
	uint64_t floats = s->layer[0].cols * (uint64_t)BLOCK, most = s->layer[0].cols;
	for (uint32_t i = 0; i < s->layers; i++) {
		uint64_t weights = (uint64_t)s->layer[i].rows * s->layer[i].cols;
		floats += 2 * weights + 2ull * s->layer[i].width * BLOCK;
		most = weights > most ? weights : most;
	}
	*t = (struct sequential){.room = calloc(floats, sizeof(double)), .single = calloc(most, sizeof(float))};
	if (!t->room || !t->single) {
		free(t->room);
		free(t->single);
		return LOOM_ENOMEM;
	}
	double *at = t->in = t->room;
	at += s->layer[0].cols * (uint64_t)BLOCK;
	for (uint32_t i = 0; i < s->layers; i++) {
		uint64_t weights = (uint64_t)s->layer[i].rows * s->layer[i].cols;
		t->weight[i] = at;
		t->gradient[i] = at + weights;
		t->out[i] = at + 2 * weights;
		t->back[i] = t->out[i] + (uint64_t)s->layer[i].width * BLOCK;
		at = t->back[i] + (uint64_t)s->layer[i].width * BLOCK;
	}
	return 0;
}

static void sequential_destroy(struct sequential *t)
{
	free(t->room);
	free(t->single);
}

static void sequential_weights(const struct sgd *s, struct sequential *t, uint32_t i)
{
	for (uint64_t e = 0; e < (uint64_t)s->layer[i].rows * s->layer[i].cols; e++)
		t->weight[i][e] = t->single[e];
}

static void sequential_sample(const struct sgd_opts *o, uint64_t seed, uint64_t number, struct sequential *t,
			      uint32_t b)
{
	t->label[b] = sample_of(o, seed, number, t->single);
	for (uint32_t k = 0; k < o->inputs; k++)
		t->in[(uint64_t)k * BLOCK + b] = t->single[k];
	t->in[(uint64_t)o->inputs * BLOCK + b] = 1;
}

/* Computes the losses of `n` samples, and their derivatives with respect to the neurons of the last layer. */
static void losses(const struct sgd *s, struct sequential *t, uint32_t n, double *loss)
{
	const double *out = t->out[s->layers - 1];
	double *back = t->back[s->layers - 1];
	memset(back, 0, (uint64_t)s->classes * BLOCK * sizeof(*back));
	for (uint32_t b = 0; b < n; b++) {
		double most = out[b], sum = 0;
		for (uint32_t k = 0; k < s->classes; k++)
			most = fmax(most, out[k * BLOCK + b]);
		for (uint32_t k = 0; k < s->classes; k++)
			sum += back[k * BLOCK + b] = exp(out[k * BLOCK + b] - most);
		for (uint32_t k = 0; k < s->classes; k++)
			back[k * BLOCK + b] = back[k * BLOCK + b] / sum - (k == t->label[b]);
		loss[b] = most + log(sum) - out[t->label[b] * BLOCK + b];
	}
}

/* Called after forward(). Adds the gradients of `n` samples to t->gradient, and stores the losses of these samples. */
static void backward(const struct sgd *s, struct sequential *t, uint32_t n, double *loss)
{
	losses(s, t, n, loss);
	for (uint32_t i = s->layers; i-- > 0;) {
		const struct sgd_layer *l = &s->layer[i];
		const double *in = i ? t->out[i - 1] : t->in;
		uint64_t before = (uint64_t)l->cols * BLOCK;
		for (uint64_t k = 0; k < before && i; k++)
			t->back[i - 1][k] = 0;
		for (uint32_t e = 0; e < l->rows; e++) {
			uint64_t row = (uint64_t)e * l->cols;
			double by[BLOCK];
			for (uint32_t b = 0; b < BLOCK; b++)
				by[b] = t->back[i][(uint64_t)e * BLOCK + b];
			for (uint32_t k = 0; k < l->cols; k++) {
				uint64_t at = (uint64_t)k * BLOCK;
				double part[4] = {0}, weight = t->weight[i][row + k];
				for (uint32_t b = 0; b < BLOCK; b += 4)
					for (uint32_t j = 0; j < 4; j++)
						part[j] += by[b + j] * in[at + b + j];
				t->gradient[i][row + k] += (part[0] + part[1]) + (part[2] + part[3]);
				double *back = i ? t->back[i - 1] + at : NULL;
				for (uint32_t b = 0; b < BLOCK && back; b++)
					back[b] += by[b] * weight;
			}
		}
		for (uint64_t k = 0; k < before && i; k++) /* a neuron that is 0 propagates no derivative */
			t->back[i - 1][k] = in[k] > 0 ? t->back[i - 1][k] : 0;
	}
}

/* forward() and backward() take most of the time of a check. With AVX2 they take less than half of it. */
#ifdef __x86_64__
__attribute__((target("avx2,fma"), flatten)) static void
forward_avx2(const struct sgd *s, double *const *weight, const double *in, double *const *out, uint32_t *near_zero)
{
	forward(s, weight, in, out, near_zero);
}

__attribute__((target("avx2,fma"), flatten)) static void backward_avx2(const struct sgd *s, struct sequential *t,
									uint32_t n, double *loss)
{
	backward(s, t, n, loss);
}
#define QUICKLY(pass, ...)                                                                         \
	(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? pass##_avx2(__VA_ARGS__) : pass(__VA_ARGS__))
#else
#define QUICKLY(pass, ...) pass(__VA_ARGS__)
#endif

static int report_progress(const struct loom_host *host, double done, struct loom_error *err)
{
	return LOOM_HAS(host, progress) ? host->progress(host, done, err) : 0;
}

/* Computes step n: the loss of each rank, and the new weights. Adds to *tolerance how far the weights may differ in
 * float32. */
static int sequential_step(const struct sgd *s, const struct workload *w, uint64_t seed, struct sequential *t,
			   uint64_t n, uint64_t steps, double *tolerance, struct loom_error *err)
{
	const struct sgd_opts *o = w->opts;
	uint64_t samples = (uint64_t)whole.ranks * o->batch;
	double part = o->rate / (double)samples, loss[BLOCK]; /* part: weight of one sample's gradient in a step */
	int rc = 0;
	for (uint64_t k = 0; k < samples && !rc; k += BLOCK) {
		uint32_t block = samples - k < BLOCK ? (uint32_t)(samples - k) : BLOCK;
		rc = report_progress(w->host, ((double)n + (double)k / (double)samples) / (double)steps, err);
		for (uint32_t b = 0; b < block; b++) {
			uint32_t rank = (uint32_t)((k + b) / o->batch);
			sequential_sample(o, seed, sample_number(o, rank, n, (k + b) % o->batch), t, b);
		}
		QUICKLY(forward, s, t->weight, t->in, t->out, t->near_zero);
		QUICKLY(backward, s, t, block, loss);
		for (uint32_t b = 0; b < block; b++) {
			/* In float32 the neuron's sum may have the other sign. Then the sample changes the neuron's
			 * weights in only one of the two computations. */
			*tolerance += part * t->near_zero[b];
			shared_loss()[(k + b) / o->batch * steps + n] += loss[b] / o->batch;
		}
	}
	for (uint32_t i = 0; i < s->layers; i++)
		for (uint64_t e = 0; e < (uint64_t)s->layer[i].rows * s->layer[i].cols; e++) {
			t->weight[i][e] -= part * t->gradient[i][e];
			t->gradient[i][e] = 0;
		}
	return rc;
}

/* Called with the lock held. Computes the loss of each rank in the first `checked` steps. */
static int solve(const struct sgd *s, const struct workload *w, uint64_t seed, struct loom_error *err)
{
	const struct sgd_opts *o = w->opts;
	uint32_t ranks = loom_net_ranks(w->host);
	uint64_t steps = o->checked < o->steps ? o->checked : o->steps;
	double tolerance = o->precision == SGD_TF32 ? TOLERANCE_TF32 : TOLERANCE;
	struct sequential t;
	if (reference.result && whole.ranks == ranks && whole.seed == seed && !memcmp(&whole.opts, o, sizeof(*o)))
		return 0;
	free(reference.result);
	reference.result = calloc((ranks + 1) * steps, sizeof(double));
	int rc =
	    !reference.result || sequential_create(s, &t) ? LOOM_FAIL(w->host, err, LOOM_ENOMEM, "out of memory") : 0;
	whole.ranks = ranks;
	whole.seed = seed;
	memcpy(&whole.opts, o, sizeof(*o));
	for (uint32_t i = 0; i < s->layers && !rc; i++) {
		weights_of(s, o, seed, i, t.single);
		sequential_weights(s, &t, i);
	}
	for (uint64_t n = 0; n < steps && !rc; n++) {
		shared_loss()[ranks * steps + n] = tolerance;
		rc = sequential_step(s, w, seed, &t, n, steps, &tolerance, err);
	}
	if (rc != LOOM_ENOMEM)
		sequential_destroy(&t);
	if (rc) {
		free(reference.result);
		reference.result = NULL;
	}
	return rc;
}

static double loss_of(struct sgd *s, uint64_t n)
{
	const struct sgd_odds *odds = (const struct sgd_odds *)((const char *)s + s->odds_at) + n * s->batch;
	double loss = 0;
	for (uint32_t b = 0; b < s->batch; b++)
		loss += (odds[b].behind + log(odds[b].sum)) / s->batch;
	return loss;
}

static int compare_loss(const struct workload *w, const struct loom_layout *layout, struct sgd *s, double *off,
			struct loom_error *err)
{
	const struct sgd_opts *o = w->opts;
	uint64_t steps = o->checked < o->steps ? o->checked : o->steps;
	pthread_mutex_lock(&reference.lock);
	int rc = solve(s, w, layout->seed, err);
	for (uint64_t n = 0; n < steps && !rc; n++) {
		double want = shared_loss()[loom_net_rank(w->host) * steps + n], got = loss_of(s, n),
		       by = fabs(got - want) / (1 + want);
		*off = fmax(*off, by);
		if (!(by <= shared_loss()[loom_net_ranks(w->host) * steps + n]))
			rc = LOOM_FAIL(w->host, err, LOOM_EWRONG,
				       "sgd: in step %llu the loss on rank %u is %.9g instead of %.9g. With rate = %g "
				       "rounding may grow: "
				       "try a smaller one",
				       (unsigned long long)n, loom_net_rank(w->host), got, want, o->rate);
	}
	pthread_mutex_unlock(&reference.lock);
	return rc;
}

/* Checks that the weights after each step have the same bits on all ranks. */
static int compare_weights(const struct workload *w, const struct loom_layout *layout, const struct loom_view *view,
			   struct sgd *s, struct loom_error *err)
{
	uint32_t ranks = loom_net_ranks(w->host), rank = loom_net_rank(w->host);
	uint64_t *all = w->host->alloc(w->host, (ranks + 1) * s->steps * sizeof(uint64_t)), last = 0;
	if (!all)
		return LOOM_FAIL(w->host, err, LOOM_ENOMEM, "out of memory");
	uint64_t *mine = all + ranks * s->steps;
	for (uint64_t n = 0; n < s->steps * layout->workers; n++)
		mine[n % s->steps] +=
		    ((const uint64_t *)((struct sgd_times *)view->worker[n / s->steps] + 1))[n % s->steps];
	int rc = ranks > 1 ? w->host->allgather(w->host, mine, all, s->steps * sizeof(uint64_t), err) : 0;
	for (uint64_t n = 0; n < s->steps && ranks > 1 && !rc; n++)
		for (uint32_t r = 0; r < ranks && !rc; r++)
			if (all[r * s->steps + n] != mine[n])
				rc = LOOM_FAIL(w->host, err, LOOM_EWRONG,
					       "sgd: after step %llu ranks %u and %u differ in their weights",
					       (unsigned long long)n, rank, r);
	for (uint32_t i = 0; i < s->layers; i++)
		for (uint64_t e = 0; e < (uint64_t)s->layer[i].rows * s->layer[i].cols; e += 4)
			last += sgd_hash(i, e, sgd_floats(s, s->layer[i].weight_at) + e);
	if (!rc && last != mine[s->steps - 1])
		rc = LOOM_FAIL(w->host, err, LOOM_EWRONG, "sgd: the weights on rank %u are not those of the last step",
			       rank);
	w->host->free(w->host, all);
	return rc;
}

/* Computes the share of held-out samples that the trained network classifies correctly. */
static int accuracy_of(const struct workload *w, const struct loom_layout *layout, struct sgd *s, double *share,
		       struct loom_error *err)
{
	const struct sgd_opts *o = w->opts;
	uint64_t first = sample_number(o, loom_net_ranks(w->host), 0, 0);
	struct sequential t;
	uint32_t right = 0;
	if (sequential_create(s, &t))
		return LOOM_FAIL(w->host, err, LOOM_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < s->layers; i++) {
		memcpy(t.single, sgd_floats(s, s->layer[i].weight_at),
		       (uint64_t)s->layer[i].rows * s->layer[i].cols * sizeof(float));
		sequential_weights(s, &t, i);
	}
	for (uint32_t k = 0; k < HELD_OUT; k += BLOCK) {
		for (uint32_t b = 0; b < BLOCK; b++)
			sequential_sample(o, layout->seed, first + k + b, &t, b);
		QUICKLY(forward, s, t.weight, t.in, t.out, t.near_zero);
		for (uint32_t b = 0; b < BLOCK; b++) {
			const double *out = t.out[s->layers - 1] + b;
			uint32_t best = 0;
			for (uint32_t j = 1; j < o->classes; j++)
				best = out[(uint64_t)j * BLOCK] > out[(uint64_t)best * BLOCK] ? j : best;
			right += best == t.label[b];
		}
	}
	sequential_destroy(&t);
	*share = (double)right / HELD_OUT;
	if (*share < o->accuracy)
		return LOOM_FAIL(w->host, err, LOOM_EWRONG, "sgd: accuracy is %.1f %% instead of at least %.1f %%",
				 100 * *share, 100 * o->accuracy);
	return 0;
}

static int sgd_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	struct sgd *s = state_of(view);
	struct sgd_times times = {0};
	double off = 0, share = 0;
	int rc = compare_weights(w, layout, view, s, err); /* first, because all ranks must call it */
	if (!rc)
		rc = compare_loss(w, layout, s, &off, err);
	if (!rc)
		rc = accuracy_of(w, layout, s, &share, err);
	if (rc)
		return rc;
	for (uint32_t k = 0; k < layout->workers; k++) {
		const struct sgd_times *one = view->worker[k];
		times = one->exposed_ns >= times.exposed_ns ? *one : times; /* the worker that waited longest */
	}
	double steps = (double)s->steps, exchange = (double)times.exchange_ns;
	w->host->metric(w->host, report, "samples", "", LOOM_BETTER_NONE, steps * s->batch * loom_net_ranks(w->host));
	w->host->metric(w->host, report, "step_ns", "ns", LOOM_BETTER_LESS, (double)times.ns / steps);
	w->host->metric(w->host, report, "exchange_ns", "ns", LOOM_BETTER_LESS, exchange / steps);
	w->host->metric(w->host, report, "exposed_ns", "ns", LOOM_BETTER_LESS, (double)times.exposed_ns / steps);
	w->host->metric(w->host, report, "barrier_ns", "ns", LOOM_BETTER_LESS, (double)times.barrier_ns / steps);
	w->host->metric(w->host, report, "hidden", "", LOOM_BETTER_MORE,
			exchange > 0 ? 1 - (double)times.exposed_ns / exchange : 0);
	w->host->metric(w->host, report, "loss", "", LOOM_BETTER_LESS, loss_of(s, s->steps - 1));
	w->host->metric(w->host, report, "loss_error", "", LOOM_BETTER_LESS, off);
	w->host->metric(w->host, report, "accuracy", "", LOOM_BETTER_MORE, share);
	return 0;
}

WORKLOAD_OPS(sgd, .create = sgd_create, .destroy = sgd_destroy, .tasks = workload_no_tasks, .wire = sgd_wire,
	     .constants = sgd_constants, .registers = sgd_registers, .explain = net_explain,
	     .needs = 1u << LOOM_BARRIER, .work = "samples",
	     .barrier_scopes = net_barrier_scopes);

NET_CODE_IN(workload_sgd, LOOM_ALLREDUCE_FILES LOOM_CODE_FILE("workload_sgd.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_sgd", "0.1.0", "Apache-2.0",
		   "Training of a network on all ranks, gradients summed while others are computed", .opts = sgd_rows,
		   .opts_size = sizeof(struct sgd_opts), .ops = &sgd_ops, .dev = &workload_sgd_code)
