// The reasons of health: whether the acquisition works as it should, and if not, why.
//
// find_problems() (problems.hpp) finds what is wrong at one moment. LastingReasons turns that into reasons: a
// problem that comes and goes is one reason, and each reason is reported once when it appears and once when
// it disappears.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/run/problem.hpp"

namespace petacq::daemon {

struct HealthReason {
    Problem problem;  ///< as last seen
    std::chrono::steady_clock::time_point since;
    std::chrono::steady_clock::time_point seen;
};

struct HealthChange {
    bool raised = false;  ///< else: it disappeared
    HealthReason reason;
};

/// Belongs to one thread.
class LastingReasons {
  public:
    /// Takes the problems found now, about once a second. Returns the reasons that appeared or disappeared.
    std::vector<HealthChange> observe(std::vector<Problem> problems,
                                      std::chrono::steady_clock::time_point now);

    /// In the order in which they appeared.
    [[nodiscard]] const std::vector<HealthReason>& reasons() const { return reasons_; }
    [[nodiscard]] const HealthReason* find(std::string_view code, std::uint32_t subject = 0) const;
    /// ok | degraded | failed
    [[nodiscard]] const char* state() const;

  private:
    void index();

    std::vector<HealthReason> reasons_;
    /// Place in reasons_. There may be a reason for each of thousands of sources, each looked up several
    /// times.
    std::map<std::pair<std::uint32_t, std::string_view>, std::size_t> places_;
};

}  // namespace petacq::daemon
