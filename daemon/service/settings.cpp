#include "daemon/service/settings.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "config/base/json_schema.hpp"
#include "config/shape/extent.hpp"
#include "daemon/backend/pipeline_options.hpp"
#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

namespace {

/// 0 for "".
std::uint32_t address_of(const std::string& text) {
    return text.empty() ? 0 : net::parse_address(text, "address of a source");
}

/// For socket `n` of entry `i`.
net::PortUse port_use(const std::vector<config::Socket>& sockets, std::size_t i, std::uint32_t n) {
    const auto shared = [&](std::size_t begin, std::size_t end) {
        for (std::size_t k = begin; k < end; ++k)
            if (config::share_port(sockets[i], sockets[k])) return true;
        return false;
    };
    if (n > 0 || shared(0, i)) return net::PortUse::follows;
    const bool first = sockets[i].count > 1 || shared(i + 1, sockets.size());
    return first ? net::PortUse::first : net::PortUse::alone;
}

}  // namespace

net::FrameCheck frame_check(const config::Configuration& configuration, const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    return {configuration.frame.head_marker,
            configuration.frame.tail_marker,
            g.bdm_count,
            static_cast<std::uint16_t>(g.du_count),
            static_cast<std::uint16_t>(g.position_size),
            configuration.frame.tag_marker,
            scanner.frame_version};
}

std::vector<net::ReceiverOptions> receiver_options(const config::Configuration& configuration,
                                                   const config::Scanner& scanner,
                                                   const std::shared_ptr<net::ForeignFormat>& foreign) {
    const net::FrameCheck frames = frame_check(configuration, scanner);
    std::vector<std::uint32_t> addresses;
    for (const std::string& text : configuration.sources.addresses)
        addresses.push_back(address_of(text));
    std::vector<net::AllowedSource> sources;
    for (const config::Source& source : config::listed_sources(configuration, scanner)) {
        net::AllowedSource& allowed = sources.emplace_back();
        allowed.id = source.id.value_or(0);
        allowed.sender = {address_of(source.address), source.port};
        for (const std::uint32_t bdm : source.bdms)
            allowed.modules.set(bdm);
    }
    std::vector<net::ReceiverOptions> all;
    const std::vector<config::Socket>& sockets = configuration.receive.sockets;
    for (std::size_t entry = 0; entry < sockets.size(); ++entry) {
        const config::Socket& socket = sockets[entry];
        for (std::uint32_t i = 0; i < socket.count; ++i) {
            net::ReceiverOptions o;
            o.address = socket.address;
            o.port = socket.port;
            o.multicast_groups = socket.multicast_group.all;
            o.multicast_interface = socket.multicast_interface;
            o.multicast_sources = socket.multicast_sources;
            o.port_use = port_use(sockets, entry, i);
            o.free_bind = socket.free_bind;
            o.receive_buffer_bytes = configuration.receive.receive_buffer_bytes;
            o.gro = configuration.receive.gro;
            if (!socket.cpus.empty()) o.cores = {socket.cpus.at(i)};
            o.framing = configuration.receive.framing;
            o.frames = frames;
            o.foreign = foreign;
            o.flush_interval_ms = static_cast<int>(configuration.receive.flush_interval_ms);
            o.allowed_addresses = addresses;
            o.allowed_sources = sources;
            o.keep_rejected = configuration.listmode.write_raw;
            all.push_back(std::move(o));
        }
    }
    return all;
}

std::uint64_t largest_offset(const config::Calibration& calibration) {
    std::uint64_t largest = 0;
    for (const std::int32_t offset : calibration.time_offset)
        largest = std::max(largest, static_cast<std::uint64_t>(std::abs(std::int64_t{offset})));
    return largest;
}

TrackerOptions tracker_options(const config::Configuration& configuration, const config::Scanner& scanner,
                               const config::Calibration& calibration) {
    TrackerOptions o;
    o.framing = configuration.receive.framing;
    for (const config::Source& source : config::listed_sources(configuration, scanner)) {
        if (source.id) {
            o.expected.push_back(*source.id);
        } else {
            o.expected_senders.push_back({address_of(source.address), source.port});
        }
    }
    const config::Watermark& w = configuration.watermark;
    o.max_disorder = ticks_of(static_cast<double>(w.max_disorder_us) * 1e-6, scanner);
    o.max_lag = ticks_of(static_cast<double>(w.max_lag_ms) * 1e-3, scanner);
    o.ticks_per_ns = 1e3 / scanner.tick_ps;
    o.max_jump = ticks_of(static_cast<double>(w.max_jump_ms) * 1e-3, scanner);
    o.jump_confirmations = w.jump_confirmations;
    o.source_timeout_ns = static_cast<std::int64_t>(w.source_timeout_ms) * 1'000'000;
    o.max_offset = largest_offset(calibration);
    const gpu::CoincidenceRules rules = coincidence_rules(configuration);
    o.flush_reach = add_or_max(rules.reach(), rules.gammas_before());
    return o;
}

SynchronyOptions synchrony_options(const config::Configuration& configuration,
                                   const config::Scanner& scanner) {
    SynchronyOptions o;
    o.places = module_places(scanner);
    o.tick_ns = scanner.tick_ps * 1e-3;
    o.window = configuration.coincidence.window_ticks;
    o.diameter_mm = 2 * config::extent_of(scanner).outer_radius_mm;
    o.sources.resize(scanner.geometry.bdm_count);
    for (const config::Source& source : config::listed_sources(configuration, scanner)) {
        for (const std::uint32_t bdm : source.bdms)
            o.sources[bdm] = source.id;
    }
    return o;
}

AcquisitionOptions acquisition_options(const config::Configuration& configuration,
                                       const config::Scanner& scanner, const TrackerOptions& tracker) {
    AcquisitionOptions o;
    o.slice_frames = configuration.pipeline.slice_frames;
    o.slice_interval = std::chrono::milliseconds(configuration.pipeline.slice_interval_ms);
    o.max_pending_singles = configuration.pipeline.max_pending_singles;
    o.framing = tracker.framing;
    o.frames = frame_check(configuration, scanner);
    o.max_offset = tracker.max_offset;
    o.max_disorder = tracker.max_disorder;
    o.flush_reach = tracker.flush_reach;
    o.second = static_cast<std::uint64_t>(std::llround(tracker.ticks_per_ns * 1e9));
    o.geometry = scanner.geometry;
    o.rules = coincidence_rules(configuration);
    for (const config::Source& source : config::listed_sources(configuration, scanner)) {
        // In tags, a source without an id has its place in the list.
        o.sources.push_back({source.id.value_or(static_cast<std::uint16_t>(o.sources.size())), source.bdms});
    }
    o.stop_timeout += std::chrono::milliseconds(configuration.watermark.source_timeout_ms);
    o.start_timeout += std::chrono::milliseconds(configuration.watermark.source_timeout_ms);
    return o;
}

}  // namespace petacq::daemon
