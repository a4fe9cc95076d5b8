/* SPDX-License-Identifier: Apache-2.0 */
/* From the selected policies to kernels on the GPU: composition, cache, NVRTC, module. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../compose/compose.h"
#include "device_cuda.h"

static void unload(struct device *d, struct kernel *k)
{
	if (k->module)
		d->cu.cuModuleUnload(k->module);
	*k = (struct kernel){0};
}

void program_finish(struct device *d)
{
	for (int entry = 0; entry <= LOOM_ENTRY_PROBE; entry++)
		unload(d, &d->kernel[entry]);
}

/* What the code depends on: the compiler, its options, the headers and the program. */
static int make_key(struct device *d, const char *const *options, int n, const struct text *program,
		    struct text *key, struct loom_error *err)
{
	size_t count;
	const struct compose_header *header = compose_headers(&count);
	*key = (struct text){.host = d->host};
	text_add(key, "nvrtc %d.%d", d->compiler.major, d->compiler.minor);
	for (int i = 0; i < n; i++)
		text_add(key, " %s", options[i]);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || header[i].text != header[i - 1].text)
			text_add(key, "\n%s", header[i].text);
	text_add(key, "\n%s", program->at);
	if (!key->failed)
		return 0;
	text_free(key);
	return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
}

static int compile(struct device *d, const struct text *program, const char *const *options, int n,
		   struct cached *out, struct loom_error *err)
{
	struct compiled compiled;
	uint64_t begin = d->host->now_ns(d->host);
	int code = compiler_run(d->host, d->name, &d->compiler, program->at, options, n, 0, &compiled,
				err);
	if (code)
		return code;
	*out = (struct cached){.code = compiled.cubin, .bytes = compiled.cubin_bytes};
	compiled.cubin = NULL;
	if (!resources_read(compiled.log, COMPOSE_KERNEL, &out->resources))
		out->resources.nested = 2048; /* no report: more than was ever seen */
	compiled_free(d->host, &compiled);
	LOOM_LOG(d->host, LOOM_LOG_INFO, d->name, "compiled in %" PRIu64 " ms",
		 (d->host->now_ns(d->host) - begin) / 1000000);
	return 0;
}

/* Machine code, from the cache or the compiler. */
static int get_code(struct device *d, const struct text *program, struct cached *out,
		    struct loom_error *err)
{
	char arch[32], folder[PATH_MAX];
	struct text key;
	uint64_t begin = d->host->now_ns(d->host);
	snprintf(arch, sizeof(arch), "-arch=%s", d->arch);
	const char *const options[] = {arch, COMPILER_FLAGS};
	int n = sizeof(options) / sizeof(options[0]);
	int code = make_key(d, options, n, program, &key, err);
	if (code)
		return code;
	cache_folder(d->options->cache, folder, sizeof(folder));
	if (d->options->compile == COMPILE_CACHED &&
	    cache_get(d->host, folder, key.at, key.length, out)) {
		LOOM_LOG(d->host, LOOM_LOG_DEBUG, d->name, "compiled before: taken from %s in %" PRIu64 " us",
			 folder, (d->host->now_ns(d->host) - begin) / 1000);
	} else {
		code = compile(d, program, options, n, out, err);
		int failed = code ? 0 : cache_put(folder, key.at, key.length, out);
		if (failed)
			LOOM_LOG(d->host, LOOM_LOG_INFO, d->name,
				 "the compiled program is not kept in %s: %s",
				 *folder ? folder : "a cache (no home folder)", strerror(failed));
	}
	text_free(&key);
	return code;
}

static int load(struct device *d, const struct cached *in, struct kernel *k, struct loom_error *err)
{
	size_t bytes;
	const char *what = "cuModuleLoadData";
	CUresult rc = d->cu.cuModuleLoadData(&k->module, in->code);
	if (rc != CUDA_SUCCESS) {
		k->module = NULL;
		return cuda_fail(d, err, rc, what);
	}
	/* Loads the code now, where the driver is set to load lazily: no such wait in a sample. */
	what = "cuModuleGetFunction";
	rc = d->cu.cuModuleGetFunction(&k->function, k->module, COMPOSE_KERNEL);
	if (rc == CUDA_SUCCESS) {
		what = "cuModuleGetGlobal";
		rc = d->cu.cuModuleGetGlobal(&k->launch, &bytes, k->module, COMPOSE_LAUNCH);
	}
	if (rc == CUDA_SUCCESS) {
		what = "cuFuncGetAttribute";
		rc = d->cu.cuFuncGetAttribute(&k->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, k->function);
	}
	if (rc == CUDA_SUCCESS)
		rc = d->cu.cuFuncGetAttribute(&k->shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
					      k->function);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(d, err, rc, what);
	if (bytes != sizeof(struct loom_gpu_launch))
		return LOOM_FAIL(d->host, err, LOOM_EINTERNAL,
				 "%s: host and kernel differ on the launch record: %zu and %zu bytes",
				 d->name, sizeof(struct loom_gpu_launch), bytes);
	return 0;
}

/* The default of 1 KiB would do until tasks run inside each other. */
static int reserve_stack(struct device *d, const struct kernel *k, struct loom_error *err)
{
	size_t have = 0, want = k->resources.stack + 512u +
				(size_t)k->resources.nested * (d->options->nesting + 1u);
	CUresult rc = d->cu.cuCtxGetLimit(&have, CU_LIMIT_STACK_SIZE);
	if (rc == CUDA_SUCCESS && have < want)
		rc = d->cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, want);
	if (rc == CUDA_SUCCESS)
		return 0;
	char what[96];
	snprintf(what, sizeof(what), "a stack of %zu bytes per thread (lower nesting)", want);
	return cuda_fail(d, err, rc, what);
}

static int make_kernel(struct device *d, const struct text *program, struct kernel *k,
		       struct loom_error *err)
{
	struct cached cached = {0};
	int code = get_code(d, program, &cached, err);
	if (code)
		return code;
	k->resources = cached.resources;
	code = load(d, &cached, k, err);
	d->host->free(d->host, cached.code);
	if (!code)
		code = reserve_stack(d, k, err);
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

int device_build(void *self, const struct loom_program *program, struct loom_error *err)
{
	struct device *d = self;
	struct compose_target target = {.who = d->name,
					.dialect = compose_cuda,
					.lanes = d->lanes,
					.per_block = d->per_block,
					.blocks = d->bound,
					.nesting = d->options->nesting};
	struct text text;
	int code = compose_work(d->host, &target, program, &text, err);
	if (code)
		return code;
	code = enter(d, err);
	if (!code) {
		unload(d, &d->kernel[LOOM_ENTRY_WORK]);
		struct kernel *k = &d->kernel[LOOM_ENTRY_WORK];
		code = make_kernel(d, &text, k, err);
		if (!code)
			code = shape_again(d, k, LOOM_HAS(program, local_bytes) ? program->local_bytes : 0, err);
		if (!code)
			LOOM_LOG(d->host, LOOM_LOG_INFO, d->name,
				 "%u workers are resident, %u blocks on each multiprocessor", d->workers,
				 d->residency);
		leave(d);
	}
	text_free(&text);
	return code;
}

/* The probe's program has one worker; it comes before the first build(). */
int program_probe(struct device *d, struct loom_error *err)
{
	struct compose_target target = {.who = d->name,
					.dialect = compose_cuda,
					.lanes = 32,
					.per_block = 1,
					.blocks = 1,
					.nesting = 0};
	struct text text;
	if (d->kernel[LOOM_ENTRY_PROBE].module)
		return 0;
	int code = compose_probe(d->host, &target, &text, err);
	if (code)
		return code;
	code = make_kernel(d, &text, &d->kernel[LOOM_ENTRY_PROBE], err);
	text_free(&text);
	return code;
}
