// The progress of each stage of the daemon, for the status document and the watchdog.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace petacq::daemon {

/// A reading of one stage.
struct StageProgress {
    std::string name;        ///< "receiver 0", "acquisition", "pipeline", "writer", "capture"
    std::uint64_t work = 0;  ///< a counter of everything that the stage does
    bool waiting = false;    ///< work is waiting: the counter must grow
    double busy_s = 0;       ///< total time spent working
    std::chrono::steady_clock::time_point taken;  ///< time of the reading
};

enum class Activity : std::uint8_t {
    busy,     ///< works at least one per cent of the time
    idle,     ///< works less
    stalled,  ///< has left waiting work untouched for stalled_after or longer
};
/// "busy", "idle" or "stalled".
const char* name_of(Activity activity);

struct StageState {
    std::string name;
    Activity activity = Activity::idle;
    double utilisation = 0;  ///< 0 to 1: share of the last interval spent working
    double stands_s = 0;     ///< how long work has waited untouched; 0 while the stage works
};

/// Turns readings into states. One thread at a time.
class ProgressWatch {
  public:
    /// Longer than a healthy disk makes a write wait.
    static constexpr std::chrono::seconds stalled_after{5};

    /// Compares each stage with its previous reading, by name. Call it about once a second.
    void observe(const std::vector<StageProgress>& stages, std::chrono::steady_clock::time_point now);
    /// In the order of the latest readings; empty before the first.
    [[nodiscard]] const std::vector<StageState>& states() const { return states_; }

  private:
    struct Known {
        StageProgress latest;
        std::chrono::steady_clock::time_point moved;  ///< when the stage last worked or had nothing to do
    };
    std::vector<Known> known_;
    std::vector<StageState> states_;
};

}  // namespace petacq::daemon
