// SPDX-License-Identifier: Apache-2.0
// The search for how far a stream has come queries few events.
#include "gallop.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

TEST(Gallop, CountsWhatIsDoneAndAsksFew) {
    for (std::size_t count = 0; count <= 130; ++count) {
        for (std::size_t done = 0; done <= count; ++done) {
            std::size_t asked = 0;
            const std::size_t found = leading_done(count, [&](std::size_t at) {
                EXPECT_LT(at, count);
                ++asked;
                return at < done;
            });
            ASSERT_EQ(found, done) << "of " << count;
            std::size_t doublings = 0;
            while ((std::size_t{1} << doublings) <= done) ++doublings;
            ASSERT_LE(asked, 2 * doublings + 1) << done << " of " << count;
        }
    }
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
