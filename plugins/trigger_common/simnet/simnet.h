/* SPDX-License-Identifier: Apache-2.0 */
/* provider = sim. A back end of struct fabric_ops over a network under virtual time (wire.h). All ranks are in this
 * process, so the data of an operation are copied by memcpy() when it arrives. */
#ifndef TRIGGER_NET_H
#define TRIGGER_NET_H

#include "../fabric/fabric.h"
#include "links.h"

/* Option rows of the network's model, for a struct S with a field `net` of type struct simnet_model. */
#define NET_OPT(S, field, opt_type, default_, help_, ...)                                                              \
	{.name = #field, .dflt = default_, .help = "provider = sim: " help_, .offset = offsetof(S, net.field),          \
	 .size = sizeof(((S *)0)->net.field), .type = opt_type, __VA_ARGS__}
#define NET_ROWS(S)                                                                                                    \
	NET_OPT(S, sim_trigger, LOOM_OPT_TIME, "150ns", \
			 "time from a worker's store to the NIC's match of the tag.", \
			 .max = 1e9, .section = "trigger"), \
		NET_OPT(S, sim_host, LOOM_OPT_TIME, "0", \
				 "time for which the host is busy with each operation that it starts, and with each message " \
				 "that it receives. 0: the NIC works alone.", .max = 1e9, .section = "trigger"), \
		NET_OPT(S, sim_overhead, LOOM_OPT_TIME, "100ns", \
				 "time that the NIC takes to start an operation (o of LogGP).", \
				 .max = 1e9, .section = "trigger"), \
		NET_OPT(S, sim_latency, LOOM_OPT_TIME, "800ns", \
				 "time from NIC to NIC over one switch (L).", .max = 1e9, .section = "trigger"), \
		NET_OPT(S, sim_gap, LOOM_OPT_TIME, "10ns", \
				 "time between two messages of a port (g).", .max = 1e9, .section = "trigger"), \
		NET_OPT(S, sim_rate, LOOM_OPT_F64, "12.5e9", \
				 "bytes per second of each link (1/G).", \
				 .from = 1e3, .to = 1e15, .section = "trigger"), \
		NET_OPT(S, sim_ranks_per_host, LOOM_OPT_U32, "1", \
				 "ranks that share the port of a host. Messages between them take 300 ns, and pass at " \
				 "50 GB/s.", \
				 .min = 1, .max = 65536, .section = "trigger"), \
		NET_OPT(S, sim_hosts_per_leaf, LOOM_OPT_U32, "0", \
				 "hosts of a leaf switch in a tree of two levels. 0: one switch for all.", \
				 .max = 65536, .section = "trigger"), \
		NET_OPT(S, sim_uplinks, LOOM_OPT_U32, "1", \
				 "links from each leaf switch to the upper switches. A pair of hosts always takes the same " \
				 "link.", \
				 .min = 1, .max = 1024, .section = "trigger"), \
		NET_OPT(S, sim_hop, LOOM_OPT_TIME, "100ns", \
				 "latency of each further switch.", .max = 1e9, .section = "trigger"), \
		NET_OPT(S, sim_jitter, LOOM_OPT_TIME, "0", \
				 "longest random delay of a message.", .max = 1e9, .section = "trigger"), \
		NET_OPT(S, sim_loss, LOOM_OPT_SHARE, "0", \
				 "share of messages that are lost, and are sent again after 20 us. After the 7th loss " \
				 "the operation fails.", .to = 0.5, .section = "trigger"), \
		NET_OPT(S, sim_dead, LOOM_OPT_STR, "", \
				 "two ranks between which all messages are lost, as in '0-3'.", \
				 .section = "trigger")

/* Opens this rank's port of the job's network. The first rank that calls it creates the network. The caller keeps the
 * model. */
int simnet_open(const struct loom_host *host, const struct simnet_model *model, struct fabric **fabric,
		struct loom_error *err);

#endif
