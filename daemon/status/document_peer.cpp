#include "daemon/status/document_peer.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/system/utc.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

json or_null(const std::string& text) {
    return text.empty() ? json() : json(text);
}

}  // namespace

json make_peer(const Reading& now) {
    if (!now.peer) return nullptr;
    const PeerState& peer = *now.peer;
    const std::chrono::duration<double> unheard = now.taken - peer.heard;
    return {{"url", peer.url},
            {"state", name_of(peer.situation)},
            {"since_utc", utc_text(peer.since)},
            {"run", or_null(peer.answer.run)},
            {"recording", or_null(peer.answer.recording)},
            {"not_heard_s", std::max(0.0, unheard.count())},
            {"failure", or_null(peer.answer.failure)}};
}

}  // namespace petacq::daemon
