// SPDX-License-Identifier: Apache-2.0
// The objects behind handles: which are alive, and the driver's immediate reuse of destroyed handle values.
#pragma once

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <vector>

namespace isthmus::sim {

// Not synchronised: the owner locks. Destroyed objects keep their memory and are reused last-in first-out.
template <class T>
class Handles {
public:
    T* create() {
        T* object = nullptr;
        if (free_.empty()) {
            storage_.push_back(std::make_unique<T>());
            object = storage_.back().get();
        } else {
            object = free_.back();
            free_.pop_back();
            *object = T();
        }
        alive_.insert(object);
        lost_.erase(object);
        return object;
    }
    void destroy(T* object) {
        alive_.erase(object);
        *object = T();
        free_.push_back(object);
    }
    // As destroy(), but its value is not given again before reuse_retired(): queued work or other objects may name it.
    void retire(T* object) {
        alive_.erase(object);
        retired_.push_back(object);
    }
    // Gives back the retired objects of a context.
    template <class Owner>
    void reuse_retired(const Owner* context) {
        const auto kept = std::stable_partition(retired_.begin(), retired_.end(),
                                                [&](const T* object) { return object->context != context; });
        for (auto at = kept; at != retired_.end(); ++at) destroy(*at);
        retired_.erase(kept, retired_.end());
    }
    // Destroys an object together with its context: until the handle is reused, the reason is known.
    void lose(T* object) {
        destroy(object);
        lost_.insert(object);
    }
    bool lost(const T* object) const { return lost_.count(object) != 0; }
    bool alive(const T* object) const { return alive_.count(const_cast<T*>(object)) != 0; }
    bool was_alive(const T* object) const {
        const auto has = [&](const std::vector<T*>& all) {
            return std::find(all.begin(), all.end(), object) != all.end();
        };
        return has(free_) || has(retired_);
    }
    // Returns a copy, so that the caller may destroy objects during iteration. The order does not depend on addresses,
    // so that results are repeatable.
    std::vector<T*> all() const {
        std::vector<T*> all;
        for (const auto& one : storage_) {
            if (alive(one.get())) all.push_back(one.get());
        }
        return all;
    }
    std::size_t count() const { return alive_.size(); }

private:
    std::vector<std::unique_ptr<T>> storage_;
    std::vector<T*> free_, retired_;
    std::unordered_set<T*> alive_;
    std::unordered_set<const T*> lost_;
};

}  // namespace isthmus::sim
