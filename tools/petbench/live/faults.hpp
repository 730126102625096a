// What a run of a live benchmark must not have.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/petbench/base/daemon_process.hpp"

namespace petacq::bench {

/// Whether datagrams may be dropped and lost, and be missing from the raw capture, as in an overload.
enum class Losses : std::uint8_t { none, allowed };

/// By its run.json, with a ledger, and the slices whose watermark did not wait for slow sources.
std::vector<std::string> faults_of(const nlohmann::json& run, std::uint64_t given_up_slices, Losses losses);

/// Waits until the daemon has accepted that many datagrams or counted them as lost, or until nothing has
/// moved for two seconds.
void wait_until_processed(DaemonProcess& daemon, std::uint64_t datagrams);

}  // namespace petacq::bench
