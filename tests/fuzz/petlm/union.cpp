// Two hosts that heard one stream, and what their run.json say. Input: {"a": ..., "b": ...}, merge patches of
// run.json of each, a NUL, and a byte for each hit of a stream: who heard it, and how far it is from the
// last.
#include "tools/petlm/union/union.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/schemas.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/run/directory.hpp"
#include "tests/fuzz/base/json_target.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"

using namespace petacq;
using fuzz::require;
using nlohmann::json;

std::string_view fuzz::schema_of_target() {
    return config::petacqd_schema_text();  // of the rules
}

namespace {

using Singles = std::vector<gpu::Single>;

config::Scanner scanner() {
    config::Scanner made;
    made.name = "fuzzed";
    made.geometry = {6, {1, 2, 2}, {1, 2, 3}, {1, 5, 4}, 24, 6, 64};
    made.tick_ps = 1000;
    made.dimensions = {32, 1.6, 1.7, 12, 0.4, 0.5, 1};
    return made;
}

json configuration() {
    return {{"scanner", "scanner.json"},
            {"calibration", "calibration.h5"},
            {"data_dir", "/data"},
            {"coincidence", {{"window_ticks", 40}, {"delay_ticks", 700}}},
            {"energy", {{"filter", false}}},
            {"listmode", json::object()},
            {"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9655}}}}}},
            {"pipeline", {{"threads", 1}}},
            {"sources", {{"accept_any", true}}}};
}

void write_run(const std::filesystem::path& run, const Singles& singles, const daemon::Intervals& times,
               const json& patch) {
    std::filesystem::create_directories(run);
    daemon::Coverage coverage;
    coverage.tick_ps = scanner().tick_ps;
    coverage.anchor =
        daemon::TimeAnchor{0, std::chrono::system_clock::time_point(std::chrono::seconds(1'795'200'300))};
    coverage.intervals = times;
    coverage.origin.runs = {{"r", run}};
    json document = {{"run_id", "r"},
                     {"state", "complete"},
                     {"start_utc", "2026-11-20T18:45:00.000Z"},
                     {"start_ticks", times.span().start},
                     {"stop_ticks", times.span().end},
                     {"calibration_sha256", "abc"},
                     {"configuration", configuration()},
                     {"scanner", config::to_json(scanner())}};
    daemon::state_in(document, coverage);
    document.merge_patch(patch);
    std::ofstream(run / daemon::run_file) << document.dump(-1, ' ', false, json::error_handler_t::replace);
    petlm::RecordFile out(
        run / daemon::singles_file, daemon::RecordKind::singles, 512,
        {{"run_id", "r"}, {"tick_ps", coverage.tick_ps}, {"coverage", daemon::to_json(coverage)}});
    out.append(std::span<const gpu::Single>(singles));
    out.close();
}

auto key(const gpu::Single& single) {
    return std::tie(single.time, single.crystal, single.energy);
}

/// What a command prints is for users, and slow.
class Quiet {
  public:
    Quiet() = default;
    ~Quiet() {
        std::cout.rdbuf(out_);
        std::cerr.rdbuf(err_);
    }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

  private:
    std::ostringstream ignored_;
    std::streambuf* const out_ = std::cout.rdbuf(ignored_.rdbuf());
    std::streambuf* const err_ = std::cerr.rdbuf(ignored_.rdbuf());
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto [text, bytes] = fuzz::text_and_rest(data, size);
    json patches;
    try {
        patches = config::parse_json(text);
    } catch (const config::Error&) {
        return bytes.empty() ? -1 : 0;
    }
    if (!patches.is_object() || bytes.empty()) return 0;
    // Merge patches that are no objects replace the document: then it is none.
    const json none = json::object();
    const json a = patches.value("a", none);
    const json b = patches.value("b", none);

    Singles all;
    std::array<Singles, 2> heard;
    std::uint64_t time = 1000;
    for (const std::uint8_t byte : bytes.first(std::min<std::size_t>(bytes.size(), 300))) {
        time += byte >> 2U & 0x1fU;
        const gpu::Single single{time, static_cast<std::uint32_t>(time * 7 % 240), 511};
        if (!all.empty() && !(key(all.back()) < key(single))) continue;
        if ((byte & 3U) != 0) all.push_back(single);
        for (std::size_t host = 0; host < heard.size(); ++host)
            if ((byte >> host & 1U) != 0) heard[host].push_back(single);
    }

    static const fuzz::ScratchDirectory scratch;
    const auto run_a = scratch.path() / "a" / "r";
    const auto run_b = scratch.path() / "b" / "r";
    petlm::UnionOptions options;
    options.output = scratch.path() / "u";
    for (const auto& directory : {run_a, run_b, options.output})
        std::filesystem::remove_all(directory);
    const daemon::Intervals times(gpu::TickRange{1000, time + 1});
    write_run(run_a, heard[0], times, a);
    write_run(run_b, heard[1], times, b);
    options.runs = {run_a, run_b};
    options.backend = "cpu";
    options.threads = 1;
    const bool sound = a == none && b == none;
    try {
        const Quiet quiet;
        const int status = petlm::unite(options);
        require(!sound || status == petlm::ok, "two sound runs are united");
    } catch (const std::exception& error) {
        require(!sound, "two sound runs are refused");
        require(*error.what() != '\0', "an error says why");
        return 0;
    }
    fuzz::accept();
    Singles united;
    petlm::RecordSource source(options.output / daemon::singles_file, daemon::RecordKind::singles);
    while (source.next())
        united.insert(united.end(), source.reader().singles().begin(), source.reader().singles().end());
    require(std::equal(united.begin(), united.end(), all.begin(), all.end(),
                       [](const gpu::Single& x, const gpu::Single& y) { return key(x) == key(y); }),
            "the union has each hit that a host heard, once");
    const json document =
        config::read_json_file(options.output / daemon::run_file, config::max_run_json_bytes);
    require(document["ledger"]["saved_singles"]["written"] == united.size(), "run.json counts them");
    return 0;
}
