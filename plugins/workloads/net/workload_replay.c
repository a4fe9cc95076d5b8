/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of replay: the six training jobs in table 3 of the GPU-TN paper. */
#include "workload_replay.dev.h"
#include "../collective/allreduce.h"
#include "net.h"

/* `blocked`, from the paper, is the share of the job's time in which allreduces block it. `floats` are the sizes of
 * the gradients, last layer first. The paper gives no sizes, so they are those of similar networks. */
static const struct job {
	double blocked;
	uint32_t floats[REPLAY_TENSORS];
} jobs[] = {
    /* AlexNet: five convolutions and three fully connected layers, 61 million parameters */
    {0.14,
     {4096000, 1000, 16777216, 4096, 37748736, 4096, 589824, 256, 884736, 256, 663552, 384, 307200, 192, 23232, 64}},
    /* AN4 LSTM: 363 features, three layers of 1,024 cells with a projection to 512, 132 classes */
    {0.50,
     {67584, 132, 524288, 3072, 4096, 2097152, 2097152, 524288, 3072, 4096, 2097152, 2097152, 524288, 3072, 4096,
      2097152, 1486848}},
    /* CIFAR: three convolutions of 5 by 5 and two fully connected layers */
    {0.04, {640, 10, 36864, 64, 51200, 64, 25600, 32, 2400, 32}},
    /* a synthetic job: layers of 2,048 neurons between 512 inputs and 512 outputs */
    {0.28, {1048576, 512, 4194304, 2048, 4194304, 2048, 1048576, 2048}},
    /* MNIST Conv: two convolutions of 5 by 5 with 16 and 32 filters, and fully connected layers of 128 and 10 */
    {0.12, {1280, 10, 200704, 128, 12800, 32, 400, 16}},
    /* MNIST Hidden: one hidden layer of 200 neurons */
    {0.29, {2000, 10, 156800, 200}},
};

struct replay_opts {
	uint32_t job, algorithm, group;
	uint64_t steps, most, least, latency;
	double rate;
	uint8_t two_sided;
};

static const char *const names[] = {"alexnet", "an4_lstm", "cifar", "large_synth", "mnist_conv", "mnist_hidden", NULL};
static const struct loom_opt replay_rows[] = {
	LOOM_OPT(struct replay_opts, job, LOOM_OPT_ENUM, "mnist_hidden",
			 "Training job of table 3 of the GPU-TN paper. The paper does not give the sizes of gradients; "
			 "so they are those of similar networks.",
			 .choices = names),
	LOOM_OPT(struct replay_opts, steps, LOOM_OPT_U64, "4", "Steps of training.", .min = 1, .max = 1e6),
	LOOM_OPT(struct replay_opts, most, LOOM_OPT_SIZE, "1MiB",
			 "Size to which larger gradients are reduced; the computation between them shrinks by the same "
			 "factor.",
			 .min = 4, .max = 1ull << 32),
	LOOM_ALLREDUCE_ROWS(struct replay_opts),
	LOOM_NET_TWO_SIDED_ROW(struct replay_opts),
	LOOM_OPT(struct replay_opts, latency, LOOM_OPT_TIME, "5us",
			 "Time of one message in the network of a host-driven job, whose bandwidth is `rate`. Before "
			 "each allreduce the job computes for so long that on this network it would be blocked for the "
			 "share of its time that the table gives.", .max = 1e9),
	LOOM_OPT(struct replay_opts, rate, LOOM_OPT_F64, "12.5e9",
			 "Bytes per second of the network that `latency` describes.", .from = 1e3, .to = 1e15),
	{.name = NULL},
};

/* Returns the head of the block, and sets *end to the size of the block in bytes. */
static struct replay shape_of(const void *self, const struct loom_layout *layout, uint64_t *end)
{
	const struct workload *w = self;
	const struct replay_opts *o = w->opts;
	const struct job *job = &jobs[o->job];
	struct replay r = {.steps = o->steps};
	uint32_t tag = 1;
	*end = loom_net_line(sizeof(r));
	for (; r.tensors < REPLAY_TENSORS && job->floats[r.tensors]; r.tensors++) {
		struct replay_tensor *t = &r.tensor[r.tensors];
		uint64_t bytes = job->floats[r.tensors] * sizeof(float);
		bytes = bytes < o->most ? bytes : o->most;
		t->sum = loom_allreduce_shape(w->host, layout,
					      &LOOM_ALLREDUCE_HOW(o, bytes, .two_sided = o->two_sided));
		*end = loom_allreduce_place(&t->sum, layout, *end, tag, 2, 0);
		tag += t->sum.tags;
		double message = (double)o->latency + 1e9 * (double)bytes / t->sum.ranks / o->rate;
		t->gap_ns = (uint64_t)(2 * (t->sum.ranks - 1) * message * (1 - job->blocked) / job->blocked);
	}
	return r;
}

static int replay_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	(void)err;
	struct replay r = shape_of(self, layout, &need->global);
	for (uint64_t i = 0; i < r.tensors; i++)
		loom_allreduce_needs(&r.tensor[i].sum, layout, need);
	need->global_place = LOOM_PLACE_NET;
	need->worker = sizeof(struct replay_times);
	return 0;
}

static int replay_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_error *err)
{
	struct replay *r = view->global;
	uint64_t end;
	(void)err;
	*r = shape_of(self, layout, &end);
	for (uint64_t i = 0; i < r->tensors; i++)
		loom_allreduce_init(&r->tensor[i].sum, layout, r);
	return 0;
}

static int replay_wire(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		       const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct workload *w = self;
	struct replay *r = view->global;
	uint64_t end;
	int rc = 0;
	shape_of(self, layout, &end);
	for (uint64_t i = 0; i < r->tensors && !rc; i++)
		rc = loom_allreduce_wire(&r->tensor[i].sum, w->host, layout, view, global, end, trigger, NULL, NULL,
					 err);
	return rc;
}

static int replay_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct replay *r = view->global;
	struct replay_times times = {0};
	int rc = 0;
	for (uint64_t i = 0; i < r->tensors && !rc; i++)
		rc = loom_allreduce_compare(&r->tensor[i].sum, w->host, layout, r, r->steps - 1,
					    replay_first(r->steps - 1, i), ~0ull, err);
	if (rc)
		return rc;
	for (uint32_t k = 0; k < layout->workers; k++) {
		const struct replay_times *one = view->worker[k];
		times = one->blocked_ns >= times.blocked_ns ? *one : times;
	}
	w->host->metric(w->host, report, "reductions", "", LOOM_BETTER_NONE, (double)(r->steps * r->tensors));
	w->host->metric(w->host, report, "step_ns", "ns", LOOM_BETTER_LESS, (double)times.ns / (double)r->steps);
	w->host->metric(w->host, report, "blocked", "", LOOM_BETTER_LESS,
			times.ns ? (double)times.blocked_ns / (double)times.ns : 0);
	return 0;
}

WORKLOAD_OPS(replay, .create = workload_create_plain, .destroy = workload_destroy, .tasks = workload_no_tasks,
	     .wire = replay_wire, .explain = net_explain, .work = "reductions");

NET_CODE_IN(workload_replay, LOOM_ALLREDUCE_FILES LOOM_CODE_FILE("workload_replay.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_replay", "0.1.0", "Apache-2.0",
		   "The allreduces of training jobs, with what they compute in between", .opts = replay_rows,
		   .opts_size = sizeof(struct replay_opts), .ops = &replay_ops, .dev = &workload_replay_code)
