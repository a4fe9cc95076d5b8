/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the network: libfabric or the simulated network. */
#include <stdio.h>
#include <string.h>

#include "nic.h"

int nic_open_fabric(struct nic *nic, int rma, struct loom_error *err)
{
	const struct nic_opts *o = nic->opts;
	/* Ranks that are threads of one process (host.job) have simulated devices. */
	int sim = !strcmp(o->provider, "sim") || (LOOM_HAS(nic->host, job) && !strcmp(o->provider, "auto"));
	struct fabric_want want = {.provider = o->provider,
				   .address = o->address,
				   .devices = o->memory == NIC_DEVICE_MEMORY,
				   .rma = (uint32_t)rma,
				   .sleep = o->wait == NIC_SLEEP,
				   .staged = o->copies == NIC_STAGED_COPIES,
				   .piece = o->piece};
	int rc = sim ? simnet_open(nic->host, &o->net, &nic->fabric, err) :
		       fabric_ofi_open(nic->host, &want, &nic->fabric, err);
	if (!rc)
		LOOM_CHOICE(nic->host, "trigger.provider", "%s", nic->fabric->name);
	return rc;
}

int nic_is_simulated(const struct nic *nic)
{
	return !strcmp(nic->fabric->name, "sim");
}
