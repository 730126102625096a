// The algorithms that order the singles of a slice on the GPU. All give the same order.
#pragma once

#include "config/choices.hpp"

namespace petacq::gpu {

using config::SortEngine;

/// Whether equal keys stay in the order of the input. The others order equal keys by their values.
constexpr bool is_stable(SortEngine engine) {
    return engine != SortEngine::bitonic;
}

}  // namespace petacq::gpu
