// Points and directions.
#pragma once

#include "config/scanner/scanner.hpp"

namespace petacq::geometry {

using config::Vector3;

inline double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

}  // namespace petacq::geometry
