// SPDX-License-Identifier: Apache-2.0
// DeviceSession: the capabilities of an opened driver, the sticky-error latch, and refusals.
#include "device_session.hpp"

#include <platform/detect.hpp>

#include "composed.hpp"
#include "device_errors.hpp"
#include "export_finding_rules.hpp"
#include "litmus_rules.hpp"
#include "profile_rules.hpp"

#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// The capabilities from the driver's attributes, narrowed by the litmus findings for this device (G13), with its export
// findings applied (D10), and with its profile (P4).
Capabilities narrowed_capabilities(const RuntimeConfig& config, const DeviceFacts& facts) {
    Capabilities capabilities = platform::detect(config.machine, facts);
    for (const LitmusFinding& finding : config.litmus_findings) {
        if (rules::finding_applies(finding, config.machine, facts)) {
            capabilities = rules::narrowed(std::move(capabilities), finding);
        }
    }
    for (const ExportFinding& finding : config.export_findings) {
        if (rules::finding_applies(finding, config.machine, facts)) {
            platform::apply_probe(capabilities, rules::probe_of(finding));
        }
    }
    for (const DeviceProfile& profile : config.profiles) {
        if (rules::profile_applies(profile, config.machine, facts, capabilities)) {
            capabilities.profile = std::make_shared<const DeviceProfile>(profile);
        }
    }
    return capabilities;
}

}  // namespace

namespace {

struct SealedWords {
    std::string_view would;    // "it would …"
    std::string_view prepare;  // the remedy
};
constexpr SealedWords sealed_words[sealed_act_count] = {
    {"use the heap", "do it before the scope begins; for buffers, name them in Preparation::memory"},
    {"allocate memory", "allocate before the scope begins, or name the sizes in Preparation::memory"},
    {"register memory of the host", "adopt the memory before the scope begins"},
    {"map memory", "map, grow and allocate before the scope begins, or name the sizes in Preparation::memory"},
    {"load code", "name the kernel in Preparation::kernels, or launch it once before the scope begins"},
    {"make an object of the driver",
     "make it before the scope begins; for events, name their number in "
     "Preparation::events"},
    {"enter the system", "do it before the scope begins, or on a thread that is not sealed"},
};

Error sealed_error(std::string_view what, SealedAct act, std::string_view call) {
    const SealedWords& words = sealed_words[static_cast<std::size_t>(act)];
    if (call.empty()) return make_error<errors::refused_in_sealed_scope>(what, words.would, words.prepare);
    return make_error<errors::step_refused_in_sealed_scope>(what, words.would, call, words.prepare);
}

}  // namespace

DeviceSession::DeviceSession(std::shared_ptr<const RuntimeConfig> shared, const OpenCaptures& open,
                             std::unique_ptr<platform::Driver> opened, std::size_t position)
    : generation_(shared->generation),
      config(std::move(shared)),
      driver(std::move(opened)),
      execution(driver->execution()),
      index(position),
      capabilities(narrowed_capabilities(*config, driver->facts())),
      synchronous(driver->synchronous()),
      captures(open) {}

Error DeviceSession::refusal(rules::PublicCall call, std::string_view what) const {
    if (what.empty()) what = rules::rule_of(call).subject;
    const rules::Bar found = bar(call);
    switch (found) {
        case rules::Bar::forked: return make_error<errors::runtime_of_the_parent>(what);
        case rules::Bar::host_function:
            if (process::here.in_native_work) return make_error<errors::called_from_native_work>(what);
            return make_error<errors::called_from_host_function>(what);
        case rules::Bar::inside_call: return make_error<errors::called_inside_another_call>(what);
        case rules::Bar::capture: return in_capture(what);
        default: break;  // a call that its rule allows on a lost device may still report the loss
    }
    // Also where the runtime's scope has ended since the call was barred.
    const rules::CallRule& rule = rules::rule_of(call);
    if (found == rules::Bar::sealed || (!is_lost() && rules::refused_sealed(rule.sealed))) {
        const SealedAct act = rules::act_of(rule.sealed);
        if (SealBook* const seal = sealed_by()) seal->note(act, rule.subject);
        return sealed_error(what, act, {});
    }
    return make_error<errors::device_is_lost>(what, named(*this), known_suspects()).from_call("latched", lost_code());
}

namespace {
constexpr char beside_a_service[] = "resolve";  // identified by its address
}  // namespace

platform::Status DeviceSession::resolve(const KernelInfo& kernel, platform::FunctionHandle& out) {
    if (execution.is_resolved(kernel)) return execution.resolve(kernel, out);
    if (const platform::Status fine = may_now(SealedAct::load_code, "cuModuleLoadData"); !fine.ok()) return fine;
    const std::optional<CallInFlight> loading = services.try_enter(rules::DriverUse::load_code);
    if (!loading) return {Code::in_use, 0, beside_a_service};
    return execution.resolve(kernel, out);
}

Error DeviceSession::failure(const platform::Status& status, std::string_view what) {
    if (status.call == beside_a_service) {
        return services.refusal(rules::DriverUse::load_code, worded("{}, whose code is not loaded yet,", what));
    }
    if (const std::optional<SealedAct> act = sealed_act_of(status)) return sealed_error(what, *act, status.call);
    Error error = driver->explain(status, what);
    if (status.code != Code::device_lost) return error;
    int none = 0;
    const int code = status.driver_code != 0 ? status.driver_code : -1;
    const bool first = lost_code_.compare_exchange_strong(none, code, std::memory_order_acq_rel);
    if (first) {
        suspects_ = suspects(code);
        suspects_found_.store(true, std::memory_order_release);
    }
    if (const std::string_view found = known_suspects(); !found.empty()) {
        error = make_error<errors::fault_with_suspects>(message_in_words(error), found, remedy_in_words(error))
                    .from_call(error.call(), error.driver_code());
    }
    if (first && config->log) {
        config->say(Severity::error, ErrorLine().append("device lost: ").append(text_in_words(error)));
    }
    return error;
}

Words named(const DeviceSession& device) {
    return worded("{} (device {})", device.driver->facts().name, device.index);
}

Error in_capture(std::string_view what) {
    return make_error<errors::call_would_end_capture>(what);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
