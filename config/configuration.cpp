#include "config/configuration.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <set>

#include "config/error.hpp"
#include "config/json_file.hpp"
#include "config/json_schema.hpp"
#include "config/schemas.hpp"

namespace petacq::config {

namespace {

using nlohmann::json;

template <class T>
void read(const json& section, const char* key, T& out) {
    section.at(key).get_to(out);
}

template <class T>
void read(const json& section, const char* key, std::optional<T>& out) {
    const json& value = section.at(key);
    if (value.is_null()) {
        out.reset();
    } else {
        out = value.get<T>();
    }
}

Socket socket_from(const json& j) {
    Socket s;
    read(j, "address", s.address);
    read(j, "port", s.port);
    read(j, "count", s.count);
    read(j, "multicast_group", s.multicast_group);
    read(j, "multicast_interface", s.multicast_interface);
    read(j, "cpus", s.cpus);
    return s;
}

Receive receive_from(const json& j) {
    Receive r;
    read(j, "framing", r.framing);
    for (const json& socket : j.at("sockets"))
        r.sockets.push_back(socket_from(socket));
    read(j, "receive_buffer_bytes", r.receive_buffer_bytes);
    read(j, "gro", r.gro);
    read(j, "batch_bytes", r.batch_bytes);
    read(j, "batch_count", r.batch_count);
    read(j, "huge_pages", r.huge_pages);
    read(j, "lock_memory", r.lock_memory);
    read(j, "flush_interval_ms", r.flush_interval_ms);
    return r;
}

Watermark watermark_from(const json& j) {
    Watermark w;
    read(j, "max_disorder_us", w.max_disorder_us);
    read(j, "max_lag_ms", w.max_lag_ms);
    read(j, "max_jump_ms", w.max_jump_ms);
    read(j, "jump_confirmations", w.jump_confirmations);
    read(j, "source_timeout_ms", w.source_timeout_ms);
    return w;
}

Coincidence coincidence_from(const json& j) {
    Coincidence c;
    read(j, "window_ticks", c.window_ticks);
    read(j, "window_mode", c.window_mode);
    read(j, "multiples_policy", c.multiples_policy);
    read(j, "max_multiplicity", c.max_multiplicity);
    read(j, "min_module_difference", c.min_module_difference);
    read(j, "max_ring_difference", c.max_ring_difference);
    read(j, "delay_ticks", c.delay_ticks);
    return c;
}

Pipeline pipeline_from(const json& j) {
    Pipeline p;
    read(j, "backend", p.backend);
    read(j, "sort", p.sort);
    read(j, "threads", p.threads);
    read(j, "slice_frames", p.slice_frames);
    read(j, "slice_interval_ms", p.slice_interval_ms);
    read(j, "max_pending_singles", p.max_pending_singles);
    return p;
}

ListMode listmode_from(const json& j) {
    ListMode l;
    read(j, "block_bytes", l.block_bytes);
    read(j, "sync_interval_ms", l.sync_interval_ms);
    read(j, "queue_blocks", l.queue_blocks);
    read(j, "write_singles", l.write_singles);
    read(j, "write_raw", l.write_raw);
    read(j, "split_bytes", l.split_bytes);
    read(j, "split_s", l.split_s);
    return l;
}

Control control_from(const json& j) {
    Control c;
    read(j, "socket", c.socket);
    read(j, "socket_mode", c.socket_mode);
    read(j, "group", c.group);
    read(j, "max_clients", c.max_clients);
    read(j, "max_request_bytes", c.max_request_bytes);
    read(j, "send_buffer_bytes", c.send_buffer_bytes);
    return c;
}

Http http_from(const json& j) {
    Http h;
    read(j, "listen", h.listen);
    read(j, "allow_control", h.allow_control);
    read(j, "host_names", h.host_names);
    read(j, "max_connections", h.max_connections);
    read(j, "request_timeout_ms", h.request_timeout_ms);
    read(j, "idle_timeout_ms", h.idle_timeout_ms);
    read(j, "max_request_bytes", h.max_request_bytes);
    read(j, "chart_library", h.chart_library);
    return h;
}

Health health_from(const json& j) {
    Health h;
    read(j, "max_loss_fraction", h.max_loss_fraction);
    read(j, "max_temperature_C", h.max_temperature_C);
    read(j, "min_disk_free_bytes", h.min_disk_free_bytes);
    read(j, "min_disk_time_s", h.min_disk_time_s);
    read(j, "max_latency_ms", h.max_latency_ms);
    return h;
}

[[noreturn]] void fail(const std::string& path, const std::string& message) {
    throw Error(path + ": " + message);
}

void check_multicast(const Socket& s, const std::string& path) {
    if (s.multicast_group.empty()) {
        if (!s.multicast_interface.empty())
            fail(path + "/multicast_interface", "given without a multicast_group");
        return;
    }
    const auto group = parse_ipv4(s.multicast_group);
    if (!group || *group >> 28 != 0xE) {
        fail(path + "/multicast_group",
             "expected an IPv4 multicast address, 224.0.0.0 to 239.255.255.255, or \"\"; found \"" +
                 s.multicast_group + '"');
    }
    if (!s.multicast_interface.empty() && !parse_ipv4(s.multicast_interface)) {
        fail(path + "/multicast_interface",
             "expected an IPv4 address or \"\", found \"" + s.multicast_interface + '"');
    }
}

void check_receive(const Receive& r) {
    std::uint32_t threads = 0;
    for (std::size_t i = 0; i < r.sockets.size(); ++i) {
        const Socket& s = r.sockets[i];
        const std::string path = "/receive/sockets/" + std::to_string(i);
        check_multicast(s, path);
        if (!s.cpus.empty() && s.cpus.size() != s.count) {
            fail(path + "/cpus", "expected one CPU for each of the " + std::to_string(s.count) +
                                     " sockets of count, or none; found " + std::to_string(s.cpus.size()));
        }
        // Port 0 with several sockets would give each a port of its own.
        if (s.port == 0 && s.count > 1)
            fail(path + "/count", "expected 1 with port 0, found " + std::to_string(s.count));
        for (std::size_t k = 0; k < i && s.port != 0; ++k) {
            const Socket& other = r.sockets[k];
            const bool overlap =
                s.address == other.address || s.address == "0.0.0.0" || other.address == "0.0.0.0";
            if (s.port == other.port && overlap) {
                fail(path + "/port", "expected a port of its own for each address; " +
                                         std::to_string(s.port) + " is taken by /receive/sockets/" +
                                         std::to_string(k) + " (several sockets on one port: count)");
            }
        }
        threads += s.count;
    }
    // A receiver fills one batch while another is on its way.
    if (r.batch_count < 2 * threads) {
        fail("/receive/batch_count", "expected at least two for each of the " + std::to_string(threads) +
                                         " sockets, found " + std::to_string(r.batch_count));
    }
}

/// ADDRESS:PORT with a numeric address; a name could mean several, or change.
void check_listen(const std::string& listen) {
    if (listen.empty()) return;
    const std::size_t colon = listen.rfind(':');
    bool good = colon != std::string::npos && colon > 0;
    if (good) {
        const std::string port = listen.substr(colon + 1);
        good = !port.empty() && port.size() <= 5 &&
               port.find_first_not_of("0123456789") == std::string::npos && std::stoi(port) <= 65'535;
        const std::string address = listen.substr(0, colon);
        if (address.front() == '[' && address.back() == ']') {
            in6_addr ipv6{};
            good = good && inet_pton(AF_INET6, address.substr(1, address.size() - 2).c_str(), &ipv6) == 1;
        } else {
            good = good && parse_ipv4(address).has_value();
        }
    }
    if (!good) {
        fail("/http/listen",
             "expected ADDRESS:PORT with a numeric address, such as 127.0.0.1:9680 or [::1]:9680, or \"\" "
             "for none; found \"" +
                 listen + '"');
    }
}

void check(const Configuration& c) {
    check_receive(c.receive);
    check_listen(c.http.listen);
    if (c.receive.framing == "bare" && !c.sources.ids.empty()) {
        fail("/sources/ids",
             "expected none with bare framing, which has no source ids (sources.addresses does it); found " +
                 std::to_string(c.sources.ids.size()));
    }
    if (c.energy.upper_keV < c.energy.lower_keV) {
        const json& energy = c.document.at("energy");  // as it was written, not as a double
        fail("/energy/upper_keV", "expected at least lower_keV = " + energy.at("lower_keV").dump() +
                                      ", found " + energy.at("upper_keV").dump());
    }
    if (c.coincidence.delay_ticks && *c.coincidence.delay_ticks <= c.coincidence.window_ticks) {
        fail("/coincidence/delay_ticks",
             "expected more than window_ticks = " + std::to_string(c.coincidence.window_ticks) + ", found " +
                 std::to_string(*c.coincidence.delay_ticks));
    }
    if (c.pipeline.max_pending_singles < c.pipeline.slice_frames) {
        fail("/pipeline/max_pending_singles",
             "expected at least slice_frames = " + std::to_string(c.pipeline.slice_frames) + ", found " +
                 std::to_string(c.pipeline.max_pending_singles));
    }
    const std::size_t longest = sizeof(sockaddr_un::sun_path) - 1;
    if (c.control.socket.size() > longest) {
        fail("/control/socket", "expected a path of at most " + std::to_string(longest) + " bytes, found " +
                                    std::to_string(c.control.socket.size()) + ": " + c.control.socket);
    }
}

/// Absolute, so that the working directory of the daemon does not matter.
std::string resolve(json& section, const char* key, const std::filesystem::path& directory) {
    // A file named without a directory is in the current one.
    const auto base = std::filesystem::absolute(directory.empty() ? "." : directory);
    std::string path = (base / section.at(key).get<std::string>()).lexically_normal().string();
    section[key] = path;
    return path;
}

}  // namespace

const json& configuration_schema() {
    static const json schema = json::parse(petacqd_schema_text());
    return schema;
}

Configuration configuration_from_json(const json& document, const std::filesystem::path& directory) {
    Configuration c;
    c.document = document;
    json& j = c.document;
    apply_schema(configuration_schema(), j);
    j.erase("$schema");

    c.scanner = resolve(j, "scanner", directory);
    c.calibration = resolve(j, "calibration", directory);
    c.data_dir = resolve(j, "data_dir", directory);
    resolve(j["control"], "socket", directory);
    c.receive = receive_from(j.at("receive"));
    read(j.at("sources"), "ids", c.sources.ids);
    read(j.at("sources"), "addresses", c.sources.addresses);
    read(j.at("frame"), "head_marker", c.frame.head_marker);
    read(j.at("frame"), "tail_marker", c.frame.tail_marker);
    c.watermark = watermark_from(j.at("watermark"));
    read(j.at("energy"), "filter", c.energy.filter);
    read(j.at("energy"), "lower_keV", c.energy.lower_keV);
    read(j.at("energy"), "upper_keV", c.energy.upper_keV);
    c.coincidence = coincidence_from(j.at("coincidence"));
    c.pipeline = pipeline_from(j.at("pipeline"));
    c.listmode = listmode_from(j.at("listmode"));
    c.control = control_from(j.at("control"));
    if (!j.at("http").at("chart_library").get_ref<const std::string&>().empty())
        resolve(j["http"], "chart_library", directory);
    c.http = http_from(j.at("http"));
    c.health = health_from(j.at("health"));
    read(j.at("estimates"), "scatter_fraction", c.estimates.scatter_fraction);
    read(j.at("estimates"), "dead_time_ns", c.estimates.dead_time_ns);
    read(j, "log_level", c.log_level);
    check(c);
    return c;
}

Configuration load_configuration(const std::filesystem::path& file) {
    const json document = read_json_file(file);
    return naming_file(file, [&] { return configuration_from_json(document, file.parent_path()); });
}

void check_against_scanner(const Configuration& configuration, const Scanner& scanner) {
    const std::uint32_t farthest = scanner.geometry.modules_in_ring() / 2;
    const auto& apart = configuration.coincidence.min_module_difference;
    if (apart && *apart > farthest) {
        fail("/coincidence/min_module_difference", "expected at most " + std::to_string(farthest) +
                                                       " with the " +
                                                       std::to_string(scanner.geometry.modules_in_ring()) +
                                                       " modules around the ring of scanner \"" +
                                                       scanner.name + "\", found " + std::to_string(*apart));
    }
}

}  // namespace petacq::config
