#include "daemon/http/unit_spectra.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <span>

#include "config/energy_bins.hpp"

namespace petacq::daemon {

namespace {

/// The number that is the whole text. Without leading zeros, so that each unit has one path.
std::optional<std::uint32_t> number_of(std::string_view text) {
    if (text.size() > 1 && text.front() == '0') return std::nullopt;
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace

std::optional<std::uint32_t> unit_of(std::string_view path, const config::Geometry& geometry) {
    constexpr std::string_view folder = "/spectra/";
    if (!path.starts_with(folder)) return std::nullopt;
    path.remove_prefix(folder.size());
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto bdm = number_of(path.substr(0, slash));
    const auto du = number_of(path.substr(slash + 1));
    if (!bdm || !du || *bdm >= geometry.bdm_count || *du >= geometry.du_count) return std::nullopt;
    const std::uint32_t unit = *bdm * geometry.du_count + *du;
    return geometry.crystals_of_unit(unit) > 0 ? std::optional(unit) : std::nullopt;
}

std::string unit_spectra_document(const config::Geometry& geometry, std::uint32_t unit,
                                  const std::shared_ptr<const gpu::UnitSpectra>& counts) {
    if (counts == nullptr) return "null";
    constexpr std::uint32_t bins = config::energy_bins;
    std::string text = fmt::format(
        R"({{"bdm":{},"du":{},"modules":{},"units":{},"position_size":{},"energy_bin_keV":{},"flood":[{}],"energy_per_crystal":[)",
        unit / geometry.du_count, unit % geometry.du_count, geometry.bdm_count, geometry.du_count,
        geometry.position_size, config::energy_bin_keV, fmt::join(counts->flood, ","));
    const std::uint32_t crystals = geometry.crystals_of_unit(unit);
    for (std::uint32_t local = 0; local < crystals; ++local) {
        const std::span row = std::span(counts->energies).subspan(std::size_t{local} * bins, bins);
        text += fmt::format("{}[{}]", local > 0 ? "," : "", fmt::join(row, ","));
    }
    text += "],\"crystals\":[";
    for (std::uint32_t local = 0; local < crystals; ++local) {
        text += fmt::format("{}{}", local > 0 ? "," : "",
                            geometry.crystal(unit / geometry.du_count, unit % geometry.du_count, local));
    }
    return text + "]}";
}

}  // namespace petacq::daemon
