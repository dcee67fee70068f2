// OrderCheck: the debugging mode that finds memory used on a stream before it is ordered there.
#pragma once

namespace isthmus::inline v0 {

// RuntimeOptions::order_check. Work of one stream runs in its order; work of two streams runs in any, until the later
// one waits (Stream::wait_stream, Stream::wait with an event) or the host has seen the earlier one finish (a
// synchronisation, Event::finished(), a host view, a completed position). Two uses of a buffer of which one writes, and
// between which there is no such order, are a mistake whether the machine punishes it today or not. Found are
//   - a write and a write, a write and a read, a read and a write on two streams, of one device or of two;
//   - a copy or a fill whose end is not waited for, by the bytes that it touches, rows with gaps included;
//   - an event that was recorded before the work that it was meant to stand behind;
//   - a scoped stream that was left without anybody waiting for it;
//   - memory allocated and filled in the order of one stream, and used on another one behind its allocation alone (the
//     runtime orders the allocation itself);
//   - launches of graphs, by all that their operations use, and branches of one capture that were not joined in
//   between.
// Not found: what the runtime is not told of (raw views, kernels that touch other memory than their arguments, CUDA
// code beside it), and what it cannot tell apart (parts of a buffer that kernels share by agreement, atomics: give such
// kernels raw views, or order them). What other code orders with CUDA's own calls is not seen; uses on wrapped streams
// are therefore not judged. Host views, and launches on CPU devices, wait for what they need: there is nothing to find.
enum class OrderCheck : unsigned char {
    off,
    // Said once per pair of uses in the log, counted (RuntimeStatistics::order_violations), marked in the launch's
    // report (LaunchReport::unordered_arguments); the work is given to the device as it is.
    report,
    // Code::not_ordered, before the driver is called: nothing has changed.
    refuse,
};

}  // namespace isthmus::inline v0
