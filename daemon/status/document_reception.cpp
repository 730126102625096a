#include "daemon/status/document_reception.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/status/document_detector.hpp"
#include "net/endpoint.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

std::string hexadecimal(std::span<const std::byte> bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const std::byte byte : bytes) {
        const auto value = std::to_integer<unsigned>(byte);
        text += digits[value >> 4];
        text += digits[value & 0xF];
    }
    return text;
}

json entries_of(const std::vector<config::Source>& sources) {
    json listed = json::array();
    for (const config::Source& source : sources) {
        net::Modules bdms;
        for (const std::uint32_t bdm : source.bdms)
            bdms.set(bdm);
        const std::string port = source.port == 0 ? "" : ":" + std::to_string(source.port);
        listed.push_back({{"id", source.id ? json(*source.id) : json()},
                          {"address", source.address + port},
                          {"bdms", ranges_of(bdms)}});
    }
    return listed;
}

json make_samples(const Reading& now) {
    json samples = json::array();
    for (const net::DatagramSample& sample : now.samples) {
        const auto head = std::span(sample.head).first(std::min(sample.bytes, sample.head.size()));
        samples.push_back(
            {{"address", net::to_text(sample.sender)},
             {"bytes", sample.bytes},
             {"head", hexadecimal(head)},
             {"next", hexadecimal(std::span(sample.next).first(sample.next_bytes))},
             {"translated", hexadecimal(std::span(sample.translated).first(sample.translated_bytes))},
             {"arrived_s", static_cast<double>(sample.arrival_ns) * 1e-9}});
    }
    return samples;
}

}  // namespace

json make_reception(const Observation& seen) {
    const config::Configuration& c = seen.configuration();
    return {{"framing", name_of(c.receive.framing)},
            {"layout", c.receive.layout.string()},
            {"head_marker", c.frame.head_marker},
            {"tail_marker", c.frame.tail_marker},
            {"tag_marker", c.frame.tag_marker},
            {"frame_version", seen.scanner().frame_version},
            {"bdm_count", seen.scanner().geometry.bdm_count},
            {"du_count", seen.scanner().geometry.du_count},
            {"position_size", seen.scanner().geometry.position_size},
            {"listed", entries_of(config::listed_sources(c, seen.scanner()))},
            {"described", entries_of(seen.scanner().sources)},
            {"samples", make_samples(*seen.now)}};
}

}  // namespace petacq::daemon
