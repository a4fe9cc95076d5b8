/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of registered memory. With providers like tcp, knowledge of a key and a connection suffice to read and write
 * that memory: keys must not be guessable. */
#ifndef TRIGGER_FABRIC_KEY_H
#define TRIGGER_FABRIC_KEY_H

#include <stdint.h>

/* Random bits for a provider whose keys have `bytes` bytes. 0, or -1 and errno. */
int fabric_key(uint64_t bytes, uint64_t *key);

#endif
