// What happened on several hosts, in one list.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

json group_history(const std::vector<HostAnswer>& answers) {
    json hosts = json::object();
    std::vector<json> events;
    for (const HostAnswer& answer : answers) {
        hosts[answer.host] = answer.good() ? answer.result() : json{{"failure", answer.failure}};
        const json& own = at(answer.result(), {"events"});
        if (!own.is_array()) continue;
        for (json event : own) {
            if (!event.is_object()) continue;
            event["host"] = answer.host;
            events.push_back(std::move(event));
        }
    }
    // The daemons write their times alike, so that their texts are in the order of time.
    std::stable_sort(events.begin(), events.end(), [](const json& a, const json& b) {
        return text_of(at(a, {"utc"})) < text_of(at(b, {"utc"}));
    });
    return {{"hosts", std::move(hosts)}, {"events", std::move(events)}};
}

}  // namespace petacq::petctl
