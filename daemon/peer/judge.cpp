#include "daemon/peer/judge.hpp"

#include <array>
#include <utility>

#include "daemon/peer/run_names.hpp"

namespace petacq::daemon {

namespace {

/// A pair starts and stops within this time.
constexpr std::chrono::seconds patience{3};

PeerSituation situation_of(const PeerAnswer& answer, const OwnHalf& own) {
    if (!answer.failure.empty()) return PeerSituation::unreachable;
    if (answer.run.empty()) return PeerSituation::not_recording;
    if (!own.run.empty() && !same_run(own.run, answer.run)) return PeerSituation::other_run;
    return answer.recording == "recording" ? PeerSituation::recording : PeerSituation::not_recording;
}

/// A peer that has the run and no data misses nothing while nobody has any.
bool misses_something(const PeerState& peer, const OwnHalf& own) {
    if (own.run.empty() || peer.situation == PeerSituation::recording) return false;
    const bool has_run = peer.situation == PeerSituation::not_recording && !peer.answer.run.empty();
    return !has_run || own.records;
}

}  // namespace

const char* name_of(PeerSituation situation) {
    constexpr std::array words{"recording", "not_recording", "other_run", "unreachable"};
    return words.at(static_cast<std::size_t>(situation));
}

bool PeerState::is_missing(Clock::time_point now) const {
    return missing_since && now - *missing_since >= patience;
}

PeerJudge::PeerJudge(const std::string& url, PeerState::Clock::time_point now) {
    state_.url = url;
    state_.host = config::http_url_from(url).value().host;
    state_.since = std::chrono::system_clock::now();
    state_.answer = peer_failure("it has not been asked yet");
    state_.heard = now;
}

void PeerJudge::hear(PeerAnswer answer, PeerState::Clock::time_point now) {
    if (answer.failure.empty()) state_.heard = now;
    state_.answer = std::move(answer);
}

const PeerState& PeerJudge::judge(const OwnHalf& own, PeerState::Clock::time_point now) {
    const PeerSituation situation = situation_of(state_.answer, own);
    if (std::exchange(state_.situation, situation) != situation)
        state_.since = std::chrono::system_clock::now();
    if (!misses_something(state_, own)) {
        state_.missing_since.reset();
    } else if (!state_.missing_since) {
        state_.missing_since = now;
    }
    return state_;
}

}  // namespace petacq::daemon
