#include "daemon/tracking/time_guard.hpp"

namespace petacq::daemon {

/// Sets the progress from a datagram, one of whose times, `centre`, is believable.
void TimeGuard::anchor(const DatagramTimes& d, std::uint64_t centre) {
    // A time far from the believable one is wild. A single believable frame does not settle the progress.
    const bool both = within(d.first, centre) && within(d.last, centre);
    anchor_ = both ? std::min(d.first, d.last) : centre;
    previous_ = anchor_;
    tentative_ = !both || d.frames == 1;
    anchored_ = true;
    row_ = 0;
}

TimeGuard::Outcome TimeGuard::place(const DatagramTimes& d, std::optional<std::uint64_t> others,
                                    std::uint64_t& reference) {
    if (others) {
        const bool last_fits = within(d.last, *others);
        if (last_fits || within(d.first, *others)) {
            reference = last_fits ? d.last : d.first;
            anchor(d, reference);
            return Outcome::placed;
        }
    } else if (!anchored_) {
        // If the times are far apart, take the smaller: a wild time ahead does more harm.
        reference = within(d.first, d.last) ? d.last : std::min(d.first, d.last);
        anchor(d, reference);
        return Outcome::placed;
    }

    std::uint64_t time = d.last;
    if (row_ > 0 && !within(d.last, row_time_)) {
        if (within(d.first, row_time_)) {
            time = d.first;
        } else {
            row_ = 0;
        }
    }
    const std::uint64_t before = row_ > 0 ? row_time_ : time;
    ++row_;
    row_time_ = time;
    if (row_ < confirmations_) return Outcome::rejected;

    const bool known = settled();
    const std::uint64_t other_end = time == d.last ? d.first : d.last;
    const std::uint64_t low = within(other_end, time) ? std::min(other_end, time) : time;
    anchored_ = true;
    tentative_ = false;
    row_ = 0;
    anchor_ = std::min(before, low);
    previous_ = low;
    reference = time;
    return known ? Outcome::reanchored : Outcome::placed;
}

void TimeGuard::forget() {
    anchored_ = false;
    tentative_ = false;
    anchor_ = 0;
    previous_ = 0;
    row_ = 0;
}

}  // namespace petacq::daemon
