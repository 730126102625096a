// Is the acquisition well, and if not, why: reasons that an operator can act on.
//
// What is wrong at a moment is found by find_problems() (problems.hpp). Health makes lasting reasons of it: a
// problem that comes and goes is one reason, and each reason is told once when it comes and once when it
// goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace petacq::daemon {

/// Something wrong, as seen once.
struct Problem {
    const char* code = "";      ///< fixed word, docs/status.md
    std::uint32_t subject = 0;  ///< which of several: position of the source, module or stage
    std::string what;           ///< "source 3 is silent for 2.1 s"
    std::string advice;         ///< what to look at; may be empty
    bool failed = false;        ///< else degraded
    /// Gone only when not seen for so long.
    std::chrono::steady_clock::duration lasts = std::chrono::seconds(5);

    [[nodiscard]] std::string message() const { return advice.empty() ? what : what + ": " + advice; }
};

struct HealthReason {
    Problem problem;  ///< as last seen
    std::chrono::steady_clock::time_point since;
    std::chrono::steady_clock::time_point seen;
};

struct HealthChange {
    bool raised = false;  ///< else: gone
    HealthReason reason;
};

/// No thread-safety.
class Health {
  public:
    /// What is wrong now; about once a second. Returns what has come and what has gone with it.
    std::vector<HealthChange> observe(std::vector<Problem> problems,
                                      std::chrono::steady_clock::time_point now);

    /// In the order in which they came.
    [[nodiscard]] const std::vector<HealthReason>& reasons() const { return reasons_; }
    [[nodiscard]] const HealthReason* find(std::string_view code, std::uint32_t subject = 0) const;
    /// ok | degraded | failed
    [[nodiscard]] const char* state() const;

  private:
    std::vector<HealthReason> reasons_;
};

}  // namespace petacq::daemon
