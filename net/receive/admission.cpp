#include "net/receive/admission.hpp"

#include <algorithm>

#include "net/receive/receiver.hpp"

namespace petacq::net {

namespace {

void insert(SenderTable& table, Endpoint sender, std::size_t number) {
    if (table.find(sender) == SenderTable::none) table.insert(sender, static_cast<std::uint16_t>(number));
}

}  // namespace

Admission::Admission(const ReceiverOptions& options)
    : framing_(options.framing),
      frames_(options.frames),
      every_module_(Modules::below(options.frames.bdm_count)) {
    if (!options.allowed_addresses.empty()) {
        addresses_.emplace(options.allowed_addresses.size());
        for (const std::uint32_t address : options.allowed_addresses)
            insert(*addresses_, {address, 0}, 0);
    }
    if (options.allowed_sources.empty()) return;
    const auto has_address = [](const AllowedSource& source) { return source.sender.address != 0; };
    if (!addresses_ &&
        std::all_of(options.allowed_sources.begin(), options.allowed_sources.end(), has_address)) {
        // Then what others send is not looked at, malformed or not.
        addresses_.emplace(options.allowed_sources.size());
        for (const AllowedSource& source : options.allowed_sources)
            insert(*addresses_, {source.sender.address, 0}, 0);
    }
    for (const AllowedSource& source : options.allowed_sources)
        modules_.push_back(source.modules.none() ? every_module_ : source.modules);
    if (framing_ == Framing::bare) {
        senders_.emplace(options.allowed_sources.size());
        for (std::size_t i = 0; i < options.allowed_sources.size(); ++i)
            insert(*senders_, options.allowed_sources[i].sender, i);
        return;
    }
    address_of_id_.assign(std::size_t{1} << 16, no_address);
    number_of_id_.resize(address_of_id_.size());
    for (std::size_t i = 0; i < options.allowed_sources.size(); ++i) {
        const AllowedSource& source = options.allowed_sources[i];
        address_of_id_[source.id] = source.sender.address == 0 ? any_address : source.sender.address;
        number_of_id_[source.id] = static_cast<std::uint16_t>(i);
    }
}

}  // namespace petacq::net
