// Whether the acquisition works as it should, and if not, why: reasons that an operator can act on.
//
// find_problems() (status.hpp) finds what is wrong at one moment. Health turns that into lasting reasons: a
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

/// Reasons of one code, as people read them.
struct RankedReason {
    const char* code = "";
    std::size_t count = 1;
    std::string message;  ///< "23 modules above 50 C: 0, 2, 6, ...; the worst: module 6 is at 61.0 C: ..."
    bool failed = false;
    std::chrono::steady_clock::time_point since;  ///< of the first
    std::chrono::steady_clock::time_point seen;   ///< of the last
    /// The code of a reason above it that explains it; empty: none does.
    std::string_view follows_from;
};

/// Reasons of one code are one. The failed ones first, then causes before their consequences.
std::vector<RankedReason> ranked(const std::vector<const HealthReason*>& reasons);
std::vector<RankedReason> ranked(const std::vector<HealthReason>& reasons);

struct HealthChange {
    bool raised = false;  ///< else: it disappeared
    HealthReason reason;
};

/// Belongs to one thread.
class Health {
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
