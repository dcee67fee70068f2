// SPDX-License-Identifier: Apache-2.0
// Session: the runtime that all elements of the process use, so that they can use each other's memory.
#pragma once

#include <isthmus/device.hpp>
#include <isthmus/result.hpp>
#include <isthmus/runtime.hpp>

#include <gst/gst.h>

#include <memory>
#include <string>

namespace isthmus::gst {

// The debug category "isthmus" of this plugin; the library's log goes there, too.
GstDebugCategory* debug_category() noexcept;

// The properties that all elements have.
struct SessionChoice {
    std::string device{};   // "cpu", a number, or a UUID; empty: the runtime's default device
    std::string machine{};  // a simulated machine; empty: this one
};

struct Session {
    explicit Session(Runtime opened) : runtime(std::move(opened)) {}
    Runtime runtime;
};

// A session with the device that an element chose there.
struct OpenSession {
    std::shared_ptr<Session> session;
    Device* device;
};

// Opens the runtime, or joins the one that other elements have open. Where ISTHMUS_SIM is set, it names the machine and
// `choice.machine` is ignored; otherwise it is set here for a machine that was asked for. Errors: invalid_argument (no
// such machine or device), unsupported (there is no simulator), in_use (this process plays another machine), those of
// Runtime::open().
Result<OpenSession> open_session(const SessionChoice& choice);

// Flags of properties: settings, which start() reads; and counts.
inline constexpr auto set_before_start =
    static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
inline constexpr auto only_read = static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
// Adds the properties `device` and `machine` with the numbers `first` and `first + 1`.
void install_session_properties(GObjectClass* type, guint first);
// Sets or gets the property `id`, numbered from `first`; false: it is not one of these two.
bool set_session_property(SessionChoice& choice, guint id, guint first, const GValue* value);
bool get_session_property(const SessionChoice& choice, guint id, guint first, GValue* value);

// Posts the error as an element's, with its remedy as debugging text.
void post_error(GstElement* element, GstResourceError code, const Error& error);

}  // namespace isthmus::gst
