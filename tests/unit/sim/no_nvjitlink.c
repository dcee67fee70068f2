// SPDX-License-Identifier: Apache-2.0
/* A library with nvJitLink's name and none of its functions: whoever looks for nvJitLink links by the driver instead.
 */
int isthmus_test_has_no_nvjitlink;
