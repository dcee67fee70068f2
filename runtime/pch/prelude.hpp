// Compiled once for the sources of the runtime, which nearly all include it anyway: builds take half the time. Sources
// name what they use all the same; -Db_pch=false builds them without.
#include "../buffer_state.hpp"
#include "../device_state.hpp"
#include "../operation.hpp"
#include "../stream_state.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>
