/* SPDX-License-Identifier: Apache-2.0 */
/* A process outside the job, on the same host, guesses keys and reads memory of a rank over tcp;ofi_rxm of libfabric.
 *   stranger_rma PORT FIRST COUNT
 * prints a line for each key that gives access. The exit status is 0 if all keys were tried, and 2 after an error. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int code_ = (int)(call);                                                           \
		if (code_) {                                                                       \
			fprintf(stderr, "%s: %s\n", #call, fi_strerror(-code_));                   \
			return 2;                                                                  \
		}                                                                                  \
	} while (0)

static int try_key(struct fid_ep *ep, struct fid_cq *cq, fi_addr_t to, uint64_t key)
{
	static char data[64];
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry failed = {0};
	time_t end = time(NULL) + 10;
	ssize_t rc;
	while ((rc = fi_read(ep, data, sizeof(data), NULL, to, 0, key, NULL)) == -FI_EAGAIN && time(NULL) < end)
		(void)fi_cq_read(cq, &entry, 0);
	while (!rc && (rc = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN && time(NULL) < end)
		rc = 0;
	if (rc == 1)
		printf("key %#llx\n", (unsigned long long)key);
	if (rc == -FI_EAVAIL)
		(void)fi_cq_readerr(cq, &failed, 0);
	if (rc != 1)
		fprintf(stderr, "key %#llx: %s\n", (unsigned long long)key,
			fi_strerror(rc == -FI_EAVAIL ? failed.err : (int)-rc));
	return rc == 1 || rc == -FI_EAVAIL ? 0 : 2; /* after any other result it is unknown whether the key gives access */
}

int main(int argc, char **argv)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t to;
	struct fi_av_attr table = {.type = FI_AV_TABLE};
	struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_DATA, .size = 64};
	if (argc != 4)
		return 2;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
	MUST(fi_getinfo(FI_VERSION(1, 9), "127.0.0.1", argv[1], 0, hints, &info));
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_av_open(domain, &table, &av, NULL));
	MUST(fi_cq_open(domain, &queue, &cq, NULL));
	MUST(fi_endpoint(domain, info, &ep, NULL));
	MUST(fi_ep_bind(ep, &av->fid, 0));
	MUST(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(ep));
	MUST(fi_av_insert(av, info->dest_addr, 1, &to, 0, NULL) != 1);
	uint64_t first = strtoull(argv[2], NULL, 0), count = strtoull(argv[3], NULL, 0);
	for (uint64_t key = first; key < first + count; key++) {
		int rc = try_key(ep, cq, to, key);
		if (rc)
			return rc;
	}
	return 0;
}
