// The configuration file.
#include "config/configuration.hpp"

#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/schemas.hpp"
#include "tests/fuzz/base/json_target.hpp"

using namespace petacq;

std::string_view fuzz::schema_of_target() {
    return config::petacqd_schema_text();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto document = config::parse_json(fuzz::text_of(data, size));
        const auto configuration = config::configuration_from_json(document, "/etc/petacqd");
        fuzz::accept();
        const auto again = config::configuration_from_json(config::to_json(configuration), "/elsewhere");
        fuzz::require(config::to_json(again) == config::to_json(configuration),
                      "a configuration that is written out reads back the same");
    } catch (const config::Error&) {
    }
    return 0;
}
