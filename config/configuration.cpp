#include "config/configuration.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/json_schema.hpp"
#include "config/base/schemas.hpp"
#include "config/http_url.hpp"
#include "config/window_times.hpp"

/// An absent value is null in JSON.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
    static void to_json(json& j, const std::optional<T>& value) { j = value ? json(*value) : json(); }
    static void from_json(const json& j, std::optional<T>& value) {
        value = j.is_null() ? std::optional<T>() : j.get<T>();
    }
};

namespace petacq::config {

using nlohmann::json;

template <WordEnum E>
void to_json(json& j, E value) {
    j = name_of(value);
}
template <WordEnum E>
void from_json(const json& j, E& value) {
    value = from_name<E>(j.get_ref<const std::string&>());
}

void to_json(json& j, const Texts& texts) {
    j = texts.all.empty() ? json("") : texts.all.size() == 1 ? json(texts.all.front()) : json(texts.all);
}
void from_json(const json& j, Texts& texts) {
    if (j.is_array()) {
        j.get_to(texts.all);
    } else if (auto one = j.get<std::string>(); !one.empty()) {
        texts.all = {std::move(one)};
    }
}

namespace {

template <class T>
constexpr bool may_be_null = false;
template <class T>
constexpr bool may_be_null<std::optional<T>> = true;

template <class T>
void read_key(const json& section, const char* key, T& member) {
    const std::string path = std::string("/") + key;
    const auto found = section.find(key);
    if (found == section.end() || (found->is_null() && !may_be_null<T>))
        throw Error(path + ": missing, and it has no default");
    try {
        found->get_to(member);
    } catch (const json::exception& error) {
        throw Error(path + ": " + error.what());
    } catch (const std::invalid_argument& error) {
        throw Error(path + ": " + error.what());
    }
}

}  // namespace

// A key of the schema that is in no list fails tests/config/configuration_test.cpp.
// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none
#define PETACQ_WRITE_KEY(type, key) j[#key] = section.key;
#define PETACQ_READ_KEY(type, key) read_key(j, #key, section.key);
#define PETACQ_SECTION_JSON(Section, KEYS)            \
    void to_json(json& j, const Section& section) {   \
        KEYS(PETACQ_WRITE_KEY)                        \
    }                                                 \
    void from_json(const json& j, Section& section) { \
        KEYS(PETACQ_READ_KEY)                         \
    }
// NOLINTEND(bugprone-macro-parentheses)
PETACQ_SECTION_JSON(Socket, PETACQ_SOCKET_KEYS)
PETACQ_SECTION_JSON(Receive, PETACQ_RECEIVE_KEYS)
PETACQ_SECTION_JSON(Sources, PETACQ_SOURCES_KEYS)
PETACQ_SECTION_JSON(FrameMarkers, PETACQ_FRAME_MARKER_KEYS)
PETACQ_SECTION_JSON(Watermark, PETACQ_WATERMARK_KEYS)
PETACQ_SECTION_JSON(Energy, PETACQ_ENERGY_KEYS)
PETACQ_SECTION_JSON(Coincidence, PETACQ_COINCIDENCE_KEYS)
PETACQ_SECTION_JSON(Gammas, PETACQ_GAMMAS_KEYS)
PETACQ_SECTION_JSON(Pipeline, PETACQ_PIPELINE_KEYS)
PETACQ_SECTION_JSON(ListMode, PETACQ_LISTMODE_KEYS)
PETACQ_SECTION_JSON(SpectraSettings, PETACQ_SPECTRA_KEYS)
PETACQ_SECTION_JSON(Control, PETACQ_CONTROL_KEYS)
PETACQ_SECTION_JSON(Http, PETACQ_HTTP_KEYS)
PETACQ_SECTION_JSON(PeerSettings, PETACQ_PEER_KEYS)
PETACQ_SECTION_JSON(TapSettings, PETACQ_TAP_KEYS)
PETACQ_SECTION_JSON(QuickLookSettings, PETACQ_QUICK_LOOK_KEYS)
PETACQ_SECTION_JSON(Health, PETACQ_HEALTH_KEYS)
PETACQ_SECTION_JSON(Alarm, PETACQ_ALARM_KEYS)
PETACQ_SECTION_JSON(Estimates, PETACQ_ESTIMATE_KEYS)
PETACQ_SECTION_JSON(Configuration, PETACQ_CONFIGURATION_KEYS)
#undef PETACQ_SECTION_JSON
#undef PETACQ_READ_KEY
#undef PETACQ_WRITE_KEY

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
    throw Error(path + ": " + message);
}

bool is_ipv6_socket(const Socket& s) {
    return s.address.find(':') != std::string::npos;
}

bool is_any(const std::string& address) {
    in6_addr ipv6{};
    return parse_ipv4(address) == 0U ||
           (inet_pton(AF_INET6, address.c_str(), &ipv6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&ipv6));
}

bool is_group(const std::string& address) {
    in6_addr ipv6{};
    if (inet_pton(AF_INET6, address.c_str(), &ipv6) == 1) return IN6_IS_ADDR_MULTICAST(&ipv6);
    const auto ipv4 = parse_ipv4(address);
    return ipv4 && *ipv4 >> 28 == 0xE;
}

void check_address(const Socket& s, const std::string& path) {
    if (parse_ipv4(s.address) || is_ipv6(s.address.substr(0, s.address.find('%')))) return;
    refuse(path + "/address",
           "expected an IPv4 or IPv6 address, such as 192.168.1.1 or fd00::1; found \"" + s.address + '"');
}

void check_group(const Socket& s, const std::string& group, const std::string& path) {
    if (!is_group(group)) {
        refuse(
            path + "/multicast_group",
            "expected a multicast address, 224.0.0.0 to 239.255.255.255 or one that begins with ff, a list "
            "of them, or \"\"; found \"" +
                group + '"');
    }
    const bool ipv6 = group.find(':') != std::string::npos;
    const std::string any = ipv6 ? "::" : "0.0.0.0";
    const bool alone = s.multicast_group.all.size() == 1;
    const bool right = ipv6 == is_ipv6_socket(s) && (is_any(s.address) || (alone && s.address == group));
    if (right) return;
    refuse(path + "/address", "expected " + any + (alone ? ", or the group " + group : "") +
                                  ": a socket with another address receives nothing that is sent to the " +
                                  "group (multicast_interface chooses the interface); found \"" + s.address +
                                  '"');
}

void check_multicast(const Socket& s, const std::string& path) {
    if (s.multicast_group.all.empty()) {
        if (!s.multicast_interface.empty())
            refuse(path + "/multicast_interface", "given without a multicast_group");
        if (!s.multicast_sources.empty())
            refuse(path + "/multicast_sources", "given without a multicast_group");
        if (is_group(s.address))
            refuse(path + "/address", "found a multicast address: it belongs into multicast_group, too");
        return;
    }
    for (const std::string& group : s.multicast_group.all)
        check_group(s, group, path);
    for (const std::string& source : s.multicast_sources) {
        if ((source.find(':') != std::string::npos) == is_ipv6_socket(s)) continue;
        refuse(path + "/multicast_sources",
               "expected addresses of the family of the group, found \"" + source + '"');
    }
    if (s.count > 1) {
        refuse(path + "/count",
               "expected 1 with a multicast_group, found " + std::to_string(s.count) +
                   ": each socket would get every datagram of the group. To use several threads, give the "
                   "boards several groups, each in an entry of its own; they may use one port");
    }
}

/// Both join one group on interfaces that are not known to differ.
bool join_the_same(const Socket& a, const Socket& b) {
    const bool apart = !a.multicast_interface.empty() && !b.multicast_interface.empty() &&
                       a.multicast_interface != b.multicast_interface;
    const auto& others = b.multicast_group.all;
    return !apart && std::any_of(a.multicast_group.all.begin(), a.multicast_group.all.end(),
                                 [&](const std::string& group) {
                                     return std::find(others.begin(), others.end(), group) != others.end();
                                 });
}

void check_shared_port(const Socket& s, const std::string& path, const Socket& other, std::size_t other_at) {
    if (!share_port(s, other)) return;
    const std::string there = "/receive/sockets/" + std::to_string(other_at);
    if (s.multicast_group.all.empty() || other.multicast_group.all.empty()) {
        refuse(path + "/port", "expected a port of its own for each address; " + std::to_string(s.port) +
                                   " is taken by " + there +
                                   (s.multicast_group.all.empty() && other.multicast_group.all.empty()
                                        ? " (several sockets on one port: count)"
                                        : " (only entries with multicast groups may share a port)"));
    }
    if (join_the_same(s, other)) {
        refuse(path + "/multicast_group", "expected other groups than in " + there +
                                              ", which uses this port: both would get every "
                                              "datagram of a group that both join");
    }
}

void check_receive(const Receive& r) {
    std::uint32_t threads = 0;
    for (std::size_t i = 0; i < r.sockets.size(); ++i) {
        const Socket& s = r.sockets[i];
        const std::string path = "/receive/sockets/" + std::to_string(i);
        check_address(s, path);
        check_multicast(s, path);
        if (!s.cpus.empty() && s.cpus.size() != s.count) {
            refuse(path + "/cpus", "expected one CPU for each of the " + std::to_string(s.count) +
                                       " sockets of count, or none; found " + std::to_string(s.cpus.size()));
        }
        // Port 0 with several sockets would give each a port of its own.
        if (s.port == 0 && s.count > 1)
            refuse(path + "/count", "expected 1 with port 0, found " + std::to_string(s.count));
        for (std::size_t k = 0; k < i; ++k)
            check_shared_port(s, path, r.sockets[k], k);
        threads += s.count;
    }
    // A receiver fills one batch while another one is in the queue.
    if (r.batch_count < 2 * threads) {
        refuse("/receive/batch_count", "expected at least two for each of the " + std::to_string(threads) +
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
        refuse("/http/listen",
               "expected ADDRESS:PORT with a numeric address, such as 127.0.0.1:9680 or [::1]:9680, or \"\" "
               "for none; found \"" +
                   listen + '"');
    }
}

bool is_loopback(const std::string& listen) {
    return listen.starts_with("127.") || listen.starts_with("[::1]") || listen.starts_with("[::ffff:127.");
}

void check_socket(const char* key, const std::string& path) {
    const std::size_t longest = sizeof(sockaddr_un::sun_path) - 1;
    if (path.size() <= longest) return;
    refuse(key, "expected a path of at most " + std::to_string(longest) + " bytes, found " +
                    std::to_string(path.size()) + ": " + path);
}

void check_control(const Http& http) {
    if (http.allow_control && http.control_token_file.empty()) {
        refuse("/http/control_token_file",
               "expected a file with a token, because /http/allow_control is true: start and stop need it");
    }
    if (!http.allow_control || http.allow_remote_control || http.listen.empty() || is_loopback(http.listen))
        return;
    refuse("/http/allow_control",
           "expected false, or a loopback address in /http/listen: everybody who can reach " + http.listen +
               " could read the token on its way. /http/allow_remote_control true allows that");
}

/// `section`: as written; its numbers are no doubles.
void check_order(const std::string& name, const json& section, double lower, double upper) {
    if (lower <= upper) return;
    refuse("/" + name + "/upper_keV", "expected at least lower_keV = " + section.at("lower_keV").dump() +
                                          ", found " + section.at("upper_keV").dump());
}

void check_gammas(const Configuration& c, const Gammas& gammas) {
    const json& section = c.document->at("gammas");
    const json& energy = c.document->at("energy");
    const auto window = [](const json& of) {
        return of.at("lower_keV").dump() + " to " + of.at("upper_keV").dump() + " keV";
    };
    if (!c.energy.filter) {
        refuse(
            "/gammas",
            "expected null, or true in /energy/filter: without it, singles of every energy form pairs, and "
            "none is a gamma");
    }
    check_order("gammas", section, gammas.lower_keV, gammas.upper_keV);
    // Energies are compared in this precision.
    const auto above = [](double a, double b) { return static_cast<float>(a) > static_cast<float>(b); };
    if (!above(gammas.lower_keV, c.energy.upper_keV) && !above(c.energy.lower_keV, gammas.upper_keV)) {
        refuse("/gammas/lower_keV", "expected a window apart from that of /energy, which is " +
                                        window(energy) + ", found " + window(section));
    }
    const std::uint64_t longest = std::uint64_t{gammas.before_ticks} + gammas.after_ticks;
    if (gammas.delay_ticks && *gammas.delay_ticks <= longest) {
        refuse("/gammas/delay_ticks",
               "expected more than before_ticks + after_ticks = " + std::to_string(longest) +
                   ", so that delayed gammas are others; found " + std::to_string(*gammas.delay_ticks));
    }
}

void check(const Configuration& c) {
    check_receive(c.receive);
    check_listen(c.http.listen);
    check_control(c.http);
    if (!c.peer.url.empty() && !http_url_from(c.peer.url)) {
        refuse("/peer/url",
               "expected http://HOST:PORT (the http.listen of the other host), or \"\"; found \"" +
                   c.peer.url + '"');
    }
    if (c.receive.framing == Framing::bare && !c.sources.ids.empty()) {
        refuse("/sources/ids",
               "expected none with bare framing, which has no source ids (use sources.addresses); found " +
                   std::to_string(c.sources.ids.size()));
    }
    if (c.sources.accept_any && !(c.sources.ids.empty() && c.sources.addresses.empty())) {
        refuse("/sources/accept_any",
               "expected false together with ids or addresses, which say who may send");
    }
    if (c.frame.tag_marker == c.frame.head_marker) {
        refuse("/frame/tag_marker", "expected another than frame.head_marker, which marks hits; found " +
                                        std::to_string(c.frame.tag_marker) + " for both");
    }
    check_order("energy", c.document->at("energy"), c.energy.lower_keV, c.energy.upper_keV);
    if (c.gammas) check_gammas(c, *c.gammas);
    const Coincidence& coincidence = c.coincidence;
    if (coincidence.delayeds == DelayedRule::shifted_group && coincidence.delay_ticks &&
        *coincidence.delay_ticks <= coincidence.window_ticks) {
        refuse("/coincidence/delay_ticks",
               "expected more than window_ticks = " + std::to_string(coincidence.window_ticks) +
                   ", so that shifted groups leave their window; found " +
                   std::to_string(*coincidence.delay_ticks) +
                   R"( (use delayeds "delayed_window" otherwise))");
    }
    if (c.pipeline.devices && c.pipeline.backend == Backend::cpu) {
        refuse("/pipeline/devices", "expected null with backend \"cpu\", which uses no GPU; found " +
                                        json(*c.pipeline.devices).dump());
    }
    if (c.pipeline.max_pending_singles < c.pipeline.slice_frames) {
        refuse("/pipeline/max_pending_singles",
               "expected at least slice_frames = " + std::to_string(c.pipeline.slice_frames) + ", found " +
                   std::to_string(c.pipeline.max_pending_singles));
    }
    if (!c.listmode.write_coincidences && !c.listmode.write_singles) {
        refuse("/listmode/write_coincidences",
               "expected true, or true in /listmode/write_singles; found false for both: a run would hold no "
               "list-mode");
    }
    if (const double s = c.quick_look.interval_s; s != 0 && s < 0.1)
        refuse("/quick_look/interval_s", "expected 0 or at least 0.1 s, found " + json(s).dump());
    check_socket("/control/socket", c.control.socket);
    check_socket("/tap/socket", c.tap.socket);
    if (c.tap.socket == c.control.socket)
        refuse("/tap/socket", "expected another path than /control/socket, found the same: " + c.tap.socket);
}

/// Makes a path absolute, so that the working directory of the daemon does not matter.
void resolve(json& path, const std::filesystem::path& directory) {
    // The directory of a file named without one is empty: the current directory.
    const auto base = std::filesystem::absolute(directory.empty() ? "." : directory);
    path = (base / path.get<std::string>()).lexically_normal().string();
}

bool contains(const std::vector<std::uint16_t>& ids, std::uint16_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void check_senders(const Configuration& c, const Scanner& scanner) {
    if (c.sources.accept_any) return;
    const std::string name = "scanner \"" + scanner.name + "\"";
    if (scanner.sources.empty()) {
        if (!c.sources.ids.empty() || !c.sources.addresses.empty()) return;
        refuse("/sources",
               "expected to find who may send: list the sources in " + name +
                   " (petctl sources prints what is heard in that form), or give ids or addresses "
                   "here, or set accept_any to true to take the frames of any sender");
    }
    const bool bare = c.receive.framing == Framing::bare;
    if (bare == scanner.sources.front().id.has_value()) {
        refuse("/receive/framing",
               "expected \"" + std::string(name_of(bare ? Framing::sequenced : Framing::bare)) +
                   "\", since " + name + " lists its sources by " + (bare ? "id" : "address and port") +
                   "; found \"" + name_of(c.receive.framing) + '"');
    }
    for (std::size_t i = 0; i < c.sources.ids.size(); ++i) {
        const std::uint16_t id = c.sources.ids[i];
        const bool listed = std::any_of(scanner.sources.begin(), scanner.sources.end(),
                                        [id](const Source& s) { return s.id == id; });
        if (!listed) {
            refuse("/sources/ids/" + std::to_string(i),
                   "expected the id of a source that " + name + " lists, found " + std::to_string(id));
        }
    }
}

}  // namespace

bool share_port(const Socket& a, const Socket& b) {
    if (a.port != b.port || a.port == 0) return false;
    if (a.address == b.address) return true;
    // :: stands for all addresses of both families, 0.0.0.0 for those of IPv4.
    const auto covers = [](const Socket& all, const Socket& one) {
        return is_any(all.address) && (is_ipv6_socket(all) || !is_ipv6_socket(one));
    };
    return covers(a, b) || covers(b, a);
}

const json& configuration_schema() {
    static const json schema = json::parse(petacqd_schema_text());
    return schema;
}

Configuration configuration_from_json(const json& document, const std::filesystem::path& directory) {
    json full = document;
    apply_schema(configuration_schema(), full);
    full.erase("$schema");
    for (const char* key : {"scanner", "calibration", "data_dir"})
        resolve(full[key], directory);
    resolve(full["control"]["socket"], directory);
    for (json* const path :
         {&full["tap"]["socket"], &full["receive"]["layout"], &full["http"]["chart_library"],
          &full["http"]["control_token_file"], &full["detector_reference"]}) {
        if (!path->get_ref<const std::string&>().empty()) resolve(*path, directory);
    }
    replace_window_times(full);

    auto c = full.get<Configuration>();
    c.document = std::make_shared<const json>(std::move(full));
    check(c);
    return c;
}

json to_json(const Configuration& configuration) {
    json document;
    to_json(document, configuration);
    return document;
}

namespace {

/// A section that stands alone, as files of records state it. What is not declared is left out: a later
/// version wrote it.
template <class Section>
Section section_from(const json& section, const std::string& name) {
    const json& declared = configuration_schema().at("properties").at(name).at("properties");
    json known = json::object();
    for (const auto& [key, declaration] : declared.items())
        if (section.contains(key)) known[key] = section[key];
    try {
        apply_schema({{"type", "object"}, {"properties", declared}}, known);
        return known.get<Section>();
    } catch (const Error& error) {
        throw Error("/" + name + error.what());
    }
}
template <class Section>
json section_of(const Section& section) {
    json document;
    to_json(document, section);
    return document;
}

}  // namespace

json to_json(const Coincidence& coincidence) {
    return section_of(coincidence);
}
json to_json(const Energy& energy) {
    return section_of(energy);
}
json to_json(const Gammas& gammas) {
    return section_of(gammas);
}
Coincidence coincidence_from_json(const json& section) {
    return section_from<Coincidence>(section, "coincidence");
}
Energy energy_from_json(const json& section) {
    return section_from<Energy>(section, "energy");
}
Gammas gammas_from_json(const json& section) {
    return section_from<Gammas>(section, "gammas");
}

Configuration load_configuration(const std::filesystem::path& file) {
    const json document = read_json_file(file);
    return naming_file(file, [&] { return configuration_from_json(document, file.parent_path()); });
}

void check_against_scanner(const Configuration& configuration, const Scanner& scanner) {
    const std::uint32_t around = scanner.geometry.modules_around();
    const std::uint32_t apart = configuration.coincidence.min_module_difference.value_or(0);
    if (apart > 0 && around == 0) {
        refuse("/coincidence/min_module_difference",
               "expected null or 0, found " + std::to_string(apart) + "; not all modules of scanner \"" +
                   scanner.name +
                   "\" lie around one ring, and good_pairs.min_angle_deg of its description is for any "
                   "scanner");
    }
    if (apart > around / 2) {
        refuse("/coincidence/min_module_difference", "expected at most " + std::to_string(around / 2) +
                                                         " with the " + std::to_string(around) +
                                                         " modules around the ring of scanner \"" +
                                                         scanner.name + "\", found " + std::to_string(apart));
    }
    check_senders(configuration, scanner);
}

std::vector<Source> listed_sources(const Configuration& configuration, const Scanner& scanner) {
    const std::vector<std::uint16_t>& ids = configuration.sources.ids;
    std::vector<Source> listed;
    if (configuration.sources.accept_any) return listed;
    for (const Source& source : scanner.sources) {
        if (ids.empty() || contains(ids, source.id.value())) listed.push_back(source);
    }
    if (!scanner.sources.empty()) return listed;
    for (const std::uint16_t id : ids)
        listed.push_back({id, "", 0, {}});
    return listed;
}

}  // namespace petacq::config
