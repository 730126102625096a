// A scanner that turns about its axis, and its angle at any time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace petacq::config {

using Vector3 = std::array<double, 3>;

/// How the position tags of a scanner tell its angle.
struct Rotation {
    std::uint8_t tag_channel = 0;
    double counts_per_turn = 0;  ///< from +x to +y; negative: counts fall
    double count_at_zero = 0;

    /// Radians from +x to +y, from 0 to less than a whole turn.
    [[nodiscard]] double angle(std::int32_t count) const;
    /// The nearest count. `radians`: of any number of turns; they are not taken off.
    [[nodiscard]] double count(double radians) const;
};

/// Turned about the axis, from +x to +y.
Vector3 turned(const Vector3& at, double radians);

/// From 0 to less than a whole turn.
double within_turn(double radians);

/// The angle of a scanner as its tags tell it. Between two tags it changes evenly, by less than half a turn;
/// before the first it is that of the first, after the last that of the last. Not thread-safe while tags are
/// added.
class AngleOverTime {
  public:
    explicit AngleOverTime(const Rotation& rotation) : rotation_(rotation) {}

    /// Tags come in order of time. Of several at one time the last counts from then on, the first until then.
    void add(std::uint64_t time, std::int32_t count);
    /// Forgets what no time from `time` on needs.
    void forget_before(std::uint64_t time);
    [[nodiscard]] bool known() const { return !tags_.empty(); }
    /// Radians; whole turns since the first tag are counted, so that it does not jump. REQUIRES: known().
    [[nodiscard]] double at(std::uint64_t time) const;
    /// The time of the first tag after `time`; the highest time if there is none.
    [[nodiscard]] std::uint64_t next_tag(std::uint64_t time) const;

  private:
    struct Tag {
        std::uint64_t time;
        double radians;
    };
    Rotation rotation_;
    std::vector<Tag> tags_;
};

}  // namespace petacq::config
