#include "config/configuration.hpp"

#include "helpers.hpp"
#include "tests/catch.hpp"

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

/// What is said to the minimal configuration with one value set by JSON pointer.
std::string about(const char* pointer, const char* value) {
    json document = minimal();
    document[json::json_pointer(pointer)] = json::parse(value);
    return complaint([&] { config::configuration_from_json(document, "/etc/petacq"); });
}

}  // namespace

TEST_CASE("the defaults of the schema are those of the structs") {
    const auto c = config::configuration_from_json(minimal(), "/etc/petacq");

    const config::Receive receive;
    CHECK(c.receive.framing == receive.framing);
    CHECK(c.receive.receive_buffer_bytes == receive.receive_buffer_bytes);
    CHECK(c.receive.gro == receive.gro);
    CHECK(c.receive.batch_bytes == receive.batch_bytes);
    CHECK(c.receive.batch_count == receive.batch_count);
    CHECK(c.receive.huge_pages == receive.huge_pages);
    CHECK(c.receive.lock_memory == receive.lock_memory);
    CHECK(c.receive.flush_interval_ms == receive.flush_interval_ms);
    const config::Socket socket;
    REQUIRE(c.receive.sockets.size() == 1);
    CHECK(c.receive.sockets[0].address == socket.address);
    CHECK(c.receive.sockets[0].port == 9601);
    CHECK(c.receive.sockets[0].count == socket.count);
    CHECK(c.receive.sockets[0].multicast_group == socket.multicast_group);
    CHECK(c.receive.sockets[0].multicast_interface == socket.multicast_interface);
    CHECK(c.receive.sockets[0].cpus == socket.cpus);
    CHECK(c.sources.ids.empty());
    CHECK(c.sources.addresses.empty());
    const config::FrameMarkers frame;
    CHECK(c.frame.head_marker == frame.head_marker);
    CHECK(c.frame.tail_marker == frame.tail_marker);
    const config::Watermark watermark;
    CHECK(c.watermark.max_disorder_us == watermark.max_disorder_us);
    CHECK(c.watermark.max_lag_ms == watermark.max_lag_ms);
    CHECK(c.watermark.max_jump_ms == watermark.max_jump_ms);
    CHECK(c.watermark.jump_confirmations == watermark.jump_confirmations);
    CHECK(c.watermark.source_timeout_ms == watermark.source_timeout_ms);
    const config::Energy energy;
    CHECK(c.energy.filter == energy.filter);
    CHECK(c.energy.lower_keV == energy.lower_keV);
    CHECK(c.energy.upper_keV == energy.upper_keV);
    const config::Coincidence coincidence;
    CHECK(c.coincidence.window_ticks == 100);
    CHECK(c.coincidence.window_mode == coincidence.window_mode);
    CHECK(c.coincidence.multiples_policy == coincidence.multiples_policy);
    CHECK(c.coincidence.max_multiplicity == coincidence.max_multiplicity);
    CHECK(c.coincidence.min_module_difference == coincidence.min_module_difference);
    CHECK(c.coincidence.max_ring_difference == coincidence.max_ring_difference);
    CHECK(c.coincidence.delay_ticks == coincidence.delay_ticks);
    const config::Pipeline pipeline;
    CHECK(c.pipeline.backend == pipeline.backend);
    CHECK(c.pipeline.sort == pipeline.sort);
    CHECK(c.pipeline.threads == pipeline.threads);
    CHECK(c.pipeline.slice_frames == pipeline.slice_frames);
    CHECK(c.pipeline.slice_interval_ms == pipeline.slice_interval_ms);
    CHECK(c.pipeline.max_pending_singles == pipeline.max_pending_singles);
    const config::ListMode listmode;
    CHECK(c.listmode.block_bytes == listmode.block_bytes);
    CHECK(c.listmode.sync_interval_ms == listmode.sync_interval_ms);
    CHECK(c.listmode.queue_blocks == listmode.queue_blocks);
    CHECK(c.listmode.write_singles == listmode.write_singles);
    const config::Control control;
    CHECK(c.control.socket == control.socket);
    CHECK(c.control.socket_mode == control.socket_mode);
    CHECK(c.control.group == control.group);
    CHECK(c.control.max_clients == control.max_clients);
    CHECK(c.control.max_request_bytes == control.max_request_bytes);
    CHECK(c.control.send_buffer_bytes == control.send_buffer_bytes);
    const config::Http http;
    CHECK(c.http.listen == http.listen);
    CHECK(c.http.allow_control == http.allow_control);
    CHECK(c.http.host_names == http.host_names);
    CHECK(c.http.max_connections == http.max_connections);
    CHECK(c.http.request_timeout_ms == http.request_timeout_ms);
    CHECK(c.http.idle_timeout_ms == http.idle_timeout_ms);
    CHECK(c.http.max_request_bytes == http.max_request_bytes);
    CHECK(c.http.chart_library == http.chart_library);
    const config::Health health;
    CHECK(c.health.max_loss_fraction == health.max_loss_fraction);
    CHECK(c.health.max_temperature_C == health.max_temperature_C);
    CHECK(c.health.min_disk_free_bytes == health.min_disk_free_bytes);
    CHECK(c.health.min_disk_time_s == health.min_disk_time_s);
    CHECK(c.health.max_latency_ms == health.max_latency_ms);
    CHECK(c.estimates.scatter_fraction == config::Estimates{}.scatter_fraction);
    CHECK(c.estimates.dead_time_ns == config::Estimates{}.dead_time_ns);
    CHECK(c.log_level == config::Configuration{}.log_level);
}

TEST_CASE("every key reaches its member") {
    const auto document = json::parse(R"({
        "scanner": "s", "calibration": "/c", "data_dir": "../d",
        "receive": {"framing": "sequenced", "receive_buffer_bytes": 5000, "gro": false, "batch_bytes": 131072,
                    "batch_count": 11, "huge_pages": true, "lock_memory": false, "flush_interval_ms": 6,
                    "sockets": [{"address": "127.0.0.1", "port": 1, "count": 2, "cpus": [3, 4],
                                 "multicast_group": "239.1.2.3", "multicast_interface": "127.0.0.2"},
                                {"address": "127.0.0.2", "port": 1}]},
        "sources": {"ids": [9, 65535], "addresses": ["10.0.0.1"]},
        "frame": {"head_marker": 1, "tail_marker": 2},
        "watermark": {"max_disorder_us": 3, "max_lag_ms": 4, "max_jump_ms": 5, "jump_confirmations": 6,
                      "source_timeout_ms": 7},
        "energy": {"filter": false, "lower_keV": 1.5, "upper_keV": 2.5},
        "coincidence": {"window_ticks": 8, "window_mode": "every", "multiples_policy": "TakeAllGoods",
                        "max_multiplicity": 9, "min_module_difference": 10, "max_ring_difference": 11,
                        "delay_ticks": 12},
        "pipeline": {"backend": "cpu", "sort": "odd-even", "threads": 13, "slice_frames": 14, "slice_interval_ms": 15,
                     "max_pending_singles": 1600},
        "listmode": {"block_bytes": 4160, "sync_interval_ms": 17, "queue_blocks": 18, "write_singles": true},
        "control": {"socket": "c.sock", "socket_mode": "0666", "group": "scan", "max_clients": 19, "max_request_bytes": 2000, "send_buffer_bytes": 70000},
        "health": {"max_loss_fraction": 0.25, "max_temperature_C": -5.5, "min_disk_free_bytes": 21,
                   "min_disk_time_s": 22, "max_latency_ms": 23},
        "estimates": {"scatter_fraction": 0.5, "dead_time_ns": 24.5},
        "http": {"listen": "[::1]:8080", "allow_control": true, "host_names": ["scanner"], "max_connections": 20,
                 "request_timeout_ms": 500, "idle_timeout_ms": 600, "max_request_bytes": 700, "chart_library": "c.js"},
        "log_level": "debug"
    })");
    const auto c = config::configuration_from_json(document, "/etc/petacq");
    CHECK(c.scanner == "/etc/petacq/s");
    CHECK(c.calibration == "/c");
    CHECK(c.data_dir == "/etc/d");
    CHECK(c.receive.receive_buffer_bytes == 5000);
    CHECK_FALSE(c.receive.gro);
    CHECK(c.receive.batch_bytes == 131072);
    CHECK(c.receive.batch_count == 11);
    CHECK(c.receive.huge_pages);
    CHECK_FALSE(c.receive.lock_memory);
    CHECK(c.receive.flush_interval_ms == 6);
    REQUIRE(c.receive.sockets.size() == 2);
    const config::Socket& s = c.receive.sockets[0];
    CHECK(s.address == "127.0.0.1");
    CHECK(s.port == 1);
    CHECK(s.count == 2);
    CHECK(s.cpus == std::vector<int>{3, 4});
    CHECK(s.multicast_group == "239.1.2.3");
    CHECK(s.multicast_interface == "127.0.0.2");
    CHECK(c.sources.ids == std::vector<std::uint16_t>{9, 65535});
    CHECK(c.sources.addresses == std::vector<std::string>{"10.0.0.1"});
    CHECK(c.frame.head_marker == 1);
    CHECK(c.frame.tail_marker == 2);
    CHECK(c.watermark.max_disorder_us == 3);
    CHECK(c.watermark.max_lag_ms == 4);
    CHECK(c.watermark.max_jump_ms == 5);
    CHECK(c.watermark.jump_confirmations == 6);
    CHECK(c.watermark.source_timeout_ms == 7);
    CHECK_FALSE(c.energy.filter);
    CHECK(c.energy.lower_keV == 1.5);
    CHECK(c.energy.upper_keV == 2.5);
    CHECK(c.coincidence.window_ticks == 8);
    CHECK(c.coincidence.window_mode == "every");
    CHECK(c.coincidence.multiples_policy == "TakeAllGoods");
    CHECK(c.coincidence.max_multiplicity == 9);
    CHECK(c.coincidence.min_module_difference == 10U);
    CHECK(c.coincidence.max_ring_difference == 11U);
    CHECK(c.coincidence.delay_ticks == 12U);
    CHECK(c.pipeline.backend == "cpu");
    CHECK(c.pipeline.sort == "odd-even");
    CHECK(c.pipeline.threads == 13);
    CHECK(c.pipeline.slice_frames == 14);
    CHECK(c.pipeline.slice_interval_ms == 15);
    CHECK(c.pipeline.max_pending_singles == 1600);
    CHECK(c.listmode.block_bytes == 4160);
    CHECK(c.listmode.sync_interval_ms == 17);
    CHECK(c.listmode.queue_blocks == 18);
    CHECK(c.listmode.write_singles);
    CHECK(c.control.socket == "/etc/petacq/c.sock");
    CHECK(c.control.socket_mode == "0666");
    CHECK(c.control.group == "scan");
    CHECK(c.control.max_clients == 19);
    CHECK(c.control.max_request_bytes == 2000);
    CHECK(c.control.send_buffer_bytes == 70000);
    CHECK(c.http.listen == "[::1]:8080");
    CHECK(c.http.allow_control);
    CHECK(c.http.host_names == std::vector<std::string>{"scanner"});
    CHECK(c.http.max_connections == 20);
    CHECK(c.http.request_timeout_ms == 500);
    CHECK(c.http.idle_timeout_ms == 600);
    CHECK(c.http.max_request_bytes == 700);
    CHECK(c.http.chart_library == "/etc/petacq/c.js");
    CHECK(c.health.max_loss_fraction == 0.25);
    CHECK(c.health.max_temperature_C == -5.5);
    CHECK(c.health.min_disk_free_bytes == 21);
    CHECK(c.health.min_disk_time_s == 22);
    CHECK(c.health.max_latency_ms == 23);
    CHECK(c.estimates.scatter_fraction == 0.5);
    CHECK(c.estimates.dead_time_ns == 24.5);
    CHECK(c.log_level == "debug");
}

TEST_CASE("the recorded document is complete and means the same when read again") {
    json document = minimal();
    document["$schema"] = "petacqd.schema.json";
    const auto c = config::configuration_from_json(document, "/etc/petacq");
    CHECK_FALSE(c.document.contains("$schema"));
    CHECK(c.document["scanner"] == "/etc/petacq/s.json");
    CHECK(c.document["watermark"]["max_lag_ms"] == 1000);
    CHECK(c.document["receive"]["sockets"][0]["count"] == 1);
    CHECK(config::configuration_from_json(c.document, "/elsewhere").document == c.document);
}

TEST_CASE("impossible values are refused with the path of the key") {
    CHECK(about("/recieve", "{}") == "/recieve: unknown key; did you mean \"receive\"?");
    CHECK(about("/coincidence/window_tick", "1") ==
          "/coincidence/window_tick: unknown key; did you mean \"window_ticks\"?");
    CHECK(about("/receive/sockets/0/prot", "1") ==
          "/receive/sockets/0/prot: unknown key; did you mean \"port\"?");
    CHECK(about("/coincidence/window_ticks", "\"5 ns\"") ==
          "/coincidence/window_ticks: expected an integer from 0 to 2147483647, found the string \"5 ns\"");
    CHECK(about("/coincidence/window_ticks", "-1").starts_with("/coincidence/window_ticks: expected"));
    CHECK(about("/coincidence/delay_ticks", "100") ==
          "/coincidence/delay_ticks: expected more than window_ticks = 100, found 100");
    CHECK(about("/coincidence/delay_ticks", "101").empty());
    CHECK(about("/coincidence/multiples_policy", "\"takeAllGoods\"").find("\"TakeAllGoods\"") !=
          std::string::npos);
    CHECK(about("/energy/upper_keV", "349.5") ==
          "/energy/upper_keV: expected at least lower_keV = 350, found 349.5");
    CHECK(about("/energy/upper_keV", "350").empty());
    CHECK(about("/receive/sockets", "[]").starts_with("/receive/sockets: expected an array of at least 1"));
    CHECK(about("/receive/batch_bytes", "131071").starts_with("/receive/batch_bytes: expected"));
    CHECK(about("/receive/batch_count", "1").starts_with("/receive/batch_count: expected"));
    CHECK(about("/listmode/block_bytes", "4096").empty());
    CHECK(about("/listmode/block_bytes", "4097") ==
          "/listmode/block_bytes: expected an integer from 4096 to 268435456 that is a multiple of 64, found "
          "4097");
    CHECK(about("/pipeline/max_pending_singles", "1073741824").empty());
    CHECK(about("/pipeline/max_pending_singles", "1073741825") ==
          "/pipeline/max_pending_singles: expected an integer from 1024 to 1073741824, found 1073741825");
    CHECK(about("/receive/sockets/0/port", "65536").starts_with("/receive/sockets/0/port: expected"));
    CHECK(about("/receive/sockets/0/address", "\"localhost\"") ==
          "/receive/sockets/0/address: expected an IPv4 address in quotes, found the string \"localhost\"");
    CHECK(about("/sources/addresses", "[\"1.2.3\"]").starts_with("/sources/addresses/0: expected an IPv4"));
    CHECK(about("/sources/ids", "[65536]").starts_with("/sources/ids/0: expected"));
    CHECK(about("/sources/ids", "[4, 4]").starts_with("/sources/ids/1: expected each item once"));
    CHECK(about("/pipeline", R"({"slice_frames": 2000, "max_pending_singles": 1999})")
              .starts_with("/pipeline/max_pending_singles: expected at least slice_frames = 2000"));
    CHECK(about("/control/socket", json(std::string(120, 'x')).dump().c_str())
              .starts_with("/control/socket: expected a path of at most 107 bytes"));
    CHECK(about("/log_level", "\"loud\"").starts_with("/log_level: expected \"trace\""));
    CHECK(about("/scanner", "\"\"").starts_with("/scanner: expected a string that is not empty"));
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
    CHECK(
        about("/receive/sockets", R"([{"port": 5}, {"port": 5}])").starts_with("/receive/sockets/1/port: "));
    CHECK(about("/receive/sockets", R"([{"port": 5, "address": "127.0.0.1"}, {"port": 5}])")
              .starts_with("/receive/sockets/1/port: "));
    CHECK(about("/receive/sockets",
                R"([{"port": 5, "address": "127.0.0.1"}, {"port": 5, "address": "127.0.0.2"}])")
              .empty());
    CHECK(about("/receive/sockets", R"([{"port": 5}, {"port": 6}])").empty());
    CHECK(about("/receive/sockets", R"([{"port": 0}, {"port": 0}])").empty());
    CHECK(
        about("/receive/sockets", R"([{"port": 0, "count": 2}])").starts_with("/receive/sockets/0/count: "));
    CHECK(
        about("/receive/sockets/0/cpus", "[1, 2]").starts_with("/receive/sockets/0/cpus: expected one CPU"));
    CHECK(about("/receive/sockets", R"([{"port": 5, "count": 2, "cpus": [1, 2]}])").empty());
    CHECK(about("/receive/sockets", R"([{"port": 5, "count": 33}])").starts_with("/receive/batch_count: "));
}

TEST_CASE("multicast") {
    const auto group = [](const char* address) {
        return about("/receive/sockets/0/multicast_group", json(address).dump().c_str());
    };
    CHECK(group("224.0.0.0").empty());
    CHECK(group("239.255.255.255").empty());
    CHECK(group("223.255.255.255")
              .starts_with("/receive/sockets/0/multicast_group: expected an IPv4 multicast"));
    CHECK(group("240.0.0.0").starts_with("/receive/sockets/0/multicast_group: "));
    CHECK(group("all").starts_with("/receive/sockets/0/multicast_group: "));
    CHECK(about("/receive/sockets/0/multicast_interface", "\"10.0.0.1\"").find("without a multicast_group") !=
          std::string::npos);
    CHECK(about("/receive/sockets",
                R"([{"port": 5, "multicast_group": "239.0.0.1", "multicast_interface": "eth0"}])")
              .starts_with("/receive/sockets/0/multicast_interface: expected an IPv4"));
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
    const auto name = GENERATE(as<std::string>{}, "small", "mouse");
    const auto c = config::load_configuration(example(name + ".json"));
    CHECK(c.scanner == example(name + ".scanner.json"));
    CHECK(c.data_dir == example("data"));
    CHECK(c.control.socket == example("petacqd.sock"));
    CHECK(c.receive.sockets.at(0).address == "127.0.0.1");
    CHECK(c.receive.sockets.at(0).port == 9601);
    const auto scanner = config::load_scanner(c.scanner);
    CHECK(scanner.name == name);
    config::check_against_scanner(c, scanner);
}

TEST_CASE("a module difference that no pair can have is refused") {
    json document = minimal();
    const auto scanner = tiny_scanner();  // six modules around the ring
    document["coincidence"]["min_module_difference"] = 3;
    config::check_against_scanner(config::configuration_from_json(document, "/"), scanner);
    document["coincidence"]["min_module_difference"] = 4;
    const auto c = config::configuration_from_json(document, "/");
    CHECK(lacking(complaint([&] { config::check_against_scanner(c, scanner); }),
                  {"/coincidence/min_module_difference: expected at most 3", "found 4"}) == "");
}

TEST_CASE("errors of a configuration file name the file, and relative directories work") {
    const TempDir dir;
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

}  // namespace petacq::test
