/* SPDX-License-Identifier: Apache-2.0 */
/* sgd: data-parallel training by stochastic gradient descent. Device code.
 *
 * Each rank has the whole network and samples of its own. In a step each rank goes forward and backward, the
 * gradients of all ranks are summed, and each rank changes its weights by the sum. All workers of a rank share the
 * arithmetic of each layer, with a barrier after the layer. A worker computes the gradient in the slices that it sums
 * afterwards (allreduce.dev.h). So it can send slices as soon as they are ready. It polls sums in flight while it
 * computes the gradients of the previous layers.
 *
 * A layer is a matrix of `rows` neurons with `cols` weights each. `cols` is a multiple of eight. A fully connected
 * layer is applied once, to all neurons of the layer before it. A convolution is applied at several places of an
 * image, to squares of 3 by 3. A sample stores these squares one after the other. The input is followed by a 1, whose
 * weight is the bias, and by zeros as padding.
 *
 * Forward pass, backward pass and gradients are matrix products. A lane has a tile of the result in registers. So it
 * uses each loaded element for a whole row or column of the tile. On a GPU, SGD_PARTS lanes share a tile: each lane
 * computes a part of each sum, and the parts are added in a fixed order. No result depends on the number of workers. */
#ifndef WORKLOAD_SGD_DEV_H
#define WORKLOAD_SGD_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>

#include "../../shared/collective/allreduce.dev.h"
#endif

#define SGD_LAYERS 8u
#define SGD_POLLS 4u /* upper limit on the parts into which sgd_backward() cuts sgd_back(), with a poll after each */
/* Tile of a lane. Forward pass: SGD_SAMPLES samples by SGD_NEURONS neurons. Backward pass and gradients: SGD_ROWS
 * samples or neurons by SGD_WIDE columns. */
#define SGD_NEURONS 4u
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SIM) /* a worker of a simulated GPU may have only one lane */
#define SGD_SAMPLES 8u
#define SGD_ROWS 8u
#define SGD_PARTS 8u
#define SGD_UNROLL _Pragma("unroll 4") /* four loads in flight; more of them would need too many registers */
#else
#define SGD_SAMPLES 2u
#define SGD_ROWS 8u
#define SGD_PARTS 1u
#define SGD_UNROLL
#endif
#define SGD_MOST 8u /* upper limit on the rows of a tile; a tile may reach into the padding behind a matrix */
/* Bytes of private memory in which the lanes of a GPU's worker exchange their parts of sums. */
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
	uint32_t rows, cols; /* cols: a multiple of 8 */
	uint32_t places;     /* number of places at which the layer is applied to `cols` floats */
	uint32_t side;	     /* side of the image if the layer is a convolution, else 0 */
	uint32_t before, width; /* floats of a sample in the input and in the output; multiples of 8 */
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
	uint64_t sample_at, label_at; /* float [batches][batch][layer[0].before]; uint32_t [batches][batch] */
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
			sgd_wide x = *(const sgd_wide *)(in + j * (uint64_t)l->before + e);
			SGD_EACH
			for (uint32_t k = 0; k < SGD_NEURONS; k++)
				sum[j][k] = sgd_dot_add(sum[j][k], v[k], x);
		}
	}
}

/* Returns the input of layer i in step n. Two samples are `before` floats apart. */
LOOM_FN const float *sgd_before(struct sgd *s, uint32_t i, uint64_t n)
{
	uint64_t samples = s->sample_at + n % s->batches * s->batch * s->layer[0].before * sizeof(float);
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
	uint64_t all = (uint64_t)tiles * across * l->places;
	const struct sgd_work w = sgd_work(c, all * c->worker / c->workers, all * (c->worker + 1) / c->workers, 1, own);
	loom_stream(c, (uint64_t)s->batch * l->places * l->rows * l->cols * sizeof(float) / c->workers);
	LOOM_NO_UNROLL
	for (uint64_t at = w.begin; at < w.end; at += w.units) {
		uint32_t tile = (uint32_t)((at + w.unit) / tiles), place = tile / across,
			 row = tile % across * SGD_NEURONS;
		uint64_t sample = (at + w.unit) % tiles * SGD_SAMPLES;
		int mine = at + w.unit < w.end;
		if (mine) {
			sgd_dot sum[SGD_SAMPLES][SGD_NEURONS] = {0};
			sgd_inner(l, w.part, sum, weight + (uint64_t)row * l->cols,
				  in + sample * l->before + place * l->cols);
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
			float *to = out + (sample + j) * l->width + place * l->rows + row;
			SGD_EACH
			for (uint32_t k = 0; k < SGD_NEURONS; k++)
				if (row + k < l->rows)
					to[k] = cut && ((float *)&v)[k] < 0 ? 0 : ((float *)&v)[k];
		}
		sgd_sync(c);
	}
}

/* Computes the odds of each sample, and the derivative of the loss with respect to the last layer's neurons. The loss
 * is the mean over the samples of all ranks. */
LOOM_FN void sgd_loss(struct loom_ctx *c, struct sgd *s, uint64_t n)
{
	const struct sgd_layer *l = &s->layer[s->layers - 1];
	const uint32_t *label = (const uint32_t *)((char *)s + s->label_at) + n % s->batches * s->batch;
	uint64_t end = (uint64_t)s->batch * (c->worker + 1) / c->workers;
	LOOM_NO_UNROLL
	for (uint64_t b = (uint64_t)s->batch * c->worker / c->workers + c->lane; b < end; b += c->lanes) {
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
	loom_stream(c, s->batch * l->places * floats * sizeof(float));
	LOOM_NO_UNROLL
	for (uint64_t tile = w.begin + w.unit, next; tile - w.unit < w.end; tile = next) {
		uint64_t at = begin + tile / across * band + tile % across * 4, row = at / l->cols;
		uint32_t fours = sgd_fours((l->cols - at % l->cols) / 4, across - tile % across, w.end - tile);
		int mine = tile < w.end;
		next = tile + (SGD_PARTS > 1 ? w.units : fours);
		if (mine) {
			sgd_wide sum[SGD_ROWS] = {{0, 0, 0, 0}};
			LOOM_NO_UNROLL
			for (uint32_t place = 0; place < l->places; place++) {
				const struct sgd_matrix m = {back + sample * l->width + place * l->rows + row,
							     in + sample * l->before + place * l->cols + at % l->cols,
							     1, l->width, l->before};
				sgd_outer(sum, &m, samples);
			}
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
	return (uint64_t)(s->batch + SGD_ROWS - 1) / SGD_ROWS * (l->before / SGD_WIDE);
}
LOOM_FN uint32_t sgd_polls(const struct loom_ctx *c, const struct sgd *s, const struct sgd_layer *l)
{
	uint64_t each = sgd_back_tiles(s, l) * SGD_PARTS / ((uint64_t)c->workers * c->lanes);
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
	uint64_t tiles = sgd_back_tiles(s, l), across = l->before / SGD_WIDE;
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
			const float *out = in + (sample + j) * l->before + k;
			sgd_wide v;
			sgd_sum(c, &w, j, &v);
			SGD_EACH
			for (uint32_t d = 0; d < SGD_WIDE; d++)
				((float *)&v)[d] = out[d] > 0 ? ((float *)&v)[d] : 0;
			*(sgd_wide *)(to + (sample + j) * l->before + k) = v;
		}
		sgd_sync(c);
	}
}

/* Computes a product of layer i: the forward pass, the gradient in run `part`, or part `part` of `parts` of the
 * backward pass. */
enum { SGD_FORWARD, SGD_GRADIENT, SGD_BACK };
LOOM_FN void sgd_product(struct loom_ctx *c, struct sgd *s, int which, uint32_t i, uint64_t n, uint32_t part,
			 uint32_t parts)
{
	if (which == SGD_FORWARD)
		sgd_forward(c, s, i, n);
	else if (which == SGD_GRADIENT)
		sgd_gradient(c, s, i, n, part);
	else
		sgd_back(c, s, i, part, parts);
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
			SGD_PRODUCT(c, s, SGD_GRADIENT, i, n, posts ? (a->rank + runs - part) % runs : part, runs);
		else
			SGD_PRODUCT(c, s, SGD_BACK, i, n, part - runs, polls);
		if (s->overlap && posts)
			sgd_poll(c, s, at, i, part + 1 >= runs ? ~0u : part + 1);
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
	/* Phases of a step: each layer forward, the loss, each layer backward. A barrier follows each phase. */
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
		phase = phase == last ? 0 : phase + 1;
	}
	if (c->lane == 0) {
		times->ns = loom_clock_ns(c) - begin;
		times->exchange_ns = exchange;
		times->exposed_ns = exposed;
		times->barrier_ns = in_barrier;
	}
}

#endif
