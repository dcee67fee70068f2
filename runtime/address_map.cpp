// AddressMap as an ordered table behind a shared lock.
#include "address_map.hpp"

#include <map>
#include <mutex>
#include <shared_mutex>

namespace isthmus::provenance {

struct AddressMap::State {
    mutable std::shared_mutex mutex;
    std::map<std::uint64_t, Record> records;  // by base

    std::map<std::uint64_t, Record>::const_iterator at(std::uint64_t address) const {
        auto next = records.upper_bound(address);
        if (next == records.begin()) return records.end();
        --next;
        return address - next->first < next->second.bytes ? next : records.end();
    }
};

AddressMap::AddressMap() : state_(std::make_unique<State>()) {}
AddressMap::~AddressMap() = default;

Result<void> AddressMap::insert(const Record& record) {
    constexpr std::uint64_t end_of_space = std::uint64_t{1} << address_bits;
    if (record.bytes == 0 || record.id == 0 || record.base >= end_of_space ||
        record.bytes > end_of_space - record.base) {
        return Error(Code::invalid_argument, "a range that no allocation has");
    }
    const std::lock_guard lock(state_->mutex);
    const auto next = state_->records.lower_bound(record.base);
    if (state_->at(record.base) != state_->records.end() ||
        (next != state_->records.end() && next->first - record.base < record.bytes)) {
        return Error(Code::invalid_argument, "the range overlaps a live allocation");
    }
    state_->records.emplace(record.base, record);
    return {};
}

bool AddressMap::erase(std::uint64_t base, std::uint64_t id) {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->records.find(base);
    if (found == state_->records.end() || found->second.id != id) return false;
    state_->records.erase(found);
    return true;
}

Record AddressMap::find(std::uint64_t address) const noexcept {
    const std::shared_lock lock(state_->mutex);
    const auto found = state_->at(address);
    return found == state_->records.end() ? Record{} : found->second;
}

bool AddressMap::covers(std::uint64_t address, std::uint64_t bytes) const noexcept {
    const Record found = find(address);
    return found && bytes <= found.bytes - (address - found.base);
}

std::size_t AddressMap::size() const noexcept {
    const std::shared_lock lock(state_->mutex);
    return state_->records.size();
}

void AddressMap::for_each(const std::function<void(const Record&)>& visit) const {
    const std::shared_lock lock(state_->mutex);
    for (const auto& [base, record] : state_->records) visit(record);
}

}  // namespace isthmus::provenance
