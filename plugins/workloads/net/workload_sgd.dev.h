/* SPDX-License-Identifier: Apache-2.0 */
/* sgd: data-parallel training by stochastic gradient descent. Device code.
 *
 * Each rank has the whole network and samples of its own. In a step each rank goes forward and backward, the
 * gradients of all ranks are summed, and each rank changes its weights by the sum. All workers of a rank share the
 * arithmetic of each layer, with a barrier after the layer. A worker computes the gradient in the slices that it sums
 * afterwards (allreduce.dev.h). So it can send slices as soon as they are ready. It polls sums in flight while it
 * computes the gradients of the previous layers.
 *
 * A layer is a matrix of `rows` neurons with `cols` weights each. `cols` is a multiple of eight. It is applied to
 * all neurons of the layer before it. The input is followed by a 1, whose weight is the bias, and by zeros as padding.
 *
 * Forward pass, backward pass and gradients are matrix products. A lane has a tile of the result in registers. So it
 * uses each loaded element for a whole row or column of the tile. On a GPU, SGD_PARTS lanes share a tile: each lane
 * computes a part of each sum, and the parts are added in a fixed order. No result depends on the number of workers.
 *
 * With SGD_PRODUCTS, the warps of an NVIDIA GPU compute the products by tensor cores. */
#ifndef WORKLOAD_SGD_DEV_H
#define WORKLOAD_SGD_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>

#include "../collective/allreduce.dev.h"
#endif

/* Number of TF32 products of tensor cores that replace a product of two floats: 3 or 1. 0: tensor cores are not used. The
 * host defines SGD_PRODUCTS. */
#ifndef SGD_PRODUCTS
#define SGD_PRODUCTS 0
#endif
#define SGD_LAYERS 8u
#define SGD_POLLS 4u /* upper limit on the parts into which sgd_backward() cuts sgd_back(), with a poll after each */
/* Tile of a lane. Forward pass: SGD_SAMPLES samples by SGD_NEURONS neurons. Backward pass and gradients: SGD_ROWS
 * samples or neurons by SGD_WIDE columns. */
#define SGD_NEURONS 4u
#if defined(LOOM_REAL_GPU) /* a worker of a simulated GPU may have only one lane */
#define SGD_SAMPLES 8u
#define SGD_ROWS 8u
#define SGD_PARTS 8u
#define SGD_UNROLL _Pragma("unroll 4") /* four loads in flight; more of them would need too many registers */
#define SGD_TWICE _Pragma("unroll 2")
#else
#define SGD_SAMPLES 2u
#define SGD_ROWS 8u
#define SGD_PARTS 1u
#define SGD_UNROLL
#define SGD_TWICE
#endif
#define SGD_MOST 8u /* upper limit on the rows of a lane's tile */
#define SGD_SPARE 32u /* rows of padding behind a matrix, which are 0: a tile may reach into them */
/* Bytes of scratchpad memory in which the lanes of a GPU's worker exchange their parts of sums. */
#define SGD_ROOM(lanes) ((uint64_t)SGD_MOST * ((lanes) + 1) * 16)
#ifdef LOOM_DEVICE_COMPILE
#define SGD_WIDE 4u
#else
#define SGD_WIDE 8u
#endif
/* Stands before a loop over the elements of a tile, to unroll it. */
#if defined(LOOM_DEVICE_COMPILE) || defined(__clang__)
#define SGD_EACH _Pragma("unroll")
#else
#define SGD_EACH _Pragma("GCC unroll 8")
#endif

struct sgd_layer {
	uint32_t rows, cols; /* cols: floats of a sample in the input; a multiple of 8 */
	uint32_t width;	     /* floats of a sample in the output; a multiple of 8 */
	uint32_t unused;
	/* Offsets in bytes from struct sgd. `back_at`: derivatives of the loss with respect to the neurons' sums. */
	uint64_t weight_at, out_at, back_at;
};

/* The network gives a sample's class the probability e^-behind / sum. The quotient is not stored, because it may
 * round to 0, and the loss needs its logarithm. */
struct sgd_odds {
	float behind, sum;
};

/* Head of the device's block. With several devices it is in the block for the stack, behind the gradients. */
struct sgd {
	uint32_t layers, batch, batches, classes;
	uint64_t steps;
	float rate, scale;	      /* `scale`: 1 / number of samples of a step on all ranks */
	uint32_t overlap, reserved;
	uint64_t sample_at, label_at; /* float [batches][batch][layer[0].cols]; uint32_t [batches][batch] */
	uint64_t odds_at;	      /* [steps][batch] struct sgd_odds */
	struct sgd_layer layer[SGD_LAYERS];
	struct loom_allreduce sum[SGD_LAYERS]; /* allreduces of the layers' gradients */
};

/* Head of the block for the stack. */
struct sgd_head {
	uint64_t state_at; /* offset of struct sgd in this block; 0: it is in the device's block */
	uint64_t pad[7];
};

/* A worker's own block. [steps] hashes follow. Each is the sum of the hashes of the weights that this worker updated
 * in a step, so it does not depend on their order. */
struct sgd_times {
	uint64_t ns, exchange_ns, exposed_ns, barrier_ns;
	uint64_t pad[4];
};

/* Returns a hash of the four weights from index i on. It needs only two multiplications, because each step hashes all
 * weights. */
LOOM_FN uint64_t sgd_hash(uint32_t layer, uint64_t i, const float *weight)
{
	uint64_t x = ((uint64_t)layer << 58) ^ (i * 0x9e3779b97f4a7c15ull);
	union loom_allreduce_bits w[4];
	SGD_EACH
	for (uint32_t k = 0; k < 4; k++)
		w[k].is = weight[k];
	x = (x ^ w[0].bits ^ (uint64_t)w[1].bits << 32) * 0x9e3779b97f4a7c15ull;
	x ^= x >> 29;
	x = (x ^ w[2].bits ^ (uint64_t)w[3].bits << 32) * 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 32;
}

LOOM_FN struct sgd *sgd_state(struct loom_ctx *c)
{
	char *all = (char *)c->global[LOOM_WORKLOAD];
	uint64_t at = ((const struct sgd_head *)all)->state_at;
	return (struct sgd *)(at ? all + at : (char *)c->on_device[LOOM_WORKLOAD]);
}

LOOM_FN float *sgd_floats(struct sgd *s, uint64_t at)
{
	return (float *)((char *)s + at);
}

/* Returns e to the power x, for x <= 0. Replaces expf(), because not every device has a library. The relative error
 * is below 1e-6. */
LOOM_FN float sgd_exp(float x)
{
	if (x < -80.0f)
		return 0;
	float n = (float)(int32_t)(x * 1.44269504f - 0.5f), r = x - n * 0.693359375f + n * 2.12194440e-4f;
	union loom_allreduce_bits power;
	power.bits = (uint32_t)((int32_t)n + 127) << 23;
	float p = 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r + 1.0f;
	return power.is * (p * r + 1.0f);
}

typedef struct loom_allreduce_wide sgd_four;
LOOM_FN sgd_four sgd_four_add(sgd_four sum, float a, sgd_four b)
{
	sgd_four v = {sum.x + a * b.x, sum.y + a * b.y, sum.z + a * b.z, sum.w + a * b.w};
	return v;
}

/* sgd_wide has SGD_WIDE floats. sgd_dot is the running sum of a dot product of such vectors. For CPUs these are
 * vector types, because compilers do not vectorise plain loops here. */
#ifdef LOOM_DEVICE_COMPILE
#define sgd_add_times sgd_four_add
typedef sgd_four sgd_wide;
typedef float sgd_dot;
LOOM_FN sgd_dot sgd_dot_add(sgd_dot sum, sgd_wide a, sgd_wide b)
{
	return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
LOOM_FN float sgd_dot_end(const sgd_dot *sum)
{
	return *sum;
}
#else /* macros, because the way to pass vectors to functions depends on the CPU */
#define sgd_add_times(sum, a, b) ((sum) + (a) * (b))
#define sgd_dot_add(sum, a, b) ((sum) + (a) * (b))
typedef float sgd_wide __attribute__((vector_size(32), aligned(4), __may_alias__));
typedef sgd_wide sgd_dot;
LOOM_FN float sgd_dot_end(const sgd_dot *sum)
{
	return (((*sum)[0] + (*sum)[4]) + ((*sum)[1] + (*sum)[5])) +
	       (((*sum)[2] + (*sum)[6]) + ((*sum)[3] + (*sum)[7]));
}
#endif

/* The tiles of a lane. Its worker takes `units` tiles at once, from tile `begin` to tile `end` (exclusive). The lane
 * computes part `part` of tile number `unit` of these. */
struct sgd_work {
	uint64_t begin, end;
	uint32_t units, unit, part;
	uint32_t first, step; /* first of the lanes that share this tile; distance between two of them */
	uint32_t unused;
	/* [rows of a tile][lanes + 1], to exchange parts of sums. The additional element puts columns into different
	 * banks. */
	sgd_wide *room;
};

/* Divides the tiles `begin` to `end` among the lanes. On a GPU, if `beside` is set, adjacent lanes share a tile;
 * otherwise adjacent lanes have adjacent tiles. On a CPU each lane takes a range of tiles, and `own` is its memory
 * for rows. */
LOOM_FN struct sgd_work sgd_work(const struct loom_ctx *c, uint64_t begin, uint64_t end, int beside, sgd_wide *own)
{
	if (SGD_PARTS == 1) {
		uint64_t all = end - begin;
		struct sgd_work w = {
		    begin + all * c->lane / c->lanes, begin + all * (c->lane + 1) / c->lanes, 1, 0, 0, 0, 1, 0, own};
		return w;
	}
	uint32_t units = c->lanes / SGD_PARTS, unit = beside ? c->lane / SGD_PARTS : c->lane % units;
	uint32_t part = beside ? c->lane % SGD_PARTS : c->lane / units, first = beside ? unit * SGD_PARTS : unit;
	struct sgd_work w = {
	    begin, end, units, unit, part, first, beside ? 1 : units, 0, (sgd_wide *)c->local[LOOM_WORKLOAD]};
	return w;
}

/* Returns the start of part `part` if n elements are cut into SGD_PARTS parts. */
LOOM_FN uint32_t sgd_part(uint32_t n, uint32_t part)
{
	return (uint32_t)((uint64_t)n * part / SGD_PARTS);
}

LOOM_FN void sgd_give(const struct loom_ctx *c, const struct sgd_work *w, uint32_t row, const sgd_wide *v)
{
	w->room[SGD_PARTS > 1 ? row * (c->lanes + 1) + c->lane : row] = *v;
}

/* Adds all parts of a row of the tile, in the order of the parts. */
LOOM_FN void sgd_sum(const struct loom_ctx *c, const struct sgd_work *w, uint32_t row, sgd_wide *to)
{
	const sgd_wide *from = w->room + (SGD_PARTS > 1 ? row * (c->lanes + 1) + w->first : row);
	sgd_wide sum = from[0];
	SGD_EACH
	for (uint32_t p = 1; p < SGD_PARTS; p++)
		sum = sgd_add_times(sum, 1, from[p * w->step]);
	*to = sum;
}

LOOM_FN void sgd_sync(struct loom_ctx *c)
{
	if (SGD_PARTS > 1)
		loom_barrier_lanes(c);
}

/* Operands of sgd_outer(): SGD_ROWS rows of the left matrix, from `by` on, and SGD_WIDE columns of the right one,
 * from `row`. */
struct sgd_matrix {
	const float *by, *row;
	/* Distances in floats. by_row: between the rows at `by`; by_step: between the elements of such a row; row_step:
	 * between the rows at `row`. */
	uint64_t by_row, by_step, row_step;
};

LOOM_FN void sgd_outer(sgd_wide *sum, const struct sgd_matrix *m, uint32_t n)
{
	SGD_UNROLL
	for (uint32_t t = 0; t < n; t++) {
		sgd_wide v = *(const sgd_wide *)(m->row + t * m->row_step);
		SGD_EACH
		for (uint32_t j = 0; j < SGD_ROWS; j++)
			sum[j] = sgd_add_times(sum[j], m->by[t * m->by_step + j * m->by_row], v);
	}
}

/* Adds this lane's part of a tile of the forward pass to `sum`. The weights of the tile's neurons start at `weight`,
 * and the inputs of its samples start at `in`. */
LOOM_FN void sgd_inner(const struct sgd_layer *l, uint32_t part, sgd_dot (*sum)[SGD_NEURONS], const float *weight,
		       const float *in)
{
	LOOM_NO_UNROLL
	for (uint32_t e = SGD_WIDE * part; e < l->cols; e += SGD_WIDE * SGD_PARTS) {
		sgd_wide v[SGD_NEURONS];
		SGD_EACH
		for (uint32_t k = 0; k < SGD_NEURONS; k++)
			v[k] = *(const sgd_wide *)(weight + k * (uint64_t)l->cols + e);
		SGD_EACH
		for (uint32_t j = 0; j < SGD_SAMPLES; j++) {
			sgd_wide x = *(const sgd_wide *)(in + j * (uint64_t)l->cols + e);
			SGD_EACH
			for (uint32_t k = 0; k < SGD_NEURONS; k++)
				sum[j][k] = sgd_dot_add(sum[j][k], v[k], x);
		}
	}
}

/* Tiles of a warp: sgd_forward_warps() has SGD_TILE_SAMPLES samples by SGD_TILE_NEURONS neurons, sgd_back_warps()
 * SGD_TILE_BACK samples by SGD_TILE_COLUMNS columns, and sgd_gradient_warps() 8 neurons by SGD_TILE_COLUMNS columns. */
enum { SGD_TILE_SAMPLES = 32, SGD_TILE_NEURONS = 16, SGD_TILE_BACK = 16, SGD_TILE_COLUMNS = 32 };

/* Returns the input of layer i in step n. Two samples are `cols` floats apart. */
LOOM_FN const float *sgd_before(struct sgd *s, uint32_t i, uint64_t n)
{
	uint64_t samples = s->sample_at + n % s->batches * s->batch * s->layer[0].cols * sizeof(float);
	return sgd_floats(s, i ? s->layer[i - 1].out_at : samples);
}

/* Computes the neurons of layer i. All layers but the last replace negative values by 0. Adjacent tiles have
 * different samples but the same weights, so that a worker reads few weights. */
LOOM_FN void sgd_forward(struct loom_ctx *c, struct sgd *s, uint32_t i, uint64_t n)
{
	const struct sgd_layer *l = &s->layer[i];
	const float *in = sgd_before(s, i, n), *weight = sgd_floats(s, l->weight_at);
	float *out = sgd_floats(s, l->out_at);
	uint32_t tiles = (s->batch + SGD_SAMPLES - 1) / SGD_SAMPLES, across = (l->rows + SGD_NEURONS - 1) / SGD_NEURONS;
	int cut = i + 1 < s->layers;
	sgd_wide own[SGD_SAMPLES];
	uint64_t all = (uint64_t)tiles * across;
	const struct sgd_work w = sgd_work(c, all * c->worker / c->workers, all * (c->worker + 1) / c->workers, 1, own);
	loom_stream(c, (uint64_t)s->batch * l->rows * l->cols * sizeof(float) / c->workers);
	LOOM_NO_UNROLL
	for (uint64_t at = w.begin; at < w.end; at += w.units) {
		uint32_t row = (uint32_t)((at + w.unit) / tiles) * SGD_NEURONS;
		uint64_t sample = (at + w.unit) % tiles * SGD_SAMPLES;
		int mine = at + w.unit < w.end;
		if (mine) {
			sgd_dot sum[SGD_SAMPLES][SGD_NEURONS] = {0};
			sgd_inner(l, w.part, sum, weight + (uint64_t)row * l->cols,
				  in + sample * l->cols);
			SGD_EACH
			for (uint32_t j = 0; j < SGD_SAMPLES; j++) {
				sgd_wide v = {sgd_dot_end(&sum[j][0]), sgd_dot_end(&sum[j][1]), sgd_dot_end(&sum[j][2]),
					      sgd_dot_end(&sum[j][3])};
				sgd_give(c, &w, j, &v);
			}
		}
		sgd_sync(c);
		for (uint32_t j = w.part; j < SGD_SAMPLES && mine && sample + j < s->batch; j += SGD_PARTS) {
			sgd_wide v;
			sgd_sum(c, &w, j, &v);
			float *to = out + (sample + j) * l->width + row;
			SGD_EACH
			for (uint32_t k = 0; k < SGD_NEURONS; k++)
				if (row + k < l->rows)
					to[k] = cut && ((float *)&v)[k] < 0 ? 0 : ((float *)&v)[k];
		}
		sgd_sync(c);
	}
}

/* Computes the odds of sample b, and the derivative of the loss with respect to the last layer's neurons. The loss is the
 * mean over the samples of all ranks. */
LOOM_FN void sgd_loss_of(struct sgd *s, uint64_t n, uint64_t b)
{
	const struct sgd_layer *l = &s->layer[s->layers - 1];
	const uint32_t *label = (const uint32_t *)((char *)s + s->label_at) + n % s->batches * s->batch;
	const float *out = sgd_floats(s, l->out_at) + b * l->width;
	float *back = sgd_floats(s, l->back_at) + b * l->width, most = out[0], sum = 0;
	for (uint32_t k = 1; k < s->classes; k++)
		most = out[k] > most ? out[k] : most;
	for (uint32_t k = 0; k < s->classes; k++)
		sum += sgd_exp(out[k] - most);
	struct sgd_odds *odds = (struct sgd_odds *)((char *)s + s->odds_at) + n * s->batch + b;
	odds->behind = most - out[label[b]];
	odds->sum = sum;
	for (uint32_t k = 0; k < s->classes; k++)
		back[k] = (sgd_exp(out[k] - most) / sum - (float)(k == label[b])) * s->scale;
}

LOOM_FN void sgd_loss(struct loom_ctx *c, struct sgd *s, uint64_t n)
{
	uint64_t end = (uint64_t)s->batch * (c->worker + 1) / c->workers;
	LOOM_NO_UNROLL
	for (uint64_t b = (uint64_t)s->batch * c->worker / c->workers + c->lane; b < end; b += c->lanes)
		sgd_loss_of(s, n, b);
}

/* Returns 1 if a tile of sgd_forward_warps() has all classes. Then the worker that computes a tile of the last layer also
 * computes the losses of its samples, and the phase of sgd_loss() is omitted. */
LOOM_FN int sgd_has_loss(const struct sgd *s)
{
	return SGD_PRODUCTS && s->classes <= SGD_TILE_NEURONS;
}

/* Polls the sums of layer i and of all later layers. The sum of layer i advances up to step `until` only. */
LOOM_FN void sgd_poll(struct loom_ctx *c, struct sgd *s, struct loom_allreduce_at *at, uint32_t i, uint32_t until)
{
	LOOM_NO_UNROLL
	for (; i < s->layers; i++, until = ~0u)
		loom_allreduce_go(c, &s->sum[i], &at[i], until, 0);
}

/* Returns the least of a, b, c and SGD_WIDE / 4, which is the number of groups of four columns in a tile. */
LOOM_FN uint32_t sgd_fours(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t least = a < b ? a : b;
	least = c < least ? c : least;
	return least < SGD_WIDE / 4 ? (uint32_t)least : SGD_WIDE / 4;
}

/* Computes the gradient of layer i in run `run` of this worker's slices, which may begin anywhere in a row. The rows
 * of a tile are the same columns of adjacent neurons. Tiles advance in groups of four columns. If a row or the run
 * ends within SGD_WIDE columns, the rest of the tile is dropped. */
LOOM_FN void sgd_gradient(struct loom_ctx *c, struct sgd *s, uint32_t i, uint64_t n, uint32_t run)
{
	const struct sgd_layer *l = &s->layer[i];
	const struct loom_allreduce *a = &s->sum[i];
	const float *in = sgd_before(s, i, n), *back = sgd_floats(s, l->back_at);
	uint64_t weights = (uint64_t)l->rows * l->cols, band = (uint64_t)SGD_ROWS * l->cols, begin, end;
	float *gradient = loom_allreduce_input(c, a, n);
	loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
	end = end < weights ? end : weights;
	uint64_t floats = begin < end ? end - begin : 0, rest = floats % band, across = l->cols / 4;
	sgd_wide own[SGD_ROWS];
	const struct sgd_work w = sgd_work(c, 0, floats / band * across + (rest < l->cols ? rest / 4 : across), 0, own);
	uint32_t sample = sgd_part(s->batch, w.part), samples = sgd_part(s->batch, w.part + 1) - sample;
	loom_stream(c, s->batch * floats * sizeof(float));
	LOOM_NO_UNROLL
	for (uint64_t tile = w.begin + w.unit, next; tile - w.unit < w.end; tile = next) {
		uint64_t at = begin + tile / across * band + tile % across * 4, row = at / l->cols;
		uint32_t fours = sgd_fours((l->cols - at % l->cols) / 4, across - tile % across, w.end - tile);
		int mine = tile < w.end;
		next = tile + (SGD_PARTS > 1 ? w.units : fours);
		if (mine) {
			sgd_wide sum[SGD_ROWS] = {{0, 0, 0, 0}};
			const struct sgd_matrix m = {back + sample * l->width + row, in + sample * l->cols + at % l->cols, 1,
						     l->width, l->cols};
			sgd_outer(sum, &m, samples);
			SGD_EACH
			for (uint32_t j = 0; j < SGD_ROWS; j++)
				sgd_give(c, &w, j, &sum[j]);
		}
		sgd_sync(c);
		for (uint32_t j = w.part; j < SGD_ROWS && mine; j += SGD_PARTS) {
			sgd_wide v;
			sgd_sum(c, &w, j, &v);
			SGD_EACH
			for (uint32_t k = 0; k < SGD_WIDE / 4; k++)
				if (k < fours && at + j * l->cols + 4 * k < end)
					*(sgd_four *)(gradient + at + j * l->cols + 4 * k) = ((const sgd_four *)&v)[k];
		}
		sgd_sync(c);
	}
}

/* The first function returns the number of tiles of sgd_back(). The second returns the number of parts into which
 * sgd_backward() cuts it, few enough that every lane has work in each part. */
LOOM_FN uint64_t sgd_back_tiles(const struct sgd *s, const struct sgd_layer *l)
{
	if (SGD_PRODUCTS)
		return (uint64_t)((s->batch + SGD_TILE_BACK - 1) / SGD_TILE_BACK) *
		       ((l->cols + SGD_TILE_COLUMNS - 1) / SGD_TILE_COLUMNS);
	return (uint64_t)(s->batch + SGD_ROWS - 1) / SGD_ROWS * (l->cols / SGD_WIDE);
}
LOOM_FN uint32_t sgd_polls(const struct loom_ctx *c, const struct sgd *s, const struct sgd_layer *l)
{
	uint64_t units = SGD_PRODUCTS ? c->workers : (uint64_t)c->workers * c->lanes / SGD_PARTS;
	uint64_t each = sgd_back_tiles(s, l) / (units ? units : 1);
	return each > SGD_POLLS ? SGD_POLLS : each ? (uint32_t)each : 1;
}

/* Computes the derivative of the loss with respect to the input of layer i, or 0 where the input is not positive.
 * Adjacent lanes of a GPU load adjacent columns. A thread of a CPU takes all samples while it has some columns in its
 * cache. */
LOOM_FN void sgd_back(struct loom_ctx *c, struct sgd *s, uint32_t i, uint32_t part, uint32_t parts)
{
	const struct sgd_layer *l = &s->layer[i];
	const float *in = sgd_before(s, i, 0), *back = sgd_floats(s, l->back_at), *weight = sgd_floats(s, l->weight_at);
	float *to = sgd_floats(s, s->layer[i - 1].back_at);
	uint64_t tiles = sgd_back_tiles(s, l), across = l->cols / SGD_WIDE;
	sgd_wide own[SGD_ROWS];
	uint64_t of = (uint64_t)c->workers * parts, which = (uint64_t)c->worker * parts + part;
	const struct sgd_work w = sgd_work(c, tiles * which / of, tiles * (which + 1) / of, 0, own);
	uint32_t begin = sgd_part(l->rows, w.part), end = sgd_part(l->rows, w.part + 1);
	loom_stream(c, (uint64_t)s->batch * l->rows * l->cols * sizeof(float) / c->workers / parts);
	LOOM_NO_UNROLL
	for (uint64_t at = w.begin; at < w.end; at += w.units) {
		uint64_t e = at + w.unit, down = SGD_PARTS > 1 ? e / across : e % (tiles / across);
		uint64_t k = (SGD_PARTS > 1 ? e % across : e / (tiles / across)) * SGD_WIDE, sample = down * SGD_ROWS;
		int mine = e < w.end;
		if (mine) {
			const struct sgd_matrix m = {back + sample * l->width + begin,
						     weight + (uint64_t)begin * l->cols + k, l->width, 1, l->cols};
			sgd_wide sum[SGD_ROWS] = {{0, 0, 0, 0}};
			sgd_outer(sum, &m, end - begin);
			SGD_EACH
			for (uint32_t j = 0; j < SGD_ROWS; j++)
				sgd_give(c, &w, j, &sum[j]);
		}
		sgd_sync(c);
		for (uint32_t j = w.part; j < SGD_ROWS && mine && sample + j < s->batch; j += SGD_PARTS) {
			const float *out = in + (sample + j) * l->cols + k;
			sgd_wide v;
			sgd_sum(c, &w, j, &v);
			SGD_EACH
			for (uint32_t d = 0; d < SGD_WIDE; d++)
				((float *)&v)[d] = out[d] > 0 ? ((float *)&v)[d] : 0;
			*(sgd_wide *)(to + (sample + j) * l->cols + k) = v;
		}
		sgd_sync(c);
	}
}

/* ---- products by warps -------------------------------------------------------------------------- */

#if SGD_PRODUCTS
/* In the functions below, the 32 lanes of a warp multiply matrices by sgd_multiply(). Lane l has the row (or column)
 * l / 4 of a factor, and there the elements l % 4 and l % 4 + 4 of the 8 elements that are summed. Sums have any order,
 * so these may be any two elements if they are the same in both factors. Likewise, rows and columns of a tile may have
 * any order. The functions choose the orders in which a lane loads four adjacent floats at once. */
#define SGD_WARP 32u
#define SGD_SUMS 16u /* sums of a lane in a tile of sgd_forward_warps() and sgd_back_warps(): 512 of a warp */
/* Distance in floats of two sums of a lane in scratchpad memory. One more than the lanes, for different banks. */
#define SGD_PITCH (SGD_WARP + 1)

/* Adds a product to `sum`, a matrix of 16 x 8: row l / 4 in sum[0] and sum[1], row l / 4 + 8 in sum[2] and sum[3],
 * columns 2 (l % 4) and 2 (l % 4) + 1. The first factor is a matrix of 16 x 8: a0 has the row l / 4, a1 the row l / 4 +
 * 8, both in column l % 4; a2 and a3 are 4 columns further. The second factor is a matrix of 8 x 8: b0 has the row
 * l % 4, b1 the row l % 4 + 4, both in column l / 4. The elements are TF32: floats whose lower 13 bits are 0. */
#ifndef SGD_RIG /* a test has this function for CPUs */
LOOM_FN void sgd_multiply(float *sum, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
	    "{%0, %1, %2, %3};"
	    : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
	    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#endif

/* A float as a sum of TF32 numbers. `low` is what `high` lacks; it is 0 if one product replaces a product of floats. */
struct sgd_terms {
	uint32_t high, low;
};

/* With three products, high + low has a relative error below 2^-22. */
LOOM_FN struct sgd_terms sgd_split(float x)
{
	const uint32_t kept = 0xffffe000u;
	union loom_allreduce_bits v, high;
	struct sgd_terms t;
	v.is = x;
	t.high = high.bits = (v.bits + 0x1000u) & kept; /* to nearest */
	v.is = x - high.is;
	t.low = SGD_PRODUCTS > 1 ? v.bits & kept : 0;
	return t;
}

/* Sums of a lane in tiles of 16 x 8. Tensor cores round towards 0 when they add, so the error of a long sum in them would
 * grow with its length. They compute only the sums of 8 large products; ordinary additions, which round to nearest, add
 * these to `large`. `small` stays in the tensor cores: its terms are 2^-11 as large. Without terms `low` it is unused, and
 * so are ordinary additions, because the factors have larger errors. */
struct sgd_sums {
	float large[SGD_SUMS / 4][4], small[SGD_SUMS / 4][4];
};

/* Adds the products of `down` matrices of 16 x 8 with `across` matrices of 8 x 8 to sums[down * across]. low * low is below
 * the error of the terms. */
LOOM_FN void sgd_multiply_terms(struct sgd_sums *sums, struct sgd_terms (*a)[4], uint32_t down, struct sgd_terms (*b)[2],
				uint32_t across)
{
	SGD_EACH
	for (uint32_t k = 0; k < down * across; k++) {
		const struct sgd_terms *x = a[k / across], *y = b[k % across];
		float *large = sums->large[k], *small = sums->small[k], eight[4] = {0, 0, 0, 0};
		sgd_multiply(SGD_PRODUCTS > 1 ? eight : large, x[0].high, x[1].high, x[2].high, x[3].high, y[0].high,
			     y[1].high);
		if (SGD_PRODUCTS == 1)
			continue;
		sgd_multiply(small, x[0].low, x[1].low, x[2].low, x[3].low, y[0].high, y[1].high);
		sgd_multiply(small, x[0].high, x[1].high, x[2].high, x[3].high, y[0].low, y[1].low);
		SGD_EACH
		for (uint32_t i = 0; i < 4; i++)
			large[i] += eight[i];
	}
}

/* Returns a sum of tile k. */
LOOM_FN float sgd_sum_of(const struct sgd_sums *sums, uint32_t k, uint32_t i)
{
	return SGD_PRODUCTS > 1 ? sums->large[k][i] + sums->small[k][i] : sums->large[k][i];
}

/* The place of a lane. */
struct sgd_lane {
	uint32_t warp, warps;
	uint32_t row, column; /* number in its warp / 4; number in its warp % 4 */
};

LOOM_FN struct sgd_lane sgd_lane(const struct loom_ctx *c)
{
	struct sgd_lane p = {c->lane / SGD_WARP, c->lanes / SGD_WARP, c->lane % SGD_WARP / 4, c->lane % 4};
	return p;
}

LOOM_FN float sgd_float(const sgd_four *v, uint32_t i)
{
	return i == 0 ? v->x : i == 1 ? v->y : i == 2 ? v->z : v->w;
}

/* The warps of a worker have computed parts of the same tile. Puts the sums of this lane into scratchpad memory. Then all
 * lanes may call sgd_tile_sum(). */
LOOM_FN void sgd_tile_give(struct loom_ctx *c, const struct sgd_sums *sums)
{
	float *room = (float *)c->local[LOOM_WORKLOAD] + c->lane / SGD_WARP * SGD_SUMS * SGD_PITCH + c->lane % SGD_WARP;
	SGD_EACH
	for (uint32_t q = 0; q < SGD_SUMS; q++)
		room[q * SGD_PITCH] = sgd_sum_of(sums, q / 4, q % 4);
	loom_barrier_lanes(c);
}

/* Adds the parts of all warps for sum `q` of lane `lane` of a warp, in the order of the warps. */
LOOM_FN float sgd_tile_sum(const struct loom_ctx *c, uint32_t q, uint32_t lane)
{
	const float *room = (const float *)c->local[LOOM_WORKLOAD] + q * SGD_PITCH + lane;
	float sum = room[0];
	SGD_UNROLL
	for (uint32_t w = 1; w < c->lanes / SGD_WARP; w++)
		sum += room[w * SGD_SUMS * SGD_PITCH];
	return sum;
}

/* What a lane has loaded for 16 of the elements that are summed: [m] rows of the first factor; [n] of the second. */
struct sgd_hold {
	sgd_four a[4], b[4];
};

/* Computes the neurons of layer i like sgd_forward(). A tile has 32 samples and 16 neurons. Each warp sums over some of
 * the inputs, 16 at a time. */
LOOM_FN void sgd_forward_load(const float *in, uint64_t before, const float *weight, uint32_t cols, uint32_t k,
			      struct sgd_hold *h)
{
	sgd_four none = {0, 0, 0, 0};
	SGD_EACH
	for (uint32_t m = 0; m < 4; m++)
		h->a[m] = *(const sgd_four *)(in + 8 * m * before + k);
	/* Behind a row's end the samples have other numbers, so the weights must be 0. */
	SGD_EACH
	for (uint32_t j = 0; j < 2; j++)
		h->b[j] = k < cols ? *(const sgd_four *)(weight + 8 * j * (uint64_t)cols + k) : none;
}

LOOM_FN void sgd_forward_warps(struct loom_ctx *c, struct sgd *s, uint32_t i, uint64_t n)
{
	const struct sgd_layer *l = &s->layer[i];
	const struct sgd_lane p = sgd_lane(c);
	const uint32_t cols = l->cols, rows = l->rows, width = l->width, batch = s->batch;
	const uint64_t before = l->cols;
	const float *in = sgd_before(s, i, n), *weight = sgd_floats(s, l->weight_at);
	float *out = sgd_floats(s, l->out_at);
	uint32_t down = (batch + SGD_TILE_SAMPLES - 1) / SGD_TILE_SAMPLES;
	uint64_t all = (uint64_t)down * ((rows + SGD_TILE_NEURONS - 1) / SGD_TILE_NEURONS);
	uint32_t end = (uint32_t)(all * (c->worker + 1) / c->workers);
	int cut = i + 1 < s->layers;
	LOOM_NO_UNROLL
	for (uint32_t tile = (uint32_t)(all * c->worker / c->workers); tile < end; tile++) {
		uint32_t sample = tile % down * SGD_TILE_SAMPLES, row = tile / down * SGD_TILE_NEURONS,
			 k = 16 * p.warp + 4 * p.column;
		const float *from = in + (sample + p.row) * before, *by = weight + (uint64_t)(row + p.row) * cols;
		struct sgd_sums sum = {{{0}}, {{0}}};
		struct sgd_hold h, next;
		if (k < cols + 4 * p.column)
			sgd_forward_load(from, before, by, cols, k, &next);
		SGD_TWICE
		for (; k < cols + 4 * p.column; k += 16 * p.warps) {
			h = next;
			if (k + 16 * p.warps < cols + 4 * p.column)
				sgd_forward_load(from, before, by, cols, k + 16 * p.warps, &next);
			SGD_EACH
			for (uint32_t e = 0; e < 4; e += 2) {
				struct sgd_terms a[2][4], b[2][2];
				/* Bits of m: 0: 8 samples further; 1: the next element; 2: 16 samples further. */
				SGD_EACH
				for (uint32_t m = 0; m < 8; m++)
					a[m / 4][m % 4] = sgd_split(sgd_float(&h.a[m / 4 * 2 + m % 2], e + m / 2 % 2));
				SGD_EACH
				for (uint32_t j = 0; j < 4; j++)
					b[j / 2][j % 2] = sgd_split(sgd_float(&h.b[j / 2], e + j % 2));
				sgd_multiply_terms(&sum, a, 2, b, 2);
			}
		}
		sgd_tile_give(c, &sum);
		LOOM_NO_UNROLL
		for (uint32_t o = c->lane; o < SGD_TILE_SAMPLES * SGD_TILE_NEURONS; o += c->lanes) {
			uint32_t b = o / SGD_TILE_NEURONS, e = o % SGD_TILE_NEURONS;
			uint32_t q = (b / 16 * 2 + e / 8) * 4 + b % 16 / 8 * 2 + e % 2;
			float v = sgd_tile_sum(c, q, b % 8 * 4 + e % 8 / 2);
			if (sample + b < batch && row + e < rows)
				out[(uint64_t)(sample + b) * width + row + e] = cut && v < 0 ? 0 : v;
		}
		loom_barrier_lanes(c); /* before the next tile's sums, and the losses */
		if (!cut && sgd_has_loss(s))
			for (uint32_t b = sample + c->lane; b < sample + SGD_TILE_SAMPLES && b < batch; b += c->lanes)
				sgd_loss_of(s, n, b);
	}
}

/* Computes the gradient of layer i like sgd_gradient(). A tile has 32 columns of 8 neurons, and belongs to one warp,
 * which sums over all samples, 8 at a time. The columns are the rows of the first factor. */
LOOM_FN void sgd_gradient_warps(struct loom_ctx *c, struct sgd *s, uint32_t i, uint64_t n, uint32_t run)
{
	const struct sgd_layer *l = &s->layer[i];
	const struct loom_allreduce *sums = &s->sum[i];
	const struct sgd_lane p = sgd_lane(c);
	const uint32_t cols = l->cols, batch = s->batch;
	const uint64_t before = l->cols, width = l->width, weights = (uint64_t)l->rows * cols;
	const float *in = sgd_before(s, i, n) + p.column * before + 4 * p.row;
	const float *back = sgd_floats(s, l->back_at) + p.column * width + p.row;
	float *gradient = loom_allreduce_input(c, sums, n);
	uint64_t begin, end;
	loom_allreduce_run(sums, c->workers, c->worker, run, &begin, &end);
	end = end < weights ? end : weights;
	if (begin >= end)
		return;
	uint32_t first = (uint32_t)(begin / cols), last = (uint32_t)((end - 1) / cols);
	uint32_t across = (cols + SGD_TILE_COLUMNS - 1) / SGD_TILE_COLUMNS, tiles = (last - first + 8) / 8 * across;
	LOOM_NO_UNROLL
	for (uint32_t tile = p.warp; tile < tiles; tile += p.warps) {
		uint32_t row = first + tile / across * 8, column = tile % across * SGD_TILE_COLUMNS;
		uint32_t to = last < row + 7 ? last : row + 7; /* the tile's last row */
		uint64_t at = (uint64_t)row * cols + column, at_end = (uint64_t)to * cols + column;
		/* The run may begin and end within a row. All rows between its first and its last are whole. */
		if (to < row + 2 && (at >= end || at + SGD_TILE_COLUMNS <= begin) &&
		    (at_end >= end || at_end + SGD_TILE_COLUMNS <= begin))
			continue;
		struct sgd_sums sum = {{{0}}, {{0}}};
		SGD_UNROLL
		for (uint32_t b = 0; b < batch; b += 8) { /* the samples behind the last one have derivatives of 0 */
			const sgd_four x[2] = {*(const sgd_four *)(in + b * before + column),
					       *(const sgd_four *)(in + (b + 4) * before + column)};
			struct sgd_terms a[2][4], by[1][2];
			SGD_EACH
			for (uint32_t m = 0; m < 8; m++)
				a[m / 4][m % 4] = sgd_split(sgd_float(&x[m / 2 % 2], m / 4 * 2 + m % 2));
			SGD_EACH
			for (uint32_t j = 0; j < 2; j++)
				by[0][j] = sgd_split(back[(b + 4 * j) * width + row]);
			sgd_multiply_terms(&sum, a, 2, by, 1);
		}
		at += 2 * p.column * (uint64_t)cols + 4 * p.row;
		SGD_EACH
		for (uint32_t j = 0; j < 2; j++, at += cols) {
			const sgd_four v = {sgd_sum_of(&sum, 0, j), sgd_sum_of(&sum, 0, j + 2), sgd_sum_of(&sum, 1, j),
					    sgd_sum_of(&sum, 1, j + 2)};
			if (column + 4 * p.row < cols && at >= begin && at < end)
				*(sgd_four *)(gradient + at) = v;
		}
	}
}

/* Computes the derivatives with respect to the input of layer i like sgd_back(). A tile has 16 samples and 32 columns.
 * Each warp sums over some of the neurons, 16 at a time. */
LOOM_FN void sgd_back_load(const float *back, uint64_t width, const float *weight, uint32_t cols, uint32_t row,
			   struct sgd_hold *h)
{
	SGD_EACH
	for (uint32_t m = 0; m < 2; m++)
		h->a[m] = *(const sgd_four *)(back + 8 * m * width + row);
	SGD_EACH
	for (uint32_t j = 0; j < 4; j++) /* behind the last neuron, weights are 0 */
		h->b[j] = *(const sgd_four *)(weight + (uint64_t)(row + j) * cols);
}

LOOM_FN void sgd_back_warps(struct loom_ctx *c, struct sgd *s, uint32_t i, uint32_t part, uint32_t parts)
{
	const struct sgd_layer *l = &s->layer[i];
	const struct sgd_lane p = sgd_lane(c);
	const uint32_t cols = l->cols, rows = l->rows, batch = s->batch;
	const float *in = sgd_before(s, i, 0), *back = sgd_floats(s, l->back_at), *weight = sgd_floats(s, l->weight_at);
	float *to = sgd_floats(s, s->layer[i - 1].back_at);
	uint32_t across = (cols + SGD_TILE_COLUMNS - 1) / SGD_TILE_COLUMNS;
	uint64_t tiles = sgd_back_tiles(s, l), of = (uint64_t)c->workers * parts,
		 which = (uint64_t)c->worker * parts + part;
	uint32_t end = (uint32_t)(tiles * (which + 1) / of);
	LOOM_NO_UNROLL
	for (uint32_t tile = (uint32_t)(tiles * which / of); tile < end; tile++) {
		uint32_t sample = tile / across * SGD_TILE_BACK, column = tile % across * SGD_TILE_COLUMNS,
			 row = 16 * p.warp + 4 * p.column;
		const float *from = back + (uint64_t)(sample + p.row) * l->width, *by = weight + column + 4 * p.row;
		struct sgd_sums sum = {{{0}}, {{0}}};
		struct sgd_hold h, next;
		if (row < rows + 4 * p.column)
			sgd_back_load(from, l->width, by, cols, row, &next);
		SGD_TWICE
		for (; row < rows + 4 * p.column; row += 16 * p.warps) {
			h = next;
			if (row + 16 * p.warps < rows + 4 * p.column)
				sgd_back_load(from, l->width, by, cols, row + 16 * p.warps, &next);
			SGD_EACH
			for (uint32_t e = 0; e < 4; e += 2) {
				struct sgd_terms a[1][4], b[4][2];
				SGD_EACH
				for (uint32_t m = 0; m < 4; m++)
					a[0][m] = sgd_split(sgd_float(&h.a[m % 2], e + m / 2));
				SGD_EACH
				for (uint32_t j = 0; j < 8; j++)
					b[j / 2][j % 2] = sgd_split(sgd_float(&h.b[e + j % 2], j / 2));
				sgd_multiply_terms(&sum, a, 1, b, 4);
			}
		}
		sgd_tile_give(c, &sum);
		LOOM_NO_UNROLL
		for (uint32_t o = c->lane; o < SGD_TILE_BACK * SGD_TILE_COLUMNS; o += c->lanes) {
			uint32_t down = o / SGD_TILE_COLUMNS, at = o % SGD_TILE_COLUMNS;
			uint64_t e = (uint64_t)(sample + down) * l->cols + column + at;
			float v = sgd_tile_sum(c, at % 4 * 4 + down / 8 * 2 + at / 4 % 2, down % 8 * 4 + at / 8);
			if (sample + down < batch && column + at < cols)
				to[e] = in[e] > 0 ? v : 0;
		}
		loom_barrier_lanes(c); /* before the next tile's sums */
	}
}
#endif

/* ---- a step ------------------------------------------------------------------------------------ */

/* Computes a product of layer i: the forward pass, the gradient in run `part`, or part `part` of `parts` of the
 * backward pass. */
enum { SGD_FORWARD, SGD_GRADIENT, SGD_BACK };
LOOM_FN void sgd_product(struct loom_ctx *c, struct sgd *s, int which, uint32_t i, uint64_t n, uint32_t part,
			 uint32_t parts)
{
#if SGD_PRODUCTS
	if (which == SGD_FORWARD)
		sgd_forward_warps(c, s, i, n);
	else if (which == SGD_GRADIENT)
		sgd_gradient_warps(c, s, i, n, part);
	else
		sgd_back_warps(c, s, i, part, parts);
#else
	if (which == SGD_FORWARD)
		sgd_forward(c, s, i, n);
	else if (which == SGD_GRADIENT)
		sgd_gradient(c, s, i, n, part);
	else
		sgd_back(c, s, i, part, parts);
#endif
}

/* Computes a product with AVX2 and FMA if the CPU has them. Only products may use these, because fused operations
 * round once. Each rank updates its own copy of the weights, and these must have the same bits on all ranks. */
#if !defined(LOOM_DEVICE_COMPILE) && defined(__x86_64__)
__attribute__((target("avx2,fma"), flatten)) static void
sgd_product_avx2(struct loom_ctx *c, struct sgd *s, int which, uint32_t i, uint64_t n, uint32_t part, uint32_t parts)
{
	sgd_product(c, s, which, i, n, part, parts);
}
#define SGD_PRODUCT(...)                                                       \
	(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ?     \
		 sgd_product_avx2(__VA_ARGS__) :                               \
		 sgd_product(__VA_ARGS__))
#else
#define SGD_PRODUCT sgd_product
#endif

/* Updates this worker's slices of the weights of layer i by the summed gradients. Returns the hash of the weights
 * that this lane updated. */
LOOM_FN uint64_t sgd_update(struct loom_ctx *c, struct sgd *s, uint32_t i, uint64_t n)
{
	enum { BATCH = LOOM_ALLREDUCE_BATCH };
	const struct sgd_layer *l = &s->layer[i];
	const struct loom_allreduce *a = &s->sum[i];
	uint64_t weights = (uint64_t)l->rows * l->cols, hash = 0, step = 4 * c->lanes;
	LOOM_NO_UNROLL
	for (uint32_t run = 0; run < loom_allreduce_runs(a); run++) {
		uint64_t begin, end;
		loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
		end = end < weights ? end : weights;
		LOOM_NO_UNROLL
		for (uint64_t at = begin + 4 * c->lane; at < end; at += BATCH * step) {
			sgd_four *weight = (sgd_four *)(sgd_floats(s, l->weight_at) + at), v[BATCH] = {{0, 0, 0, 0}};
			const sgd_four *sum = (const sgd_four *)(loom_allreduce_sums(c, a, n) + at);
			SGD_EACH
			for (uint32_t b = 0; b < BATCH; b++)
				if (at + b * step < end)
					v[b] = sgd_four_add(weight[b * c->lanes], -s->rate, sum[b * c->lanes]);
			SGD_EACH
			for (uint32_t b = 0; b < BATCH; b++)
				if (at + b * step < end) {
					weight[b * c->lanes] = v[b];
					hash += sgd_hash(i, at + b * step, (const float *)&v[b]);
				}
		}
	}
	loom_stream(c, 3 * weights * sizeof(float) / c->workers);
	return hash;
}

/* Computes the gradients of layer i, and the derivatives that the previous layer needs. Step p of a ring sends the
 * chunk p places before the rank's own. The gradients are computed in the same order, so that each chunk is in flight
 * while the next one is computed. Without a ring the workers themselves sum, and each waits for the slowest. So all
 * workers sum a layer in the phase after the one in which they sent its gradients. */
LOOM_FN void sgd_backward(struct loom_ctx *c, struct sgd *s, struct loom_allreduce_at *at, uint32_t i, uint64_t n)
{
	const struct loom_allreduce *a = &s->sum[i];
	uint32_t runs = loom_allreduce_runs(a), posts = (uint32_t)loom_allreduce_posts(a);
	uint32_t polls = posts ? sgd_polls(c, s, &s->layer[i]) : 1, parts = runs + (i ? polls : 0);
	LOOM_NO_UNROLL
	for (uint32_t part = 0; part < parts; part++) {
		if (part < runs)
			SGD_PRODUCT(c, s, SGD_GRADIENT, i, n, posts ? loom_allreduce_order(a, part) : part, runs);
		else
			SGD_PRODUCT(c, s, SGD_BACK, i, n, part - runs, polls);
		if (s->overlap && posts)
			sgd_poll(c, s, at, i, part + 1 >= runs ? ~0u : (part + 1) / loom_allreduce_units(a));
		else if (s->overlap && part + 1 == runs)
			loom_allreduce_go(c, a, &at[i], 1, 0);
	}
	if (s->overlap && !posts && i + 1 < s->layers)
		loom_allreduce_go(c, &s->sum[i + 1], &at[i + 1], 2, 1);
}

/* Completes the sums, and updates the weights. The sum of the first layer is the last one in flight, so the other
 * layers are updated meanwhile. Adds to *exposed the ns spent waiting for sums. Returns the time at which the last
 * sum had arrived, or 0 if the run is over. */
LOOM_FN uint64_t sgd_finish(struct loom_ctx *c, struct sgd *s, struct loom_allreduce_at *at, uint64_t n, uint64_t *hash,
			    uint64_t *exposed)
{
	uint32_t updated = 0;
	LOOM_NO_UNROLL
	for (uint32_t i = s->layers - 1; s->overlap && i > 0; i--) {
		const struct loom_allreduce *a = &s->sum[i];
		uint64_t begin = loom_clock_ns(c);
		/* To complete a posted sum may need the end of a kernel. So this loop updates layers whose posted
		 * sums are complete, and leaves the others to loom_allreduce_finish() below. */
		if (loom_allreduce_posts(a) ? at[i].step < loom_allreduce_last(a)
					    : !loom_allreduce_go(c, a, &at[i], ~0u, 1))
			continue;
		loom_barrier_lanes(c); /* a lane may read sums that another lane has stored */
		*exposed += loom_clock_ns(c) - begin;
		*hash += sgd_update(c, s, i, n);
		updated |= 1u << i;
	}
	uint64_t begin = loom_clock_ns(c);
	if (!loom_allreduce_finish(c, s->sum, at, s->layers))
		return 0;
	uint64_t summed = loom_clock_ns(c);
	*exposed += summed - begin;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < s->layers; i++)
		*hash += updated >> i & 1 ? 0 : sgd_update(c, s, i, n);
	return summed;
}

LOOM_FN void workload_sgd_kernel(struct loom_ctx *c)
{
	struct sgd *s = sgd_state(c);
	struct sgd_times *times = (struct sgd_times *)c->own[LOOM_WORKLOAD];
	uint64_t *hashes = (uint64_t *)(times + 1);
	struct loom_allreduce_at at[SGD_LAYERS];
	uint64_t begin = loom_clock_ns(c), exchange = 0, exposed = 0, in_barrier = 0;
	uint32_t layers = s->layers, last = 2 * layers;
	/* Phases of a step: each layer forward, the loss if no forward pass has computed it, each layer backward. A barrier
	 * follows each phase. */
	for (uint64_t n = 0, phase = 0, first = 0; n < s->steps;) {
		if (phase < layers) {
			SGD_PRODUCT(c, s, SGD_FORWARD, (uint32_t)phase, n, 0, 1);
			at[phase].round = n;
			at[phase].step = at[phase].piece = 0;
		} else if (phase == layers) {
			sgd_loss(c, s, n);
		} else {
			sgd_backward(c, s, at, (uint32_t)(last - phase), n);
			first = phase == layers + 1 ? loom_clock_ns(c) : first;
		}
		uint64_t done = loom_clock_ns(c), hash = 0;
		if (phase == last) {
			uint64_t summed = sgd_finish(c, s, at, n, &hash, &exposed);
			if (!summed)
				return;
			exchange += summed - (s->overlap ? first : done);
			loom_fetch_add_relaxed_dev(&hashes[n], hash);
			done = loom_clock_ns(c);
		}
		if (LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK))
			return;
		in_barrier += loom_clock_ns(c) - done;
		if (s->overlap && phase > layers && phase < last && !loom_net_deliver(c))
			return;
		n += phase == last;
		phase = phase == last ? 0 : phase + (phase + 1 == layers && sgd_has_loss(s) ? 2 : 1);
	}
	if (c->lane == 0) {
		times->ns = loom_clock_ns(c) - begin;
		times->exchange_ns = exchange;
		times->exposed_ns = exposed;
		times->barrier_ns = in_barrier;
	}
}

#endif
