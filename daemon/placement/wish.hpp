// The threads and memory of a configuration that placement has to find cores for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/placement/machine.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// Names of the interfaces by which datagrams may reach the socket, and of the devices that these are made of
/// (bonds, VLANs, bridges). `system`: where sysfs is.
std::vector<std::string> interfaces_of(const net::ReceiverOptions& receiver,
                                       const std::string& system = "/sys");

/// Without placement, only the cores that the operator chose. `gpu`: PCI address of the one that computes;
/// empty: none.
PlacementWish placement_wish(const config::Configuration& configuration,
                             std::span<const net::ReceiverOptions> receivers, const std::string& gpu);

}  // namespace petacq::daemon
