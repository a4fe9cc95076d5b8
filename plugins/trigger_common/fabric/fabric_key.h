/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of registered memory. With providers like tcp, every process with a connection and a key can read and write the
 * memory. So keys must not be guessable. */
#ifndef TRIGGER_FABRIC_KEY_H
#define TRIGGER_FABRIC_KEY_H

#include <stdint.h>

/* Draws a random key. bytes: size of the provider's keys. Returns 0, or -1 and errno. */
int fabric_key(uint64_t bytes, uint64_t *key);

#endif
