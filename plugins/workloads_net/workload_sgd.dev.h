/* SPDX-License-Identifier: Apache-2.0 */
/* sgd: data-parallel training by stochastic gradient descent. Device code.
 *
 * Each rank has the whole network and samples of its own. A step: forward, back, the gradients of all ranks are summed,
 * each rank changes its weights by the sum. All workers of a rank share each layer's arithmetic and meet after it. A worker
 * computes the gradient in the slices that it sums afterwards (allreduce.dev.h), so it fires them as soon as it has them,
 * and looks after sums that are under way while it computes those of the layers before.
 *
 * A layer is a matrix of `rows` neurons with `cols` weights each, four of them together. It is applied once to all that is
 * before it, or, as a convolution, to each square of 3 by 3 of an image. After its neurons stand a 1, whose weight is the
 * bias, and zeros: nothing needs a last few. */
#ifndef WORKLOAD_SGD_DEV_H
#define WORKLOAD_SGD_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>

#include "../shared/collective/allreduce.dev.h"
#endif

#define SGD_LAYERS 8u
#define SGD_SQUARE 3u /* the side of a convolution's square */
#define SGD_LOOKS 4u  /* a layer's arithmetic, as a worker shares it, is cut into so many parts at most */
#define SGD_TILE 4u   /* elements that a lane computes together: what it loads for one serves all */
/* In front of a loop over these. */
#if defined(LOOM_DEVICE_COMPILE) || defined(__clang__)
#define SGD_EACH _Pragma("unroll")
#else
#define SGD_EACH _Pragma("GCC unroll 4")
#endif

struct sgd_layer {
	uint32_t rows, cols; /* cols: a multiple of 4 */
	uint32_t places;     /* where it is applied */
	uint32_t side;	     /* of the image, for a convolution; else 0 */
	uint32_t before, width; /* floats of a sample in front of it and behind it, multiples of 4 */
	uint64_t weight_at, out_at, back_at; /* bytes from struct sgd; back: the loss by the neurons' sums */
};

/* Head of the device's block, or of the one for the stack behind the gradients, where several devices share it. */
struct sgd {
	uint32_t layers, batch, batches, classes;
	uint64_t steps;
	float rate, scale;	      /* scale: 1 / samples of a step on all ranks */
	uint32_t overlap, reserved;
	uint64_t sample_at, label_at; /* [batches][batch][inputs padded]: floats; [batches][batch]: uint32_t */
	uint64_t chance_at;	      /* [steps][batch]: what the network gave the right class */
	struct sgd_layer layer[SGD_LAYERS];
	struct loom_allreduce sum[SGD_LAYERS]; /* of the gradients */
};

/* Head of the block for the stack. */
struct sgd_head {
	uint64_t state_at; /* of struct sgd; 0: it is the device's block */
	uint64_t pad[7];
};

/* A worker's own block; then a hash of its weights after each step: a sum, so that their order does not matter. */
struct sgd_took {
	uint64_t ns, exchange_ns, exposed_ns;
	uint64_t pad[5];
};

LOOM_FN uint64_t sgd_hash(uint32_t layer, uint64_t i, float weight)
{
	union loom_allreduce_bits w;
	w.is = weight;
	uint64_t x = ((uint64_t)layer << 58 ^ i << 32 ^ w.bits) * 0x9e3779b97f4a7c15ull;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
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

/* e to the power x, for x <= 0: no library for it on every device. Relative error below 1e-6. */
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

/* Of n tiles, those of a lane in part `part` of `of` in what its worker shares. */
LOOM_FN struct loom_allreduce_share sgd_share(const struct loom_ctx *c, uint64_t n, uint32_t part, uint32_t of)
{
	uint64_t parts = (uint64_t)c->workers * of, at = (uint64_t)c->worker * of + part;
	uint64_t begin = n * at / parts;
	struct loom_allreduce_share s = loom_allreduce_share(c, n * (at + 1) / parts - begin);
	s.begin += begin;
	s.end += begin;
	return s;
}

/* Tiles of samples; and the j-th sample of a tile. Where the last tile has less, it has the last sample more than once. */
LOOM_FN uint32_t sgd_tiles(const struct sgd *s)
{
	return (s->batch + SGD_TILE - 1) / SGD_TILE;
}
LOOM_FN uint64_t sgd_sample(const struct sgd *s, uint64_t tile, uint32_t j)
{
	uint64_t b = tile * SGD_TILE + j;
	return b < s->batch ? b : s->batch - 1;
}

/* Into how many parts sgd_back cuts its tiles: no lane is to wait for others' parts. */
LOOM_FN uint32_t sgd_looks(const struct loom_ctx *c, const struct sgd *s, const struct sgd_layer *l)
{
	uint64_t each = (uint64_t)sgd_tiles(s) * (l->before / 4) / ((uint64_t)c->workers * c->lanes);
	return each > SGD_LOOKS ? SGD_LOOKS : each ? (uint32_t)each : 1;
}

/* Four floats. Compilers for CPUs make no use of their wide registers here by themselves. */
#ifdef LOOM_DEVICE_COMPILE
typedef struct loom_allreduce_wide sgd_four;
LOOM_FN sgd_four sgd_add(sgd_four sum, sgd_four a, sgd_four b)
{
	sgd_four v = {sum.x + a.x * b.x, sum.y + a.y * b.y, sum.z + a.z * b.z, sum.w + a.w * b.w};
	return v;
}
#else
typedef float sgd_four __attribute__((vector_size(16), __may_alias__));
LOOM_FN sgd_four sgd_add(sgd_four sum, sgd_four a, sgd_four b)
{
	return sum + a * b;
}
#endif
LOOM_FN sgd_four sgd_add_times(sgd_four sum, float a, sgd_four b)
{
	sgd_four all = {a, a, a, a};
	return sgd_add(sum, all, b);
}

/* Four of what layer l is applied to at a place, beginning with column k. */
LOOM_FN sgd_four sgd_take(const struct sgd_layer *l, const float *in, uint32_t place, uint32_t k)
{
	if (!l->side)
		return *(const sgd_four *)(in + k);
	uint32_t across = l->side - SGD_SQUARE + 1;
	const float *corner = in + place / across * l->side + place % across;
	float v[4];
	for (uint32_t i = 0; i < 4; i++, k++)
		v[i] = k < SGD_SQUARE * SGD_SQUARE ? corner[k / SGD_SQUARE * l->side + k % SGD_SQUARE] :
						     (float)(k == SGD_SQUARE * SGD_SQUARE);
	sgd_four four = {v[0], v[1], v[2], v[3]};
	return four;
}

/* What is in front of layer i in step n: a sample's beginning is `before` floats after the last one's. */
LOOM_FN const float *sgd_before(struct sgd *s, uint32_t i, uint64_t n)
{
	uint64_t samples = s->sample_at + n % s->batches * s->batch * s->layer[0].before * sizeof(float);
	return sgd_floats(s, i ? s->layer[i - 1].out_at : samples);
}

/* The neurons of layer i; all but the last one's cut off what is below 0. Neighbours have the same weights, so that a worker needs
 * few of them. */
LOOM_FN void sgd_forward(struct loom_ctx *c, struct sgd *s, uint32_t i, uint64_t n)
{
	const struct sgd_layer *l = &s->layer[i];
	const float *in = sgd_before(s, i, n), *weight = sgd_floats(s, l->weight_at);
	float *out = sgd_floats(s, l->out_at);
	uint32_t neurons = l->places * l->rows, tiles = sgd_tiles(s), cut = i + 1 < s->layers;
	const struct loom_allreduce_share mine = sgd_share(c, (uint64_t)tiles * neurons, 0, 1);
	loom_stream(c, (uint64_t)s->batch * neurons * l->cols * sizeof(float) / c->workers);
	LOOM_NO_UNROLL
	for (uint64_t e = mine.begin; e < mine.end; e += mine.step) {
		uint32_t neuron = (uint32_t)(e / tiles), place = neuron / l->rows, row = neuron % l->rows;
		const float *x[SGD_TILE];
		union {
			sgd_four all;
			float is[4];
		} sum[SGD_TILE] = {{{0, 0, 0, 0}}};
		SGD_EACH
		for (uint32_t j = 0; j < SGD_TILE; j++)
			x[j] = in + sgd_sample(s, e % tiles, j) * l->before;
		for (uint32_t k = 0; k < l->cols; k += 4) {
			sgd_four w = *(const sgd_four *)(weight + (uint64_t)row * l->cols + k);
			SGD_EACH
			for (uint32_t j = 0; j < SGD_TILE; j++)
				sum[j].all = sgd_add(sum[j].all, w, sgd_take(l, x[j], place, k));
		}
		SGD_EACH
		for (uint32_t j = 0; j < SGD_TILE; j++) {
			float v = (sum[j].is[0] + sum[j].is[1]) + (sum[j].is[2] + sum[j].is[3]);
			out[sgd_sample(s, e % tiles, j) * l->width + neuron] = cut && v < 0 ? 0 : v;
		}
	}
}

/* Each sample's chance of each class; and what the loss, its mean over all samples, changes by with the last neurons. */
LOOM_FN void sgd_loss(struct loom_ctx *c, struct sgd *s, uint64_t n)
{
	const struct sgd_layer *l = &s->layer[s->layers - 1];
	const uint32_t *label = (const uint32_t *)((char *)s + s->label_at) + n % s->batches * s->batch;
	const struct loom_allreduce_share mine = sgd_share(c, s->batch, 0, 1);
	LOOM_NO_UNROLL
	for (uint64_t b = mine.begin; b < mine.end; b += mine.step) {
		const float *out = sgd_floats(s, l->out_at) + b * l->width;
		float *back = sgd_floats(s, l->back_at) + b * l->width, most = out[0], sum = 0;
		for (uint32_t k = 1; k < s->classes; k++)
			most = out[k] > most ? out[k] : most;
		for (uint32_t k = 0; k < s->classes; k++)
			sum += back[k] = sgd_exp(out[k] - most);
		sgd_floats(s, s->chance_at)[n * s->batch + b] = back[label[b]] / sum;
		for (uint32_t k = 0; k < s->classes; k++)
			back[k] = (back[k] / sum - (float)(k == label[b])) * s->scale;
	}
}

/* Goes on with the sums of the layers from i on, of layer i up to step `until`. */
LOOM_FN void sgd_look(struct loom_ctx *c, struct sgd *s, struct loom_allreduce_at *at, uint32_t i, uint32_t until)
{
	LOOM_NO_UNROLL
	for (; s->overlap && i < s->layers; i++, until = ~0u)
		loom_allreduce_go(c, &s->sum[i], &at[i], until, 0);
}

/* The gradient of layer i in a run of this worker's slices. */
LOOM_FN void sgd_gradient(struct loom_ctx *c, struct sgd *s, uint32_t i, uint64_t n, uint32_t run)
{
	const struct sgd_layer *l = &s->layer[i];
	const struct loom_allreduce *a = &s->sum[i];
	const float *in = sgd_before(s, i, n), *back = sgd_floats(s, l->back_at);
	uint64_t weights = (uint64_t)l->rows * l->cols, begin, end;
	float *gradient = loom_allreduce_input(c, a, n);
	loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
	end = end < weights ? end : weights;
	uint64_t quads = begin < end ? (end - begin) / 4 : 0;
	const struct loom_allreduce_share mine = loom_allreduce_share(c, (quads + SGD_TILE - 1) / SGD_TILE);
	loom_stream(c, begin < end ? s->batch * l->places * (end - begin) * sizeof(float) : 0);
	LOOM_NO_UNROLL
	for (uint64_t e = mine.begin; e < mine.end; e += mine.step) {
		uint64_t at[SGD_TILE];
		uint32_t row[SGD_TILE], k[SGD_TILE];
		sgd_four sum[SGD_TILE] = {{0, 0, 0, 0}};
		SGD_EACH
		for (uint32_t j = 0; j < SGD_TILE; j++) {
			uint64_t quad = e * SGD_TILE + j;
			at[j] = begin + 4 * (quad < quads ? quad : quads - 1);
			row[j] = (uint32_t)(at[j] / l->cols);
			k[j] = (uint32_t)(at[j] % l->cols);
		}
		for (uint32_t b = 0; b < s->batch; b++)
			for (uint32_t place = 0; place < l->places; place++) {
				const float *by = back + (uint64_t)b * l->width + place * l->rows;
				SGD_EACH
				for (uint32_t j = 0; j < SGD_TILE; j++)
					sum[j] = sgd_add_times(sum[j], by[row[j]], sgd_take(l, in + (uint64_t)b * l->before, place, k[j]));
			}
		SGD_EACH
		for (uint32_t j = 0; j < SGD_TILE; j++)
			*(sgd_four *)(gradient + at[j]) = sum[j];
	}
}

/* What the loss changes by with the neurons in front of layer i, where those are not cut off. */
LOOM_FN void sgd_back(struct loom_ctx *c, struct sgd *s, uint32_t i, uint32_t part, uint32_t parts)
{
	const struct sgd_layer *l = &s->layer[i];
	const float *in = sgd_before(s, i, 0), *back = sgd_floats(s, l->back_at), *weight = sgd_floats(s, l->weight_at);
	float *to = sgd_floats(s, s->layer[i - 1].back_at);
	uint32_t quads = l->before / 4, tiles = sgd_tiles(s);
	const struct loom_allreduce_share mine = sgd_share(c, (uint64_t)tiles * quads, part, parts);
	loom_stream(c, (uint64_t)s->batch * l->rows * l->cols * sizeof(float) / c->workers / parts);
	LOOM_NO_UNROLL
	for (uint64_t e = mine.begin; e < mine.end; e += mine.step) {
		uint64_t k = e / tiles * 4, sample[SGD_TILE];
		sgd_four sum[SGD_TILE] = {{0, 0, 0, 0}}, none = {0, 0, 0, 0};
		SGD_EACH
		for (uint32_t j = 0; j < SGD_TILE; j++)
			sample[j] = sgd_sample(s, e % tiles, j);
		for (uint32_t row = 0; row < l->rows; row++) {
			sgd_four w = *(const sgd_four *)(weight + (uint64_t)row * l->cols + k);
			SGD_EACH
			for (uint32_t j = 0; j < SGD_TILE; j++)
				sum[j] = sgd_add_times(sum[j], back[sample[j] * l->width + row], w);
		}
		SGD_EACH
		for (uint32_t j = 0; j < SGD_TILE; j++) {
			const float *out = in + sample[j] * l->before + k;
			sgd_four kept = {(float)(out[0] > 0), (float)(out[1] > 0), (float)(out[2] > 0), (float)(out[3] > 0)};
			*(sgd_four *)(to + sample[j] * l->before + k) = sgd_add(none, kept, sum[j]);
		}
	}
}

/* This worker's slices of the weights, by the sums of them. */
LOOM_FN void sgd_update(struct loom_ctx *c, struct sgd *s, uint64_t n)
{
	uint64_t hash = 0;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < s->layers; i++) {
		const struct sgd_layer *l = &s->layer[i];
		const struct loom_allreduce *a = &s->sum[i];
		const float *sum = loom_allreduce_sums(c, a, n);
		float *weight = sgd_floats(s, l->weight_at);
		uint64_t weights = (uint64_t)l->rows * l->cols;
		LOOM_NO_UNROLL
		for (uint32_t run = 0; run < loom_allreduce_runs(a); run++) {
			uint64_t begin, end;
			loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
			end = end < weights ? end : weights;
			LOOM_NO_UNROLL
			for (uint64_t e = begin + c->lane; e < end; e += c->lanes) {
				weight[e] -= s->rate * sum[e];
				hash += sgd_hash(i, e, weight[e]);
			}
		}
		loom_stream(c, 3 * weights * sizeof(float) / c->workers);
	}
	uint64_t *hashes = (uint64_t *)((struct sgd_took *)c->own[LOOM_WORKLOAD] + 1);
	loom_fetch_add_relaxed_dev(&hashes[n], hash);
}

/* The gradients of layer i, and what the layer before needs for its own. A ring's step p takes the chunk that is p before the
 * rank's own: in that order they are computed, and each is on its way while the next one is. */
LOOM_FN void sgd_backward(struct loom_ctx *c, struct sgd *s, struct loom_allreduce_at *at, uint32_t i, uint64_t n)
{
	const struct loom_allreduce *a = &s->sum[i];
	uint32_t runs = loom_allreduce_runs(a), ring = a->algorithm == LOOM_ALLREDUCE_RING;
	uint32_t looks = sgd_looks(c, s, &s->layer[i]), parts = runs + (i ? looks : 0);
	LOOM_NO_UNROLL
	for (uint32_t part = 0; part < parts; part++) {
		if (part < runs)
			sgd_gradient(c, s, i, n, ring ? (a->rank + runs - part) % runs : part);
		else
			sgd_back(c, s, i, part - runs, looks);
		sgd_look(c, s, at, i, part + 1 >= runs ? ~0u : ring ? part + 1 : 0);
	}
}

LOOM_FN void workload_sgd_kernel(struct loom_ctx *c)
{
	struct sgd *s = sgd_state(c);
	struct sgd_took *took = (struct sgd_took *)c->own[LOOM_WORKLOAD];
	struct loom_allreduce_at at[SGD_LAYERS];
	uint64_t begin = loom_clock_ns(c), exchange = 0, exposed = 0;
	uint32_t layers = s->layers, last = 2 * layers;
	/* Phases: the layers forward, the loss, and the layers back. The workers meet after each. */
	for (uint64_t n = 0, phase = 0, first = 0; n < s->steps;) {
		if (phase < layers) {
			sgd_forward(c, s, (uint32_t)phase, n);
			at[phase].round = n;
			at[phase].step = at[phase].piece = 0;
		} else if (phase == layers) {
			sgd_loss(c, s, n);
		} else {
			sgd_backward(c, s, at, (uint32_t)(last - phase), n);
			first = phase == layers + 1 ? loom_clock_ns(c) : first;
		}
		if (phase == last) {
			uint64_t computed = loom_clock_ns(c);
			if (!loom_allreduce_finish(c, s->sum, at, layers))
				return;
			exchange += loom_clock_ns(c) - (s->overlap ? first : computed);
			exposed += loom_clock_ns(c) - computed;
			sgd_update(c, s, n);
		}
		if (LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK))
			return;
		if (s->overlap && phase > layers && phase < last && !loom_net_deliver(c))
			return;
		n += phase == last;
		phase = phase == last ? 0 : phase + 1;
	}
	if (c->lane == 0) {
		took->ns = loom_clock_ns(c) - begin;
		took->exchange_ns = exchange;
		took->exposed_ns = exposed;
	}
}

#endif
