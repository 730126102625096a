// The arrays of singles on the device.
#pragma once

#include <cstdint>

#include "gpu/cuda/base/layout.hpp"

namespace petacq::gpu::cuda {

/// Singles as two arrays: the sort key, and crystal << 32 | energy bits. Since energies are not negative, the
/// values have the same order as (crystal, energy).
struct SingleArrays {
    std::uint64_t* time = nullptr;
    std::uint64_t* value = nullptr;

    /// Takes the arrays for `count` singles from a Memory.
    template <class Memory>
    static SingleArrays of(Memory& memory, std::uint64_t count) {
        return {memory.template device<std::uint64_t>(count), memory.template device<std::uint64_t>(count)};
    }
    /// Those from number `first` on.
    [[nodiscard]] PETACQ_HD SingleArrays from(std::uint64_t first) const {
        return {time + first, value + first};
    }
};

/// Where conversion writes to.
struct ConvertOutput {
    SingleArrays ready;      ///< the ready singles at its beginning, the ready gammas at its end
    std::uint64_t room = 0;  ///< in `ready`
    SingleArrays pending;    ///< singles and gammas
    TagCell* tags = nullptr;
};

}  // namespace petacq::gpu::cuda
