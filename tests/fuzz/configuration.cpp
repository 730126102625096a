// The configuration file.
#include "config/configuration.hpp"

#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace petacq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto document = config::parse_json(fuzz::text_of(data, size));
        const auto configuration = config::configuration_from_json(document, "/etc/petacqd");
        const auto again = config::configuration_from_json(config::to_json(configuration), "/elsewhere");
        fuzz::require(config::to_json(again) == config::to_json(configuration),
                      "a configuration that is written out reads back the same");
    } catch (const config::Error&) {
    }
    return 0;
}
