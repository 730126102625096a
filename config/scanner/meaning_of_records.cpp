#include "config/scanner/meaning_of_records.hpp"

#include <nlohmann/json.hpp>

#include "config/scanner/scanner.hpp"

namespace petacq::config {

nlohmann::json meaning_of_records(const Scanner& scanner) {
    nlohmann::json description = to_json(scanner);
    for (const char* key : {"name", "sources", "frame_version"})
        description.erase(key);
    return description;
}

}  // namespace petacq::config
