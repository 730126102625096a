#include "tools/petlm/reconstruction/corrections/fits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "tools/petlm/base/status.hpp"

namespace petacq::corrections {
namespace {

constexpr const char* energy_key = "energy_window_keV";
constexpr const char* calibration_key = "calibration_sha256";
constexpr const char* scanner_key = "scanner_sha256";
constexpr const char* depth_key = "depth_mm";
constexpr const char* modules_key = "min_module_difference";
constexpr const char* rings_key = "max_ring_difference";

std::string text_of(const config::Energy& energy) {
    return energy.filter ? fmt::format("{:g} to {:g}", energy.lower_keV, energy.upper_keV) : "none";
}

std::optional<double> number_in(const std::map<std::string, std::string>& facts, const char* key) {
    const auto found = facts.find(key);
    double number = 0;
    if (found == facts.end()) return std::nullopt;
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// The text; empty: not known.
std::string text_in(const std::map<std::string, std::string>& facts, const char* key) {
    const auto found = facts.find(key);
    return found == facts.end() || found->second == "unknown" ? "" : found->second;
}

}  // namespace

std::map<std::string, std::string> facts_for_normalisation(const daemon::Coverage& coverage,
                                                           const config::Scanner& scanner,
                                                           const config::DepthOfInteraction& depth) {
    std::map<std::string, std::string> facts = {{scanner_key, daemon::scanner_sha256(scanner)},
                                                {depth_key, depth.name()}};
    if (coverage.rules.energy) facts[energy_key] = text_of(*coverage.rules.energy);
    if (!coverage.origin.calibration_sha256.empty())
        facts[calibration_key] = coverage.origin.calibration_sha256;
    if (const auto& c = coverage.rules.coincidence) {
        const auto limit = [](std::optional<std::uint32_t> value) {
            return value ? std::to_string(*value) : "none";
        };
        facts[modules_key] = limit(c->min_module_difference);
        facts[rings_key] = limit(c->max_ring_difference);
    }
    return facts;
}

std::optional<double> depth_of_normalisation(const LineOptions& options, const config::Scanner& scanner) {
    if (!options.normalisation) return std::nullopt;
    return number_in(normalisation::load(*options.normalisation, scanner.geometry).origin, depth_key);
}

std::vector<std::string> check_fit(const LineFactors& lines, const std::filesystem::path& file,
                                   const daemon::Coverage& coverage, const config::Scanner& scanner) {
    const auto& of_file = lines.file().origin;
    const auto of_records = facts_for_normalisation(coverage, scanner, lines.depth());
    std::vector<std::string> unknown;
    const auto compare = [&](const char* key, const char* what, const char* how) {
        const std::string found = text_in(of_file, key);
        const std::string expected = text_in(of_records, key);
        if (found.empty() || expected.empty()) {
            unknown.emplace_back(what);
        } else if (found != expected) {
            throw petlm::BadInput(fmt::format("{}: made for another {}: expected {}, found {}; {}",
                                              file.string(), what, expected, found, how));
        }
    };
    constexpr const char* derive = "derive a normalisation from a run like this one";
    compare(scanner_key, "scanner", derive);
    compare(energy_key, "energy window (keV)", derive);
    compare(calibration_key, "calibration", derive);
    compare(depth_key, "depth of interaction (mm)", "leave out --depth-mm, or derive it with this depth");
    std::vector<std::string> out;
    if (!unknown.empty()) {
        out.push_back(
            fmt::format("Whether the normalisation fits is not known of: {}.", fmt::join(unknown, ", ")));
    }
    const auto more = [&](const char* key, bool larger) {
        const std::string a = text_in(of_file, key);
        const std::string b = text_in(of_records, key);
        if (a.empty() || b.empty() || a == "none") return false;
        if (b == "none") return true;
        return larger ? *number_in(of_records, key) > *number_in(of_file, key)
                      : *number_in(of_records, key) < *number_in(of_file, key);
    };
    for (const auto& [key, larger] : {std::pair(modules_key, false), std::pair(rings_key, true)}) {
        if (!more(key, larger)) continue;
        out.push_back(
            fmt::format("The normalisation was made with {} {}, the records with {}: it guesses the "
                        "factors of the other pairs.",
                        key, text_in(of_file, key), text_in(of_records, key)));
    }
    return out;
}

}  // namespace petacq::corrections
