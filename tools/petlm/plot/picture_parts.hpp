// What the pictures have in common.
#pragma once

#include <fmt/format.h>

#include <iterator>

#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {

// pictures_spectra.cpp
Picture energy_of_singles(const PictureData& data);
Picture energy_of_pairs(const PictureData& data);
Picture time_differences(const PictureData& data);
// pictures_time.cpp
Picture rates_over_time(const PictureData& data);
Picture loss_over_time(const PictureData& data);
// pictures_maps.cpp
Picture crystal_map(const PictureData& data);
Picture michelogram(const PictureData& data);
Picture sinogram(const PictureData& data);
Picture axial_profile(const PictureData& data);

inline std::vector<double> doubles(const Counts& counts) {
    return {counts.begin(), counts.end()};
}

/// Prompts less delayeds.
inline std::vector<double> net(const Counts& prompts, const Counts& delayeds) {
    std::vector<double> out;
    out.reserve(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i)
        out.push_back(static_cast<double>(prompts[i]) - static_cast<double>(delayeds[i]));
    return out;
}

/// "12,345,678"
inline std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3)
        text.insert(at - 3, 1, ',');
    return text;
}

template <class... Arguments>
void print(OutputFile& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::memory_buffer line;
    fmt::format_to(std::back_inserter(line), format, std::forward<Arguments>(arguments)...);
    out.text({line.data(), line.size()});
}

}  // namespace petacq::petlm
