// The seconds of a run. Input: a file, after a byte that says whether checksums are set right (plm.hpp); or
// the list of fields in its header, a NUL, and a record.
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "daemon/seconds/reader.hpp"
#include "daemon/seconds/sums_reader.hpp"
#include "tests/fuzz/base/json_target.hpp"
#include "tests/fuzz/base/plm.hpp"
#include "tools/petlm/records/covered_seconds.hpp"
#include "tools/petlm/records/seconds_check.hpp"

using namespace petacq;
using fuzz::require;

std::string_view fuzz::schema_of_target() {
    return {};
}

namespace {

/// Has the seconds of the seeds (tests/fuzz/seeds.py).
const config::Geometry geometry{3, {1, 1, 1}, {1, 1, 1}, {1, 2, 2}, 3, 1, 4};

void check_text(const daemon::FieldValues& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string text = values.text(i);
        double number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        require(error == std::errc() && end == text.data() + text.size(), "a value is a number");
        require(number == values.number(i) || std::isnan(values.number(i)), "the same as text");
    }
    (void)values.sum();
}

void check_fields(const std::vector<daemon::SecondField>& fields, std::size_t record_bytes) {
    require(fields.size() >= 2 && fields[0].name == "start" && fields[1].name == "length",
            "the first two fields");
    for (const daemon::SecondField& field : fields)
        require(
            field.count > 0 && field.offset <= record_bytes && field.bytes() <= record_bytes - field.offset,
            "a field lies in the record");
}

void read_record(std::string_view text, std::span<const std::uint8_t> bytes) {
    nlohmann::json description;
    try {
        description = config::parse_json(text);
    } catch (const config::Error&) {
        return;
    }
    const std::vector<std::byte> record(std::as_bytes(bytes).begin(), std::as_bytes(bytes).end());
    const auto fields = daemon::fields_of(description, record.size());
    check_fields(fields, record.size());
    for (const daemon::SecondField& field : fields)
        check_text({field, record.data()});
    petlm::SecondsCheck check({{"fields", description}}, record.size());
    (void)check.next(record);
    (void)check.next(record);
}

/// Sums that are read back and written again are the same.
void check_sums(const daemon::SecondsReader& seconds, daemon::SumsReader& reader) {
    static const daemon::SecondRecord record(geometry);
    daemon::Second second = daemon::Second::none(geometry);
    second.sums = reader.read();
    second.range = {seconds.start(), seconds.start() + seconds.length()};
    std::vector<std::byte> written(record.bytes());
    record.write(second, written);
    for (const char* const name :
         {"crystal_unpaired", "crystal_grouped", "crystal_prompts", "crystal_delayeds", "module_pairs",
          "module_dt", "module_peak_energy", "decided", "prompts"}) {
        const daemon::SecondField& read = *seconds.find(name);
        const auto& fields = record.fields();
        const auto field = std::find_if(fields.begin(), fields.end(),
                                        [&](const daemon::SecondField& f) { return f.name == name; });
        const daemon::FieldValues again(*field, written.data());
        for (std::size_t i = 0; i < read.count; ++i)
            require(again.number(i) == seconds.values(read).number(i) ||
                        read.type != field->type,  // an unsigned number where this version has a signed one
                    "sums that are written again are the same");
    }
}

void read_all(const std::filesystem::path& file) {
    daemon::SecondsReader seconds(file);
    const std::size_t record_bytes = seconds.reader().header().record_bytes;
    check_fields(seconds.fields(), record_bytes);
    std::unique_ptr<daemon::SumsReader> sums;
    try {
        sums = std::make_unique<daemon::SumsReader>(seconds, geometry);
    } catch (const std::invalid_argument&) {
        // the seconds of another scanner
    }
    fuzz::accept();
    petlm::SecondsCheck check(seconds.reader().description(), record_bytes);
    for (int i = 0; i < 20 && seconds.next(); ++i) {
        (void)check.next(seconds.record());
        for (const daemon::SecondField& field : seconds.fields())
            check_text(seconds.values(field));
        if (sums) check_sums(seconds, *sums);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryBound bound((std::size_t{64} << 20) + 500 * size);
    try {
        if (size > 0 && data[0] == '[') {
            const auto [text, record] = fuzz::text_and_rest(data, size);
            read_record(text, record);
            return 0;
        }
        const auto bytes = fuzz::listmode_input(data, size);
        const fuzz::MemoryFile file(bytes.data(), bytes.size());
        read_all(file.path());
        petlm::CoveredSeconds seconds(file.path());
        (void)seconds.fields();
        for (int i = 0; i < 20 && seconds.next(); ++i)
            require(seconds.share() >= 0 && seconds.share() <= 1, "a share of a second");
    } catch (const daemon::NotListMode&) {
    } catch (const std::invalid_argument&) {  // fields that cannot be used, or a file that is not complete
    }
    return 0;
}
