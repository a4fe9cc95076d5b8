/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of registered memory. Who can connect to an endpoint, and knows a key, reads and writes that memory: of providers like
 * tcp nothing else is asked. So no key can be guessed. */
#ifndef TRIGGER_FABRIC_KEY_H
#define TRIGGER_FABRIC_KEY_H

#include <stdint.h>

/* Random bits, of which a provider takes so many `bytes`. 0, or -1 and errno. */
int fabric_key(uint64_t bytes, uint64_t *key);

#endif
