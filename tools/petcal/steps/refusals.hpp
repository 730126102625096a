// What a step of the calibration refuses: units that cannot be derived, and files that cannot be used.
#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "config/base/error.hpp"
#include "config/scanner/geometry.hpp"
#include "daemon/listmode/reader.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petcal {

/// `refused`: by unit, why it cannot be derived; empty: it can. Throws config::Error with the first reasons
/// when there are any; with `partial` only when no unit is left. Prints a warning about those, and returns
/// it; none without any.
std::vector<std::string> check_refusals(const config::Geometry& geometry,
                                        const std::vector<std::string>& refused, bool partial);

/// The result of the step. Throws config::Error for files that are missing or not what they should be.
template <class Step>
auto refusing_bad_files(const Step& step) {
    try {
        return step();
    } catch (const daemon::NotListMode& e) {
        throw config::Error(e.what());
    } catch (const petlm::BadInput& e) {
        throw config::Error(e.what());
    } catch (const std::system_error& e) {
        throw config::Error(e.what());
    }
}

}  // namespace petacq::petcal
