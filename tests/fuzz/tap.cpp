// The line that a client of the tap sends. The last bits of the length say what kinds of records the runs
// have.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "daemon/tap/request.hpp"
#include "tests/fuzz/base/json_target.hpp"

using namespace petacq;
using fuzz::require;

std::string_view fuzz::schema_of_target() {
    return {};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const daemon::TapSource source{"scanner", 15.625, 12, (size & 1) == 0, (size & 2) == 0, (size & 5) == 0};
    try {
        const auto request = daemon::TapRequest::parse(fuzz::text_of(data, size), source);
        fuzz::accept();
        require(request.prescale >= 1 && request.prescale <= daemon::TapRequest::max_prescale,
                "the prescale");
        require(request.kind == daemon::RecordKind::singles   ? source.singles
                : request.kind == daemon::RecordKind::triples ? source.triples
                                                              : source.coincidences,
                "records that the runs have");
        const std::string answer = daemon::tap_answer(request, source);
        require(answer.find('\n') == std::string::npos && nlohmann::json::parse(answer).is_object(),
                "an answer is one line of JSON");
    } catch (const std::invalid_argument& error) {
        require(fuzz::says_what_was_expected(error.what()), "an error says what was expected");
    }
    return 0;
}
