#include "tests/end_to_end/arrangements/chain.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::test {

using nlohmann::json;

namespace {

Site site_with(const json& scanner, const json& configuration) {
    const TemporaryDirectory directory;
    const std::filesystem::path file = directory / "any.scanner.json";
    write_file(file, scanner.dump());
    return Site(configuration, file);
}

json complete(const json& configuration, bool has_sources) {
    json all = {
        {"sources", {{"accept_any", !has_sources}}},
        {"spectra", {{"enabled", true}}},
        {"receive", {{"batch_count", 256}}},
        {"listmode", {{"block_bytes", 1048576}}},
        {"pipeline", {{"slice_frames", 500000}}},
        {"coincidence", {{"window_ticks", 400}, {"delay_ticks", 10000}, {"min_module_difference", nullptr}}}};
    for (const auto& [section, keys] : configuration.items())
        all[section].update(keys);  // no merge patch: the Site is to see what is null
    return all;
}

std::string threads() {
    return std::to_string(std::clamp(std::thread::hardware_concurrency(), 2U, 32U));
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

std::string EvenCylinder::text() const {
    std::string text;
    for (const double value : {at[0], at[1], at[2], radius, length})
        text += (text.empty() ? "" : ",") + std::to_string(value);
    return text;
}

std::filesystem::path example_scanner_file(const std::string& name) {
    return std::filesystem::path(PETACQ_SOURCE_DIR) / "config" / "examples" / "scanners" /
           (name + ".scanner.json");
}

json example_scanner(const std::string& name) {
    return json::parse(read_file(example_scanner_file(name)));
}

json example_configuration(const std::string& name) {
    json all = json::parse(read_file(example_scanner_file(name).parent_path() / (name + ".json")));
    for (const char* const key : {"$schema", "scanner", "calibration", "data_dir", "receive", "control"})
        all.erase(key);
    json coincidence = {
        {"window_ticks", nullptr}, {"delay_ticks", nullptr}, {"min_module_difference", nullptr}};
    coincidence.update(all["coincidence"]);
    all["coincidence"] = coincidence;
    return all;
}

std::string output_of(const char* program, const std::vector<std::string>& arguments, int status) {
    // Steps of the largest scanners take minutes on few cores.
    const Outcome outcome = run_program(program, arguments, {.limit = std::chrono::minutes(30)});
    INFO(program << ' ' << arguments.at(0) << ' ' << arguments.at(1) << '\n' << outcome.out << outcome.err);
    REQUIRE(outcome.status == status);
    return outcome.out;
}

Chain::Chain(const json& scanner, const json& configuration)
    : site_(site_with(scanner, complete(configuration, scanner.contains("sources")))) {
    output_of(PETSIM_PROGRAM,
              {"make-detector", "--scanner", site_.scanner(), "--output", path("detector.h5"),
               "--calibration", path("best.h5"), "--seed", "2", "--efficiency-spread", "0.1"});
    output_of(PETCAL_PROGRAM, {"make", "--scanner", site_.scanner(), "-o", site_.calibration(), "--force",
                               "--energy-spread", "0", "--bins", "1", "--seed", "1"});
}

void Chain::simulate(const std::string& name, double seconds, const std::vector<std::string>& sources) {
    std::vector<std::string> arguments = {
        "--scanner",          site_.scanner(), "--calibration", site_.calibration(),     "--detector",
        path("detector.h5"),  "--crystals",    "depth",         "--efficiency",          "0.7",
        "--threads",          threads(),       "--duration-s",  std::to_string(seconds), "--write",
        path(name + ".pcap"), "--quiet"};
    if (scanner().rotation) arguments.insert(arguments.end(), {"--rotation", "30"});  // whole turns in 2 s
    arguments.insert(arguments.end(), sources.begin(), sources.end());
    output_of(PETSIM_PROGRAM, arguments);
}

void Chain::replay(const std::string& capture, const std::string& name) {
    output_of(PETACQD_PROGRAM,
              {"--config", site_.configuration(), "--replay", path(capture + ".pcap"), "--run", name});
}

void Chain::send(const std::string& capture, const std::string& name) {
    Daemon daemon(site_);
    daemon.start(name);
    const std::string said =
        output_of(PETSIM_PROGRAM, {"--send", path(capture + ".pcap"), "--to", daemon.address()});
    std::smatch sent;
    REQUIRE(std::regex_search(said, sent, std::regex("sent ([0-9]+) datagrams")));
    REQUIRE(daemon.received(std::stoull(sent[1])));
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(daemon.terminate() == 0);
}

void Chain::use(const std::string& calibration) const {
    std::filesystem::copy_file(path(calibration), site_.calibration(),
                               std::filesystem::copy_options::overwrite_existing);
}

void Chain::apply(const std::string& step, const std::string& file) {
    output_of(PETCAL_PROGRAM, {"apply", "--scanner", site_.scanner(), "--calibration", site_.calibration(),
                               "--" + step, path(file), "-o", path("applied.h5"), "--force"});
    use("applied.h5");
}

void Chain::import_true_map() {
    const config::Geometry g = scanner().geometry;
    const config::Calibration best = config::load_calibration(path("best.h5"), g);
    if (config::has_wide_positions(g)) {
        write_file(path("position.raw"), bytes_of(best.position_table));
    } else {
        write_file(path("position.raw"), bytes_of(std::vector<std::uint8_t>(best.position_table.begin(),
                                                                            best.position_table.end())));
    }
    const std::vector<float> factors(std::size_t{g.unit_count()} * g.crystals_per_du(), 0.25F);
    write_file(path("energy.raw"), bytes_of(factors));
    output_of(PETCAL_PROGRAM,
              {"import", "--scanner", site_.scanner(), "--position-table", path("position.raw"),
               "--energy-factor", path("energy.raw"), "--bins", "1", "-o", path("imported.h5")});
    use("imported.h5");
}

json Chain::derived(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "derive");
    arguments.emplace_back("--json");
    json document = json::parse(output_of(PETCAL_PROGRAM, arguments));
    const auto output = std::find(arguments.begin(), arguments.end(), "-o");
    REQUIRE(output != arguments.end());
    CHECK(document["files"][0] == *std::next(output));
    CHECK(document["warnings"] == json::array());
    return document;
}

void Chain::derive_crystals(const std::string& run) {
    const json document = derived({"crystals", "--scanner", site_.scanner(), "--spectra",
                                   (site_.run(run) / "spectra.h5").string(), "-o", path("crystals.h5"),
                                   "--report", path("crystals.html")});
    CHECK(document["units_derived"] == document["units"]);
    apply("crystals", "crystals.h5");
}

void Chain::derive_energy(const std::string& run) {
    const json document = derived(
        {"energy", "--scanner", site_.scanner(), "--spectra", (site_.run(run) / "spectra.h5").string(),
         "--calibration", site_.calibration(), "-o", path("energy.h5"), "--report", path("energy.html")});
    CHECK(document["photopeaks"].get<std::size_t>() + document["without_photopeak"].size() ==
          document["crystals"]);
    apply("energy", "energy.h5");
}

void Chain::derive_time(const std::string& run, const EvenCylinder& source) {
    const json document = derived({"time", "--scanner", site_.scanner(), "--calibration", site_.calibration(),
                                   "--run", site_.run(run).string(), "--cylinder", source.text(), "-o",
                                   path("timed.h5"), "--report", path("time.html")});
    CHECK(document["sigma_ps"] > 0);
    CHECK(document["prompts"] > document["prompts_missing_source"]);
    use("timed.h5");
}

void Chain::derive_normalisation(const std::string& run, const EvenCylinder& source, Medium medium) {
    const json messages =
        derived({"normalisation", "--scanner", site_.scanner(), "--run", site_.run(run).string(),
                 "--cylinder", source.text(), "--attenuation-per-cm", medium == Medium::air ? "0" : "0.096",
                 "-o", path("normalisation.h5"), "--report", path("normalisation.html")})["messages"];
    INFO(messages);
    REQUIRE_FALSE(messages.empty());  // about lost data
    // Nothing is one-sided, and the fit is good.
    CHECK(messages.dump().find("check ") == std::string::npos);
}

void Chain::derive_activity(const EvenCylinder& source, double length_mm) {
    EvenCylinder seen = source;
    seen.length = length_mm;
    const json document = derived({"activity", "--scanner", site_.scanner(), "--normalisation",
                                   path("normalisation.h5"), "--image", path("image"), "--cylinder",
                                   seen.text(), "--margin-mm", "3", "--concentration-kBq-ml",
                                   std::to_string(source.kbq_per_ml()), "-o", path("quantitative.h5")});
    CHECK(document["activity_factor"] > 0);
}

ImageFile Chain::image(const std::string& run, const ImageSize& size, const std::string& normalisation,
                       const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"image",
                                          site_.run(run).string(),
                                          "--output",
                                          path("image"),
                                          "--force",
                                          "--normalisation",
                                          path(normalisation),
                                          "--voxel-mm",
                                          std::to_string(size.voxel_mm),
                                          "--fov-mm",
                                          std::to_string(size.fov_mm),
                                          "--iterations",
                                          "10",
                                          "--subsets",
                                          "6",
                                          "--smooth-mm",
                                          "0",
                                          "--tof",
                                          "off",
                                          "--backend",
                                          "cpu",
                                          "--no-cache"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    output_of(PETLM_PROGRAM, arguments);
    return ImageFile(site_.directory() / "image" / "image.nii");
}

json Chain::compare() const {
    return json::parse(output_of(PETCAL_PROGRAM, {"compare", path("best.h5"), site_.calibration(),
                                                  "--scanner", site_.scanner(), "--json"}));
}

json Chain::inspect() const {
    return json::parse(
        output_of(PETCAL_PROGRAM, {"inspect", site_.calibration(), "--scanner", site_.scanner(), "--json"}));
}

}  // namespace petacq::test
