/* SPDX-License-Identifier: Apache-2.0 */
/* Makes kernels on the GPU from the selected policies. The steps are composition, cache or compiler, and loading. */
#include "gpu.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static void unload(struct gpu *d, struct gpu_kernel *k)
{
	if (k->module)
		d->driver->unload(d, k);
	*k = (struct gpu_kernel){0};
}

void program_finish(struct gpu *d)
{
	for (int entry = 0; entry <= LOOM_ENTRY_PROBE; entry++)
		unload(d, &d->kernel[entry]);
	unload(d, &d->collective);
}

/* Makes the key of the cache from the compiler, its options, the headers, the program and the IR. */
static int make_key(struct gpu *d, const struct gpu_program *program, struct loom__text *key, struct loom_error *err)
{
	size_t count;
	const struct compose_header *header = compose_headers(&count);
	*key = (struct loom__text){0};
	loom__text_add(key, "%s %d.%d", d->compiler.kind->title, d->compiler.major, d->compiler.minor);
	d->driver->identify(d, key);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || header[i].text != header[i - 1].text)
			loom__text_add(key, "\n%s", header[i].text);
	loom__text_add(key, "\n%s", d->driver->compiler->layer->text);
	loom__text_add(key, "\n%s", program->text.at);
	for (uint32_t i = 0; i < program->irs; i++) {
		loom__text_add(key, "\n%llu bytes of IR:\n", (unsigned long long)program->ir[i]->bytes);
		loom__text_put(key, program->ir[i]->data, program->ir[i]->bytes);
	}
	if (!key->failed)
		return 0;
	loom__text_free(key);
	return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
}

static int compile(struct gpu *d, const struct gpu_program *program, struct cached *out, struct loom_error *err)
{
	uint64_t begin = d->host->now_ns(d->host);
	int code = d->driver->compile(d, program, out, err);
	if (!code)
		LOOM_LOG(d->host, LOOM_LOG_INFO, d->name, "compiled in %" PRIu64 " ms",
			 (d->host->now_ns(d->host) - begin) / 1000000);
	return code;
}

/* Gets machine code from the cache or, if it is not there, from the compiler. */
static int get_code(struct gpu *d, const struct gpu_program *program, struct cached *out, struct loom_error *err)
{
	char folder[PATH_MAX];
	struct loom__text key;
	uint64_t begin = d->host->now_ns(d->host);
	int code = make_key(d, program, &key, err);
	if (code)
		return code;
	cache_folder(d->options->cache, folder, sizeof(folder));
	if (d->options->compile == COMPILE_CACHED && cache_get(d->host, folder, key.at, key.length, out)) {
		LOOM_LOG(d->host, LOOM_LOG_DEBUG, d->name, "compiled before: taken from %s in %" PRIu64 " us", folder,
			 (d->host->now_ns(d->host) - begin) / 1000);
	} else {
		code = compile(d, program, out, err);
		int failed = code ? 0 : cache_put(folder, key.at, key.length, out);
		if (failed)
			LOOM_LOG(d->host, LOOM_LOG_INFO, d->name, "the compiled program is not kept in %s: %s",
				 *folder ? folder : "a cache (no home folder)", strerror(failed));
	}
	loom__text_free(&key);
	return code;
}

static int load(struct gpu *d, const struct cached *in, struct gpu_kernel *k, struct loom_error *err)
{
	int rc = d->driver->load(d, in, k);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	if (!k->is_collective && k->launch_bytes != sizeof(struct loom_gpu_launch))
		return LOOM_FAIL(d->host, err, LOOM_EINTERNAL,
				 "%s: the sizes of the launch record differ between host and kernel: %zu and %zu "
				 "bytes", d->name,
				 sizeof(struct loom_gpu_launch), k->launch_bytes);
	return 0;
}

int program_make(struct gpu *d, const struct gpu_program *program, struct gpu_kernel *k, struct loom_error *err)
{
	struct cached cached = {0};
	int code = get_code(d, program, &cached, err);
	if (code)
		return code;
	k->resources = cached.resources;
	code = load(d, &cached, k, err);
	d->host->free(d->host, cached.code);
	if (code) {
		unload(d, k);
		return code;
	}
	LOOM_LOG(d->host, LOOM_LOG_INFO, d->name,
		 "%d registers, %u bytes of stack, %u bytes of them spilled registers; %u bytes of stack "
		 "per nested task",
		 k->registers, k->resources.stack, k->resources.spills, k->resources.nested);
	return 0;
}

/* Selects the IR that this device can link. The embedding program may have the same task functions in other formats. */
static int choose_ir(struct gpu *d, const struct loom_program *program, const struct loom_program_ir ***ir,
		     struct gpu_program *out, struct loom_error *err)
{
	uint32_t irs = LOOM_HAS(program, ir) ? program->irs : 0;
	if (!irs)
		return 0;
	*ir = d->host->alloc(d->host, irs * sizeof(**ir));
	if (!*ir)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	for (uint32_t i = 0; i < irs; i++)
		if (compose_format(&program->ir[i]) & d->driver->ir)
			(*ir)[out->irs++] = &program->ir[i];
	out->ir = *ir;
	return 0;
}

int gpu_build(void *self, const struct loom_program *program, struct loom_error *err)
{
	struct gpu *d = self;
	uint64_t local_bytes = LOOM_HAS(program, local_bytes) ? program->local_bytes : 0;
	shape_bind(d, LOOM_HAS(program, registers) ? program->registers : 0, local_bytes);
	struct compose_target target = {.label = d->name,
					.layer = d->driver->compiler->layer,
					.defines = d->defines,
					.lanes = d->lanes,
					.per_block = d->per_block,
					.blocks = d->bound,
					.launched = d->options->kernels != KERNELS_PERSISTENT,
					.nesting = d->options->nesting};
	struct gpu_program source = {.irs = 0};
	const struct loom_program_ir **ir = NULL;
	target.watch = d->driver->watches && !target.launched ? (uint32_t)d->limits.wave : 0;
	d->watch = compose_watches(program) ? target.watch : 0;
	if (d->lanes * d->per_block + d->watch > (uint32_t)d->limits.threads_per_block)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: the selected sync needs %u threads in each block beside its workers', which "
				 "makes more than %d: reduce lanes or workers per block",
				 d->name, d->watch, d->limits.threads_per_block);
	int code = target.launched ? chain_check(d, program, err) : 0;
	if (!code)
		code = compose_check_ir(d->host, d->name, program, d->driver->ir, d->driver->ir_text, err);
	if (!code)
		code = compose_work(d->host, &target, program, &source.text, err);
	if (code)
		return code;
	code = choose_ir(d, program, &ir, &source, err);
	if (!code)
		code = gpu_enter(d, err);
	if (!code) {
		unload(d, &d->kernel[LOOM_ENTRY_WORK]);
		struct gpu_kernel *k = &d->kernel[LOOM_ENTRY_WORK];
		code = program_make(d, &source, k, err);
		k->stepped = (int)target.launched;
		if (!code)
			code = shape_again(d, k, local_bytes, err);
		if (!code)
			LOOM_LOG(d->host, LOOM_LOG_INFO, d->name,
				 "%u workers are resident, %u blocks on each multiprocessor; scheduler and tasks use %llu bytes of "
				 "scratchpad memory of each",
				 d->workers, d->residency, (unsigned long long)local_bytes);
		gpu_leave(d);
	}
	d->host->free(d->host, ir);
	loom__text_free(&source.text);
	return code;
}

/* Builds the probe, a program for one worker, if it was not built yet. The probe does not depend on gpu_build(). */
int program_probe(struct gpu *d, struct loom_error *err)
{
	struct compose_target target = {.label = d->name,
					.layer = d->driver->compiler->layer,
					.defines = d->defines,
					.lanes = (uint32_t)d->limits.wave,
					.per_block = 1,
					.blocks = 1,
					.nesting = 0};
	struct gpu_program source = {.irs = 0};
	if (d->kernel[LOOM_ENTRY_PROBE].module)
		return 0;
	int code = compose_probe(d->host, &target, &source.text, err);
	if (code)
		return code;
	code = program_make(d, &source, &d->kernel[LOOM_ENTRY_PROBE], err);
	loom__text_free(&source.text);
	return code;
}
