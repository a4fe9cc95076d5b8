/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how the policies limit and distribute CPU time, on a simulated machine without clocks and noise. */
#include "qos_rig.h"

struct machine {
	const struct loom_qos_ops *ops;
	void *self;
	struct loom_qos_load load;
	struct loom_qos_queue tenant[4];
	double cost, wake; /* the CPU time of a request and of a wake-up, in ns */
	uint64_t longest_burst, longest_gap, served;
	uint64_t burst;
};

static void begin(struct machine *m, const char *name, const char *options, uint32_t tenants)
{
	struct loom_error err = {0};
	char so[64];
	memset(m, 0, sizeof(*m));
	snprintf(so, sizeof(so), "qos_%s", name);
	const struct loom_plugin *p = fake_load(so);
	m->ops = p->ops;
	fake_must(!m->ops->create(&fake_host, fake_settings(p, options), &m->self, &err), so, &err);
	m->load = (struct loom_qos_load){.size = sizeof(m->load),
					 .now_ns = 1000000000,
					 .machine = 2,
					 .tenants = tenants,
					 .tenant = m->tenant};
	for (uint32_t i = 0; i < tenants; i++)
		m->tenant[i].weight = 1;
	m->cost = 700;
	m->wake = 15000;
}

static void end(struct machine *m)
{
	m->ops->destroy(m->self);
}

static void spend(struct machine *m, double ns)
{
	m->load.now_ns += (uint64_t)ns;
	m->load.cpu_ns += (uint64_t)ns;
	m->burst += (uint64_t)ns;
	if (m->burst > m->longest_burst)
		m->longest_burst = m->burst;
}

/* Simulates `ns` nanoseconds, in which every tenant of the mask always has pending requests. */
static void run(struct machine *m, uint64_t ns, uint32_t mask)
{
	uint64_t until = m->load.now_ns + ns;
	while (m->load.now_ns < until) {
		m->load.waiting = 0;
		for (uint32_t i = 0; i < m->load.tenants; i++) {
			m->tenant[i].waiting = mask >> i & 1 ? 1000 : 0;
			m->load.waiting += m->tenant[i].waiting;
		}
		struct loom_qos_round turn = {.requests = 64};
		while (!m->tenant[turn.tenant].waiting)
			turn.tenant++;
		m->ops->admit(m->self, &m->load, &turn);
		if (!turn.requests) {
			CU_ASSERT(turn.retry_ns > m->load.now_ns);
			if (turn.retry_ns <= m->load.now_ns)
				return;
			uint64_t gap = turn.retry_ns - m->load.now_ns;
			m->longest_gap = gap > m->longest_gap ? gap : m->longest_gap;
			m->load.now_ns = turn.retry_ns + turn.slack_ns / 2;
			m->burst = 0;
			spend(m, m->wake);
			continue;
		}
		CU_ASSERT(m->tenant[turn.tenant].waiting > 0);
		double cpu = m->cost * turn.requests;
		spend(m, cpu);
		m->load.body_ns += (uint64_t)cpu;
		m->load.served += turn.requests;
		m->served += turn.requests;
		m->tenant[turn.tenant].served += turn.requests;
		m->tenant[turn.tenant].cpu_ns += (uint64_t)cpu;
		if (m->ops->account)
			m->ops->account(m->self, &m->load, turn.tenant, turn.requests, (uint64_t)cpu);
	}
}

static double share(struct machine *m, uint64_t ns, uint32_t mask)
{
	uint64_t cpu = m->load.cpu_ns, now = m->load.now_ns;
	run(m, ns, mask);
	return (double)(m->load.cpu_ns - cpu) / (2.0 * (double)(m->load.now_ns - now));
}

#define SECOND 1000000000ull

/* Under the budget policy, requests get their share of CPU time, and not more, in short bursts. This holds for any cost
 * of requests and wake-ups, also when the cost changes. */
TEST(budget)
{
	static const double limits[] = {0.01, 0.05, 0.2, 0.3};
	static const char *const options[] = {"limit=1%", "limit=5%", "limit=20%", "limit=30%"};
	for (size_t i = 0; i < 4; i++) {
		struct machine m;
		begin(&m, "budget", options[i], 1);
		double first = share(&m, SECOND, 1);
		CU_ASSERT(first <= 1.02 * limits[i]);
		CU_ASSERT(first >= 0.95 * limits[i]);
		m.longest_burst = 0;
		run(&m, SECOND, 1);
		CU_ASSERT(m.longest_burst <= 200000);
		/* The path gets at least 0.8 of the requests that the budget would buy if wake-ups were free. */
		double ideal = limits[i] * 2 * 2e9 / m.cost;
		CU_ASSERT((double)m.served >= 0.8 * ideal);
		m.cost = 14000; /* the cost of a request changes in one step */
		double after = share(&m, SECOND, 1);
		CU_ASSERT(after <= 1.02 * limits[i] + 0.002);
		m.cost = 700;
		CU_ASSERT(share(&m, SECOND, 1) <= 1.02 * limits[i]);
		/* Unused time does not accumulate, because the budget's bucket has a limited depth. */
		m.load.now_ns += 10 * SECOND;
		CU_ASSERT(share(&m, SECOND, 1) <= 1.02 * limits[i]);
		end(&m);
	}
}

/* A request or a wake-up may cost more than the bucket holds. Such requests are still served, but rarely. */
TEST(budget_dear)
{
	struct machine m;
	begin(&m, "budget", "limit=1% stall=100us", 1);
	m.cost = 1000000;
	CU_ASSERT(share(&m, 5 * SECOND, 1) <= 0.0105);
	CU_ASSERT(m.served >= 50);
	uint64_t before = m.served;
	m.cost = 500;
	m.wake = 150000;
	CU_ASSERT(share(&m, 5 * SECOND, 1) <= 0.0105);
	CU_ASSERT(m.served > before + 100);
	end(&m);
}

TEST(fair_shares)
{
	struct machine m;
	begin(&m, "budget", "limit=5%", 3);
	m.tenant[2].weight = 2;
	run(&m, SECOND, 7);
	double all = (double)(m.tenant[0].cpu_ns + m.tenant[1].cpu_ns + m.tenant[2].cpu_ns);
	CU_ASSERT_DOUBLE_EQUAL((double)m.tenant[0].cpu_ns / all, 0.25, 0.025);
	CU_ASSERT_DOUBLE_EQUAL((double)m.tenant[1].cpu_ns / all, 0.25, 0.025);
	CU_ASSERT_DOUBLE_EQUAL((double)m.tenant[2].cpu_ns / all, 0.5, 0.05);
	/* A tenant gets no more time than the other one because it pauses. */
	m.tenant[0].cpu_ns = m.tenant[1].cpu_ns = 0;
	for (int i = 0; i < 4000; i++)
		run(&m, 250000, i % 2 ? 1 : 3);
	CU_ASSERT(m.tenant[1].cpu_ns < 1.1 * (double)m.tenant[0].cpu_ns);
	CU_ASSERT(m.tenant[1].cpu_ns > 0);
	end(&m);
}

/* For `ns` nanoseconds, tenant 1 posts a request every `pace` ns. The tenants of the mask always have pending requests.
 * A request of a tenant in the policy's wake mask ends a sleep. Returns tenant 1's longest delay after its first
 * hundred requests. */
static double ask_now_and_then(struct machine *m, uint64_t ns, uint64_t pace, uint32_t mask)
{
	uint64_t until = m->load.now_ns + ns, next = m->load.now_ns + pace, longest = 0, answered = 0;
	while (m->load.now_ns < until) {
		m->load.waiting = 0;
		for (uint32_t i = 0; i < m->load.tenants; i++) {
			m->tenant[i].waiting = i == 1 ? m->load.now_ns >= next : mask >> i & 1 ? 1000 : 0;
			m->load.waiting += m->tenant[i].waiting;
		}
		if (!m->load.waiting) {
			m->load.now_ns = next;
			spend(m, m->wake);
			continue;
		}
		struct loom_qos_round turn = {.requests = 64, .tenant = m->tenant[1].waiting ? 1 : 0};
		m->ops->admit(m->self, &m->load, &turn);
		int heeded = turn.wake_mask >> 1 & 1;
		CU_ASSERT(!heeded || !m->tenant[1].waiting);
		if (!turn.requests) {
			uint64_t to = turn.retry_ns + turn.slack_ns / 2;
			m->load.now_ns = heeded && next < to ? next > m->load.now_ns ? next : m->load.now_ns : to;
			m->burst = 0;
			spend(m, m->wake);
			continue;
		}
		uint32_t served = turn.tenant == 1 ? 1 : turn.requests;
		if (heeded && turn.tenant != 1 && m->load.now_ns + (uint64_t)(served * m->cost) > next) {
			uint64_t before =
			    next > m->load.now_ns ? (uint64_t)((double)(next - m->load.now_ns) / m->cost) : 0;
			served = before / 8 * 8 + 8 < served ? (uint32_t)(before / 8 * 8 + 8) : served;
		}
		double cpu = m->cost * served;
		spend(m, cpu);
		m->tenant[turn.tenant].served += served;
		m->tenant[turn.tenant].cpu_ns += (uint64_t)cpu;
		m->ops->account(m->self, &m->load, turn.tenant, served, (uint64_t)cpu);
		if (turn.tenant != 1)
			continue;
		/* The first hundred requests do not count, because the tenant has saved no CPU time before them. */
		if (++answered > 100 && m->load.now_ns - next > longest)
			longest = m->load.now_ns - next;
		next += pace;
	}
	CU_ASSERT(answered > 200);
	return (double)longest;
}

/* A tenant that stays within its share waits hardly longer beside a flooding tenant than alone. The flooding tenant
 * gets the rest. */
TEST(within_share)
{
	static const double limits[] = {0.01, 0.05, 0.2};
	static const char *const options[] = {"limit=1%", "limit=5%", "limit=20%"};
	for (size_t i = 0; i < 3; i++) {
		struct machine m;
		uint64_t pace = (uint64_t)(4 * 10700 / (2 * limits[i])); /* so tenant 1 uses half of its share */
		begin(&m, "budget", options[i], 2);
		m.wake = 10000;
		double alone = ask_now_and_then(&m, 400 * pace, pace, 0);
		uint64_t cpu = m.load.cpu_ns, now = m.load.now_ns;
		double beside = ask_now_and_then(&m, SECOND + 400 * pace, pace, 1);
		CU_ASSERT(beside <= 2 * alone);
		CU_ASSERT((double)(m.load.cpu_ns - cpu) <= 1.02 * 2 * limits[i] * (double)(m.load.now_ns - now));
		/* The other tenant can use the remaining three quarters of the budget. */
		CU_ASSERT((double)m.tenant[0].cpu_ns >= 0.6 * 2 * limits[i] * (double)(m.load.now_ns - now));
		CU_ASSERT(ask_now_and_then(&m, SECOND, pace / 16, 1) > 2 * alone);
		end(&m);
	}
}

/* The governor of the HISS paper limits only the time that it charges. The share is exceeded by the time that it does
 * not charge. */
TEST(throttle)
{
	struct machine m;
	begin(&m, "throttle", "limit=5% charge=path", 1);
	run(&m, SECOND, 1);
	double path = share(&m, SECOND, 1);
	CU_ASSERT(path < 0.10);
	CU_ASSERT(path > 0.02);
	end(&m);
	begin(&m, "throttle", "limit=5% charge=handler", 1);
	run(&m, SECOND, 1);
	double handler = share(&m, SECOND, 1);
	CU_ASSERT(handler > path);
	end(&m);
	/* The delays double: 10, 20, 40 us. */
	begin(&m, "throttle", "limit=5% charge=path", 1);
	struct loom_qos_round turn = {.requests = 64};
	m.tenant[0].waiting = 1;
	m.ops->admit(m.self, &m.load, &turn);
	CU_ASSERT_EQUAL(turn.requests, 1);
	spend(&m, 2000000);
	for (uint64_t delay = 10000; delay <= 160000; delay *= 2) {
		turn = (struct loom_qos_round){.requests = 64};
		m.ops->admit(m.self, &m.load, &turn);
		CU_ASSERT_EQUAL(turn.requests, 0);
		CU_ASSERT_EQUAL(turn.retry_ns - m.load.now_ns, delay);
	}
	end(&m);
	/* Wake-ups alone use more than the limit, so the used share never drops below it. The governor still serves a
	 * round after each delay of maximum length. */
	begin(&m, "throttle", "limit=2% charge=path delay=1us delay_most=8us batch=7", 1);
	m.tenant[0].waiting = 1;
	int served = 0;
	for (int turns = 0; turns < 1000; turns++) {
		spend(&m, 5000);
		turn = (struct loom_qos_round){.requests = 64};
		m.ops->admit(m.self, &m.load, &turn);
		CU_ASSERT(turn.requests == 0 || turn.requests == 7);
		served += turn.requests > 0;
		if (!turn.requests)
			m.load.now_ns = turn.retry_ns;
	}
	CU_ASSERT(served > 300);
	end(&m);
}

TEST_MAIN("qos_laws", 30)
