// For which share of a run the data of its boards arrived, from its seconds.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "config/geometry.hpp"
#include "daemon/seconds/second.hpp"

namespace petacq::daemon {

/// Whether a second of a run without a share of a module (NaN) has singles of it.
using HasSingles = std::function<bool(std::size_t module)>;

/// One thread at a time.
///
/// Nobody may have heard of a module yet when its second is written. A module of which a second of the run
/// tells anything had delivered nothing in those that tell nothing and have no singles of it. Of other
/// modules and seconds it is not known what was lost.
class LiveSums {
  public:
    /// `weight`: time, of any unit. `live`: BoardReport::live.
    void add(double weight, std::span<const double> live, const HasSingles& has_singles);
    void add(const Second& second, const config::Geometry& geometry);
    /// Mean over modules that exist and time. Absent: there was none, or it is not known of all.
    [[nodiscard]] std::optional<double> mean() const;
    [[nodiscard]] std::optional<double> of(std::size_t module) const;

  private:
    struct Module {
        double live = 0;       ///< weight times share, where this is known
        bool told = false;     ///< in any second
        bool unknown = false;  ///< a second tells nothing of it, but has singles
        bool exists = true;    ///< in the channel map
    };
    std::vector<Module> modules_;
    double weight_ = 0;
    bool datagrams_unknown_ = false;  ///< some may be missing that no number shows
};

}  // namespace petacq::daemon
