/* SPDX-License-Identifier: Apache-2.0 */
/* What the deliberately broken plug-ins share: the parts of a sound termination detector, and ways
 * to write by hand what LOOM_PLUGIN_DEFINE gets right. */
#ifndef LOOM_TEST_BAD_H
#define LOOM_TEST_BAD_H

#include <gpuloom/term.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BAD_UNUSED __attribute__((unused))

static BAD_UNUSED int bad_create(const struct loom_host *host, const void *opts, void **self,
				 struct loom_error *err)
{
	(void)host, (void)opts, (void)err;
	*self = NULL;
	return 0;
}

static BAD_UNUSED void bad_destroy(void *self)
{
	(void)self;
}

static BAD_UNUSED int bad_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			       struct loom_error *err)
{
	(void)self, (void)layout, (void)need, (void)err;
	return 0;
}

static BAD_UNUSED int bad_init(void *self, const struct loom_layout *layout,
			       const struct loom_view *view, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)err;
	return 0;
}

static BAD_UNUSED void bad_step(struct loom_ctx *c)
{
	(void)c;
}

static BAD_UNUSED int bad_done(struct loom_ctx *c, uint64_t robbed)
{
	(void)c, (void)robbed;
	return 1;
}

static BAD_UNUSED const struct loom_term_ops good_ops = {
	.size = sizeof(good_ops),
	.create = bad_create,
	.destroy = bad_destroy,
	.need = bad_need,
	.init = bad_init,
};
static BAD_UNUSED const struct loom_term_dev good_dev = {
	.size = sizeof(good_dev), .idle = bad_step, .busy = bad_step, .done = bad_done};
static BAD_UNUSED const struct loom_device_code good_code = {.size = sizeof(good_code),
							     .cpu = &good_dev};

/* A sound plug-in but for what follows the name. */
#define BAD_DEFINE(name, ...)                                                                      \
	LOOM_PLUGIN_DEFINE(TERM, name, "1.0.0", "Apache-2.0", "broken on purpose", __VA_ARGS__)
#define GOOD_PARTS .ops = &good_ops, .dev = &good_code

/* The identity alone, as fields of struct loom_plugin; what is given later wins. */
#define GOOD_HEAD(name_)                                                                           \
	.magic = LOOM_PLUGIN_MAGIC, .abi = LOOM_ABI_CURRENT, .size = sizeof(struct loom_plugin),   \
	.kind = LOOM_TERM, .kind_abi = LOOM_KIND_ABI_TERM, .min_host_abi = LOOM_ABI(1, 0),         \
	.name = name_, .version = "1.0.0", .license = "Apache-2.0", .summary = "broken on purpose"
#define BAD_ENTRY(...)                                                                             \
	const struct loom_plugin *loom_plugin_entry(void)                                          \
	{                                                                                          \
		static const struct loom_plugin self = {__VA_ARGS__};                              \
		return &self;                                                                      \
	}
/* The same for the manifest. */
#define GOOD_MANIFEST(name_)                                                                       \
	.magic = LOOM_PLUGIN_MAGIC, .abi = LOOM_ABI_CURRENT, .kind = LOOM_TERM,                    \
	.kind_abi = LOOM_KIND_ABI_TERM, .min_host_abi = LOOM_ABI(1, 0), .name = name_,             \
	.version = "1.0.0", .license = "Apache-2.0", .summary = "broken on purpose"
#define BAD_NOTE(...)                                                                              \
	__attribute__((used, section(LOOM_NOTE_SECTION),                                           \
		       aligned(4))) static const struct loom_note bad_note = {                     \
		.name_size = 8,                                                                    \
		.desc_size = sizeof(struct loom_manifest),                                         \
		.type = LOOM_NOTE_TYPE,                                                            \
		.owner = "gpuloom",                                                                \
		.manifest = {__VA_ARGS__}}

#define WHEN_LOADED __attribute__((constructor)) static void when_loaded(void)

#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

#endif
