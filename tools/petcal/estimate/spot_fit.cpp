#include "tools/petcal/estimate/spot_fit.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "config/median.hpp"
#include "tools/petcal/estimate/grid_warp.hpp"

namespace petacq::petcal {

namespace {

constexpr double support = 1.5;    // pitches to either side, in which a Gaussian is computed
constexpr double scatter = 0.08;   // pitches: of spots around the places that the others predict
constexpr double max_moved = 0.4;  // pitches, from there
// Of the median counts: spots with less take the predicted place, those without a peak of their own sooner.
constexpr double weak = 0.1;
constexpr double weak_without_peak = 0.25;

/// A Gaussian along one direction, normalised to 1, at the positions from `first` on.
struct Profile {
    std::size_t first = 0;
    std::vector<double> values;
};

Profile profile_of(double centre, double sigma, double reach, std::uint32_t size) {
    Profile p;
    const double last = size - 1.0;
    p.first = static_cast<std::size_t>(std::ceil(std::clamp(centre - reach, 0.0, last)));
    const auto end = static_cast<std::size_t>(std::floor(std::clamp(centre + reach, 0.0, last)));
    const double norm = 1 / (sigma * std::sqrt(2 * std::numbers::pi));
    for (std::size_t x = p.first; x <= end; ++x) {
        const double t = (static_cast<double>(x) - centre) / sigma;
        p.values.push_back(norm * std::exp(-t * t / 2));
    }
    return p;
}

/// What one spot got of the counts.
struct SpotShare {
    double counts = 0;
    FloodPoint sum;      ///< of the distances from its centre, weighted with counts
    FloodPoint squares;  ///< of these distances, squared
};

class Mixture {
  public:
    Mixture(const FloodShape& shape, std::span<const std::uint32_t> flood, const CrystalGrid& grid)
        : shape_(shape),
          flood_(flood.begin(), flood.end()),
          grid_(grid),
          usable_(grid.found),
          density_(shape.positions()),
          total_(std::accumulate(flood_.begin(), flood_.end(), 0.0)) {
        fit_.spots = grid.spots;
        fit_.width = {0.25, 0.25};
        fit_.background = 0.05;
        fit_.counts.assign(shape.crystals(), total_ * (1 - fit_.background) / shape.crystals());
    }

    SpotFit run() {
        constexpr int rounds = 32;
        constexpr int between_predictions = 8;
        for (int round = 0; round < rounds; ++round) {
            if (round % between_predictions == 0) predict();
            expect();
            // Neighbours may hide the peak of a spot. First all get their counts at the predicted places.
            maximise(round >= between_predictions);
        }
        fit_.pitch = pitches_of(shape_, fit_.spots, grid_.pitch);
        return fit_;
    }

  private:
    void predict() {
        FloodPoints better = predicted_spots(shape_, fit_.spots, usable_, grid_.pitch);
        predicted_ = better.empty() ? fit_.spots : std::move(better);
        pitch_ = pitches_of(shape_, predicted_, grid_.pitch);
    }

    /// The density of all spots, and the share of each in the counts.
    void expect() {
        const double flat = fit_.background * total_ / static_cast<double>(shape_.positions());
        std::fill(density_.begin(), density_.end(), std::max(flat, 1e-12 * total_));
        profiles_.resize(2 * fit_.spots.size());
        for (std::size_t i = 0; i < fit_.spots.size(); ++i) {
            const FloodPoint& at = fit_.spots[i];
            const FloodPoint& pitch = pitch_[i];
            const Profile& px = profiles_[2 * i] =
                profile_of(at.x, fit_.width.x * pitch.x, support * pitch.x, shape_.size);
            const Profile& py = profiles_[2 * i + 1] =
                profile_of(at.y, fit_.width.y * pitch.y, support * pitch.y, shape_.size);
            for (std::size_t y = 0; y < py.values.size(); ++y) {
                const double weight = fit_.counts[i] * py.values[y];
                double* const line = &density_[px.first + (py.first + y) * shape_.size];
                for (std::size_t x = 0; x < px.values.size(); ++x)
                    line[x] += weight * px.values[x];
            }
        }
        double rest = 0;
        for (std::size_t i = 0; i < density_.size(); ++i) {
            density_[i] = flood_[i] / density_[i];
            rest += density_[i];
        }
        fit_.background = std::min(0.9, flat * rest / total_);
        shares_.resize(fit_.spots.size());
        for (std::size_t i = 0; i < shares_.size(); ++i)
            shares_[i] = share_of(i);
    }

    [[nodiscard]] SpotShare share_of(std::size_t i) const {
        const Profile& px = profiles_[2 * i];
        const Profile& py = profiles_[2 * i + 1];
        SpotShare share;
        for (std::size_t y = 0; y < py.values.size(); ++y) {
            const double* const line = &density_[px.first + (py.first + y) * shape_.size];
            double counts = 0;
            double sum = 0;
            double squares = 0;
            for (std::size_t x = 0; x < px.values.size(); ++x) {
                const double here = line[x] * px.values[x];
                const double dx = static_cast<double>(px.first + x) - fit_.spots[i].x;
                counts += here;
                sum += here * dx;
                squares += here * dx * dx;
            }
            const double weight = fit_.counts[i] * py.values[y];
            const double dy = static_cast<double>(py.first + y) - fit_.spots[i].y;
            share.counts += weight * counts;
            share.sum.x += weight * sum;
            share.sum.y += weight * counts * dy;
            share.squares.x += weight * squares;
            share.squares.y += weight * counts * dy * dy;
        }
        return share;
    }

    void maximise(bool hidden_peaks_move) {
        std::vector<double> all;
        for (const SpotShare& share : shares_)
            all.push_back(share.counts);
        const double median = config::median(std::move(all));
        double counts = 0;
        FloodPoint squares;
        for (std::size_t i = 0; i < shares_.size(); ++i) {
            const SpotShare& share = shares_[i];
            fit_.counts[i] = share.counts;
            if (grid_.found[i] != 0) {
                usable_[i] = static_cast<std::uint8_t>(grid_.known[i] != 0 || share.counts > weak * median);
            } else if (hidden_peaks_move) {
                usable_[i] = static_cast<std::uint8_t>(share.counts > weak_without_peak * median);
            }
            if (grid_.known[i] == 0) {
                move(fit_.spots[i].x, predicted_[i].x, share.sum.x, share.counts, fit_.width.x, pitch_[i].x,
                     i);
                move(fit_.spots[i].y, predicted_[i].y, share.sum.y, share.counts, fit_.width.y, pitch_[i].y,
                     i);
            }
            if (usable_[i] == 0) continue;
            counts += share.counts;
            squares.x += share.squares.x / (pitch_[i].x * pitch_[i].x);
            squares.y += share.squares.y / (pitch_[i].y * pitch_[i].y);
        }
        if (counts <= 0) return;
        const auto width = [&](double sum) { return std::clamp(std::sqrt(sum / counts), 0.03, 0.5); };
        fit_.width = {width(squares.x), width(squares.y)};
    }

    /// The mean of its counts and of the prediction, each weighted with what it says about the place.
    void move(double& place, double predicted, double sum, double counts, double width, double pitch,
              std::size_t i) const {
        if (usable_[i] == 0) {
            place = predicted;
            return;
        }
        const double of_prediction = width * width / (scatter * scatter);
        const double moved = (sum + of_prediction * (predicted - place)) / (counts + of_prediction);
        place = std::clamp(place + moved, predicted - max_moved * pitch, predicted + max_moved * pitch);
    }

    FloodShape shape_;
    std::vector<double> flood_;
    const CrystalGrid& grid_;
    std::vector<std::uint8_t> usable_;  ///< spots that have a place of their own
    std::vector<double> density_;       ///< then counts divided by it
    double total_;
    SpotFit fit_;
    FloodPoints predicted_;
    FloodPoints pitch_;
    std::vector<Profile> profiles_;  ///< along x and y of each spot
    std::vector<SpotShare> shares_;
};

}  // namespace

SpotFit fit_spots(const FloodShape& shape, std::span<const std::uint32_t> flood, const CrystalGrid& grid) {
    return Mixture(shape, flood, grid).run();
}

}  // namespace petacq::petcal
