/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of the exchange engine. An application provides options, a plan of its data, and a check against a
 * reference. The engine makes the plug-in from them, with channels, logs and metrics. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "../common/host.h"
#include "exchange.dev.h"

enum { EX_CHANNELS = 3 * LOOM_MAX_DEVICES + 8 };

/* The options of every application. The help text of an application says what `size` means. */
struct ex_opts {
	uint32_t size, iterations, tc, tp;
	double progress;
	uint8_t times;
	uint32_t extra[5]; /* options of the application */
};

#define EX_ROWS(size_default, size_min, size_max, size_help, iterations_default)                                       \
	LOOM_OPT(struct ex_opts, size, LOOM_OPT_U32, size_default, size_help, .min = size_min, .max = size_max),       \
	    LOOM_OPT(struct ex_opts, iterations, LOOM_OPT_U32, iterations_default, "Iterations of communication.",     \
		     .min = 1, .max = 100000),                                                                         \
	    LOOM_OPT(struct ex_opts, tc, LOOM_OPT_U32, "0",                                                            \
		     "Extra work of a consumer before it waits for data (Tc), in units of about 1 us.", .max = 1e6,    \
		     .section = "workload.exchange"),                                                                  \
	    LOOM_OPT(struct ex_opts, tp, LOOM_OPT_U32, "0",                                                            \
		     "Extra work of a producer before it publishes (Tp), in units of about 1 us.", .max = 1e6,         \
		     .section = "workload.exchange"),                                                                  \
	    LOOM_OPT(struct ex_opts, times, LOOM_OPT_BOOL, "no",                                                       \
		     "Whether producers record when an item is ready (Tp), for the metrics that compare it with "      \
		     "the consumer's Tc. CPUs only, because other devices have clocks of their own.",                  \
		     .section = "workload.exchange"),                                                                  \
	    LOOM_OPT(struct ex_opts, progress, LOOM_OPT_SHARE, "0%",                                                   \
		     "With times = yes: the moment of a wait, from its begin (0%) to its end (100%), at which "        \
		     "the metrics before_tc and independent_left are taken.",                                          \
		     .section = "workload.exchange")

struct ex;

struct ex_app {
	const char *name;
	size_t bytes; /* bytes of the application's state, ex->own */
	/* Called once. Declares arrays and channels, and allocates input and reference with ex_alloc(). Returns 0, an
	 * error that x->err describes, or EX_NO_MEMORY, which the engine describes. */
	int (*plan)(struct ex *x);
	/* Called after a sample. Compares with the reference, and adds metrics to x->report. Returns 0 or
	 * LOOM_EWRONG. */
	int (*check)(struct ex *x, struct ex_head *h, struct loom_error *err);
};
enum { EX_NO_MEMORY = 1, EX_ALLOCATIONS = 32 };

/* What the engine stores in an array before each sample. */
enum ex_fill {
	EX_KEEP = 0, /* nothing */
	EX_ZERO,
	EX_POISON, /* all bits set: NaN as a double, ~0 as an integer */
	EX_COPY
};
struct ex_content {
	enum ex_fill fill;
	const void *from; /* source of EX_COPY, else NULL */
	uint64_t bytes;
};

struct ex {
	const struct loom_host *host;
	const struct ex_app *app;
	const struct ex_opts *o;
	const struct loom_layout *layout;
	struct ex_head head; /* head of the global block, as kernels read it */
	uint64_t bytes;
	int planned;
	struct loom_channel channel[EX_CHANNELS];
	struct ex_ready ready[EX_CHANNELS]; /* only with the option `times` */
	uint32_t channels;
	struct loom_error *err;     /* where plan() stores its error */
	struct loom_report *report; /* where check() adds metrics */
	struct ex_content content[EX_ARRAYS];
	void *own, *memory[EX_ALLOCATIONS];
	uint32_t allocations;
	uint64_t seed;
};

/* Returns n zeroed elements of `bytes` bytes, which are freed with the instance. NULL: out of memory. */
void *ex_alloc(struct ex *x, uint64_t n, size_t bytes);

/* Declare array number `array` of `bytes` bytes in the global block. The engine fills it before each sample, by
 * `fill` or as a copy of `from`, which must live as long as the instance. */
void ex_array(struct ex *x, uint32_t array, uint64_t bytes, enum ex_fill fill);
void ex_copy(struct ex *x, uint32_t array, const void *from, uint64_t bytes);
/* Declares a channel from device `from` to device `to`. Each item is read by `readers` workers. Returns the channel's
 * number. */
uint32_t ex_channel(struct ex *x, uint32_t from, uint32_t to, uint32_t slots, uint32_t readers, uint64_t item_bytes);
/* Declares the channels of ex_sum(). Returns the number of channel `gather`; channel `spread` has the next number. */
uint32_t ex_sum_channels(struct ex *x);
static inline void *ex_ptr(struct ex_head *h, uint32_t array)
{
	return (char *)h + h->at[array];
}
uint64_t ex_random(uint64_t *state); /* returns the next random number (xorshift64*) */
static inline uint32_t ex_device_of(const struct loom_layout *layout, uint32_t worker)
{
	uint32_t d = 0;
	while (d + 1 < layout->devices && worker >= layout->device[d + 1].first_worker)
		d++;
	return d;
}
#define EX_WRONG(x, err, ...) LOOM_FAIL((x)->host, err, LOOM_EWRONG, __VA_ARGS__)

/* Declares one channel per receiving device. Its slots hold the messages of `rounds` iterations, each of at most
 * `item_bytes`. Sets channel, slot and stride of each of the `n` messages. */
void ex_message_channels(struct ex *x, struct ex_message *m, uint32_t n, uint32_t rounds, uint64_t item_bytes);
/* Pairs the workers of devices 0 and 1, of devices 2 and 3, and so on. Worker i of one device is paired with worker i
 * of the other. Returns the number of pairs. Sets *list to NULL if out of memory. */
struct ex_pair {
	uint32_t a, b;
};
uint32_t ex_pairs(struct ex *x, struct ex_pair **list);
/* Declares an array with a struct ex_place for each worker. Returns 0 or EX_NO_MEMORY. */
int ex_places(struct ex *x, uint32_t array);
/* Returns the result of `iterations` sweeps over `grids` grids of n x n, whose borders do not change. NULL: out of
 * memory. */
double *ex_sweep(struct ex *x, uint64_t grids, uint64_t n, const double *start, ex_row_fn *row);
/* Returns whether two numbers are equal within 1e-9, relative to the larger one. A lost message makes a larger
 * difference. */
int ex_close(double a, double b);
int ex_compare(struct ex *x, const double *got, const double *want, uint64_t n, const char *what,
	       struct loom_error *err);

/* Ops of struct loom_workload_ops. ex_create() has the application as an additional argument. */
int ex_create(const struct loom_host *host, const void *opts, const struct ex_app *app, void **self,
	      struct loom_error *err);
void ex_destroy(void *self);
int ex_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err);
int ex_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err);
int ex_verify(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_report *report,
	      struct loom_error *err);
int ex_channels_op(void *self, const struct loom_layout *layout, const struct loom_channel **channel, uint32_t *n,
		   struct loom_error *err);

/* exchange_metrics.c */
void ex_metrics(struct ex *x, const struct loom_view *view);
/* exchange_times.c */
void ex_times(struct ex *x, const struct loom_view *view);
/* Returns the number of a worker's waits whose times are in its log. */
static inline uint64_t ex_logged(const struct ex_log *log)
{
	return log->waits < EX_INTERVALS ? log->waits : EX_INTERVALS;
}

/* Defines the plug-in workload_NAME, with kernel workload_NAME_kernel in NAME.dev.h. The including file has plan()
 * and check(). state_ is the type of the application's state. work_ is the metric that counts its units of work.
 * FILES is device code that precedes NAME.dev.h, each file as LOOM_CODE_FILE(). */
#define EX_PLUGIN(NAME, state_, rows_, work_, summary_, FILES)                                                         \
	static const struct ex_app NAME##_app = {#NAME, sizeof(state_), plan, check};                                  \
	static int NAME##_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)  \
	{                                                                                                              \
		return ex_create(host, opts, &NAME##_app, self, err);                                                  \
	}                                                                                                              \
	static const struct loom_workload_ops NAME##_ops = {                                                           \
	    .size = sizeof(struct loom_workload_ops),                                                                  \
	    .create = NAME##_create,                                                                                   \
	    .destroy = ex_destroy,                                                                                     \
	    .need = ex_need,                                                                                           \
	    .init = ex_init,                                                                                           \
	    .tasks = workload_no_tasks,                                                                                \
	    .verify = ex_verify,                                                                                       \
	    .work = work_,                                                                                             \
	    .channels = ex_channels_op,                                                                                \
	};                                                                                                             \
	static const struct loom_workload_dev NAME##_cpu = {                                                           \
	    .size = sizeof(struct loom_workload_dev),                                                                  \
	    .kernel = workload_##NAME##_kernel,                                                                        \
	};                                                                                                             \
	LOOM_DEVICE_CODE(NAME##_code, NAME##_cpu, #NAME ".dev.h",                                                      \
			 LOOM_CODE_FILE("exchange.dev.h") FILES LOOM_CODE_FILE(#NAME ".dev.h"));                       \
	LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_" #NAME, "0.1.0", "Apache-2.0", summary_, .opts = rows_,                \
			   .opts_size = sizeof(struct ex_opts), .ops = &NAME##_ops, .dev = &NAME##_code)

#endif
