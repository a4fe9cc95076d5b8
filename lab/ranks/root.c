/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/boot.h"

int loom__root_read(const char *text, struct loom__root *root, struct loom_error *err)
{
	const char *colon = strrchr(text, ':'), *host = text;
	size_t length = colon ? (size_t)(colon - text) : 0;
	*root = (struct loom__root){.text = text};
	if (colon && *text == '[' && length > 2 && colon[-1] == ']') {
		host++;
		length -= 2;
	} else if (colon && *text != '[' && memchr(text, ':', length)) {
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "GPULOOM_ROOT=%s: an IPv6 address must be in brackets, as in [::1]:7741", text);
	}
	if (!length || length >= sizeof(root->host) || memchr(host, '[', length) || memchr(host, ']', length))
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "GPULOOM_ROOT=%s: expected the host name or address and the port of rank 0, as in "
				  "node1:7741, 10.0.0.1:7741 or [fe80::1]:7741", text);
	size_t digits = strspn(colon + 1, "0123456789");
	unsigned long port = digits && digits < 6 && !colon[1 + digits] ? strtoul(colon + 1, NULL, 10) : 0;
	if (port < 1 || port > 65535)
		return LOOM__FAIL(err, LOOM_EINVAL, "GPULOOM_ROOT=%s: the port is 1 to 65535, not '%s'", text,
				  colon + 1);
	memcpy(root->host, host, length);
	snprintf(root->port, sizeof(root->port), "%lu", port);
	return 0;
}
