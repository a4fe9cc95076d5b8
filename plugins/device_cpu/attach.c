/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches policies to the address space in which the workers run: this process, or the device's process. */
#include "device_cpu.h"

static void detach_first(struct launch *l, uint32_t n)
{
	while (n-- > 0)
		if (l->what->attachment[n].detach)
			l->what->attachment[n].detach(l->what->attachment[n].self, l->what->device);
}

int attach_all(struct launch *l, struct loom_error *err)
{
	const struct loom_launch *what = l->what;
	const struct loom_ctx *c = &l->lane[0].ctx;
	for (uint32_t i = 0; i < what->attachments; i++) {
		const struct loom_attachment *a = &what->attachment[i];
		struct loom_space space = {.size = sizeof(space),
					   .device = what->device,
					   .layout = what->layout,
					   .global = c->global[a->kind],
					   .on_device = c->on_device[a->kind],
					   .ctl = l->ctl};
		int code = a->attach ? a->attach(a->self, &space, err) : 0;
		if (code) {
			detach_first(l, i);
			return code;
		}
	}
	return 0;
}

void attach_ready(struct launch *l)
{
	const struct loom_launch *what = l->what;
	for (uint32_t i = 0; i < what->attachments; i++)
		if (what->attachment[i].ready)
			what->attachment[i].ready(what->attachment[i].self, what->device);
}

void detach_all(struct launch *l)
{
	detach_first(l, l->what->attachments);
}
