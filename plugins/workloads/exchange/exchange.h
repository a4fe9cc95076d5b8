/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange engine, host half: an application brings its name, options, data and reference; the
 * engine makes the plug-in of it, with channels, logs and metrics. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "../../shared/workload/host.h"
#include "exchange.dev.h"

enum { EX_CHANNELS = 3 * LOOM_MAX_DEVICES + 8 };

/* The options of every application. What `size` means is in its help. */
struct ex_opts {
	uint32_t size, iterations, tc, tp;
	const char *timeline;
	uint32_t extra[4]; /* of the application */
	const char *path;
};

#define EX_ROWS(size_default, size_min, size_max, size_help, iterations_default)                    \
	LOOM_OPT(struct ex_opts, size, LOOM_OPT_U32, size_default, size_help, .min = size_min,      \
		 .max = size_max), \
	LOOM_OPT(struct ex_opts, iterations, LOOM_OPT_U32, iterations_default, \
			 "Iterations of communication.", .min = 1, .max = 100000), \
	LOOM_OPT(struct ex_opts, tc, LOOM_OPT_U32, "0", \
			 "Extra work of a consumer before it waits for data (Tc), in units of about 1 us.", \
			 .max = 1e6, .section = "workload.exchange"), \
	LOOM_OPT(struct ex_opts, tp, LOOM_OPT_U32, "0", \
			 "Extra work of a producer before it publishes (Tp), in units of about 1 us.", \
			 .max = 1e6, .section = "workload.exchange"), \
	LOOM_OPT(struct ex_opts, timeline, LOOM_OPT_PATH, "", \
			 "File for the workers' waits of the last sample, in Chrome's trace format. Empty: no file.", \
			 .flags = LOOM_OPT_TRUST, .section = "workload.exchange")

struct ex;

struct ex_app {
	const char *name;
	size_t bytes; /* of the application's own state, behind ex->own */
	/* Sizes arrays and channels with ex_array and ex_channel, prepares input and reference in ex_room. 0, an
	 * error in words (x->err), or EX_NO_ROOM, which the engine words. */
	int (*plan)(struct ex *x);
	/* Puts the input into the arrays: before every sample. */
	void (*fill)(struct ex *x, struct ex_head *h);
	/* Compares with the reference, adds figures to x->report: 0, or LOOM_EWRONG in words. */
	int (*check)(struct ex *x, struct ex_head *h, struct loom_error *err);
};
enum { EX_NO_ROOM = 1, EX_ROOMS = 24 };

struct ex {
	const struct loom_host *host;
	const struct ex_app *app;
	const struct ex_opts *o;
	const struct loom_layout *layout;
	struct ex_head head; /* as the kernels will see it */
	uint64_t bytes;
	int planned;
	struct loom_channel channel[EX_CHANNELS];
	uint32_t channels;
	struct loom_error *err; /* of plan */
	struct loom_report *report; /* of check */
	void *own, *room[EX_ROOMS];
	uint32_t rooms;
	uint64_t seed;
};

/* n zeroed things of `bytes` bytes, which live as long as the instance; NULL: out of memory. */
void *ex_room(struct ex *x, uint64_t n, size_t bytes);

/* An array of `bytes` bytes in the global block: number `array`. */
void ex_array(struct ex *x, uint32_t array, uint64_t bytes);
/* A channel: its number. */
uint32_t ex_channel(struct ex *x, uint32_t from, uint32_t to, uint32_t slots, uint32_t readers,
		    uint64_t item_bytes);
/* The two of ex_sum: the number of `gather`, `spread` is the one after. */
uint32_t ex_sum_channels(struct ex *x);
static inline void *ex_of(struct ex_head *h, uint32_t array)
{
	return (char *)h + h->at[array];
}
uint64_t ex_random(uint64_t *state); /* xorshift64* */
static inline uint32_t ex_device_of(const struct loom_layout *layout, uint32_t worker)
{
	uint32_t d = 0;
	while (d + 1 < layout->devices && worker >= layout->device[d + 1].first_worker)
		d++;
	return d;
}
#define EX_WRONG(x, err, ...) LOOM_FAIL((x)->host, err, LOOM_EWRONG, __VA_ARGS__)

/* One channel per receiving device, with room for `rounds` iterations of the `n` messages, of at most
 * `item_bytes`; fills channel, slot and stride of each. */
void ex_message_channels(struct ex *x, struct ex_message *m, uint32_t n, uint32_t rounds, uint64_t item_bytes);
/* Pairs of workers on devices 0 and 1, 2 and 3, ...: worker i of the one with worker i of the other. How
 * many; *list is an ex_room. */
struct ex_pair {
	uint32_t a, b;
};
uint32_t ex_pairs(struct ex *x, struct ex_pair **list);
/* Where the workers are, into array `array`. */
void ex_places(struct ex_head *h, uint32_t array, const struct loom_layout *layout);
/* `iterations` sweeps over `grids` grids of n rows of n, whose rims stay: the result, an ex_room. */
typedef void ex_row_fn(const struct loom_ctx *c, double *to, const double *up, const double *row,
		       const double *down, uint64_t n);
double *ex_sweep(struct ex *x, uint64_t grids, uint64_t n, void (*input)(double *to, uint64_t n, uint64_t seed),
		 ex_row_fn *row);
/* Within 1e-9 of each other, relative to the larger: a stale or lost message is far off that. */
int ex_close(double a, double b);
int ex_compare(struct ex *x, const double *got, const double *want, uint64_t n, const char *what,
	       struct loom_error *err);

/* The ops of loom_workload_ops, all but create. */
int ex_create(const struct loom_host *host, const void *opts, const struct ex_app *app, void **self,
	      struct loom_error *err);
void ex_destroy(void *self);
int ex_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err);
int ex_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	    struct loom_error *err);
int ex_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
	      struct loom_report *report, struct loom_error *err);
int ex_channels_op(void *self, const struct loom_layout *layout, const struct loom_channel **channel,
		   uint32_t *n, struct loom_error *err);

/* exchange_metrics.c */
void ex_metrics(struct ex *x, const struct loom_view *view);

/* The plug-in workload_NAME: device code in NAME.dev.h with a kernel workload_NAME_kernel. FILES are the
 * texts before it, each a LOOM_CODE_FILE(); work: the metric that counts its unit of work. */
#define EX_PLUGIN(NAME, app_, rows_, work_, summary_, FILES)                                         \
	static int NAME##_create(const struct loom_host *host, const void *opts, void **self,      \
				 struct loom_error *err)                                           \
	{                                                                                          \
		return ex_create(host, opts, &(app_), self, err);                                  \
	}                                                                                          \
	static const struct loom_workload_ops NAME##_ops = {                                       \
		.size = sizeof(struct loom_workload_ops),                                          \
		.create = NAME##_create,                                                           \
		.destroy = ex_destroy,                                                             \
		.need = ex_need,                                                                   \
		.init = ex_init,                                                                   \
		.tasks = workload_no_tasks,                                                        \
		.verify = ex_verify,                                                               \
		.work = work_,                                                                     \
		.channels = ex_channels_op,                                                        \
	};                                                                                         \
	static const struct loom_workload_dev NAME##_cpu = {                                       \
		.size = sizeof(struct loom_workload_dev),                                          \
		.kernel = workload_##NAME##_kernel,                                                \
	};                                                                                         \
	LOOM_DEVICE_CODE(NAME##_code, NAME##_cpu, #NAME ".dev.h",                                  \
			 LOOM_CODE_FILE("exchange.dev.h") FILES LOOM_CODE_FILE(#NAME ".dev.h"));   \
	LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_" #NAME, "0.1.0", "Apache-2.0", summary_,           \
			   .opts = rows_, .opts_size = sizeof(struct ex_opts), .ops = &NAME##_ops, \
			   .dev = &NAME##_code)

#endif
