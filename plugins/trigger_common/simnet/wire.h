/* SPDX-License-Identifier: Apache-2.0 */
/* Computes when messages arrive, under virtual time. The model is LogGP (Alexandrov et al., 1995). Ports and links
 * serve messages one at a time. The model knows no operations and no memory: a message is a number of bytes from port to
 * port. */
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
	struct loom_agent *agent; /* woken when a message arrives */
	struct heap due; /* events of messages that arrive here, by time */
	uint64_t sent;	 /* number of messages sent in this sample */
};

/* A message. Zeroed before its first use. The wire owns it from wire_send() until wire_take() returns it. */
struct wire_message {
	struct wire_port *from, *to;
	uint64_t begin, bytes; /* time at which it leaves; its size */
	uint64_t turn; /* orders messages that are due at the same time */
	uint8_t sure; /* set by the sender: 1 if the message must not be lost */
	uint8_t lost; /* 1: the message was lost too often, and wire_take() returns it to the sender */
};

/* Creates a network. The caller keeps the model. Returns 0, or an error that says what to do. */
int wire_create(const struct loom_host *host, const struct simnet_model *model, struct wire **wire,
		struct loom_error *err);
void wire_destroy(struct wire *w); /* NULL is legal */
void wire_join(struct wire *w, uint32_t rank, struct wire_port *p);
/* Sets the clock and the agent of a port, between samples. NULL: none. */
void wire_attach(struct wire_port *p, const struct loom_clock *time, struct loom_agent *agent);
void wire_close(struct wire_port *p);

/* Begins a sample. Messages that are still in flight to the port arrive at time 0. */
void wire_begin(struct wire_port *p);
/* Sends a message of `bytes` bytes, which leaves at `begin`. Called by the sender's agent. */
void wire_send(struct wire_port *from, struct wire_port *to, struct wire_message *x, uint64_t begin, uint64_t bytes);
/* Delivers a message to port p at time `due`, without links. Messages with the same time arrive in the order of
 * x->turn. Wakes no agent. */
void wire_put(struct wire_port *p, struct wire_message *x, uint64_t due);
/* Returns the next message that has arrived at the port by this time, or NULL. Called by the port's agent. */
struct wire_message *wire_take(struct wire_port *p);
/* Returns the time at which to call wire_take() again. LOOM_NEVER: not before the agent is woken. */
uint64_t wire_due(const struct wire_port *p);

#endif
