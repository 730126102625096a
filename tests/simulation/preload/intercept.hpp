// Shared by the intercepted functions. They are those of the C library, and do what those do: unless the
// process is simulated they only pass on.
#pragma once

#include <time.h>

#include <cstdint>

#include "tests/simulation/preload/real.hpp"
#include "tests/simulation/preload/world.hpp"

// Makes a function visible, so that it takes the place of that of the C library.
#define PETACQ_INTERCEPT __attribute__((visibility("default")))

namespace petacq::simulation {

inline std::int64_t ns_of(const timespec& t) {
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}
inline timespec timespec_of(std::int64_t ns) {
    return {ns / 1'000'000'000, ns % 1'000'000'000};
}
/// The virtual monotonic time of a time of some clock.
inline std::int64_t monotonic_ns(clockid_t clock, const timespec& t) {
    return ns_of(t) - (clock == CLOCK_REALTIME ? world->wall_minus_monotonic_ns() : 0);
}

}  // namespace petacq::simulation
