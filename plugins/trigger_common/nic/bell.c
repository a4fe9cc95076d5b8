/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the NIC of a bell, the doorbell by which workers wake the NIC's thread. Other ranks may write to the memory of
 * a bell. So it holds no address or descriptor, but an index into a table of this process. If another rank overwrites
 * the index, find() returns NULL. */
#include "nic.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BELLS 256u

/* Device processes are forked from this process. They inherit the descriptors of the bells and ring through them, but
 * have no NIC. */
static int ring_fd[BELLS]; /* descriptor + 1; 0: none */
static uint32_t bells;	   /* number of entries in use */
static struct known {
	const struct nic_bell *bell;
	struct nic *nic;
} *known; /* [BELLS], in memory that is zero in a forked process; NULL: no table, so workers do not help */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct known *make_table(void)
{
	void *at = mmap(NULL, BELLS * sizeof(*known), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (!madvise(at, BELLS * sizeof(*known), MADV_WIPEONFORK))
		return at;
	munmap(at, BELLS * sizeof(*known)); /* Linux before 4.14 cannot clear memory at a fork */
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

/* Returns the NIC of a bell. A caller in the NIC's process is a worker of this NIC, so the NIC exists. In a device
 * process, find() returns NULL. */
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
		return 1; /* another thread takes a step */
	(void)nic_step(nic);
	__atomic_store_n(&nic->helps, nic->helps + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&nic->lock);
	return 1;
}

/* Sets `helped` with the lock held. So a nap that starts later does not rely on workers. A nap that started earlier
 * ends, because the eventcount is advanced after `helped` is set. */
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
