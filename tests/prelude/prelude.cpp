// SPDX-License-Identifier: Apache-2.0
// Nothing but the target whose precompiled header the tests share.
