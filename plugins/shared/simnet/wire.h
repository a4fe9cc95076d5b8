/* SPDX-License-Identifier: Apache-2.0 */
/* Messages under virtual time: when each comes. The LogGP model (Alexandrov et al., 1995) with ports and links that serve one
 * message after the other, or share. It knows neither operations nor memory: a message is as many bytes from port to port. */
#ifndef TRIGGER_WIRE_H
#define TRIGGER_WIRE_H

#include <gpuloom/clock.h>

#include "../heap.h"
#include "links.h"

/* The network of a job. */
struct wire;

/* A rank's port. Its owner's, but for what is in it. */
struct wire_port {
	struct wire *wire;
	uint32_t rank, host;
	int lost_memory; /* an event found no place: the run cannot go on */
	const struct loom_clock *clock;
	struct loom_agent *agent; /* that is due when a message has come */
	struct heap due;
	uint64_t sent;
};

/* Zeroed before its first use. From wire_send() until wire_take() gives it back it is the wire's. */
struct wire_message {
	struct wire_port *from, *to;
	uint64_t begin, bytes;
	uint64_t turn; /* of equal times */
	uint32_t seat;
	uint8_t stage;
	uint8_t sure; /* by the sender: it comes, even after too many losses ... */
	uint8_t lost; /* ... else it came back, and the sender gives up */
	struct passage *passage; /* sim_sharing = fair */
};

/* The model stays the caller's. 0, or an error that says what to do. */
int wire_create(const struct loom_host *host, const struct net_model *model, struct wire **wire, struct loom_error *err);
void wire_destroy(struct wire *w); /* NULL is legal */
void wire_join(struct wire *w, uint32_t rank, struct wire_port *p);
/* Between samples: from now on that clock and agent, or none. */
void wire_attach(struct wire_port *p, const struct loom_clock *time, struct loom_agent *agent);
void wire_close(struct wire_port *p);
void wire_forget(struct wire_message *x); /* what it has of the wire's */

/* A sample begins. What is under way to the port is there at once. */
void wire_begin(struct wire_port *p);
/* `bytes` that begin then. By the agent of the sender. */
void wire_send(struct wire_port *from, struct wire_port *to, struct wire_message *x, uint64_t begin, uint64_t bytes);
/* What took no way is there, then, in the order of x->turn. Wakes nobody. */
void wire_put(struct wire_port *p, struct wire_message *x, uint64_t due);
/* By the agent: the next message that has come by now; NULL: none. */
struct wire_message *wire_take(struct wire_port *p);
/* When to look again; LOOM_NEVER: the agent will be woken. */
uint64_t wire_due(const struct wire_port *p);

#endif
