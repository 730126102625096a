// Records that a sound writer does not write, which CRCs do not reveal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "gpu/base/records.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

/// Of one file after the other, or of a part of one. Not thread-safe.
struct RecordCheck {
    std::uint64_t crystals;
    std::uint64_t end;       ///< latest time in the index
    std::uint64_t last = 0;  ///< time of the previous record

    bool good(const gpu::Coincidence& c) {
        const bool in_order = c.time >= std::exchange(last, c.time) && c.time <= end;
        return in_order && c.crystal_a < crystals && c.crystal_b < crystals && c.kind <= gpu::Kind::delayed;
    }
    bool good(const gpu::Single& s) {
        return s.time >= std::exchange(last, s.time) && s.time <= end && s.crystal < crystals;
    }
    bool good(const gpu::Triple& t) {
        return good(t.pair) && t.gamma_crystal < crystals && t.third <= gpu::ThirdPhoton::delayed;
    }
    bool good(const gpu::Tag& t) { return t.time >= std::exchange(last, t.time) && t.time <= end; }
    /// `first`: the number of the first of them. Throws BadInput.
    template <class Record>
    void all(std::span<const Record> records, const std::filesystem::path& file, std::uint64_t first) {
        for (std::size_t i = 0; i < records.size(); ++i) {
            if (good(records[i])) continue;
            throw BadInput(file.string() + ": record " + std::to_string(first + i) +
                           " is out of time order, or has a crystal of " + std::to_string(crystals) +
                           " or above, or is neither prompt nor delayed; petlm verify names the problem");
        }
    }
};

}  // namespace petacq::petlm
