#include "net/admission.hpp"

#include <algorithm>

#include "net/receiver.hpp"

namespace petacq::net {

Admission::Admission(const ReceiverOptions& options)
    : framing_(options.framing),
      addresses_(options.allowed_addresses),
      // Bare framing has no ids.
      ids_filtered_(!options.allowed_sources.empty() && options.framing == Framing::sequenced) {
    std::sort(addresses_.begin(), addresses_.end());
    for (const std::uint16_t id : options.allowed_sources)
        ids_.set(id);
}

bool Admission::is_listed(std::uint32_t address) const {
    return std::binary_search(addresses_.begin(), addresses_.end(), address);
}

}  // namespace petacq::net
