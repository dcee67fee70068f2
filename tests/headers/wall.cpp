// SPDX-License-Identifier: Apache-2.0
// Each wall library is one room of runtime/, linked whole (meson.build). It has no code of its own.
