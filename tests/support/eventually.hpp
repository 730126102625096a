// Waiting for an event.
#pragma once

#include <chrono>
#include <thread>

namespace petacq::test {

/// Long enough for a busy machine: a wait takes this long only if the program is broken.
inline constexpr std::chrono::seconds patience{60};

/// Waits until the condition holds; false if it still does not hold after `limit`.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = patience) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

}  // namespace petacq::test
