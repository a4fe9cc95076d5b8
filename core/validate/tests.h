/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of the suite, by file. */
#ifndef LOOM_VALIDATE_TESTS_H
#define LOOM_VALIDATE_TESTS_H

#include "validate/trial.h"

/* abi.c */
loom__trial_fn loom__test_abi_load, loom__test_abi_entry_pure, loom__test_abi_exports,
    loom__test_abi_links, loom__test_abi_rows;
/* life.c */
loom__trial_fn loom__test_life_destroy_null, loom__test_life_create_destroy,
    loom__test_life_two_instances, loom__test_life_quiet, loom__test_life_options;
/* refuse.c */
loom__trial_fn loom__test_life_out_of_memory, loom__test_life_option_edges,
    loom__test_life_option_mix;
/* blocks.c */
loom__trial_fn loom__test_blocks_need, loom__test_blocks_init;
/* device.c */
loom__trial_fn loom__test_device_shape, loom__test_device_memory, loom__test_device_samples,
    loom__test_device_lanes, loom__test_device_retire, loom__test_device_wait,
    loom__test_device_launches, loom__test_device_instances, loom__test_device_death,
    loom__test_device_crowd, loom__test_device_fuzz;
/* transport.c */
loom__trial_fn loom__test_transport_segments, loom__test_transport_placement,
    loom__test_transport_release, loom__test_transport_failing, loom__test_transport_coherence,
    loom__test_transport_batches, loom__test_transport_fuzz;
/* sched.c */
loom__trial_fn loom__test_sched_once, loom__test_sched_initial, loom__test_sched_tiny,
    loom__test_sched_record, loom__test_sched_stop, loom__test_sched_idle_stop,
    loom__test_sched_lanes, loom__test_sched_rough, loom__test_sched_fuzz;
/* term.c */
loom__trial_fn loom__test_term_orders, loom__test_term_empty, loom__test_term_steals,
    loom__test_term_lanes, loom__test_term_rough, loom__test_term_fuzz;
/* workload.c */
loom__trial_fn loom__test_workload_tasks, loom__test_workload_verify, loom__test_workload_rejects,
    loom__test_workload_repeat, loom__test_workload_parallel, loom__test_workload_fuzz;
/* barrier.c */
loom__trial_fn loom__test_barrier_rounds, loom__test_barrier_device, loom__test_barrier_lanes,
    loom__test_barrier_stop, loom__test_barrier_rough, loom__test_barrier_fuzz;
/* sync.c */
loom__trial_fn loom__test_sync_before, loom__test_sync_after, loom__test_sync_many,
    loom__test_sync_in_place, loom__test_sync_lanes, loom__test_sync_deadline, loom__test_sync_stop,
    loom__test_sync_died, loom__test_sync_rough, loom__test_sync_fuzz;
/* trigger.c */
loom__trial_fn loom__test_trigger_threshold, loom__test_trigger_fire_first,
    loom__test_trigger_cancel, loom__test_trigger_chain, loom__test_trigger_rearm,
    loom__test_trigger_race, loom__test_trigger_stop, loom__test_trigger_rough,
    loom__test_trigger_fuzz;
/* qos.c */
loom__trial_fn loom__test_qos_bounds, loom__test_qos_options, loom__test_qos_serve,
    loom__test_qos_fuzz;
/* companions.c */
loom__trial_fn loom__test_stack_runs;

#endif
