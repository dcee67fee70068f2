// SPDX-License-Identifier: Apache-2.0
// An empty source for the target whose precompiled header the tests share.
