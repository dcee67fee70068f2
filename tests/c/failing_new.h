// SPDX-License-Identifier: Apache-2.0
/* operator new of this program, which fails when it is told to. */
#ifndef ISTHMUS_TESTS_C_FAILING_NEW_H
#define ISTHMUS_TESTS_C_FAILING_NEW_H

#ifdef __cplusplus
extern "C" {
#endif

/* Calls of operator new so far. */
long news_made(void);
/* The call that follows `number` further ones fails, once; -1: none. */
void fail_new(long number);

#ifdef __cplusplus
}
#endif
#endif
