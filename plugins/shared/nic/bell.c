/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the NIC of a bell. Other ranks may write the memory of a bell, so the bell holds no address or descriptor, but
 * an index into a table of this process. An index that another rank has overwritten leads to no other NIC. */
#include "nic.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BELLS 256u

/* Device processes are forked from this process. They inherit the descriptors, by which they ring, but have no NIC. */
static int ring_fd[BELLS]; /* descriptor + 1; 0: free */
static uint32_t bells;	   /* entries in use */
static struct known {
	const struct nic_bell *bell;
	struct nic *nic;
} *known; /* [BELLS], in memory that a fork wipes. NULL: there is none, and workers do not help */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct known *make_table(void)
{
	void *at = mmap(NULL, BELLS * sizeof(*known), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (!madvise(at, BELLS * sizeof(*known), MADV_WIPEONFORK))
		return at;
	munmap(at, BELLS * sizeof(*known)); /* Linux before 4.14 cannot wipe it */
	return NULL;
}

uint32_t nic_bell_add(struct nic *nic, const struct nic_bell *bell, int fd)
{
	uint32_t at = 0;
	pthread_mutex_lock(&lock);
	if (!bells)
		known = make_table();
	while (at < BELLS && (ring_fd[at] || (known && known[at].bell)))
		at++;
	if (at < BELLS) {
		ring_fd[at] = fd + 1;
		bells++;
		if (known) {
			known[at].nic = nic;
			/* Release: pairs with the acquire in find(). */
			__atomic_store_n(&known[at].bell, bell, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&lock);
	return at;
}

void nic_bell_remove(uint32_t at)
{
	if (at >= BELLS)
		return;
	pthread_mutex_lock(&lock);
	ring_fd[at] = 0;
	if (known)
		__atomic_store_n(&known[at].bell, NULL, __ATOMIC_RELAXED);
	if (!--bells && known) {
		munmap(known, BELLS * sizeof(*known));
		known = NULL;
	}
	pthread_mutex_unlock(&lock);
}

/* A caller in the NIC's process is a worker of this NIC, so the NIC exists. A caller in a device process finds none. */
static struct nic *find(const struct nic_bell *bell)
{
	uint32_t at = loom_load_relaxed_sys(&bell->place);
	if (!known || at >= BELLS || __atomic_load_n(&known[at].bell, __ATOMIC_ACQUIRE) != bell)
		return NULL;
	return known[at].nic;
}

int nic_bell_fd(const struct nic_bell *bell)
{
	uint32_t at = loom_load_relaxed_sys(&bell->place);
	return at < BELLS ? ring_fd[at] - 1 : -1;
}

int nic_help(const struct nic_bell *bell)
{
	struct nic *nic = find(bell);
	if (!nic)
		return 0;
	if (__atomic_load_n(&nic->waiters, __ATOMIC_RELAXED) || pthread_mutex_trylock(&nic->lock))
		return 1; /* another thread polls */
	(void)nic_step(nic);
	__atomic_store_n(&nic->helps, nic->helps + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&nic->lock);
	return 1;
}

/* The count changes with the lock held: later naps do not rely on the worker, earlier naps have seen fewer rings. */
void nic_leave(struct nic_bell *bell)
{
	struct nic *nic = find(bell);
	if (!nic)
		return;
	pthread_mutex_lock(&nic->lock);
	__atomic_store_n(&nic->helped, nic->helps, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&nic->lock);
	eventcount_advance(NULL, &bell->rings, &bell->asleep, 1);
}
