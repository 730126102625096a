#include "gpu/sort/engine.hpp"

#include <array>
#include <stdexcept>

namespace petacq::gpu {

namespace {

constexpr std::array<const char*, 7> names{"auto",      "merge",    "radix", "bitonic",
                                           "quicksort", "odd-even", "cub"};

}  // namespace

SortEngine sort_engine_from_name(const std::string& name) {
    std::string accepted;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (name == names[i]) return static_cast<SortEngine>(i);
        accepted += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    throw std::invalid_argument("sort engine '" + name + "': expected one of " + accepted);
}

const char* name_of(SortEngine engine) {
    return names.at(static_cast<std::size_t>(engine));
}

bool is_stable(SortEngine engine) {
    return engine != SortEngine::bitonic;
}

}  // namespace petacq::gpu
