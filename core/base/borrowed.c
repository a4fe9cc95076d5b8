/* SPDX-License-Identifier: Apache-2.0 */
/* Replacements for the functions of cJSON and iniparser inside libgpuloom.so. A program may define a function of the
 * same name, such as dictionary_get. The dynamic linker searches the program first, so libgpuloom.so would call that
 * function. Therefore libgpuloom.so does not link to these libraries. It loads them, and calls them through the hidden
 * functions below. If libgpuloom.so uses a library function that has no row here, linking fails. */
#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <iniparser/iniparser.h>

#include "base/base.h"

/* X(library, type, name, parameters, arguments) */
#define BORROWED(X)                                                                                                             \
	X(JSON, cJSON *, cJSON_CreateObject, (void), ())                                                                        \
	X(JSON, cJSON *, cJSON_CreateArray, (void), ())                                                                         \
	X(JSON, cJSON *, cJSON_CreateNull, (void), ())                                                                          \
	X(JSON, cJSON *, cJSON_CreateBool, (cJSON_bool value), (value))                                                         \
	X(JSON, cJSON *, cJSON_CreateNumber, (double value), (value))                                                           \
	X(JSON, cJSON *, cJSON_CreateRaw, (const char *text), (text))                                                           \
	X(JSON, cJSON *, cJSON_CreateString, (const char *text), (text))                                                        \
	X(JSON, cJSON *, cJSON_CreateDoubleArray, (const double *list, int n), (list, n))                                       \
	X(JSON, cJSON_bool, cJSON_IsArray, (const cJSON *const item), (item))\
	X(JSON, cJSON_bool, cJSON_IsObject, (const cJSON *const item), (item))\
	X(JSON, cJSON_bool, cJSON_AddItemToArray, (cJSON * to, cJSON *item), (to, item))                                        \
	X(JSON, cJSON_bool, cJSON_AddItemToObject, (cJSON * to, const char *name, cJSON *item), (to, name, item))               \
	X(JSON, void, cJSON_Delete, (cJSON * item), (item))                                                                     \
	X(JSON, void, cJSON_DeleteItemFromObjectCaseSensitive, (cJSON * from, const char *name), (from, name))                  \
	X(JSON, cJSON *, cJSON_Duplicate, (const cJSON *item, cJSON_bool deep), (item, deep))                                   \
	X(JSON, char *, cJSON_Print, (const cJSON *item), (item))                                                               \
	X(JSON, char *, cJSON_PrintUnformatted, (const cJSON *item), (item))                                                    \
	X(INI, dictionary *, iniparser_load, (const char *path), (path))                                                        \
	X(INI, void, iniparser_freedict, (dictionary * d), (d))                                                                 \
	X(INI, const char *, dictionary_get, (const dictionary *d, const char *key, const char *none), (d, key, none))

enum { JSON, INI, LIBRARIES };
static const char *const library[LIBRARIES] = {LOOM_CJSON_SONAME, LOOM_INIPARSER_SONAME};
static void *handle[LIBRARIES];
static const char *lacking; /* name of the missing library or function; NULL if all are there */

static struct {
#define FIELD(from, type, name, parameters, arguments) type(*name) parameters;
	BORROWED(FIELD)
#undef FIELD
} real;

#define STAND_IN(from, type, name, parameters, arguments)                                                                      \
	type name parameters                                                                                                    \
	{                                                                                                                       \
		return real.name arguments;                                                                                     \
	}
#pragma GCC diagnostic ignored "-Wpedantic" /* STAND_IN returns the result of a void function */
BORROWED(STAND_IN)
#undef STAND_IN

__attribute__((constructor)) static void borrow(void)
{
	for (int i = 0; i < LIBRARIES; i++)
		if (!(handle[i] = dlopen(library[i], RTLD_NOW | RTLD_LOCAL)))
			lacking = library[i];
#define FIND(from, type, name, parameters, arguments)                                                                          \
	if (handle[from] && !(*(void **)&real.name = dlsym(handle[from], #name)))                                               \
		lacking = #name;
	BORROWED(FIND)
#undef FIND
}

__attribute__((destructor)) static void give_back(void)
{
	for (int i = 0; i < LIBRARIES; i++)
		if (handle[i])
			dlclose(handle[i]);
}

int loom__borrowed(struct loom_error *err)
{
	return !lacking ? 0
			: LOOM__FAIL(err, LOOM_EUNAVAIL, "libgpuloom needs %s, which is not there: install cJSON and iniparser", lacking);
}
