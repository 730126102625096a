#include "daemon/http/singles.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "config/energy_bins.hpp"

namespace petacq::daemon {

namespace {

using Output = fmt::memory_buffer;

constexpr std::size_t bins = config::energy_bins;

void put(Output& out, std::string_view text) {
    out.append(text.data(), text.data() + text.size());
}

void write_number(Output& out, std::uint64_t number) {
    fmt::format_to(std::back_inserter(out), "{}", number);
}

void write_number(Output& out, double number) {
    if (!std::isfinite(number)) return put(out, "null");  // JSON has no other word
    fmt::format_to(std::back_inserter(out), "{}", number);
}

template <class T>
void write_array(Output& out, const T* begin, std::size_t count) {
    out.push_back('[');
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) out.push_back(',');
        write_number(out, begin[i]);
    }
    out.push_back(']');
}

std::vector<std::uint64_t> sum_of_modules(const std::vector<std::uint64_t>& energy) {
    std::vector<std::uint64_t> sum(bins);
    for (std::size_t i = 0; i < energy.size(); ++i)
        sum[i % bins] += energy[i];
    return sum;
}

void write_counts(Output& out, const char* name, const gpu::SinglesHistograms* histograms) {
    fmt::format_to(std::back_inserter(out), "\"{}\":", name);
    if (histograms == nullptr) return put(out, "null");
    put(out, "{\"per_crystal\":");
    write_array(out, histograms->per_crystal.data(), histograms->per_crystal.size());
    put(out, ",\"energy\":");
    write_array(out, sum_of_modules(histograms->energy).data(), bins);
    put(out, ",\"energy_per_module\":[");
    for (std::size_t i = 0; i < histograms->energy.size(); i += bins) {
        if (i > 0) out.push_back(',');
        write_array(out, histograms->energy.data() + i, bins);
    }
    put(out, "]}");
}

}  // namespace

std::string singles_document(const config::Geometry& geometry, const gpu::SinglesHistograms* now,
                             const gpu::SinglesHistograms* before, double seconds) {
    Output out;
    if (geometry.is_ring()) {
        fmt::format_to(
            std::back_inserter(out),
            "{{\"rings\":{},\"crystals_in_ring\":{},\"crystals_per_module\":{{\"around\":{},\"along\":{}}},",
            geometry.rings(), geometry.crystals_in_ring(), geometry.crystals_per_module_y(),
            geometry.blocks.z * geometry.crystals.z);
    } else {
        put(out, "{\"rings\":null,\"crystals_in_ring\":null,\"crystals_per_module\":null,");
    }
    if (now != nullptr) {
        fmt::format_to(std::back_inserter(out), "\"energy_bin_keV\":{},", now->energy_bin_keV);
    } else {
        put(out, "\"energy_bin_keV\":null,");
    }
    fmt::format_to(std::back_inserter(out), "\"energy_bins\":{},", bins);
    const bool has_interval = now != nullptr && before != nullptr && seconds > 0;
    if (has_interval) {
        fmt::format_to(std::back_inserter(out), "\"interval_s\":{},", seconds);
        gpu::SinglesHistograms recent = *now;
        recent -= *before;
        write_counts(out, "interval", &recent);
    } else {
        put(out, "\"interval_s\":null,\"interval\":null");
    }
    put(out, ",");
    write_counts(out, "since_start", now);
    put(out, "}");
    return fmt::to_string(out);
}

std::string randoms_document(const Second* second) {
    if (second == nullptr || second->length_s <= 0) return "null";
    gpu::ExpectedRandoms rates;
    rates.add(second->randoms, 1 / second->length_s);
    Output out;
    fmt::format_to(std::back_inserter(out),
                   "{{\"start_ticks\":{},\"length_s\":{},\"total_per_s\":", second->range.start,
                   second->length_s);
    write_number(out, rates.total);
    fmt::format_to(std::back_inserter(out), ",\"modules\":{},\"per_crystal_per_s\":", rates.modules);
    write_array(out, rates.per_crystal.data(), rates.per_crystal.size());
    put(out, ",\"per_module_pair_per_s\":");
    write_array(out, rates.module_pairs.data(), rates.module_pairs.size());
    put(out, "}");
    return fmt::to_string(out);
}

}  // namespace petacq::daemon
