// SPDX-License-Identifier: Apache-2.0
// OrderCheck: a debugging mode that finds memory used on a stream before it is ordered there.
#pragma once

namespace isthmus {
inline namespace v0 {

// The values of RuntimeOptions::order_check. Operations of one stream run in order. Operations of two streams run in
// any order, until the later stream waits (Stream::wait_stream, Stream::wait with an event) or the host has seen the
// earlier operation finish (a synchronisation, Event::finished(), a host view, a completed position). Two uses of a
// buffer, at least one of them a write, without such an order are a mistake, even if today's run happens to be right.
// Found:
//   - a write and a write, a write and a read, a read and a write on two streams, of one device or of two;
//   - a copy or a fill whose end is not waited for, by the bytes that it touches, including rows with gaps;
//   - an event that was recorded before the work that it was meant to follow;
//   - a scoped stream that was left without a wait for it;
//   - memory allocated and filled in the order of one stream, and used on another stream that waits for its allocation
//     only (the runtime orders the allocation itself);
//   - launches of graphs, by everything that their operations use, and branches of one capture that were not joined in
//     between.
// Not found: what the runtime does not know (raw views, kernels that touch memory beyond their arguments, CUDA code
// beside it), and what it cannot distinguish (parts of a buffer that kernels share by agreement, atomics: give such
// kernels raw views, or order them). Ordering by CUDA calls of other code is not seen, so that uses on wrapped streams
// are not judged. Host views and launches on CPU devices wait for what they need: there is nothing to find.
enum class OrderCheck : unsigned char {
    off,
    // Logged once per pair of uses, counted (RuntimeStatistics::order_violations), and marked in the launch's report
    // (LaunchReport::unordered_arguments). The work is given to the device as it is.
    report,
    // Code::not_ordered before the driver is called; nothing has changed.
    refuse,
};

}  // namespace v0
}  // namespace isthmus
