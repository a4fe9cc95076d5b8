/* SPDX-License-Identifier: Apache-2.0 */
/* The fault that is planted in a model, by its number there. It is said when the search begins (FAULT=3 ./pan), so one program
 * serves them all. -DFAULT=0: none, in a model with fewer states. */
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
