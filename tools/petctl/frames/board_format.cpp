#include "tools/petctl/frames/board_format.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/words.hpp"
#include "config/configuration.hpp"
#include "config/layout/layout.hpp"
#include "config/scanner/scanner.hpp"
#include "tools/petctl/text/sources.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

template <class Number>
Number number_of(const json& status, std::initializer_list<const char*> path) {
    const json& value = at(status, path);
    if (!value.is_number())
        throw config::Error(std::string("the status of the daemon has no number ") + *(path.end() - 1) +
                            ": expected a petacqd as new as petctl");
    return value.get<Number>();
}

}  // namespace

net::Endpoint endpoint_in(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    std::string address = text.substr(0, colon);
    if (!address.empty() && address.front() == '[' && address.back() == ']')
        address = address.substr(1, address.size() - 2);
    unsigned port = 0;
    const char* const end = text.data() + text.size();
    if (colon == std::string::npos || std::from_chars(text.data() + colon + 1, end, port).ptr != end ||
        port > UINT16_MAX)
        throw std::runtime_error("expected ADDRESS:PORT, found \"" + text + '"');
    return {net::parse_address(address, "address of a sender"), static_cast<std::uint16_t>(port)};
}

const BoardFormat::KnownBoard* BoardFormat::source_of(net::Endpoint sender,
                                                      std::optional<unsigned> id) const {
    const auto found = std::find_if(sources.begin(), sources.end(), [&](const KnownBoard& source) {
        if (!source.id) return source.sender == sender;
        return source.id == id && (source.sender.address == 0 || source.sender.address == sender.address);
    });
    return found == sources.end() ? nullptr : &*found;
}

std::shared_ptr<net::ForeignFormat> BoardFormat::foreign() const {
    if (layout.empty()) return nullptr;
    return config::naming_file(layout, [&] {
        return std::make_shared<net::ForeignFormat>(
            config::load_layout(layout, config::max_bdm_count(check.version)), check, tick_ps);
    });
}

BoardFormat format_of_status(const json& status) {
    BoardFormat format;
    const auto marker = [&](const char* key) { return number_of<std::uint8_t>(status, {"reception", key}); };
    const auto count = [&](const char* key) { return number_of<std::uint16_t>(status, {"reception", key}); };
    format.check = {marker("head_marker"),
                    marker("tail_marker"),
                    number_of<std::uint32_t>(status, {"reception", "bdm_count"}),
                    count("du_count"),
                    count("position_size"),
                    marker("tag_marker"),
                    frame_version_of(status)};
    format.tick_ps = number_of<double>(status, {"common", "tick_ps"});
    format.framing = config::from_name<config::Framing>(text_of(at(status, {"reception", "framing"})));
    if (const json& layout = at(status, {"reception", "layout"}); layout.is_string()) format.layout = layout;
    for (const json& entry : at(status, {"reception", "listed"})) {
        BoardFormat::KnownBoard& source = format.sources.emplace_back();
        if (const json& id = at(entry, {"id"}); id.is_number_unsigned()) source.id = id.get<unsigned>();
        const std::string sender = entry.value("address", "");
        if (!source.id) {
            source.sender = endpoint_in(sender);
        } else if (!sender.empty()) {
            source.sender.address = net::parse_address(sender, "address of a source");
        }
        for (const unsigned bdm : bdms_of(entry))
            if (bdm < format.check.bdm_count) source.modules.set(bdm);
    }
    for (const json& socket : at(status, {"sockets"}))
        format.ports.push_back(number_of<std::uint16_t>(socket, {"port"}));
    return format;
}

BoardFormat format_of_files(const std::string& file) {
    const config::Configuration configuration = config::load_configuration(file);
    const config::Scanner scanner = config::load_scanner(configuration.scanner);
    config::check_against_scanner(configuration, scanner);
    BoardFormat format;
    const config::Geometry& g = scanner.geometry;
    format.check = {configuration.frame.head_marker,
                    configuration.frame.tail_marker,
                    g.bdm_count,
                    static_cast<std::uint16_t>(g.du_count),
                    static_cast<std::uint16_t>(g.position_size),
                    configuration.frame.tag_marker,
                    scanner.frame_version};
    format.tick_ps = scanner.tick_ps;
    format.framing = configuration.receive.framing;
    format.layout = configuration.receive.layout.string();
    for (const config::Source& listed : config::listed_sources(configuration, scanner)) {
        BoardFormat::KnownBoard& source = format.sources.emplace_back();
        source.id = listed.id;
        if (!listed.address.empty())
            source.sender = {net::parse_address(listed.address, "address of a source"), listed.port};
        for (const std::uint32_t bdm : listed.bdms)
            source.modules.set(bdm);
    }
    for (const config::Socket& socket : configuration.receive.sockets)
        format.ports.push_back(socket.port);
    if (std::count(format.ports.begin(), format.ports.end(), 0) > 0) format.ports.clear();
    return format;
}

}  // namespace petacq::petctl
