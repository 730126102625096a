#include "tests/end_to_end/daemon_fixture.hpp"

#include <algorithm>
#include <csignal>
#include <regex>
#include <stdexcept>
#include <thread>

#include "config/make_calibration.hpp"
#include "daemon/listmode/reader.hpp"

namespace petacq::test {

using nlohmann::json;

Site::Site(const json& patch)
    : Site(patch, std::filesystem::path(PETACQ_SOURCE_DIR) / "config" / "examples" / "small.scanner.json") {}

Site::Site(const json& patch, const std::filesystem::path& scanner_file, std::int32_t time_offset_ticks) {
    std::filesystem::copy_file(scanner_file, scanner());
    const config::Scanner description = config::load_scanner(scanner());
    config::CalibrationModel model;
    model.time_offset_ticks = time_offset_ticks;
    model.bins = 16;
    config::save_calibration(calibration(), description.geometry,
                             config::make_calibration(description, model));
    std::filesystem::create_directory(directory_ / "data");
    configure(patch);
}

void Site::configure(const json& patch) {
    // Little memory, small blocks, and time limits that a busy machine does not reach by accident.
    json configuration = {
        {"scanner", "small.scanner.json"},
        {"calibration", "small.h5"},
        {"data_dir", "data"},
        {"receive",
         {{"sockets", json::array({{{"address", "127.0.0.1"}, {"port", 0}}})},
          {"batch_count", 32},
          {"batch_bytes", 262144},
          {"lock_memory", false}}},
        {"watermark", {{"max_disorder_us", 100000}, {"source_timeout_ms", 3000}}},
        {"coincidence", {{"window_ticks", 320}, {"delay_ticks", 6400}, {"min_module_difference", 2}}},
        {"pipeline", {{"backend", "cpu"}, {"threads", 2}, {"slice_frames", 20000}}},
        {"listmode", {{"block_bytes", 65536}, {"queue_blocks", 16}, {"sync_interval_ms", 200}}},
        {"control", {{"socket", "control.sock"}}},
        {"http", {{"listen", "127.0.0.1:0"}}},
        {"health", {{"min_disk_free_bytes", 0}, {"min_disk_time_s", 0}, {"max_latency_ms", 600000}}}};
    configuration.merge_patch(patch);
    write_file(this->configuration(), configuration.dump(2));
}

json Site::run_json(const std::string& id) const {
    return json::parse(read_file(run(id) / "run.json"));
}

Daemon::Daemon(const Site& site, const std::string& name, const std::string& program)
    : socket_(site.socket()),
      process_(program.empty() ? PETACQD_PROGRAM : program, {"--config", site.configuration()},
               site.directory() / name) {
    const bool ready = eventually([&] {
        if (!process_.running()) return true;
        // Before that, the socket may still be the one of an earlier daemon.
        if (!contains(log(), " ready: ")) return false;
        client_ = std::make_unique<daemon::ControlClient>(socket_);
        return client_->call("status").contains("state");
    });
    if (!ready || !process_.running()) throw std::runtime_error("petacqd does not come up: " + log());
    const json now = status();
    for (const json& socket : now["sockets"])
        ports_.push_back(socket["port"]);
}

std::uint16_t Daemon::http_port() const {
    static const std::regex line("http: listening on [^ ]+, port ([0-9]+)");
    const std::string said = log();
    std::smatch match;
    if (!std::regex_search(said, match, line)) throw std::runtime_error("petacqd serves no HTTP: " + said);
    return static_cast<std::uint16_t>(std::stoi(match[1]));
}

json Daemon::call(const std::string& method, const json& parameters) {
    return client_->call(method, parameters);
}

json Daemon::start(const std::string& run) {
    return call("start", {{"run", run}});
}

json Daemon::stop() {
    return call("stop");
}

std::string Daemon::refusal(const std::string& method, const json& parameters) {
    try {
        call(method, parameters);
    } catch (const daemon::RpcError& error) {
        return error.what();
    }
    return "";
}

bool Daemon::received(std::uint64_t datagrams) {
    return until([&](const json& s) { return s["total"]["datagrams"]["received"] == datagrams; });
}

int Daemon::terminate() {
    process_.signal(SIGTERM);
    return process_.wait();
}

std::string no_cuda_reason() {
    static const std::string reason = [] {
        const Site site(nlohmann::json{{"pipeline", {{"backend", "auto"}}}});
        Daemon daemon(site);
        const std::string choice = daemon.status().at("backend_choice");
        const std::size_t why = choice.find("CUDA cannot be used");
        return why == std::string::npos ? std::string() : choice.substr(why);
    }();
    return reason;
}

std::string no_two_gpus_reason() {
    if (const std::string reason = no_cuda_reason(); !reason.empty()) return reason;
    const Site site(nlohmann::json{{"pipeline", {{"backend", "cuda"}, {"devices", {0, 1}}}}});
    const Outcome check = run_program(PETACQD_PROGRAM, {"--check", "--config", site.configuration()});
    const std::size_t why = check.err.find("CUDA: there is no device 1");
    return why == std::string::npos ? std::string() : check.err.substr(why);
}

Outcome petctl(const Site& site, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", site.socket().string()});
    return run_program(PETCTL_PROGRAM, arguments);
}

std::vector<std::string> petsim_arguments(const Site& site, const std::vector<std::string>& arguments) {
    std::vector<std::string> all{
        "--scanner", site.scanner(), "--calibration", site.calibration(), "--quiet", "--threads", "1"};
    // The fastest, and every frame of a photon is where its line says.
    if (std::find(arguments.begin(), arguments.end(), "--crystals") == arguments.end())
        all.insert(all.end(), {"--crystals", "surface"});
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
}

json simulate(const Site& site, const std::vector<std::string>& arguments, const std::string& name) {
    const std::string base = (site.directory() / name).string();
    std::vector<std::string> all = petsim_arguments(site, arguments);
    all.insert(all.end(), {"--truth", base + ".truth", "--summary", base + ".json"});
    const Outcome outcome = run_program(PETSIM_PROGRAM, all);
    if (outcome.status != 0) throw std::runtime_error("petsim: " + outcome.err);
    return json::parse(read_file(base + ".json"));
}

std::string simulated_run(const Site& site, const std::vector<std::string>& arguments,
                          const std::string& run) {
    const std::string capture = (site.directory() / "simulated.pcap").string();
    std::vector<std::string> all{"--scanner",
                                 site.scanner(),
                                 "--calibration",
                                 site.calibration(),
                                 "--quiet",
                                 "--threads",
                                 std::to_string(std::max(1U, std::thread::hardware_concurrency())),
                                 "--write",
                                 capture};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome simulated = run_program(PETSIM_PROGRAM, all);
    if (simulated.status != 0) throw std::runtime_error("petsim: " + simulated.err);
    const Outcome replayed =
        run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", run});
    if (replayed.status != 0) throw std::runtime_error("petacqd: " + replayed.err);
    std::filesystem::remove(capture);
    return site.run(run).string();
}

std::vector<std::string> short_stream(const Daemon& daemon, const std::vector<std::string>& more) {
    std::vector<std::string> all{"--cylinder", "0,0,0,10,20,0.45", "--sources", "4", "--flush-us", "4000"};
    if (std::find(more.begin(), more.end(), "--duration-s") == more.end()) {
        all.insert(all.end(), {"--duration-s", "0.5"});
    }
    all.insert(all.end(), more.begin(), more.end());
    for (const std::uint16_t port : daemon.ports())
        all.insert(all.end(), {"--to", "127.0.0.1:" + std::to_string(port)});
    return all;
}

namespace {

template <class Take>
void for_each_block(const std::filesystem::path& file, Take take) {
    daemon::ListModeReader reader(file);
    while (reader.next())
        take(reader);
}

}  // namespace

gpu::RecordVector<gpu::Coincidence> coincidences_of(const std::filesystem::path& file) {
    gpu::RecordVector<gpu::Coincidence> all;
    for_each_block(file, [&](const auto& reader) {
        all.insert(all.end(), reader.coincidences().begin(), reader.coincidences().end());
    });
    return all;
}

gpu::RecordVector<gpu::Single> singles_of(const std::filesystem::path& file) {
    gpu::RecordVector<gpu::Single> all;
    for_each_block(file, [&](const auto& reader) {
        all.insert(all.end(), reader.singles().begin(), reader.singles().end());
    });
    return all;
}

std::string payload_of(const std::filesystem::path& file) {
    std::string all;
    for_each_block(file, [&](const auto& reader) {
        all.append(reinterpret_cast<const char*>(reader.payload().data()), reader.payload().size());
    });
    return all;
}

void replay_of(const Site& site, const std::string& run, const std::string& name) {
    const Outcome outcome = run_program(
        PETACQD_PROGRAM,
        {"--config", site.configuration(), "--replay", (site.run(run) / "raw.pcap").string(), "--run", name});
    if (outcome.status != 0) throw std::runtime_error(outcome.err);
}

void two_runs_within_a_stream(const Site& site) {
    Daemon daemon(site);
    Process stream(PETSIM_PROGRAM,
                   petsim_arguments(site, {"--to", daemon.address(), "--duration-s", "60", "--rate", "150000",
                                           "--sources", "4", "--seed", "5", "--quiet"}),
                   site.directory() / "stream");
    const auto accepted = [](const json& status) {
        return status["total"]["frames"]["accepted"].get<std::uint64_t>();
    };
    for (const char* name : {"one", "two"}) {
        std::uint64_t before = 0;
        REQUIRE(daemon.until([&](const json& s) { return (before = accepted(s)) > 20'000; }));
        daemon.start(name);
        REQUIRE(daemon.until([&](const json& s) { return accepted(s) > before + 60'000; }));
        const json end = daemon.stop();
        INFO(end.dump(1));
        CHECK(end["ledger_closed"] == true);
        CHECK(end["prompts"] > 100);
    }
    stream.signal(SIGTERM);
    CHECK(daemon.terminate() == 0);
}

std::string undisturbed_payload(const std::vector<std::string>& more) {
    const Site site;
    Daemon daemon(site);
    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon, more));
    if (!daemon.received(summary["total"]["expected"]["datagrams_received"]))
        throw std::runtime_error("datagrams are missing from an undisturbed run: " + daemon.log());
    daemon.stop();
    return payload_of(site.run("r") / "coincidences.plm");
}

}  // namespace petacq::test
