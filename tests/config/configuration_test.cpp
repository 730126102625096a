#include "config/configuration.hpp"

#include <nlohmann/json.hpp>

#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

json minimal() {
    return json::parse(R"({
        "scanner": "s.json", "calibration": "c.h5", "data_dir": "data",
        "receive": {"sockets": [{"port": 9601}]},
        "coincidence": {"window_ticks": 100}
    })");
}

/// The error for the minimal configuration with the value at a JSON pointer replaced.
std::string about_key(const char* pointer, const char* value) {
    json document = minimal();
    document[json::json_pointer(pointer)] = json::parse(value);
    return complaint([&] { config::configuration_from_json(document, "/etc/petacq"); });
}

}  // namespace

TEST_CASE("every key of the schema reaches a member of its name") {
    const auto c = config::configuration_from_json(minimal(), "/etc/petacq");
    CHECK(config::to_json(c) == *c.document);
}

TEST_CASE("every member holds the smallest and the largest value of its key") {
    const json defaults = *config::configuration_from_json(minimal(), "/etc/petacq").document;
    int tried = 0;
    for (const auto& [section, schema] : config::configuration_schema()["properties"].items()) {
        const json keys = schema.value("properties", json::object());
        for (const auto& [key, declared] : keys.items()) {
            for (const char* limit : {"minimum", "maximum"}) {
                if (!declared.contains(limit)) continue;
                json document = defaults;
                document[section][key] = declared[limit];
                CAPTURE(section, key, limit);
                const std::string refused = complaint([&] {
                    const auto c = config::configuration_from_json(document, "/");
                    CHECK(config::to_json(c) == *c.document);
                });
                if (refused.empty()) ++tried;
            }
        }
    }
    CHECK(tried > 50);  // some limits contradict the default of another key
}

TEST_CASE("paths are relative to the directory of the file, and values keep their types") {
    json document = minimal();
    document["scanner"] = "s";
    document["calibration"] = "/c";
    document["data_dir"] = "../d";
    document["control"]["socket"] = "c.sock";
    document["http"]["chart_library"] = "c.js";
    document["receive"]["sockets"][0]["count"] = 2;
    document["receive"]["sockets"][0]["cpus"] = {3, 4};
    document["energy"]["lower_keV"] = 1.5;
    document["coincidence"]["window_mode"] = "every";
    document["coincidence"]["delay_ticks"] = 120;
    document["log_level"] = "debug";
    const auto c = config::configuration_from_json(document, "/etc/petacq");
    CHECK(c.scanner == "/etc/petacq/s");
    CHECK(c.calibration == "/c");
    CHECK(c.data_dir == "/etc/d");
    CHECK(c.control.socket == "/etc/petacq/c.sock");
    CHECK(c.http.chart_library == "/etc/petacq/c.js");
    REQUIRE(c.receive.sockets.size() == 1);
    CHECK(c.receive.sockets[0].cpus == std::vector<int>{3, 4});
    CHECK(c.energy.lower_keV == 1.5);
    CHECK(c.coincidence.window_mode == config::WindowMode::every);
    CHECK(c.coincidence.multiples_policy == config::MultiplesPolicy::remove_multiples);
    CHECK(c.coincidence.delay_ticks == 120U);
    CHECK_FALSE(c.coincidence.max_ring_difference);
    CHECK(c.log_level == config::LogLevel::debug);
    document["http"]["chart_library"] = "";
    CHECK(config::configuration_from_json(document, "/etc").http.chart_library.empty());
}

TEST_CASE("the recorded document is complete and means the same when read again") {
    json document = minimal();
    document["$schema"] = "petacqd.schema.json";
    const auto c = config::configuration_from_json(document, "/etc/petacq");
    CHECK_FALSE(c.document->contains("$schema"));
    CHECK(c.document->at("scanner") == "/etc/petacq/s.json");
    CHECK(c.document->at("watermark").at("max_lag_ms") == 1000);
    CHECK(c.document->at("receive").at("sockets").at(0).at("count") == 1);
    CHECK(*config::configuration_from_json(*c.document, "/elsewhere").document == *c.document);
}

TEST_CASE("impossible values are refused with the path of the key") {
    CHECK(about_key("/recieve", "{}") == "/recieve: unknown key; did you mean \"receive\"?");
    CHECK(about_key("/coincidence/window_tick", "1") ==
          "/coincidence/window_tick: unknown key; did you mean \"window_ticks\"?");
    CHECK(about_key("/receive/sockets/0/prot", "1") ==
          "/receive/sockets/0/prot: unknown key; did you mean \"port\"?");
    CHECK(about_key("/coincidence/window_ticks", "\"5 ns\"") ==
          "/coincidence/window_ticks: expected an integer from 0 to 2147483647 or null, found the string \"5 "
          "ns\"");
    CHECK(about_key("/coincidence/window_ticks", "-1").starts_with("/coincidence/window_ticks: expected"));
    CHECK(about_key("/coincidence/delay_ticks", "0").starts_with("/coincidence/delay_ticks: expected"));
    CHECK(
        about_key("/coincidence/delay_ticks", "100") ==
        "/coincidence/delay_ticks: expected more than window_ticks = 100, so that shifted groups leave their "
        "window; found 100 (use delayeds \"delayed_window\" otherwise)");
    CHECK(about_key("/coincidence/delay_ticks", "101").empty());
    CHECK(about_key("/coincidence/multiples_policy", "\"takeAllGoods\"").find("\"TakeAllGoods\"") !=
          std::string::npos);
    CHECK(about_key("/energy/upper_keV", "349.5") ==
          "/energy/upper_keV: expected at least lower_keV = 350, found 349.5");
    CHECK(about_key("/energy/upper_keV", "350").empty());
    const auto gammas = [](json changed) {
        json document = {{"lower_keV", 700}, {"upper_keV", 1200}, {"before_ticks", 40}, {"after_ticks", 60}};
        document.merge_patch(changed);
        return about_key("/gammas", document.dump().c_str());
    };
    CHECK(gammas(json::object()).empty());
    CHECK(about_key("/gammas", "null").empty());
    CHECK(about_key("/gammas", "{}") == "/gammas/lower_keV: missing; expected a number from 0 to 1000000");
    CHECK(gammas({{"upper_keV", 699.5}}) ==
          "/gammas/upper_keV: expected at least lower_keV = 700, found 699.5");
    CHECK(gammas({{"lower_keV", 650}}) ==
          "/gammas/lower_keV: expected a window apart from that of /energy, which is 350 to 650 keV, found "
          "650 to 1200 keV");
    CHECK(gammas({{"lower_keV", 100}, {"upper_keV", 349.9}}).empty());
    CHECK(
        gammas({{"lower_keV", 100}, {"upper_keV", 350}}).starts_with("/gammas/lower_keV: expected a window"));
    CHECK(
        gammas({{"lower_keV", 400}, {"upper_keV", 410}}).starts_with("/gammas/lower_keV: expected a window"));
    CHECK(gammas({{"delay_ticks", 100}}) ==
          "/gammas/delay_ticks: expected more than before_ticks + after_ticks = 100, so that delayed gammas "
          "are others; found 100");
    CHECK(gammas({{"delay_ticks", 101}}).empty());
    CHECK(gammas({{"policy", "first"}}) ==
          "/gammas/policy: expected \"all\", \"only_one\" or \"nearest\", found the string \"first\"");
    CHECK(gammas({{"after_ticks", nullptr}}) ==
          "/gammas/after_ticks: missing; expected an integer from 0 to 2147483647, or after_ns");
    json with_gammas = minimal();
    with_gammas["gammas"] = {
        {"lower_keV", 700}, {"upper_keV", 1200}, {"before_ticks", 4}, {"after_ticks", 6}};
    const auto read = [&] { return config::configuration_from_json(with_gammas, "/"); };
    CHECK(config::to_json(read()) == *read().document);
    CHECK(read().gammas->policy == config::GammaPolicy::all);
    with_gammas["energy"]["filter"] = false;
    CHECK(complaint(read).starts_with("/gammas: expected null, or true in /energy/filter"));
    with_gammas["energy"]["filter"] = true;
    with_gammas["listmode"] = {{"write_coincidences", false}, {"write_singles", true}};
    CHECK(read().gammas);
    CHECK_FALSE(read().finds_triples());
    CHECK(read().record_kinds() == 1);
    CHECK(about_key("/frame/tag_marker", "10") ==
          "/frame/tag_marker: expected another than frame.head_marker, which marks hits; found 10 for both");
    CHECK(about_key("/frame/tag_marker", "12").empty());
    CHECK(
        about_key("/receive/sockets", "[]").starts_with("/receive/sockets: expected an array of at least 1"));
    CHECK(about_key("/receive/batch_bytes", "131071").starts_with("/receive/batch_bytes: expected"));
    CHECK(about_key("/receive/batch_count", "1").starts_with("/receive/batch_count: expected"));
    CHECK(about_key("/listmode/block_bytes", "4096").empty());
    CHECK(about_key("/listmode/block_bytes", "4097") ==
          "/listmode/block_bytes: expected an integer from 4096 to 268435456 that is a multiple of 64, found "
          "4097");
    CHECK(about_key("/listmode/write_coincidences", "false") ==
          "/listmode/write_coincidences: expected true, or true in /listmode/write_singles; found false for "
          "both: a run would hold no list-mode");
    CHECK(about_key("/pipeline/max_pending_singles", "1073741824").empty());
    CHECK(about_key("/pipeline/max_pending_singles", "1073741825") ==
          "/pipeline/max_pending_singles: expected an integer from 1024 to 1073741824, found 1073741825");
    CHECK(about_key("/receive/sockets/0/port", "65536").starts_with("/receive/sockets/0/port: expected"));
    CHECK(
        about_key("/receive/sockets/0/address", "\"localhost\"") ==
        "/receive/sockets/0/address: expected an IPv4 or IPv6 address, such as 192.168.1.1 or fd00::1; found "
        "\"localhost\"");
    CHECK(
        about_key("/sources/addresses", "[\"1.2.3\"]").starts_with("/sources/addresses/0: expected an IPv4"));
    CHECK(about_key("/sources/ids", "[65536]").starts_with("/sources/ids/0: expected"));
    CHECK(about_key("/sources/ids", "[4, 4]").starts_with("/sources/ids/1: expected each item once"));
    CHECK(about_key("/pipeline", R"({"slice_frames": 2000, "max_pending_singles": 1999})")
              .starts_with("/pipeline/max_pending_singles: expected at least slice_frames = 2000"));
    CHECK(about_key("/pipeline/devices", "null").empty());
    CHECK(about_key("/pipeline/devices", "[1, 0]").empty());
    CHECK(about_key("/pipeline/devices", "[]").starts_with("/pipeline/devices: expected"));
    CHECK(about_key("/pipeline/devices", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]")
              .starts_with("/pipeline/devices: expected"));
    CHECK(
        about_key("/pipeline/devices", "[1, 1]").starts_with("/pipeline/devices/1: expected each item once"));
    CHECK(about_key("/pipeline/devices", "[-1]").starts_with("/pipeline/devices/0: expected"));
    CHECK(about_key("/pipeline", R"({"backend": "cpu", "devices": [0, 1]})") ==
          "/pipeline/devices: expected null with backend \"cpu\", which uses no GPU; found [0,1]");
    CHECK(about_key("/control/socket", json(std::string(120, 'x')).dump().c_str())
              .starts_with("/control/socket: expected a path of at most 107 bytes"));
    CHECK(about_key("/tap/socket", json(std::string(120, 'x')).dump().c_str())
              .starts_with("/tap/socket: expected a path of at most 107 bytes"));
    CHECK(about_key("/tap/socket", R"("/run/petacqd/control.sock")") ==
          "/tap/socket: expected another path than /control/socket, found the same: "
          "/run/petacqd/control.sock");
    CHECK(about_key("/quick_look/interval_s", "0").empty());
    CHECK(about_key("/quick_look/interval_s", "0.1").empty());
    CHECK(about_key("/quick_look/interval_s", "0.05") ==
          "/quick_look/interval_s: expected 0 or at least 0.1 s, found 0.05");
    CHECK(about_key("/tap/max_clients", "65")
              .starts_with("/tap/max_clients: expected an integer from 1 to 64"));
    CHECK(about_key("/log_level", "\"loud\"").starts_with("/log_level: expected \"trace\""));
    CHECK(about_key("/scanner", "\"\"").starts_with("/scanner: expected a string that is not empty"));
    json document = minimal();
    document.erase("calibration");
    CHECK(complaint([&] {
              config::configuration_from_json(document, "/");
          }).starts_with("/calibration: missing"));
    CHECK(complaint([&] {
              config::configuration_from_json(json::array(), "/");
          }).starts_with("the document: expected an object"));
}

TEST_CASE("sockets are checked against each other") {
    CHECK(about_key("/receive/sockets", R"([{"port": 5}, {"port": 5}])")
              .starts_with("/receive/sockets/1/port: "));
    CHECK(about_key("/receive/sockets", R"([{"port": 5, "address": "127.0.0.1"}, {"port": 5}])")
              .starts_with("/receive/sockets/1/port: "));
    CHECK(about_key("/receive/sockets",
                    R"([{"port": 5, "address": "127.0.0.1"}, {"port": 5, "address": "127.0.0.2"}])")
              .empty());
    CHECK(about_key("/receive/sockets", R"([{"port": 5}, {"port": 6}])").empty());
    CHECK(about_key("/receive/sockets", R"([{"port": 0}, {"port": 0}])").empty());
    CHECK(about_key("/receive/sockets", R"([{"port": 0, "count": 2}])")
              .starts_with("/receive/sockets/0/count: "));
    CHECK(about_key("/receive/sockets/0/cpus", "[1, 2]")
              .starts_with("/receive/sockets/0/cpus: expected one CPU"));
    CHECK(about_key("/receive/sockets", R"([{"port": 5, "count": 2, "cpus": [1, 2]}])").empty());
    CHECK(about_key("/receive/sockets", R"([{"port": 5, "count": 64}, {"port": 100}])")
              .starts_with("/receive/batch_count: "));
}

TEST_CASE("multicast") {
    const auto group = [](const char* address) {
        return about_key("/receive/sockets/0/multicast_group", json(address).dump().c_str());
    };
    CHECK(group("224.0.0.0").empty());
    CHECK(group("239.255.255.255").empty());
    CHECK(group("223.255.255.255").starts_with("/receive/sockets/0/multicast_group: expected a multicast"));
    CHECK(group("240.0.0.0").starts_with("/receive/sockets/0/multicast_group: "));
    CHECK(group("all").starts_with("/receive/sockets/0/multicast_group: "));
    CHECK(about_key("/receive/sockets/0/multicast_interface", "\"10.0.0.1\"")
              .find("without a multicast_group") != std::string::npos);
    const auto sockets = [](const char* json) { return about_key("/receive/sockets", json); };
    CHECK(sockets(R"([{"port": 5, "multicast_group": ["239.0.0.1", "239.0.0.2"],
                       "multicast_interface": "eth0", "multicast_sources": ["10.0.0.1"]}])")
              .empty());
    CHECK(sockets(R"([{"port": 5, "address": "239.0.0.1", "multicast_group": "239.0.0.1"},
                      {"port": 5, "address": "239.0.0.2", "multicast_group": "239.0.0.2"}])")
              .empty());
    CHECK(sockets(
              R"([{"port": 5, "multicast_group": "239.0.0.1"}, {"port": 5, "multicast_group": "239.0.0.2"}])")
              .empty());
    CHECK(sockets(
              R"([{"port": 5, "multicast_group": "239.0.0.1"}, {"port": 5, "multicast_group": "239.0.0.1"}])")
              .starts_with("/receive/sockets/1/multicast_group: expected other groups"));
    const std::string mixed = sockets(R"([{"port": 5, "multicast_group": "239.0.0.1"}, {"port": 5}])");
    CHECK(mixed.starts_with("/receive/sockets/1/port: "));
    CHECK(mixed.find("count") == std::string::npos);
    CHECK(sockets(R"([{"port": 5, "address": "127.0.0.1", "multicast_group": "239.0.0.1"}])")
              .starts_with("/receive/sockets/0/address: expected 0.0.0.0, or the group 239.0.0.1"));
    CHECK(sockets(R"([{"port": 5, "count": 2, "multicast_group": "239.0.0.1"}])")
              .starts_with("/receive/sockets/0/count: expected 1 with a multicast_group"));
    CHECK(sockets(R"([{"port": 5, "multicast_group": "ff05::1"}])")
              .starts_with("/receive/sockets/0/address: expected ::"));
    CHECK(sockets(R"([{"port": 5, "address": "::", "multicast_group": "ff05::1"}])").empty());
    CHECK(sockets(R"([{"port": 5, "multicast_sources": ["10.0.0.1"]}])")
              .starts_with("/receive/sockets/0/multicast_sources: given without"));
}

TEST_CASE("addresses of reception") {
    const auto sockets = [](const char* json) { return about_key("/receive/sockets", json); };
    CHECK(sockets(R"([{"port": 5, "address": "fd00::1"}, {"port": 5, "address": "0.0.0.0"}])").empty());
    CHECK(sockets(R"([{"port": 5, "address": "fe80::1%eth1", "free_bind": true}])").empty());
    CHECK(sockets(R"([{"port": 5, "address": "::"}, {"port": 5, "address": "10.0.0.1"}])")
              .starts_with("/receive/sockets/1/port: expected a port of its own"));
    CHECK(sockets(R"([{"port": 5, "address": "board"}])")
              .starts_with("/receive/sockets/0/address: expected an IPv4 or IPv6 address"));
}

TEST_CASE("source ids need sequenced framing") {
    json document = minimal();
    document["receive"]["framing"] = "bare";
    CHECK(complaint([&] { config::configuration_from_json(document, "/"); }).empty());
    document["sources"]["ids"] = {1};
    CHECK(complaint([&] {
              config::configuration_from_json(document, "/");
          }).starts_with("/sources/ids: expected none"));
}

TEST_CASE("the examples load, and their scanners fit") {
    const std::filesystem::path path =
        GENERATE(as<std::string>{}, "small", "mouse", "scanners/box", "scanners/hexagon", "scanners/insert",
                 "scanners/monolithic", "scanners/partial-ring", "scanners/phoswich", "scanners/total-body",
                 "scanners/two-heads", "scanners/two-rings", "scanners/unequal-blocks");
    const std::string name = path.filename();
    const std::filesystem::path folder = example(path).parent_path();
    const auto c = config::load_configuration(folder / (name + ".json"));
    CHECK(c.scanner == folder / (name + ".scanner.json"));
    CHECK(c.calibration == folder / (name + ".h5"));
    CHECK(c.data_dir == folder / "data");
    CHECK(c.control.socket == folder / "petacqd.sock");
    CHECK(c.receive.sockets.at(0).address == "127.0.0.1");
    CHECK(c.receive.sockets.at(0).port == 9601);
    const auto scanner = config::load_scanner(c.scanner);
    CHECK(scanner.name == name);
    config::check_against_scanner(c, scanner);
}

TEST_CASE("a module difference that no pair can have is refused") {
    json document = minimal();
    const auto scanner = tiny_scanner();  // six modules around the ring
    document["sources"]["accept_any"] = true;
    document["coincidence"]["min_module_difference"] = 3;
    config::check_against_scanner(config::configuration_from_json(document, "/"), scanner);
    document["coincidence"]["min_module_difference"] = 4;
    const auto c = config::configuration_from_json(document, "/");
    CHECK(lacking(complaint([&] { config::check_against_scanner(c, scanner); }),
                  {"/coincidence/min_module_difference: expected at most 3", "found 4"}) == "");
}

TEST_CASE("a module difference needs modules around one ring") {
    json document = minimal();
    document["sources"]["accept_any"] = true;
    const auto complaint_about = [&](const char* name, const json& difference) {
        document["coincidence"]["min_module_difference"] = difference;
        const auto c = config::configuration_from_json(document, "/");
        const auto scanner = config::load_scanner(example(std::string("scanners/") + name + ".scanner.json"));
        return complaint([&] { config::check_against_scanner(c, scanner); });
    };
    const auto ring = config::load_scanner(example("scanners/phoswich.scanner.json")).geometry;
    REQUIRE(ring.modules_around() > 1);
    CHECK(complaint_about("phoswich", ring.modules_around() / 2) == "");
    CHECK(lacking(complaint_about("phoswich", ring.modules_around() / 2 + 1),
                  {"/coincidence/min_module_difference: expected at most"}) == "");
    CHECK(complaint_about("two-heads", 0) == "");
    CHECK(complaint_about("two-heads", nullptr) == "");
    CHECK(lacking(complaint_about("two-heads", 1),
                  {"/coincidence/min_module_difference: expected null or 0, found 1; ", "around one ring",
                   "good_pairs.min_angle_deg"}) == "");
}

namespace {

/// The error for the minimal configuration with these `sources` and a scanner that lists them so.
std::string about_senders(const char* sources, const std::vector<config::Source>& listed,
                          const char* framing = "sequenced") {
    json document = minimal();
    document["sources"] = json::parse(sources);
    document["receive"]["framing"] = framing;
    const auto c = config::configuration_from_json(document, "/");
    auto scanner = tiny_scanner();
    scanner.sources = listed;
    return complaint([&] { config::check_against_scanner(c, scanner); });
}

const std::vector<config::Source> two_ids{{7, "", 0, {0, 1, 2}}, {9, "10.0.0.2", 0, {3, 4, 5}}};
const std::vector<config::Source> two_senders{{{}, "10.0.0.1", 5000, {0, 1, 2}},
                                              {{}, "10.0.0.2", 5000, {3, 4, 5}}};

}  // namespace

TEST_CASE("the configuration must say who may send, or accept any sender explicitly") {
    CHECK(lacking(about_senders("{}", {}), {"/sources: expected to find who may send", "\"tiny\"",
                                            "petctl sources", "accept_any to true"}) == "");
    CHECK(about_senders(R"({"ids": [1]})", {}).empty());
    CHECK(about_senders(R"({"addresses": ["10.0.0.1"]})", {}).empty());
    CHECK(about_senders(R"({"accept_any": true})", {}).empty());
    CHECK(about_senders(R"({"accept_any": true})", two_ids).empty());
    CHECK(about_senders("{}", two_ids).empty());
    CHECK(about_key("/sources", R"({"accept_any": true, "ids": [1]})")
              .starts_with("/sources/accept_any: expected false"));
    CHECK(about_key("/sources", R"({"accept_any": true, "addresses": ["10.0.0.1"]})")
              .starts_with("/sources/accept_any: expected false"));
}

TEST_CASE("the configuration chooses among the sources of the scanner") {
    CHECK(about_senders(R"({"ids": [9]})", two_ids).empty());
    CHECK(about_senders(R"({"ids": [9, 8]})", two_ids) ==
          "/sources/ids/1: expected the id of a source that scanner \"tiny\" lists, found 8");
    json document = minimal();
    auto scanner = tiny_scanner();
    scanner.sources = two_ids;
    const auto listed = [&](const char* sources) {
        document["sources"] = json::parse(sources);
        return config::listed_sources(config::configuration_from_json(document, "/"), scanner);
    };
    CHECK(listed("{}").size() == 2);
    REQUIRE(listed(R"({"ids": [9]})").size() == 1);
    CHECK(listed(R"({"ids": [9]})")[0].bdms == two_ids[1].bdms);
    CHECK(listed(R"({"accept_any": true})").empty());
    scanner.sources.clear();
    REQUIRE(listed(R"({"ids": [9, 4]})").size() == 2);
    CHECK(listed(R"({"ids": [9, 4]})")[1].id == 4);
    CHECK(listed(R"({"ids": [9, 4]})")[1].bdms.empty());
    CHECK(listed(R"({"addresses": ["10.0.0.1"]})").empty());
}

TEST_CASE("the sources of the scanner have the framing of the configuration") {
    CHECK(about_senders("{}", two_senders, "bare").empty());
    CHECK(about_senders("{}", two_ids, "bare") ==
          "/receive/framing: expected \"sequenced\", since scanner \"tiny\" lists its sources by id; found "
          "\"bare\"");
    CHECK(about_senders("{}", two_senders).starts_with("/receive/framing: expected \"bare\""));
    CHECK(about_senders(R"({"accept_any": true})", two_ids, "bare").empty());
}

TEST_CASE("no more sources than can be tracked") {
    std::string ids = "[0";
    for (int id = 1; id < 5000; ++id)
        ids += "," + std::to_string(id);
    CHECK(about_key("/sources", ("{\"ids\": " + ids + "]}").c_str()).starts_with("/sources/ids: expected"));
}

TEST_CASE("errors of a configuration file name the file, and relative directories work") {
    const TemporaryDirectory dir;
    json document = minimal();
    write_file(dir / "x.json", document.dump());
    CHECK(config::load_configuration(dir / "x.json").scanner == dir / "s.json");
    document["energy"]["filter"] = 1;
    write_file(dir / "x.json", document.dump());
    CHECK(complaint([&] { config::load_configuration(dir / "x.json"); }) ==
          (dir / "x.json").string() + ": /energy/filter: expected true or false, found 1");
    CHECK(config::configuration_from_json(minimal(), "").scanner ==
          std::filesystem::current_path() / "s.json");
}

TEST_CASE("control over HTTP from other machines must be asked for") {
    json document = minimal();
    document["http"] = {{"listen", "0.0.0.0:9680"}, {"allow_control", true}, {"control_token_file", "token"}};
    const auto refusal = [&] { return complaint([&] { config::configuration_from_json(document, "/"); }); };
    CHECK(lacking(refusal(), {"/http/allow_control", "0.0.0.0:9680", "allow_remote_control"}) == "");
    document["http"]["listen"] = "[::]:9680";
    CHECK_FALSE(refusal().empty());
    document["http"]["allow_remote_control"] = true;
    CHECK(refusal().empty());
    document["http"].erase("allow_remote_control");
    for (const char* loopback : {"127.0.0.1:9680", "127.1.2.3:0", "[::1]:9680", ""}) {
        document["http"]["listen"] = loopback;
        CHECK(refusal().empty());
    }
    document["http"].erase("control_token_file");
    CHECK(refusal().starts_with("/http/control_token_file: expected a file with a token"));
}

}  // namespace petacq::test
