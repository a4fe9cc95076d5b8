/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and destroys a plug-in of any kind. */
#ifndef LOOM_VALIDATE_INSTANCE_H
#define LOOM_VALIDATE_INSTANCE_H

#include <gpuloom/device.h>

#include "conform/trial.h"

static inline int loom__instance_create(struct loom__trial *t, const void *opts, void **self,
					struct loom_error *err)
{
	*self = NULL;
	int rc = LOOM_HAS(t->plugin, check) ? t->plugin->check(&t->host.table, opts, err) : 0;
	if (rc)
		return rc;
	if (t->plugin->kind == LOOM_DEVICE) {
		const struct loom_device_ops *ops = t->plugin->ops;
		return ops->create(&t->host.table, opts, 0, 1, self, err);
	}
	const struct loom_policy_ops *ops = t->plugin->ops; /* The tables of all other kinds begin alike. */
	return ops->create(&t->host.table, opts, self, err);
}

static inline void loom__instance_destroy(struct loom__trial *t, void *self)
{
	if (t->plugin->kind == LOOM_DEVICE)
		((const struct loom_device_ops *)t->plugin->ops)->destroy(self);
	else
		((const struct loom_policy_ops *)t->plugin->ops)->destroy(self);
}

/* Creates an instance with the trial's own options. A proper refusal because of this machine is a skip. */
int loom__instance_must(struct loom__trial *t, void **self);

#endif
