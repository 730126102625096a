#include "tools/petctl/doctor/sample.hpp"

#include <nlohmann/json.hpp>

#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

std::vector<std::byte> bytes_of(const json& hexadecimal) {
    std::vector<std::byte> bytes;
    if (!hexadecimal.is_string()) return bytes;
    const auto& text = hexadecimal.get_ref<const std::string&>();
    const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10) & 0xF; };
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(digit(text[i]) << 4 | digit(text[i + 1])));
    return bytes;
}

}  // namespace

void add_samples(const json& status, std::set<Sample>& samples) {
    const json& found = at(status, {"reception", "samples"});
    if (!found.is_array()) return;
    for (const json& one : found) {
        const json& bytes = at(one, {"bytes"});
        const json& head = at(one, {"head"});
        const json& address = at(one, {"address"});
        const json& arrived = at(one, {"arrived_s"});
        if (!bytes.is_number_unsigned() || !head.is_string() || !address.is_string() || !arrived.is_number())
            continue;
        Sample sample{address,
                      bytes.get<std::size_t>(),
                      bytes_of(head),
                      arrived.get<double>(),
                      bytes_of(at(one, {"next"})),
                      bytes_of(at(one, {"translated"}))};
        samples.erase(sample);
        samples.insert(std::move(sample));
    }
}

}  // namespace petacq::petctl
