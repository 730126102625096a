#include "daemon/seconds/reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace petacq::daemon {

namespace {

/// Calls use() with the number at `from`.
template <class Use>
auto with_number(FieldType type, const std::byte* from, Use use) {
    const auto read = [&](auto number) {
        std::memcpy(&number, from, sizeof number);
        return use(number);
    };
    switch (type) {
        case FieldType::u32:
            return read(std::uint32_t{});
        case FieldType::u64:
            return read(std::uint64_t{});
        case FieldType::i64:
            return read(std::int64_t{});
        case FieldType::f64:
            break;
    }
    return read(double{});
}

}  // namespace

std::string FieldValues::text(std::size_t i) const {
    return with_number(type_, at_ + i * bytes_of(type_), [](auto number) {
        char digits[32];
        const auto end = std::to_chars(std::begin(digits), std::end(digits), number);
        return std::string(std::begin(digits), end.ptr);
    });
}

double FieldValues::number(std::size_t i) const {
    return with_number(type_, at_ + i * bytes_of(type_),
                       [](auto number) { return static_cast<double>(number); });
}

std::uint64_t FieldValues::whole(std::size_t i) const {
    std::uint64_t number = 0;
    std::memcpy(&number, at_ + i * sizeof number, sizeof number);
    return number;
}

double FieldValues::sum() const {
    double all = 0;
    for (std::size_t i = 0; i < count_; ++i)
        all += number(i);
    return all;
}

SecondsReader::SecondsReader(const std::filesystem::path& path) : reader_(path) {
    if (reader_.kind() != RecordKind::seconds)
        throw NotListMode(path.string() + ": holds " + name_of(reader_.kind()) + ", expected seconds");
    try {
        fields_ = fields_of(reader_.description().at("fields"), reader_.header().record_bytes);
    } catch (const std::invalid_argument& error) {
        throw NotListMode(path.string() + ": " + error.what());
    } catch (const nlohmann::json::exception&) {
        throw NotListMode(path.string() + ": its header does not describe the fields of a second");
    }
}

const SecondField* SecondsReader::find(const std::string& name) const {
    const auto found =
        std::find_if(fields_.begin(), fields_.end(), [&](const SecondField& f) { return f.name == name; });
    return found == fields_.end() ? nullptr : &*found;
}

bool SecondsReader::next() {
    while (left_.empty()) {
        if (!reader_.next()) return false;
        left_ = reader_.payload();
    }
    record_ = left_.first(reader_.header().record_bytes);
    left_ = left_.subspan(record_.size());
    return true;
}

}  // namespace petacq::daemon
