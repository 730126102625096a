// The counters of the receivers while the acquisition is held up.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "daemon/acquisition/snapshot.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// An acquisition that waits, for the disk or for the pipeline, publishes nothing, while the receivers keep
/// working. If the snapshot is older than half a second, returns a copy of it with what the receivers have
/// counted since; otherwise the snapshot itself. The datagrams that the acquisition has not seen are in
/// flight.
std::shared_ptr<const AcquisitionSnapshot> with_receivers_of_now(
    std::shared_ptr<const AcquisitionSnapshot> snapshot, const std::vector<const net::Receiver*>& receivers,
    std::chrono::steady_clock::time_point now);

}  // namespace petacq::daemon
