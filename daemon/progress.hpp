// How far each stage of the daemon has come: what the status document shows and the watchdog goes by.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace petacq::daemon {

/// One stage, read at one moment.
struct StageProgress {
    std::string name;        ///< "receiver 0", "acquisition", "pipeline", "writer", "capture"
    std::uint64_t work = 0;  ///< a counter that goes up with everything the stage does
    bool waiting = false;    ///< there is something to do: the counter must move
    double busy_s = 0;       ///< time spent working, since some beginning
    std::chrono::steady_clock::time_point taken;  ///< when busy_s was read
};

enum class Activity : std::uint8_t {
    busy,     ///< one per cent of its time or more
    idle,     ///< less
    stalled,  ///< has something to do, and has done nothing for stalled_after or longer
};
/// The word, as above.
const char* name_of(Activity activity);

struct StageState {
    std::string name;
    Activity activity = Activity::idle;
    double utilisation = 0;  ///< 0 to 1: share of the last interval spent working
    double stands_s = 0;     ///< how long something has waited with nothing done; 0 when it moves
};

/// Turns readings into states. One thread.
class ProgressWatch {
  public:
    /// Longer than a disk makes its users wait for in good health.
    static constexpr std::chrono::seconds stalled_after{5};

    /// What is known of a stage goes by its name; one that is not there any more is forgotten. About once a
    /// second.
    void observe(const std::vector<StageProgress>& stages, std::chrono::steady_clock::time_point now);
    /// In the order of the latest reading; empty before the first.
    [[nodiscard]] const std::vector<StageState>& states() const { return states_; }

  private:
    struct Known {
        StageProgress latest;
        std::chrono::steady_clock::time_point moved;  ///< when it last moved or had nothing to do
    };
    std::vector<Known> known_;
    std::vector<StageState> states_;
};

}  // namespace petacq::daemon
