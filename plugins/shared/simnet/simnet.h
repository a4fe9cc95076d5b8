/* SPDX-License-Identifier: Apache-2.0 */
/* provider = sim: operations over a network under virtual time (wire.h). All ranks are in this process, so an operation copies
 * from one rank's memory to another's, at the time at which it arrives. */
#ifndef TRIGGER_NET_H
#define TRIGGER_NET_H

#include "../fabric/fabric.h"
#include "links.h"

extern const char *const net_routings[], *const net_sharings[];

/* Option rows of what the network costs; of S, a struct whose field `net` is a net_model. */
#define NET_OPT(S, field, opt_type, default_, help_, ...)                                                              \
	{.name = #field, .dflt = default_, .help = "provider = sim: " help_, .offset = offsetof(S, net.field),          \
	 .size = sizeof(((S *)0)->net.field), .type = opt_type, __VA_ARGS__}
#define NET_ROWS(S)                                                                                                    \
	NET_OPT(S, sim_trigger, LOOM_OPT_TIME, "150ns", "from a worker's store to the NIC that has matched the tag.",   \
		.max = 1e9),                                                                                           \
		NET_OPT(S, sim_overhead, LOOM_OPT_TIME, "100ns", "o, what the NIC needs to start an operation.",        \
			.max = 1e9),                                                                                   \
		NET_OPT(S, sim_latency, LOOM_OPT_TIME, "800ns", "L, from NIC to NIC over one switch.", .max = 1e9),      \
		NET_OPT(S, sim_gap, LOOM_OPT_TIME, "10ns", "g, from one message of a port to the next.", .max = 1e9),    \
		NET_OPT(S, sim_rate, LOOM_OPT_F64, "12.5e9", "1/G, bytes per second of each link.", .min = 1e3,          \
			.max = 1e15),                                                                                  \
		NET_OPT(S, sim_ranks_per_host, LOOM_OPT_U32, "1", "ranks of a host share its port.", .min = 1,           \
			.max = 65536),                                                                                 \
		NET_OPT(S, sim_local, LOOM_OPT_TIME, "300ns", "L between ranks of one host.", .max = 1e9),               \
		NET_OPT(S, sim_local_rate, LOOM_OPT_F64, "50e9", "1/G between ranks of one host.", .min = 1e3,           \
			.max = 1e15),                                                                                  \
		NET_OPT(S, sim_hosts_per_leaf, LOOM_OPT_U32, "0", "hosts under one switch of a tree of two levels. 0: "  \
			"one switch for all.", .max = 65536),                                                          \
		NET_OPT(S, sim_leaves_per_group, LOOM_OPT_U32, "0", "as many of these switches are a group of a "        \
			"dragonfly: each has a link to each other one of its group, and each group to each other group. " \
			"0: no groups, upper switches connect them.", .max = 65536),                                    \
		NET_OPT(S, sim_uplinks, LOOM_OPT_U32, "1", "links from each switch of a tree to the upper ones, or from " \
			"one group to another; a pair of hosts always takes the same.", .min = 1, .max = 1024),         \
		NET_OPT(S, sim_routing, LOOM_OPT_ENUM, "minimal", "between groups. minimal: by the link between the two. " \
			"valiant: through a third group, drawn for each message.", .choices = net_routings),            \
		NET_OPT(S, sim_sharing, LOOM_OPT_ENUM, "queue", "of a link that several messages want. queue: one after " \
			"the other. fair: all at once, with equal shares as far as they can use them; it costs more time " \
			"the more messages meet.", .choices = net_sharings),                                            \
		NET_OPT(S, sim_hop, LOOM_OPT_TIME, "100ns", "what a switch more costs.", .max = 1e9),                    \
		NET_OPT(S, sim_jitter, LOOM_OPT_TIME, "0", "a message takes up to so much longer, by chance.", .max = 1e9), \
		NET_OPT(S, sim_loss, LOOM_OPT_SHARE, "0", "messages that get lost and are sent again.", .max = 0.5),      \
		NET_OPT(S, sim_retry, LOOM_OPT_TIME, "20us", "when a lost message is sent again. After the 7th loss the " \
			"operation fails.", .min = 1, .max = 1e12),                                                     \
		NET_OPT(S, sim_platform, LOOM_OPT_PATH, "", "a platform file of SimGrid, read by libsimgrid where that is installed: its "  \
			"links and routes instead of sim_latency, sim_rate and the tree. Ranks are placed in the order of its " \
			"hosts' names."),                                                                                  \
		NET_OPT(S, sim_dead, LOOM_OPT_STR, "", "two ranks, as in '0-3', between which all messages get lost.")

int net_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric, struct loom_error *err);

#endif
