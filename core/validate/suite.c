/* SPDX-License-Identifier: Apache-2.0 */
/* All tests, in the order in which they run. */
#include "validate/tests.h"

#define ROW(name_, fn, kind_, level_, flags_, seconds, what_)                                      \
	{                                                                                          \
		.name = name_, .what = what_, .run = loom__test_##fn, .kind = LOOM_##kind_,        \
		.level = level_, .flags = flags_, .limit_ms = (seconds)*1000                       \
	}
#define UNLOADED LOOM__TEST_UNLOADED
#define POLICY   LOOM__TEST_POLICY
#define ROUGH    LOOM__TEST_ROUGH
#define FUZZ     LOOM__TEST_FUZZ

static const struct loom__test tests[] = {
    ROW("abi.load", abi_load, KIND_NONE, 1, UNLOADED, 10,
	"loads; ABI, tables, rows and manifest are sound and agree"),
    ROW("abi.entry_pure", abi_entry_pure, KIND_NONE, 1, UNLOADED, 10,
	"loading and describing it leaves no trace in the process"),
    ROW("abi.exports", abi_exports, KIND_NONE, 1, UNLOADED, 10, "exports loom_plugin_entry alone"),
    ROW("abi.links", abi_links, KIND_NONE, 1, UNLOADED, 10, "links to nothing of gpuloom"),
    ROW("abi.rows", abi_rows, KIND_NONE, 1, 0, 10,
	"option rows have fields of their own and real help"),

    ROW("life.destroy_null", life_destroy_null, KIND_NONE, 2, 0, 10, "destroy(NULL) does nothing"),
    ROW("life.create_destroy", life_create_destroy, KIND_NONE, 2, 0, 60,
	"a hundred instances leave no descriptor, thread, mapping or memory"),
    ROW("life.two_instances", life_two_instances, KIND_NONE, 2, 0, 10,
	"instances do not share state"),
    ROW("life.quiet", life_quiet, KIND_NONE, 2, 0, 10,
	"prints nothing, changes no signal handler, mask or environment"),
    ROW("life.options_const", life_options, KIND_NONE, 2, 0, 10, "leaves its option struct alone"),
    ROW("life.out_of_memory", life_out_of_memory, KIND_NONE, 2, 0, 60,
	"every failed allocation is refused in words and leaves nothing"),
    ROW("life.option_edges", life_option_edges, KIND_NONE, 2, 0, 60,
	"each option at its minimum, maximum and each choice: works or is refused in words"),
    ROW("life.option_mix", life_option_mix, KIND_NONE, 2, 0, 60, "random options: the same"),
    ROW("blocks.need", blocks_need, KIND_NONE, 2, POLICY, 30,
	"need() asks for reasonable memory, the same every time"),
    ROW("blocks.init", blocks_init, KIND_NONE, 2, POLICY, 60,
	"init() makes the same starting state every time, inside its blocks"),

    ROW("device.shape", device_shape, DEVICE, 3, 0, 10, "workers, lanes and kind"),
    ROW("device.memory", device_memory, DEVICE, 3, 0, 30,
	"memory is zeroed, aligned, visible, given back"),
    ROW("device.samples", device_samples, DEVICE, 3, 0, 60,
	"every worker runs once per sample, with a right context"),
    ROW("device.lanes", device_lanes, DEVICE, 3, 0, 60, "lanes of a worker really meet"),
    ROW("device.wait", device_wait, DEVICE, 3, 0, 30, "wait() ends in time, with the right code"),
    ROW("device.retire", device_retire, DEVICE, 3, 0, 60, "retire() at every point of a launch"),
    ROW("device.launches", device_launches, DEVICE, 3, 0, 60, "launches leave nothing behind"),
    ROW("device.instances", device_instances, DEVICE, 3, 0, 60,
	"two instances see each other's atomics"),
    ROW("device.death", device_death, DEVICE, 3, 0, 30, "a killed worker process is reported"),
    ROW("device.crowd", device_crowd, DEVICE, 4, ROUGH, 120, "far more threads than cores"),
    ROW("device.fuzz", device_fuzz, DEVICE, 5, FUZZ, 60, "random shapes and launches"),

    ROW("transport.segments", transport_segments, TRANSPORT, 3, 0, 30,
	"segments are as wanted: zeroed, aligned, inside, apart, mapped everywhere"),
    ROW("transport.placement", transport_placement, TRANSPORT, 3, 0, 30,
	"devices that hide their memory: the host still sees what it must"),
    ROW("transport.release", transport_release, TRANSPORT, 3, 0, 30,
	"release() gives everything back"),
    ROW("transport.failing", transport_failing, TRANSPORT, 3, 0, 30,
	"a device that refuses: an error, and nothing left behind"),
    ROW("transport.coherence", transport_coherence, TRANSPORT, 3, 0, 60,
	"atomics of each pair of devices, in memory of each placement"),
    ROW("transport.batches", transport_batches, TRANSPORT, 4, ROUGH, 60,
	"several sets of segments at once, released in any order"),
    ROW("transport.fuzz", transport_fuzz, TRANSPORT, 5, FUZZ, 60, "random segments"),

    ROW("sched.each_task_once", sched_once, SCHED, 3, 0, 60,
	"wide, deep and random trees: each task runs once, whole, and is counted"),
    ROW("sched.initial_set", sched_initial, SCHED, 3, 0, 60,
	"initial sets of 0, 1, odd and many tasks"),
    ROW("sched.tiny_queues", sched_tiny, SCHED, 3, 0, 60, "the smallest queues that it allows"),
    ROW("sched.lanes", sched_lanes, SCHED, 3, 0, 60, "workers of several lanes"),
    ROW("sched.stop", sched_stop, SCHED, 3, 0, 30, "endless work ends when the run is stopped"),
    ROW("sched.idle_stop", sched_idle_stop, SCHED, 3, 0, 30,
	"idle workers wait for the detector, and leave when the run is stopped"),
    ROW("sched.rough", sched_rough, SCHED, 4, ROUGH, 120,
	"more threads than cores, halted at any instruction"),
    ROW("sched.fuzz", sched_fuzz, SCHED, 5, FUZZ, 60, "random options, trees and sizes"),

    ROW("term.orders", term_orders, TERM, 3, 0, 60,
	"thousands of drawn orders of calls: no early end, no missing end"),
    ROW("term.empty", term_empty, TERM, 3, 0, 30, "no work at all ends at once"),
    ROW("term.steals", term_steals, TERM, 3, 0, 60, "threads that rob each other"),
    ROW("term.lanes", term_lanes, TERM, 3, 0, 30, "workers of several lanes"),
    ROW("term.rough", term_rough, TERM, 4, ROUGH, 120,
	"more threads than cores, halted at any instruction"),
    ROW("term.fuzz", term_fuzz, TERM, 5, FUZZ, 60, "random options, work and orders"),

    ROW("workload.tasks", workload_tasks, WORKLOAD, 3, 0, 60,
	"as many tasks as announced, the same every time, tags in range"),
    ROW("workload.verify", workload_verify, WORKLOAD, 3, 0, 120,
	"a right execution is accepted, twice, with one worker and with several"),
    ROW("workload.rejects", workload_rejects, WORKLOAD, 3, 0, 180,
	"no task run, a task forgotten, a word changed: rejected"),
    ROW("workload.repeat", workload_repeat, WORKLOAD, 3, 0, 120, "instance after instance"),
    ROW("workload.parallel", workload_parallel, WORKLOAD, 4, ROUGH, 180, "many workers, any order"),
    ROW("workload.fuzz", workload_fuzz, WORKLOAD, 5, FUZZ, 180, "random numbers of workers"),

    ROW("barrier.rounds", barrier_rounds, BARRIER, 3, 0, 60,
	"nobody leaves before the last has come, over thousands of rounds"),
    ROW("barrier.device", barrier_device, BARRIER, 3, 0, 30, "the barrier of a device is its own"),
    ROW("barrier.lanes", barrier_lanes, BARRIER, 3, 0, 60, "workers of several lanes, all scopes"),
    ROW("barrier.stop", barrier_stop, BARRIER, 3, 0, 30,
	"whoever waits leaves when the run is stopped"),
    ROW("barrier.rough", barrier_rough, BARRIER, 4, ROUGH, 120,
	"more threads than cores, halted at any instruction"),
    ROW("barrier.fuzz", barrier_fuzz, BARRIER, 5, FUZZ, 60, "random layouts and scopes"),

    ROW("sync.publish_first", sync_before, SYNC, 3, 0, 60,
	"items that are there before they are waited for"),
    ROW("sync.wait_first", sync_after, SYNC, 3, 0, 60, "items that come after they are waited for"),
    ROW("sync.many", sync_many, SYNC, 3, 0, 60,
	"several producers, several readers, several tags at once"),
    ROW("sync.in_place", sync_in_place, SYNC, 3, 0, 60, "items written in place after reserve()"),
    ROW("sync.lanes", sync_lanes, SYNC, 3, 0, 60, "workers of several lanes"),
    ROW("sync.deadline", sync_deadline, SYNC, 3, 0, 30,
	"a wait ends at its deadline and may be repeated"),
    ROW("sync.stop", sync_stop, SYNC, 3, 0, 30, "every wait ends when the run is stopped"),
    ROW("sync.died", sync_died, SYNC, 3, 0, 30, "waits for a device that died say so"),
    ROW("sync.rough", sync_rough, SYNC, 4, ROUGH, 120,
	"more threads than cores, halted at any instruction"),
    ROW("sync.fuzz", sync_fuzz, SYNC, 5, FUZZ, 60, "random options, channels and sizes"),

    ROW("trigger.threshold", trigger_threshold, TRIGGER, 3, 0, 60,
	"an operation runs at its threshold, not before, and once"),
    ROW("trigger.fire_first", trigger_fire_first, TRIGGER, 3, 0, 60,
	"fires that come before their post count"),
    ROW("trigger.cancel", trigger_cancel, TRIGGER, 3, 0, 60,
	"what was cancelled does not run; places are free again"),
    ROW("trigger.chain", trigger_chain, TRIGGER, 3, 0, 60, "chains, and the order of thresholds"),
    ROW("trigger.rearm", trigger_rearm, TRIGGER, 3, 0, 60, "an operation that arms itself again"),
    ROW("trigger.race", trigger_race, TRIGGER, 3, 0, 60,
	"all workers fire one tag: no fire is lost or counted twice"),
    ROW("trigger.stop", trigger_stop, TRIGGER, 3, 0, 30,
	"a kernel boundary ends when the run is stopped"),
    ROW("trigger.rough", trigger_rough, TRIGGER, 4, ROUGH, 120,
	"more threads than cores, halted at any instruction"),
    ROW("trigger.fuzz", trigger_fuzz, TRIGGER, 5, FUZZ, 60, "random numbers of workers and fires"),

    ROW("qos.bounds", qos_bounds, QOS, 3, 0, 60,
	"decisions stay within those before them, and within reason"),
    ROW("qos.options", qos_options, QOS, 3, 0, 60, "the same with random options"),
    ROW("qos.serve", qos_serve, QOS, 3, 0, 120, "a leader serves every request"),
    ROW("qos.serve_rough", qos_serve, QOS, 4, ROUGH, 120, "the same, halted at any instruction"),
    ROW("qos.fuzz", qos_fuzz, QOS, 5, FUZZ, 60, "random options and loads"),

    ROW("stack.runs", stack_runs, KIND_NONE, 4, 0, 300,
	"with --with CONF: runs in the stack of that conf"),
};

const struct loom__test *loom__suite(size_t *n)
{
	*n = LOOM__COUNT(tests);
	return tests;
}
