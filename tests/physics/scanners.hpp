// Descriptions of scanners of LYSO that the physics tests share.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace petacq::test {

/// 15 mm of LYSO; 2880 crystals.
nlohmann::json ten_modules();
/// 2880 crystals of a size of their own.
nlohmann::json twelve_modules(double crystal_length_mm);

}  // namespace petacq::test
