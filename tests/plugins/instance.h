/* SPDX-License-Identifier: Apache-2.0 */
/* The workloads for tests share this code: an instance with its options, no tasks, and a kernel. A workload includes
 * this file after struct options, and ends with ODD_PLUGIN(). It may define BORN(x) and DIES(x), which create() and
 * destroy() call. */
#ifndef BORN
#define BORN(x) ((void)(x))
#endif
#ifndef DIES
#define DIES(x) ((void)(x))
#endif

struct instance {
	const struct loom_host *host;
	const struct options *options;
	unsigned samples;
	double drawn;
};

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct instance *x = host->alloc(host, sizeof(*x));
	if (!x)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	*x = (struct instance){.host = host, .options = opts};
	BORN(x);
	*self = x;
	return 0;
}

static void destroy(void *self)
{
	struct instance *x = self;
	if (x) {
		DIES(x);
		x->host->free(x->host, x);
	}
}

static int tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		 struct loom_task *list, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)global, (void)list, (void)err;
	return 0;
}

#define ODD_PLUGIN(name, summary, kernel_, ...)                                                    \
	static const struct loom_workload_ops ops = {.size = sizeof(ops),                          \
						     .create = create,                             \
						     .destroy = destroy,                           \
						     .need = need,                                 \
						     .init = init,                                 \
						     .tasks = tasks,                               \
						     .verify = verify,                             \
						     __VA_ARGS__};                                 \
	static const struct loom_workload_dev cpu = {.size = sizeof(cpu), .kernel = kernel_};      \
	static const struct loom_device_code code = {.size = sizeof(code), .cpu = &cpu};           \
	LOOM_PLUGIN_DEFINE(WORKLOAD, name, "0.1.0", "Apache-2.0", summary, .opts = rows,           \
			   .opts_size = sizeof(struct options), .ops = &ops, .dev = &code)
