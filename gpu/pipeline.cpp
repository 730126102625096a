#include "gpu/pipeline.hpp"

#include <array>
#include <stdexcept>

namespace petacq::gpu {

namespace {

constexpr std::array<const char*, 2> mode_names{"single", "every"};
constexpr std::array<const char*, 6> policy_names{"RemoveMultiples",    "TakeAllGoods",
                                                  "TakeWinnerOfGoods",  "TakeIfOnlyOneGood",
                                                  "TakeWinnerIfIsGood", "TakeWinnerIfAllAreGoods"};

template <std::size_t N>
std::size_t index_of(const std::array<const char*, N>& names, const std::string& name, const char* what) {
    std::string accepted;
    for (std::size_t i = 0; i < N; ++i) {
        if (name == names[i]) return i;
        accepted += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    throw std::invalid_argument(std::string(what) + " '" + name + "': expected one of " + accepted);
}

}  // namespace

WindowMode window_mode_from_name(const std::string& name) {
    return static_cast<WindowMode>(index_of(mode_names, name, "window mode"));
}

MultiplesPolicy multiples_policy_from_name(const std::string& name) {
    return static_cast<MultiplesPolicy>(index_of(policy_names, name, "multiples policy"));
}

const char* name_of(WindowMode mode) {
    return mode_names.at(static_cast<std::size_t>(mode));
}

const char* name_of(MultiplesPolicy policy) {
    return policy_names.at(static_cast<std::size_t>(policy));
}

SinglesHistograms& SinglesHistograms::operator-=(const SinglesHistograms& earlier) {
    const auto subtract = [](auto& from, const auto& what) {
        for (std::size_t i = 0; i < what.size(); ++i)
            from[i] -= what[i];
    };
    subtract(per_crystal, earlier.per_crystal);
    subtract(energy, earlier.energy);
    subtract(temperature_sum_16ths, earlier.temperature_sum_16ths);
    subtract(temperature_count, earlier.temperature_count);
    return *this;
}

FrameCounts& FrameCounts::operator+=(const FrameCounts& o) {
    received += o.received;
    bad_marker += o.bad_marker;
    bad_address += o.bad_address;
    outside_crystal += o.outside_crystal;
    below_window += o.below_window;
    above_window += o.above_window;
    bad_time += o.bad_time;
    time_jump += o.time_jump;
    late += o.late;
    accepted += o.accepted;
    return *this;
}

SingleCounts& SingleCounts::operator+=(const SingleCounts& o) {
    decided += o.decided;
    prompts += o.prompts;
    delayeds += o.delayeds;
    unpaired += o.unpaired;
    same_crystal += o.same_crystal;
    geometry += o.geometry;
    in_dropped_multiples += o.in_dropped_multiples;
    in_oversize_multiples += o.in_oversize_multiples;
    unused_in_multiples += o.unused_in_multiples;
    reused += o.reused;
    return *this;
}

}  // namespace petacq::gpu
