#include "tools/petsim/simulation/base/activity_curve.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numbers>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace petacq::sim {
namespace {

double share_at(const ActivityCurve& curve, double time_s) {
    if (curve.empty()) return 1;
    const auto after = std::upper_bound(curve.begin(), curve.end(), time_s,
                                        [](double t, const CurvePoint& p) { return t < p.time_s; });
    if (after == curve.begin()) return curve.front().share;
    if (after == curve.end()) return curve.back().share;
    const CurvePoint& a = *(after - 1);
    return a.share + (time_s - a.time_s) / (after->time_s - a.time_s) * (after->share - a.share);
}

/// Of a straight line of the curve, times the decay. `from_s` and `to_s` lie on it.
double integral(const ActivityCurve& curve, double half_life_s, double from_s, double to_s) {
    // Gauss and Legendre with three points: exact to 1e-9 over a quarter of a half-life.
    constexpr std::array place{-0.7745966692414834, 0.0, 0.7745966692414834};
    constexpr std::array weight{5.0 / 18, 8.0 / 18, 5.0 / 18};
    const double quarters = half_life_s > 0 ? std::ceil(4 * (to_s - from_s) / half_life_s) : 1;
    // What is left after a thousand half-lives is nothing.
    const auto pieces = static_cast<int>(std::clamp(quarters, 1.0, 4000.0));
    const double length =
        half_life_s > 0 ? std::min((to_s - from_s) / pieces, half_life_s / 4) : to_s - from_s;
    double sum = 0;
    for (int i = 0; i < pieces; ++i) {
        for (std::size_t k = 0; k < place.size(); ++k) {
            const double t = from_s + length * (i + 0.5 * (1 + place.at(k)));
            const double left = half_life_s > 0 ? std::exp2(-t / half_life_s) : 1;
            sum += length * weight.at(k) * share_at(curve, t) * left;
        }
    }
    return sum;
}

bool read_number(std::string_view text, double& value) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void check_curve(const ActivityCurve& curve) {
    bool any = curve.empty();
    for (std::size_t i = 0; i < curve.size(); ++i) {
        const auto& [time_s, share] = curve[i];
        if (!std::isfinite(time_s) || (i > 0 && time_s <= curve[i - 1].time_s))
            throw std::invalid_argument("point " + std::to_string(i + 1) + " of an activity curve is at " +
                                        std::to_string(time_s) + " s; expected rising times");
        if (!(share >= 0 && share <= 1e9))
            throw std::invalid_argument("point " + std::to_string(i + 1) + " of an activity curve is " +
                                        std::to_string(share) + "; expected 0 to 1e9");
        any = any || share > 0;
    }
    if (!any) throw std::invalid_argument("an activity curve is 0 everywhere; expected some activity");
}

double largest_share(const ActivityCurve& curve) {
    double most = curve.empty() ? 1 : 0;
    for (const CurvePoint& point : curve)
        most = std::max(most, point.share);
    return most;
}

double mean_share(const ActivityCurve& curve, double half_life_s, double from_s, double to_s) {
    if (!(to_s > from_s))
        return share_at(curve, from_s) * (half_life_s > 0 ? std::exp2(-from_s / half_life_s) : 1);
    if (curve.empty()) {
        if (half_life_s <= 0) return 1;
        const double lambda = std::numbers::ln2 / half_life_s;
        return std::exp(-lambda * from_s) * -std::expm1(-lambda * (to_s - from_s)) /
               (lambda * (to_s - from_s));
    }
    double sum = 0;
    double at = from_s;
    for (const CurvePoint& point : curve) {
        if (point.time_s <= at) continue;
        if (point.time_s >= to_s) break;
        sum += integral(curve, half_life_s, at, point.time_s);
        at = point.time_s;
    }
    return (sum + integral(curve, half_life_s, at, to_s)) / (to_s - from_s);
}

ActivityCurve curve_from_csv(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw std::invalid_argument("cannot open " + file);
    ActivityCurve curve;
    std::size_t count = 0;
    for (std::string line; std::getline(in, line);) {
        ++count;
        if (line.empty() || line == "\r") continue;
        const std::size_t comma = line.find(',');
        CurvePoint point;
        if (comma != std::string::npos &&
            read_number(std::string_view(line).substr(0, comma), point.time_s) &&
            read_number(std::string_view(line).substr(comma + 1), point.share)) {
            curve.push_back(point);
        } else if (count > 1) {
            throw std::invalid_argument(file + ": line " + std::to_string(count) +
                                        ": expected a time in s, a comma and a relative activity");
        }
    }
    if (curve.empty())
        throw std::invalid_argument(file + ": expected lines of a time in s and a relative activity");
    return curve;
}

}  // namespace petacq::sim
