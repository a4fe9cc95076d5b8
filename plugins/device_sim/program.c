/* SPDX-License-Identifier: Apache-2.0 */
/* The device code of the selected policies, composed as for GPUs and compiled for the host. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../device_common/compose/compose.h"
#include "../device_common/compose/hostcc.h"
#include "device_sim.h"

LOOM_EMBED(sim_text, "sim.dev.h");
LOOM_EMBED(layer_text, "gpuloom/dev/sim.h");
/* With memory = weak, the program begins with the declarations of the model. */
LOOM_EMBED_TEXT(weak_text, ".incbin \"race.h\"\n.ascii \"\\n#define LOOM_SIM 1\\n#define LOOM_SIM_WEAK 1\\n\"\n");
static const struct compose_layer layer = {"gpuloom/dev/sim.h", layer_text, ""};

/* Rejects policies with host threads. These threads run in real time, which has no order with virtual time. */
static int refuse_threads(struct device *d, const struct loom_program *program, struct loom_error *err)
{
	for (int kind = LOOM_SCHED; kind < LOOM_KINDS_MAX; kind++) {
		const struct loom_plugin *p = program->policy[kind];
		const struct loom_policy_ops *ops = p ? p->ops : NULL;
		if (LOOM_HAS(ops, start) && !(p->dev && p->dev->flags & LOOM_CODE_VIRTUAL))
			return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
					 "%s: %s has host threads, which run in real time: choose another device, "
					 "or another plug-in",
					 d->name, p->name);
	}
	return 0;
}

static int load(struct device *d, const char *text, struct loom_error *err)
{
	struct hostcc_want want = {.label = d->name, .what = "device functions", .cpp = 1, .text = text, .layer = &layer,
				   .traced = d->options->memory != 0};
	void *so;
	int code = hostcc_load(d->host, &want, &so, err);
	if (code)
		return code;
	struct loom_sim **sim = dlsym(so, "loom_sim");
	const uint64_t *bytes = dlsym(so, "loom_sim_context_bytes");
	*(void **)&d->work = dlsym(so, "loom_sim_work");
	if (!sim || !bytes || !d->work)
		return LOOM_FAIL(d->host, err, LOOM_EINTERNAL, "%s: its program has no entry", d->name);
	if (*bytes > sizeof(struct loom_ctx) + SIM_REGISTER_BYTES)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
				 "%s: the scheduler needs more register words per lane than there is room for: choose "
				 "another scheduler",
				 d->name);
	*sim = &d->simulation->sim;
	return 0;
}

/* Uses the program that another device has loaded, if the text is the same. All devices of a job have the same
 * program. */
static int share(struct device *d, const char *text)
{
	struct simulation *s = d->simulation;
	if (!s->program || strcmp(s->program, text) != 0)
		return 0;
	d->work = s->work;
	return 1;
}

int device_build(void *self, const struct loom_program *program, struct loom_error *err)
{
	struct device *d = self;
	struct compose_target target = {.label = d->name,
					.layer = &layer,
					.kernel = sim_text,
					.defines = d->options->memory ? weak_text : "#define LOOM_SIM 1\n",
					.lanes = 1,
					.per_block = 1,
					.blocks = 1,
					.nesting = d->options->nesting};
	struct loom__text text;
	int code = refuse_threads(d, program, err);
	if (!code)
		code = compose_check_ir(d->host, d->name, program, 0, NULL, err);
	if (!code)
		code = compose_work(d->host, &target, program, &text, err);
	if (code)
		return code;
	/* One rank compiles for all ranks. */
	pthread_mutex_lock(&d->simulation->lock);
	if (!share(d, text.at)) {
		code = load(d, text.at, err);
		free(code ? NULL : d->simulation->program);
		d->simulation->program = code ? d->simulation->program : strdup(text.at);
		d->simulation->work = code ? d->simulation->work : d->work;
	}
	pthread_mutex_unlock(&d->simulation->lock);
	loom__text_free(&text);
	return code;
}
