/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the sync plug-in: gives it the workload's channels, gives its hooks to every address space that runs
 * workers, and ends its waits when a run ends early. */
#include "stack/stack.h"

static int check_channels(const struct loom_stack *s, const struct loom_channel *channel, uint32_t n,
			  struct loom_error *err)
{
	uint32_t devices = s->layout.devices;
	for (uint32_t i = 0; i < n; i++)
		if (!channel[i].slots || channel[i].slots > 1u << 24 || !channel[i].readers ||
		    channel[i].to >= devices ||
		    (channel[i].from >= devices && channel[i].from != LOOM_ANY_DEVICE) ||
		    !channel[i].item_bytes || channel[i].item_bytes > 1ull << 32)
			return LOOM__FAIL(err, LOOM_EPLUGIN, "channel %u of the workload is impossible", i);
	return 0;
}

int loom__sync_channels(struct loom_stack *s, struct loom_error *err)
{
	const struct loom_channel *channel = NULL;
	uint32_t n = 0;
	struct loom__policy *sync = loom__policy_of(s, LOOM_SYNC), *workload = loom__policy_of(s, LOOM_WORKLOAD);
	const struct loom_workload_ops *w = workload ? workload->choice->plugin->ops : NULL;
	if (!LOOM_HAS(w, channels))
		return 0;
	int rc = LOOM__OP(workload->choice, "channels", w->channels(workload->self, &s->layout, &channel, &n, err), err);
	if (rc || !n)
		return rc;
	rc = check_channels(s, channel, n, err);
	if (rc)
		return rc;
	const struct loom_sync_ops *ops = sync->choice->plugin->ops;
	return LOOM__OP(sync->choice, "channels", ops->channels(sync->self, &s->layout, channel, n, err), err);
}

uint32_t loom__sync_attachments(struct loom_stack *s, struct loom_attachment *out)
{
	struct loom__policy *sync = loom__policy_of(s, LOOM_SYNC);
	const struct loom_sync_ops *ops = sync ? sync->choice->plugin->ops : NULL;
	if (!LOOM_HAS(ops, attach) && !LOOM_HAS(ops, ready) && !LOOM_HAS(ops, detach))
		return 0;
	*out = (struct loom_attachment){.self = sync->self,
					.kind = LOOM_SYNC,
					.attach = LOOM_HAS(ops, attach) ? ops->attach : NULL,
					.ready = LOOM_HAS(ops, ready) ? ops->ready : NULL,
					.detach = LOOM_HAS(ops, detach) ? ops->detach : NULL};
	return 1;
}

void loom__interrupt(struct loom_stack *s, int code, uint32_t device)
{
	struct loom__policy *sync = loom__policy_of(s, LOOM_SYNC), *workload = loom__policy_of(s, LOOM_WORKLOAD);
	const struct loom_sync_ops *ops = sync ? sync->choice->plugin->ops : NULL;
	const struct loom_workload_ops *job = workload ? workload->choice->plugin->ops : NULL;
	/* Release: pairs with the acquire of `died` in sync_poisoned(), by workers that have seen `stop`. The core sets
	 * `stop` later. */
	if (code == LOOM_EDIED)
		__atomic_store_n(&s->ctl->died, device + 1, __ATOMIC_RELEASE);
	if (LOOM_HAS(ops, interrupt))
		ops->interrupt(sync->self, &s->layout, &sync->view, code, device);
	if (LOOM_HAS(job, interrupt))
		job->interrupt(workload->self);
}
