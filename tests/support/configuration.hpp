// A configuration for tests that read no files.
#pragma once

#include <nlohmann/json.hpp>

#include "config/configuration.hpp"

namespace petacq::test {

/// The required keys and the defaults of the schema, changed by the JSON merge patch.
inline config::Configuration configuration_with(const nlohmann::json& patch = nlohmann::json::object()) {
    nlohmann::json document = {{"scanner", "s"},
                               {"calibration", "c"},
                               {"data_dir", "/data"},
                               {"receive", {{"sockets", {{{"port", 9601}}}}}},
                               {"coincidence", {{"window_ticks", 100}, {"delay_ticks", 1000}}}};
    document.merge_patch(patch);
    return config::configuration_from_json(document, "/etc");
}

}  // namespace petacq::test
