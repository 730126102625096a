#include "tools/petcal/inspect_normalisation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/base/printable.hpp"
#include "config/hdf5/table.hpp"
#include "config/moments.hpp"
#include "tools/petcal/base/dead_units.hpp"
#include "tools/petcal/base/text.hpp"
#include "tools/petcal/base/units.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

/// Of the values above 0.
json statistics(const std::vector<float>& values) {
    config::Moments moments;
    double low = INFINITY;
    double high = 0;
    for (const double value : values) {
        if (!(value > 0)) continue;
        moments.add(value);
        low = std::min(low, value);
        high = std::max(high, value);
    }
    if (moments.n == 0) return {{"count", 0}, {"mean", 0}, {"spread", 0}, {"min", 0}, {"max", 0}};
    return {{"count", moments.n},
            {"mean", moments.mean()},
            {"spread", moments.spread()},
            {"min", low},
            {"max", high}};
}

/// Of values that are above 0 in both, after their means were made equal.
json differences(const std::vector<float>& a, const std::vector<float>& b) {
    double n = 0;
    double sum_a = 0;
    double sum_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (!(a[i] > 0 && b[i] > 0)) continue;
        n += 1;
        sum_a += a[i];
        sum_b += b[i];
    }
    double squares = 0;
    double most = 0;
    for (std::size_t i = 0; n > 0 && i < a.size(); ++i) {
        if (!(a[i] > 0 && b[i] > 0)) continue;
        const double off = b[i] / sum_b * sum_a / a[i] - 1;
        squares += off * off;
        most = std::max(most, std::abs(off));
    }
    return {{"rms_percent", n > 0 ? 100 * std::sqrt(squares / n) : 0}, {"max_percent", 100 * most}};
}

std::size_t only_dead_in(const std::vector<float>& one, const std::vector<float>& other) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < one.size(); ++i)
        count += one[i] == 0 && other[i] > 0 ? 1 : 0;
    return count;
}

std::string statistics_line(const json& s) {
    return fmt::format("mean {:.4f}, spread {:.4f}, {:.3f} to {:.3f}\n", s.at("mean").get<double>(),
                       s.at("spread").get<double>(), s.at("min").get<double>(), s.at("max").get<double>());
}

std::string factor_text(const json& factor) {
    return factor.is_null() ? "none" : fmt::format("{:.6g}", factor.get<double>());
}

}  // namespace

bool is_normalisation(const std::filesystem::path& file) {
    bool found = false;
    config::read_hdf5_file(file, [&](hid_t h5) {
        found = config::has_table(h5, {"efficiency", "f32", H5T_NATIVE_FLOAT, {0}});
    });
    return found;
}

json inspect_normalisation(const config::Geometry& g, const normalisation::Normalisation& n) {
    const DeadCrystals dead = find_dead(g, n.efficiency);
    json figures{{"sha256", n.sha256},
                 {"origin", json::object()},
                 {"efficiency", statistics(n.efficiency)},
                 {"transaxial", statistics(n.transaxial)},
                 {"axial", statistics(n.axial)},
                 {"activity_factor", n.activity_factor ? json(*n.activity_factor) : json()},
                 {"dead_units", json::array()},
                 {"dead_crystals", dead.crystals}};
    for (const std::uint32_t unit : dead.units)
        figures["dead_units"].push_back({{"bdm", unit / g.du_count}, {"du", unit % g.du_count}});
    for (const auto& [name, text] : n.origin)
        figures["origin"][config::printable(name)] = config::printable(text);
    return figures;
}

std::string inspect_normalisation_text(const json& f) {
    std::string text = "sha256              " + f.at("sha256").get<std::string>() + "\n";
    text += "efficiency          " + statistics_line(f.at("efficiency"));
    text += "transaxial          " + statistics_line(f.at("transaxial"));
    text += "axial               " + statistics_line(f.at("axial"));
    text += "activity_factor     " + factor_text(f.at("activity_factor")) + "\n";
    text += fmt::format("dead units          {}\n", f.at("dead_units").size());
    for (const json& unit : f.at("dead_units"))
        text += "  " + unit_name(unit.at("bdm"), unit.at("du")) + "\n";
    text += fmt::format("other dead crystals {}\n", f.at("dead_crystals").size());
    text += first_lines(f.at("dead_crystals").get<std::vector<std::string>>());
    for (const auto& [name, value] : f.at("origin").items())
        text += fmt::format("{:<19} {}\n", name, value.get<std::string>());
    return text;
}

json compare_normalisations(const normalisation::Normalisation& a, const normalisation::Normalisation& b) {
    const auto factor = [](const auto& n) { return n.activity_factor ? json(*n.activity_factor) : json(); };
    return {{"a_sha256", a.sha256},
            {"b_sha256", b.sha256},
            {"efficiency", differences(a.efficiency, b.efficiency)},
            {"transaxial", differences(a.transaxial, b.transaxial)},
            {"axial", differences(a.axial, b.axial)},
            {"dead_only_in_a", only_dead_in(a.efficiency, b.efficiency)},
            {"dead_only_in_b", only_dead_in(b.efficiency, a.efficiency)},
            {"activity_factor", {factor(a), factor(b)}}};
}

std::string compare_normalisations_text(const json& f) {
    std::string text;
    for (const char* table : {"efficiency", "transaxial", "axial"}) {
        text += fmt::format("{:<16}B to A: rms {:.3f} %, largest {:.3f} %\n", table,
                            f.at(table).at("rms_percent").get<double>(),
                            f.at(table).at("max_percent").get<double>());
    }
    text += fmt::format("dead            only in A: {}, only in B: {}\n",
                        f.at("dead_only_in_a").get<std::size_t>(), f.at("dead_only_in_b").get<std::size_t>());
    const json& factors = f.at("activity_factor");
    return text + "activity_factor A " + factor_text(factors.at(0)) + ", B " + factor_text(factors.at(1)) +
           "\n";
}

}  // namespace petacq::petcal
