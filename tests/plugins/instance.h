/* SPDX-License-Identifier: Apache-2.0 */
/* What the odd workloads have alike: an instance that knows its options, and no tasks. Included behind struct options; a
 * workload that has more to say at the two ends defines BORN(x) and DIES(x). */
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
