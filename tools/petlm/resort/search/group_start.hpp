// Where singles can be divided without dividing a coincidence window.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace petacq::petlm {

/// Window modes "single" and "single_opener": the singles at or after the returned time form the same groups
/// with and without those before it. It is the first such time that is not before `boundary`: a window that
/// is open there ends first. Absent if the singles do not tell.
///
/// They tell if some single opens a window whatever lies before `from`. After a gap longer than the window,
/// one does. Without gaps, singles that may open windows are followed until one is left: what opens after two
/// of them can become the same and then stays the same. Random times tell soon, periodic ones may never do
/// so.
///
/// `times`: of all singles in [from, boundary), in order. `opens`: the first of them opens a window. Without
/// it, singles before `from` are unknown.
std::optional<std::uint64_t> group_start(std::span<const std::uint64_t> times, std::uint64_t from, bool opens,
                                         std::uint64_t boundary, std::uint64_t window);

}  // namespace petacq::petlm
