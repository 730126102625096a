#include "tests/physics/laboratory.hpp"

#include "tests/physics/scanners.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace petacq::test {

namespace {

std::string output_of(const char* program, const std::vector<std::string>& arguments,
                      const ProcessOptions& options = {}) {
    const Outcome outcome = run_program(program, arguments, options);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

Equipment uneven(nlohmann::json scanner, nlohmann::json daemon, const std::string& crystals,
                 std::uint64_t dead_time_ticks) {
    Equipment e{std::move(scanner), std::move(daemon)};
    e.detector = {"--efficiency-spread", "0.14", "--dead",        "0.003",
                  "--time-spread-ps",    "0",    "--gain-spread", "0"};
    e.simulation = {"--crystals",      crystals, "--dead-time-ticks", std::to_string(dead_time_ticks),
                    "--tag-dead-time", "3:0.02", "--silent-unit",     "5.1@0-1000"};
    if (crystals == "surface") e.image = {"--depth-mm", "0"};
    return e;
}

}  // namespace

std::string Cylinder::text() const {
    return std::to_string(x) + "," + std::to_string(y) + ",0," + std::to_string(radius) + "," +
           std::to_string(length);
}

Equipment Equipment::example(const std::string& name, const std::string& crystals,
                             std::uint64_t dead_time_ticks) {
    const std::filesystem::path examples = PETACQ_SOURCE_DIR "/config/examples";
    const auto parsed = [&](const std::string& file) {
        return nlohmann::json::parse(read_file(examples / (name + file)));
    };
    Equipment e = uneven(parsed(".scanner.json"), parsed(".json"), crystals, dead_time_ticks);
    append(e.simulation, {"--efficiency", "0.6"});
    return e;
}

Equipment Equipment::ten_modules(const std::string& crystals) {
    const nlohmann::json daemon = {
        {"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}}}},
        {"energy", {{"lower_keV", 350}, {"upper_keV", 650}}},
        {"coincidence", {{"window_ticks", 140}, {"delay_ticks", 4000}, {"min_module_difference", 2}}},
        {"control", {{"socket", "petacqd.sock"}}}};
    Equipment e = uneven(test::ten_modules(), daemon, crystals, 20'000);
    append(e.simulation, {"--efficiency", "0.65", "--intrinsic-hz", "40"});
    return e;
}

Laboratory::Laboratory(Equipment equipment) : equipment_(std::move(equipment)) {
    write_file(scanner_file(), equipment_.scanner.dump());
    equipment_.daemon.erase("$schema");
    equipment_.daemon["scanner"] = "scanner.json";
    equipment_.daemon["calibration"] = "calibration.h5";
    equipment_.daemon["data_dir"] = "data";
    equipment_.daemon["pipeline"]["backend"] = "cpu";
    // Little memory: clearing it takes most of the time of a short replay.
    equipment_.daemon["receive"].update(
        {{"batch_count", 32}, {"batch_bytes", 262144}, {"lock_memory", false}});
    use_policy("RemoveMultiples");
    std::filesystem::create_directory(directory_ / "data");
    std::vector<std::string> arguments = {
        "make-detector",     "--scanner",     scanner_file(),        "--output",
        path("detector.h5"), "--calibration", path("calibration.h5")};
    append(arguments, equipment_.detector);
    output_of(PETSIM_PROGRAM, arguments);
}

void Laboratory::use_policy(const std::string& policy) {
    equipment_.daemon["coincidence"]["multiples_policy"] = policy;
    write_file(directory_ / "daemon.json", equipment_.daemon.dump());
}

void Laboratory::simulate(const std::string& name, double seconds, const std::vector<std::string>& phantom) {
    std::vector<std::string> arguments = {
        "--scanner",    scanner_file(),          "--calibration", path("calibration.h5"),
        "--detector",   path("detector.h5"),     "--threads",     "2",
        "--duration-s", std::to_string(seconds), "--write",       path(name + ".pcap")};
    append(arguments, equipment_.simulation);
    append(arguments, phantom);
    output_of(PETSIM_PROGRAM, arguments);
}

void Laboratory::replay(const std::string& name, const std::string& run_name) {
    output_of(PETACQD_PROGRAM,
              {"--config", path("daemon.json"), "--replay", path(name + ".pcap"), "--run", run_name});
}

void Laboratory::acquire(const std::string& run_name, double seconds,
                         const std::vector<std::string>& phantom) {
    simulate(run_name, seconds, phantom);
    replay(run_name, run_name);
    std::filesystem::remove(directory_ / (run_name + ".pcap"));
}

void Laboratory::derive_normalisation(const std::string& run_name, const Cylinder& flood,
                                      const std::string& output) {
    output_of(PETCAL_PROGRAM,
              {"derive", "normalisation", "--scanner", scanner_file(), "--run", path("data/" + run_name),
               "--cylinder", flood.text(), "--attenuation-per-cm", "0", "-o", path(output)});
}

void Laboratory::derive_activity(const Cylinder& known, double kbq_per_ml, const std::string& normalisation,
                                 const std::string& output) {
    output_of(PETCAL_PROGRAM, {"derive", "activity", "--scanner", scanner_file(), "--normalisation",
                               path(normalisation), "--image", path("image"), "--cylinder", known.text(),
                               "--concentration-kBq-ml", std::to_string(kbq_per_ml), "-o", path(output)});
}

Laboratory::Image Laboratory::image(const std::string& run_name, const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"image",    path("data/" + run_name),
                                          "--output", path("image"),
                                          "--force",  "--smooth-mm",
                                          "0",        "--backend",
                                          "cpu",      "--threads",
                                          "2"};
    append(arguments, equipment_.image);
    append(arguments, options);
    // Sensitivities that this laboratory has computed, but none that other code made.
    ProcessOptions process;
    process.environment = {"XDG_CACHE_HOME=" + path("cache")};
    std::string out = output_of(PETLM_PROGRAM, arguments, process);
    return {ImageFile(directory_ / "image" / "image.nii"),
            nlohmann::json::parse(read_file(directory_ / "image" / "image.json")), out};
}

}  // namespace petacq::test
