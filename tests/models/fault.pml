/* SPDX-License-Identifier: Apache-2.0 */
/* The number of the planted fault of a model. The search program reads it from the environment (FAULT=3 ./pan), so that
 * one program serves all faults. -DFAULT=0 builds a model without faults, which has fewer states. */
#ifndef FAULT
c_code {
	static int planted;
	__attribute__((constructor)) static void plant(void)
	{
		const char *number = getenv("FAULT");
		planted = number ? atoi(number) : 0;
	}
}
#define FAULT c_expr { planted }
#endif
