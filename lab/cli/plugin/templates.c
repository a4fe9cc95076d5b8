/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plugin/templates.h"

#define EMBED(name, file)                                                                                              \
	LOOM_EMBED(name##_text, "conform/templates/" file);                                                            \
	static const struct loom__embedded name = {name##_text, name##_text_end}
#define EMBED_SHARED(name, file)                                                                                       \
	LOOM_EMBED(name##_text, "conform/templates/" file);                                                            \
	const struct loom__embedded name = {name##_text, name##_text_end}

EMBED_SHARED(loom__template_makefile, "Makefile.in");
EMBED_SHARED(loom__template_conf, "conf.ini.in");
EMBED_SHARED(loom__template_test, "test.sh.in");
EMBED_SHARED(loom__template_readme, "README.md.in");
EMBED(device_c, "device.c.in");
EMBED(transport_c, "transport.c.in");
EMBED(sched_c, "sched.c.in");
EMBED(sched_dev, "sched.dev.h.in");
EMBED(term_c, "term.c.in");
EMBED(term_dev, "term.dev.h.in");
EMBED(sync_c, "sync.c.in");
EMBED(sync_dev, "sync.dev.h.in");
EMBED(barrier_c, "barrier.c.in");
EMBED(barrier_dev, "barrier.dev.h.in");
EMBED(trigger_c, "trigger.c.in");
EMBED(trigger_dev, "trigger.dev.h.in");
EMBED(qos_c, "qos.c.in");
EMBED(workload_c, "workload.c.in");
EMBED(workload_dev, "workload.dev.h.in");

const struct loom__template *loom__template_of(enum loom_kind kind)
{
	static const struct loom__template template[LOOM_KINDS] = {
	    [LOOM_DEVICE] = {&device_c, NULL, "threads of this process, one per worker"},
	    [LOOM_TRANSPORT] = {&transport_c, NULL, "one block of host memory for all devices"},
	    [LOOM_SCHED] = {&sched_c, &sched_dev, "one queue for all workers, behind a lock"},
	    [LOOM_TERM] = {&term_c, &term_dev, "one counter of idle workers"},
	    [LOOM_SYNC] = {&sync_c, &sync_dev, "consumers that poll for their item"},
	    [LOOM_BARRIER] = {&barrier_c, &barrier_dev, "a central barrier"},
	    [LOOM_TRIGGER] = {&trigger_c, &trigger_dev, "operations within this process, by memory copies"},
	    [LOOM_QOS] = {&qos_c, NULL, "counts what the service path serves, and limits nothing"},
	    [LOOM_WORKLOAD] = {&workload_c, &workload_dev, "the sum of squares, one task each"},
	};
	return &template[kind];
}
