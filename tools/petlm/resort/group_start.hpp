// Where singles can be divided without dividing a coincidence window.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace petacq::petlm {

/// Window mode "single": the singles at or after the returned time form the same groups with and without
/// those before it. It is the first such time that is not before `boundary`: a window that is open there ends
/// first. Absent if the singles do not tell, since none of them is `window` away from the one before it.
///
/// `times`: of all singles in [from, boundary), in order. `opens`: the first of them opens a window. Without
/// it, singles before `from` are unknown.
std::optional<std::uint64_t> group_start(std::span<const std::uint64_t> times, std::uint64_t from, bool opens,
                                         std::uint64_t boundary, std::uint64_t window);

}  // namespace petacq::petlm
