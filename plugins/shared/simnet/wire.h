/* SPDX-License-Identifier: Apache-2.0 */
/* Computes when messages arrive, under virtual time. The model is LogGP (Alexandrov et al., 1995), with ports and links
 * that serve messages one at a time, or share their rate. The model is independent of operations and memory: a message
 * is a number of bytes from port to port. */
#ifndef TRIGGER_WIRE_H
#define TRIGGER_WIRE_H

#include <gpuloom/clock.h>

#include "lib/heap.h"
#include "links.h"

struct wire;

/* The port of a rank. */
struct wire_port {
	struct wire *wire;
	uint32_t rank, host;
	int lost_memory; /* 1: an event could not be stored, so the run cannot continue */
	const struct loom_clock *clock;
	struct loom_agent *agent; /* the agent is due when a message arrives */
	struct heap due;
	uint64_t sent;
};

/* Zeroed before its first use. From wire_send() until wire_take() returns it, the wire owns the message. */
struct wire_message {
	struct wire_port *from, *to;
	uint64_t begin, bytes;
	uint64_t turn; /* tie-break of equal times */
	uint32_t seat;
	uint8_t stage;
	uint8_t sure; /* set by the sender: the message arrives in spite of losses */
	uint8_t lost; /* the message was lost too often and has returned to its sender */
	struct wire_flow *flow; /* used with sim_sharing = fair */
};

/* Creates a network. The caller keeps the model. Returns 0, or an error with the fix. */
int wire_create(const struct loom_host *host, const struct simnet_model *model, struct wire **wire,
		struct loom_error *err);
void wire_destroy(struct wire *w); /* NULL is legal */
void wire_join(struct wire *w, uint32_t rank, struct wire_port *p);
/* Sets clock and agent between samples; NULL: none. */
void wire_attach(struct wire_port *p, const struct loom_clock *time, struct loom_agent *agent);
void wire_close(struct wire_port *p);
void wire_forget(struct wire_message *x); /* frees what the wire has attached */

/* Begins a sample. Messages in flight to the port arrive at once. */
void wire_begin(struct wire_port *p);
/* Sends `bytes`, which leave at `begin`. Called by the sender's agent. */
void wire_send(struct wire_port *from, struct wire_port *to, struct wire_message *x, uint64_t begin, uint64_t bytes);
/* Delivers a message without a route at `due`, in the order of x->turn. Wakes no agent. */
void wire_put(struct wire_port *p, struct wire_message *x, uint64_t due);
/* Called by the agent. Returns the next message that has arrived by now, or NULL. */
struct wire_message *wire_take(struct wire_port *p);
/* Returns when to poll again; LOOM_NEVER: the agent will be woken. */
uint64_t wire_due(const struct wire_port *p);

#endif
