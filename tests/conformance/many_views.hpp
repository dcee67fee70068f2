// SPDX-License-Identifier: Apache-2.0
// The parameters of the kernel many_views.
#pragma once

#include <isthmus/view.hpp>

#include <cstdint>

#define CONFORMANCE_VIEW(p) [[maybe_unused]] isthmus::View<std::int32_t> p
#define CONFORMANCE_6_VIEWS(p)                                                                      \
    CONFORMANCE_VIEW(p##0), CONFORMANCE_VIEW(p##1), CONFORMANCE_VIEW(p##2), CONFORMANCE_VIEW(p##3), \
        CONFORMANCE_VIEW(p##4), CONFORMANCE_VIEW(p##5)
#define CONFORMANCE_24_VIEWS \
    CONFORMANCE_6_VIEWS(a), CONFORMANCE_6_VIEWS(b), CONFORMANCE_6_VIEWS(c), CONFORMANCE_6_VIEWS(d)
