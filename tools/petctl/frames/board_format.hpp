// What the boards are to send: framing, frames, and who sends which modules.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/choices.hpp"
#include "net/endpoint.hpp"
#include "net/foreign/translator.hpp"
#include "net/wire.hpp"

namespace petacq::petctl {

struct BoardFormat {
    struct KnownBoard {
        std::optional<unsigned> id;
        net::Endpoint sender;  ///< with an id: its address alone, 0 for any
        net::Modules modules;  ///< none: not known
    };

    config::Framing framing = config::Framing::sequenced;
    net::FrameCheck check;
    double tick_ps = 0;
    std::string layout;                ///< its file; "": petacqd's own frames
    std::vector<KnownBoard> sources;   ///< empty: any
    std::vector<std::uint16_t> ports;  ///< where petacqd receives; empty: any

    /// The listed source that a datagram belongs to; nullptr: none. `id`: of sequenced framing.
    [[nodiscard]] const KnownBoard* source_of(net::Endpoint sender, std::optional<unsigned> id) const;
    /// For a capture with datagrams of the layout. Throws config::Error.
    [[nodiscard]] std::shared_ptr<net::ForeignFormat> foreign() const;
};

/// "192.168.1.10:9601", "[fd00::2]:9601". Throws std::runtime_error.
net::Endpoint endpoint_in(const std::string& text);

/// What the daemon expects. Throws config::Error if its status does not tell.
BoardFormat format_of_status(const nlohmann::json& status);
/// What a configuration expects. Throws config::Error.
BoardFormat format_of_files(const std::string& configuration);

}  // namespace petacq::petctl
