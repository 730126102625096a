// Whether the other host of a pair records the same run, and whether its half is missing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "config/http_url.hpp"
#include "daemon/peer/answer.hpp"

namespace petacq::daemon {

enum class PeerSituation : std::uint8_t { recording, not_recording, other_run, unreachable };
/// The word, as above.
const char* name_of(PeerSituation situation);

/// The run of this host, with which that of the other host is compared.
struct OwnHalf {
    std::string run;       ///< in progress; empty: none
    bool records = false;  ///< its data arrive
};

struct PeerState {
    using Clock = std::chrono::steady_clock;

    std::string url;
    std::string host;
    PeerSituation situation = PeerSituation::unreachable;
    std::chrono::system_clock::time_point since;  ///< of the situation
    PeerAnswer answer;                            ///< the latest
    Clock::time_point heard;                      ///< latest; or since when it has been asked
    /// Since when this host has had a run of which the other host does not record its half.
    std::optional<Clock::time_point> missing_since;

    /// Neither a start nor a stop of both hosts, which they do one after the other, nor a lost answer.
    [[nodiscard]] bool is_missing(Clock::time_point now) const;
};

/// Belongs to one thread.
class PeerJudge {
  public:
    /// `url`: one that http_url_from() takes.
    PeerJudge(const std::string& url, PeerState::Clock::time_point now);

    void hear(PeerAnswer answer, PeerState::Clock::time_point now);
    /// With what this host does now.
    const PeerState& judge(const OwnHalf& own, PeerState::Clock::time_point now);

  private:
    PeerState state_;
};

}  // namespace petacq::daemon
