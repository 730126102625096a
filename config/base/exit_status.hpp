// Exit statuses of all programs: 0, 1, and those of sysexits.h.
#pragma once

#include <sysexits.h>

namespace petacq::exit_status {

enum Value : int {
    ok = EX_OK,
    has_problems = 1,  ///< what was asked for is refused, incomplete, damaged or different
    usage = EX_USAGE,
    bad_data = EX_DATAERR,         ///< the input is of another kind, or judged bad
    unavailable = EX_UNAVAILABLE,  ///< no daemon answers
    internal_failure = EX_SOFTWARE,
    io_failure = EX_IOERR,
    bad_configuration = EX_CONFIG  ///< also a bad scanner or calibration
};

}  // namespace petacq::exit_status
