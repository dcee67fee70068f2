// SPDX-License-Identifier: Apache-2.0
// Error entries: memory, events and frames shared between processes.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto export_probe_of_many_kinds =
    error_entry("I001", Code::invalid_argument,
                "trying to export memory: exactly one kind of handle is tried at a time",
                "ExportKinds::posix_fd or ExportKinds::fabric");

// Refused by the operating system.
inline constexpr auto shared_memory_system_limit =
    error_entry("I002", Code::system_limit,
                "{what}: {reason}",
                "close descriptors, or raise the limit of open files (ulimit -n)");
inline constexpr auto shared_memory_out_of_memory =
    error_entry("I003", Code::out_of_memory,
                "{what}: {reason}",
                "ask for less, or release memory");
// Code: unsupported, not_permitted or system_error.
inline constexpr auto shared_memory_system_failure =
    error_entry("I004", Code::ok,
                "{what}: {reason}",
                "see the error of the system; shared memory needs memory files (memfd_create) that may be sealed and mapped");

// Sealed files.
inline constexpr auto sealed_memory_size_out_of_range =
    error_entry("I005", Code::invalid_argument,
                "{bytes:number} bytes of shared memory were asked for",
                "at least one byte, and no more than an address space has");
inline constexpr auto no_seal_against_writing =
    error_entry("I006", Code::unsupported,
                "this kernel cannot seal shared memory against others' writing (Linux 5.1 can)",
                "let those who share it write it, where they are trusted");
inline constexpr auto sealed_memory_refused =
    error_entry("I007", Code::peer_broke_rules,
                "a descriptor from another process was refused: {reason}",
                "memory that SealedMemory::create() made, sent with its size, by the same version of the library");
inline constexpr auto sealed_memory_of_impossible_size =
    error_entry("I008", Code::peer_broke_rules,
                "a descriptor from another process was refused: its size is said to be {bytes:number} bytes",
                "memory that SealedMemory::create() made, sent with its size, by the same version of the library");
inline constexpr auto sealed_memory_of_another_size =
    error_entry("I009", Code::peer_broke_rules,
                "a descriptor from another process was refused: it has {bytes:number} bytes, and {said:number} were said",
                "memory that SealedMemory::create() made, sent with its size, by the same version of the library");

// Shared events.
inline constexpr auto event_descriptor_of_another_length =
    error_entry("I010", Code::invalid_argument,
                "the descriptor of a shared event is not one that export_event() makes: it has {bytes:number} bytes instead of "
                "{expected:number}",
                "take it unchanged from export_event() of the same version of this library");
inline constexpr auto event_descriptor_of_another_version =
    error_entry("I011", Code::invalid_argument,
                "the descriptor of a shared event is not one that export_event() makes: its version is {version:number}, and this "
                "library speaks {own_version:number}",
                "take it unchanged from export_event() of the same version of this library");
inline constexpr auto event_descriptor_damaged =
    error_entry("I012", Code::invalid_argument,
                "the descriptor of a shared event is not one that export_event() makes: {reason}",
                "take it unchanged from export_event() of the same version of this library");
inline constexpr auto event_not_for_other_processes =
    error_entry("I013", Code::invalid_argument,
                "exporting an event was refused: it was not made for other processes, which is fixed when it is",
                "make it with Device::create_event({.interprocess = true})");
inline constexpr auto export_of_imported_event =
    error_entry("I014", Code::invalid_argument,
                "exporting an event was refused: it is another process's, which alone has its handle",
                "let its exporter send the descriptor to the third process, too");
inline constexpr auto no_imported_events =
    error_entry("I015", Code::unsupported,
                "importing an event was refused: {reason}",
                "wait for an ordinary event here, then tell the other process by a message or a word in shared memory");
inline constexpr auto imported_event_of_another_device =
    error_entry("I016", Code::wrong_device,
                "importing an event was refused: it is one of {event_device}, and this device is {device}",
                "import it with Runtime::device(descriptor.facts().device), whose streams may wait for it");
inline constexpr auto imported_event_of_this_process =
    error_entry("I017", Code::invalid_argument,
                "importing an event was refused: it is one of this very process ({reason})",
                "use the event itself, or a copy of it");
inline constexpr auto imported_event_unknown =
    error_entry("I018", Code::invalid_argument,
                "importing an event was refused: the handle does not belong to this driver, or its event is gone "
                "({reason})",
                "send what export_event() returned to a process on the same driver, and keep the exporter's event");

// Shared memory: creating and exporting it.
inline constexpr auto nothing_to_share =
    error_entry("I019", Code::invalid_argument,
                "{bytes:number} bytes of elements of {element_bytes:number} bytes cannot be shared",
                "share at least one element, and no more bytes than a machine has");
inline constexpr auto impossible_granularity =
    error_entry("I020", Code::invalid_argument,
                "a granularity of {bytes:number} bytes is none that memory has",
                "as the driver tells it: a power of two");
inline constexpr auto no_way_to_other_machines =
    error_entry("I021", Code::unsupported,
                "making a buffer to be exported to other machines was refused: {reason}",
                "{remedy}");
inline constexpr auto no_way_to_other_gpus =
    error_entry("I022", Code::unsupported,
                "making a buffer to be exported to other GPUs was refused: {reason}",
                "declare that CPUs see it (ExportableOptions::seen_by): shared memory of the host works on every machine");
inline constexpr auto no_older_handles =
    error_entry("I023", Code::unsupported,
                "making a buffer to be exported was refused: this device has neither file descriptors nor a fabric for it, and "
                "the driver gives no older handle ({reason})",
                "declare that CPUs see it (ExportableOptions::seen_by): shared memory of the host works on every machine");
inline constexpr auto nothing_to_export =
    error_entry("I024", Code::invalid_handle,
                "exporting memory: the buffer is empty, moved from or already released",
                "export the buffer that it was moved to, or make a new one");
inline constexpr auto buffer_not_exportable =
    error_entry("I025", Code::unsupported,
                "exporting this buffer was refused: {reason}",
                "make it as an ExportableBuffer, or copy it into one");

// Shared memory: descriptors and importing.
inline constexpr auto memory_descriptor_of_another_length =
    error_entry("I026", Code::invalid_argument,
                "the descriptor of shared memory is not one that export_memory() makes: it has {bytes:number} bytes instead of "
                "{expected:number}",
                "take it unchanged from export_memory() of the same version of this library");
inline constexpr auto memory_descriptor_of_another_version =
    error_entry("I027", Code::invalid_argument,
                "the descriptor of shared memory is not one that export_memory() makes: its version is {version:number}, and this "
                "library speaks {own_version:number}",
                "take it unchanged from export_memory() of the same version of this library");
inline constexpr auto memory_descriptor_damaged =
    error_entry("I028", Code::invalid_argument,
                "the descriptor of shared memory is not one that export_memory() makes: {reason}",
                "take it unchanged from export_memory() of the same version of this library");
inline constexpr auto memory_descriptor_without_its_files =
    error_entry("I029", Code::invalid_argument,
                "memory that is shared by {method} comes with {needed:number} file descriptors, not with "
                "{given:number}",
                "send everything that export_memory() returned");
inline constexpr auto import_of_other_elements =
    error_entry("I030", Code::invalid_argument,
                "importing memory was refused: it holds elements of {element_bytes:number} bytes, and elements of {asked:number} "
                "were asked for",
                "import it as the type that it was exported as");
inline constexpr auto import_of_too_much_host_memory =
    error_entry("I031", Code::out_of_memory,
                "importing memory was refused: it takes {bytes:number} bytes of the host, and {most:number} are allowed at most",
                "a greater ImportOptions::max_bytes, where its exporter is trusted with that");
inline constexpr auto import_of_gpu_memory_on_cpu =
    error_entry("I032", Code::unsupported,
                "importing memory was refused: it is memory of a GPU, and the CPU device cannot use it",
                "import it with the GPU that it names, or export it as memory that CPUs see (SeenBy::cpus_and_gpus)");
inline constexpr auto import_unsupported =
    error_entry("I033", Code::unsupported,
                "importing memory was refused: this device or its driver imports no {handles}",
                "export it as memory that CPUs see (SeenBy::cpus_and_gpus)");
inline constexpr auto import_of_another_devices_memory =
    error_entry("I034", Code::wrong_device,
                "importing memory was refused: it is memory of {memory_device}, and this device is {device}",
                "import it with Runtime::device(descriptor.facts().device)");
inline constexpr auto import_of_another_granularity =
    error_entry("I035", Code::unsupported,
                "importing memory was refused: {bytes:number} bytes are no multiple of this device's granularity of "
                "{granularity:number}",
                "import it with a device of the exporter's kind");
inline constexpr auto imported_file_unknown =
    error_entry("I036", Code::invalid_argument,
                "importing memory was refused: the file descriptor is no memory of this driver, or its exporter gave "
                "the memory up ({reason})",
                "send the file descriptor of export_memory() itself, of a process on the same driver");
inline constexpr auto imported_fabric_handle_unknown =
    error_entry("I037", Code::invalid_argument,
                "importing memory was refused: the fabric handle names no memory of this driver, or its exporter gave "
                "the memory up ({reason})",
                "give both ends the same IMEX channel (`isthmus doctor --fabric-channel N` compares them), and let the "
                "exporter hold the memory until it was imported");
inline constexpr auto imported_memory_of_this_process =
    error_entry("I038", Code::invalid_argument,
                "importing memory was refused: it is this very process's own ({reason})",
                "use the buffer that was exported");
inline constexpr auto imported_memory_unknown =
    error_entry("I039", Code::invalid_argument,
                "importing memory was refused: the handle does not belong to this driver, or its exporter gave the "
                "memory up ({reason})",
                "send what export_memory() returned to a process on the same driver, and keep the exporter's buffer");
inline constexpr auto imported_handle_of_another_device =
    error_entry("I040", Code::invalid_argument,
                "importing memory was refused: the handle is not for memory of the device that its descriptor names",
                "send the file descriptor and the bytes of the same export_memory()");
inline constexpr auto imported_memory_of_another_size =
    error_entry("I041", Code::invalid_argument,
                "importing memory was refused: it does not have the {bytes:number} bytes that its descriptor says",
                "send the file descriptor and the bytes of the same export_memory()");
inline constexpr auto imported_handle_for_other_memory =
    error_entry("I042", Code::invalid_argument,
                "importing memory was refused: the handle is for {bytes:number} bytes of device {device:number}, and its descriptor "
                "says {said:number} of this one",
                "send the bytes of one export_memory(), unchanged");
inline constexpr auto memory_imported_twice =
    error_entry("I043", Code::in_use,
                "importing memory was refused: this runtime has imported it already",
                "use that buffer; the driver opens the same memory at the same address again");

// Shared memory: flush and invalidate.
inline constexpr auto buffer_of_this_process_alone =
    error_entry("I045", Code::invalid_argument,
                "{call} was refused: the buffer is of this process alone",
                "give an ExportableBuffer, or what import_memory() made");
inline constexpr auto shared_memory_not_flushed =
    error_entry("I046", Code::in_use,
                "invalidating shared memory was refused: this process's device wrote it, and that was not brought to the shared "
                "memory",
                "flush_shared() before the other process's turn begins");

// Shared frame rings: their shape and descriptors.
inline constexpr auto ring_slots_out_of_range =
    error_entry("I047", Code::invalid_argument,
                "a shared frame ring is refused: it has {slots:number} slots",
                "2 to {most:number} slots: one is filled while others are read");
inline constexpr auto ring_frames_empty =
    error_entry("I048", Code::invalid_argument,
                "a shared frame ring is refused: its frames are empty",
                "frames of one element or more");
inline constexpr auto ring_frames_too_long =
    error_entry("I049", Code::invalid_argument,
                "a shared frame ring is refused: its frames are longer than memory can be",
                "check the number of elements");
inline constexpr auto ring_too_long =
    error_entry("I050", Code::invalid_argument,
                "a shared frame ring is refused: it is longer than memory can be",
                "fewer slots, or shorter frames");
inline constexpr auto ring_reader_count_out_of_range =
    error_entry("I051", Code::invalid_argument,
                "a shared frame ring is refused: the number of its readers is out of range",
                "1 to 64 readers at a time");
inline constexpr auto ring_readers_without_time =
    error_entry("I052", Code::invalid_argument,
                "a shared frame ring is refused: its readers have no time",
                "a deadline above 0");
inline constexpr auto ring_not_on_host_memory =
    error_entry("I053", Code::unsupported,
                "a shared frame ring for GPUs alone is refused: its share method would be {method} ({reason}), and "
                "rings stand on shared memory of the host only",
                "SeenBy::cpus_and_gpus: GPUs use registered shared memory in place");
inline constexpr auto ring_descriptor_without_its_files =
    error_entry("I054", Code::invalid_argument,
                "a shared frame ring's descriptor is {bytes:number} bytes and {fds:number} file descriptors, not "
                "{given_bytes:number} and {given_fds:number}",
                "send everything that SharedFrameRing::admit() returned");
inline constexpr auto ring_descriptor_of_another_length =
    error_entry("I055", Code::invalid_argument,
                "the descriptor of a shared frame ring is not one that a producer makes: it has {bytes:number} bytes instead of "
                "{expected:number}",
                "take it unchanged from SharedFrameRing::admit() of the same version of this library");
inline constexpr auto ring_descriptor_of_another_version =
    error_entry("I056", Code::invalid_argument,
                "the descriptor of a shared frame ring is not one that a producer makes: its version is {version:number}, and this "
                "library speaks {own_version:number}",
                "take it unchanged from SharedFrameRing::admit() of the same version of this library");
inline constexpr auto ring_descriptor_damaged =
    error_entry("I057", Code::invalid_argument,
                "the descriptor of a shared frame ring is not one that a producer makes: {reason}",
                "take it unchanged from SharedFrameRing::admit() of the same version of this library");

// Shared frame rings: the producer.
inline constexpr auto shared_ring_closed =
    error_entry("I058", Code::ended,
                "the shared frame ring is closed",
                "open another one for further frames");
inline constexpr auto ring_has_all_its_readers =
    error_entry("I059", Code::in_use,
                "the shared frame ring has all of its {readers:number} readers",
                "wait until one ends, or create it with more (SharedRingOptions::max_readers)");
inline constexpr auto ring_frame_being_filled =
    error_entry("I060", Code::in_use,
                "{frames:number} frames of the shared ring are being filled already, as many as may be",
                "publish the first of them, or let it go out of scope, before the next one begins; or create the ring "
                "with more slots (SharedRingOptions::slots)");
inline constexpr auto ring_frame_published_before =
    error_entry("I061", Code::invalid_handle,
                "the frame was published before",
                "begin the next one");
inline constexpr auto ring_reader_in_the_way =
    error_entry("I062", Code::not_ready,
                "a reader has not finished the frame that would be overwritten, and waiting was ruled out",
                "allow a wait, or more slots");
inline constexpr auto ring_readers_too_slow =
    error_entry("I063", Code::timed_out,
                "no reader finished the frame that would be overwritten before the deadline",
                "allow more time or more slots, or give the ring a shorter reader_deadline");

// Shared frame rings: a reader.
inline constexpr auto ring_larger_than_allowed =
    error_entry("I064", Code::out_of_memory,
                "the ring's frames take {bytes:number} bytes, and this reader maps {most:number} at most",
                "fewer or smaller slots, or a greater SharedReaderOptions::max_bytes");
inline constexpr auto ring_of_other_frames =
    error_entry("I065", Code::invalid_argument,
                "the ring's frames have {elements:number} elements, and {asked:number} were asked for",
                "open it as what the producer made it");
inline constexpr auto ring_of_other_elements =
    error_entry("I066", Code::invalid_argument,
                "the ring's frames have elements of {bytes:number} bytes, and {asked:number} were asked for",
                "open it as what the producer made it");
inline constexpr auto ring_reader_too_slow =
    error_entry("I067", Code::peer_lost,
                "the producer of a shared frame ring gave this reader up: it finished no frame for longer than the ring's deadline",
                "finish frames sooner, and connect again");
inline constexpr auto ring_reader_broke_rules =
    error_entry("I068", Code::peer_lost,
                "the producer of a shared frame ring gave this reader up: it read an impossible word in this reader's "
                "page",
                "connect again, and find out which other process has the page's descriptor");
inline constexpr auto ring_producer_gone =
    error_entry("I069", Code::peer_lost,
                "the producer of a shared frame ring is gone without closing it",
                "connect to another one; frames that were taken stay valid");
inline constexpr auto ring_closed_and_empty =
    error_entry("I070", Code::ended,
                "the shared frame ring is closed, and no frame is left",
                "connect to another one for further frames");
inline constexpr auto ring_frame_not_ready =
    error_entry("I071", Code::not_ready,
                "no frame was published, and waiting was ruled out",
                "allow a wait");
inline constexpr auto ring_frame_timed_out =
    error_entry("I072", Code::timed_out,
                "no frame was published before the deadline",
                "allow more time");
inline constexpr auto ring_slot_still_held =
    error_entry("I073", Code::in_use,
                "the next frame is in a slot whose frame this reader still holds",
                "finish frames earlier: a reader can hold as many as the ring has slots");
inline constexpr auto ring_frame_has_open_view =
    error_entry("I074", Code::in_use,
                "the frame cannot be finished while a host view of it is open",
                "let the view go out of scope first");
inline constexpr auto ring_frame_overtaken =
    error_entry("I075", Code::overtaken,
                "frame {frame:number} of a shared ring was overwritten while it was read, by frame {by:number}",
                "throw away what was made of it; more slots, less work per frame, or SlowReaderPolicy::wait");
inline constexpr auto ring_frame_finished_before =
    error_entry("I076", Code::invalid_handle,
                "the frame was finished before",
                "take the next one");

// Shared frame rings: a producer that broke the rules.
inline constexpr auto ring_line_is_no_socket =
    error_entry("I077", Code::peer_broke_rules,
                "the producer of a shared frame ring broke its rules: its line is no stream socket of the UNIX domain",
                "end this reader and look at the producer: nothing that it writes can be believed");
inline constexpr auto ring_header_is_another =
    error_entry("I078", Code::peer_broke_rules,
                "the producer of a shared frame ring broke its rules: the header of its file is not what the descriptor says",
                "end this reader and look at the producer: nothing that it writes can be believed");
inline constexpr auto ring_count_went_back =
    error_entry("I079", Code::peer_broke_rules,
                "the producer of a shared frame ring broke its rules: its word `published` went back from {seen:number} to "
                "{published:number}, or opened again",
                "end this reader and look at the producer: nothing that it writes can be believed");
inline constexpr auto ring_count_impossible =
    error_entry("I080", Code::peer_broke_rules,
                "the producer of a shared frame ring broke its rules: its word `published` is {published:number}, "
                "which no producer can publish",
                "end this reader and look at the producer: nothing that it writes can be believed");
inline constexpr auto ring_stamp_impossible =
    error_entry("I081", Code::peer_broke_rules,
                "the producer of a shared frame ring broke its rules: its word `stamp` of slot {slot:number} is {stamp:number} for "
                "frame {frame:number}",
                "end this reader and look at the producer: nothing that it writes can be believed");
inline constexpr auto ring_stamp_became_impossible =
    error_entry("I082", Code::peer_broke_rules,
                "the producer of a shared frame ring broke its rules: its word `stamp` of slot {slot:number} became {stamp:number} "
                "while frame {frame:number} was read",
                "end this reader and look at the producer: nothing that it writes can be believed");

// Memory as a dma-buf.
inline constexpr auto no_dma_buf_export =
    error_entry("I083", Code::unsupported,
                "exporting memory as a dma-buf was refused: {reason}",
                "{remedy}");
inline constexpr auto dma_buf_of_ordinary_buffer =
    error_entry("I084", Code::unsupported,
                "exporting this buffer as a dma-buf was refused: it was not requested exportable when it was allocated",
                "make it as an ExportableBuffer (ExportableOptions::dma_buf), or copy it into one");
inline constexpr auto dma_buf_of_shared_file =
    error_entry("I085", Code::unsupported,
                "exporting this buffer as a dma-buf was refused: its memory is a file that processes share",
                "make it with ExportableOptions::dma_buf: its memory is then pinned by the driver");
inline constexpr auto pinned_dma_buf_is_no_file =
    error_entry("I086", Code::unsupported,
                "exporting this buffer to other processes was refused: its memory was made for export_dma_buf()",
                "send the descriptor of export_dma_buf(), or make the buffer without ExportableOptions::dma_buf");
inline constexpr auto dma_buf_of_no_elements =
    error_entry("I087", Code::invalid_argument,
                "a buffer to be exported as a dma-buf was to have no elements",
                "ask for one element at least");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
