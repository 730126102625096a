// Numbers with a fixed count of decimals, for people.
#pragma once

#include <cmath>
#include <string>

namespace petacq::config {

/// The value, or 0 if no digit other than 0 would be shown of it: nobody wants to read "-0.000".
inline double without_minus_zero(double value, int decimals) {
    return std::abs(value) < 0.5 * std::pow(10.0, -decimals) ? 0.0 : value;
}

/// The same for the text of one number, signed or not: "-0.0" becomes "0.0".
inline std::string without_minus_zero(std::string text) {
    if (text.starts_with('-') && text.find_first_of("123456789") == std::string::npos) text.erase(0, 1);
    return text;
}

}  // namespace petacq::config
