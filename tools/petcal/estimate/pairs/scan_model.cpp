#include "tools/petcal/estimate/pairs/scan_model.hpp"

#include <algorithm>
#include <string>

#include "config/base/error.hpp"
#include "tools/normalisation/normalisation.hpp"

namespace petacq::estimate {

GeometricFactors GeometricFactors::even(const config::Geometry& geometry) {
    const auto even = normalisation::Normalisation::even(geometry);
    return {{even.transaxial.begin(), even.transaxial.end()}, {even.axial.begin(), even.axial.end()}};
}

ScanModel::ScanModel(const config::Scanner& scanner, const CylinderScan& scan)
    : geometry_(scanner.geometry), scan_(scan) {
    if (!(scan.radius_mm > 0) || !(scan.length_mm > 0))
        throw config::Error("efficiencies: a cylinder of radius " + std::to_string(scan.radius_mm) +
                            " mm and length " + std::to_string(scan.length_mm) +
                            " mm; expected both above 0");
}

LinePart part_between(double a, double b, double low, double high) {
    if (a == b) return a >= low && a <= high ? LinePart{0, 1} : LinePart{1, 0};
    const double t0 = (low - a) / (b - a);
    const double t1 = (high - a) / (b - a);
    return {std::max(std::min(t0, t1), 0.0), std::min(std::max(t0, t1), 1.0)};
}

}  // namespace petacq::estimate
