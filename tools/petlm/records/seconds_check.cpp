#include "tools/petlm/records/seconds_check.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/seconds/reader.hpp"

namespace petacq::petlm {

namespace {

const daemon::SecondField* find(const std::vector<daemon::SecondField>& fields, const char* name) {
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [&](const daemon::SecondField& f) { return f.name == name; });
    return found == fields.end() ? nullptr : &*found;
}

}  // namespace

SecondsCheck::SecondsCheck(const nlohmann::json& description, std::size_t record_bytes)
    : fields_(daemon::fields_of(description.value("fields", nlohmann::json()), record_bytes)) {}

/// 0 without such a field.
std::uint64_t SecondsCheck::number(const std::byte* record, const char* name) const {
    const daemon::SecondField* const field = find(fields_, name);
    return field == nullptr || field->type != daemon::FieldType::u64
               ? 0
               : daemon::FieldValues(*field, record).whole();
}

double SecondsCheck::sum(const std::byte* record, const char* name) const {
    const daemon::SecondField* const field = find(fields_, name);
    return field == nullptr ? 0 : daemon::FieldValues(*field, record).sum();
}

std::string SecondsCheck::next(std::span<const std::byte> record) {
    const std::byte* const at = record.data();
    const std::uint64_t start = number(at, "start");
    const std::uint64_t length = number(at, "length");
    const std::uint64_t prompts = number(at, "prompts");
    const std::uint64_t delayeds = number(at, "delayeds");
    const bool overlaps = start < last_.end;
    last_ = {start, start + length};
    ++totals_.seconds;
    totals_.prompts += prompts;
    totals_.delayeds += delayeds;

    if (length == 0 || last_.end < start) return "has no length";
    if (overlaps) return "starts before the one before has ended";
    const auto differs = [&](const char* crystals, std::uint64_t expected) {
        return find(fields_, crystals) != nullptr && sum(at, crystals) != static_cast<double>(expected);
    };
    if (differs("crystal_unpaired", number(at, "unpaired")))
        return "has other unpaired singles than its crystals";
    if (differs("crystal_prompts", 2 * prompts)) return "has other prompts than its crystals";
    if (differs("crystal_delayeds", 2 * delayeds)) return "has other delayeds than its crystals";
    if (differs("module_pairs", prompts)) return "has other prompts than its pairs of BDMs";
    return "";
}

}  // namespace petacq::petlm
