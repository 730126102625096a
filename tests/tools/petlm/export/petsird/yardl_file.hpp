// A slow reader of the binary files of yardl, by the schema that each begins with. It shares no code with
// what petlm writes.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace petacq::test {

/// Reads a file as JSON: records are objects, enums their words, members of unions {"tag", "value"}, what is
/// optional null or its value. Arrays are lists of lists where their sizes are in the file, otherwise lists
/// of all numbers. Throws std::runtime_error, for what remains at the end, too.
class YardlFile {
  public:
    explicit YardlFile(std::string bytes) : bytes_(std::move(bytes)) {
        if (take(5) != "yardl") fail("expected the word yardl");
        if (raw<std::uint32_t>() != 1) fail("expected version 1 of the coding");
        schema_ = nlohmann::json::parse(text());
        for (const auto& type : schema_.at("types"))
            types_["PETSIRD." + type.at("name").get<std::string>()] = type;
        for (const auto& step : schema_.at("protocol").at("sequence"))
            steps_[step.at("name")] = value_of(step.at("type"));
        if (at_ != bytes_.size()) fail("expected the end");
    }
    [[nodiscard]] const nlohmann::json& schema() const { return schema_; }
    [[nodiscard]] const nlohmann::json& step(const std::string& name) const { return steps_.at(name); }

  private:
    using Json = nlohmann::json;

    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error(what + " at byte " + std::to_string(at_));
    }
    std::string take(std::size_t count) {
        if (count > bytes_.size() - at_) fail("expected " + std::to_string(count) + " bytes");
        return bytes_.substr(std::exchange(at_, at_ + count), count);
    }
    template <class Value>
    Value raw() {
        Value value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }
    std::uint64_t number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = static_cast<std::uint8_t>(take(1)[0]);
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80U) return value;
        }
    }
    std::int64_t integer() {
        const std::uint64_t coded = number();
        return static_cast<std::int64_t>(coded >> 1U) * (coded % 2 == 0 ? 1 : -1) - (coded % 2 == 0 ? 0 : 1);
    }
    std::string text() { return take(number()); }
    bool flag() {
        const char byte = take(1)[0];
        if (byte != 0 && byte != 1) fail("expected 0 or 1");
        return byte == 1;
    }

    Json primitive(const std::string& name) {
        if (name == "bool") return flag();
        if (name == "string") return text();
        if (name == "float32") return static_cast<double>(raw<float>());
        if (name == "uint32" || name == "uint64") return number();
        if (name == "int32" || name == "int64" || name == "datetime") return integer();
        fail("no type " + name);
    }

    /// A type with the parameters of its generic replaced.
    static Json bound(const Json& type, const std::map<std::string, Json>& parameters) {
        if (type.is_string()) {
            const auto found = parameters.find(type);
            return found == parameters.end() ? type : found->second;
        }
        if (!type.is_structured()) return type;
        Json out = type;
        for (auto& [key, part] : out.items())
            if (type.is_array() || key == "items" || key == "vector" || key == "array" || key == "type" ||
                key == "typeArguments")
                part = bound(part, parameters);
        return out;
    }
    Json value_of(const Json& type) {
        if (type.is_string()) return types_.contains(type) ? named(type, {}) : primitive(type);
        if (type.is_array()) return of_union(type);
        if (type.contains("name")) return named(type.at("name"), type.at("typeArguments"));
        if (type.contains("vector")) return vector(type.at("vector"));
        if (type.contains("array")) return array(type.at("array"));
        return stream(type.at("stream"));
    }
    Json named(const std::string& name, const Json& arguments) {
        const Json& type = types_.at(name);
        std::map<std::string, Json> parameters;
        if (type.contains("typeParameters"))
            for (std::size_t k = 0; k < type["typeParameters"].size(); ++k)
                parameters[type["typeParameters"][k]] = arguments.at(k);
        if (type.contains("values")) return word(type["values"]);
        if (!type.contains("fields")) return value_of(bound(type.at("type"), parameters));
        Json out = Json::object();
        for (const Json& field : type["fields"])
            out[field.at("name")] = value_of(bound(field.at("type"), parameters));
        return out;
    }
    Json word(const Json& words) {
        const std::int64_t value = integer();
        for (const Json& of : words)
            if (of.at("value") == value) return of.at("symbol");
        fail("no word for " + std::to_string(value));
    }
    Json of_union(const Json& kinds) {
        const std::uint64_t kind = number();
        if (kind >= kinds.size()) fail("no member " + std::to_string(kind) + " of a union");
        const Json& of = kinds[kind];
        if (of.is_null()) return {};
        if (of.is_object() && of.contains("tag"))
            return {{"tag", of["tag"]}, {"value", value_of(of.at("type"))}};
        return value_of(of);
    }
    Json items(const Json& type, std::uint64_t count) {
        Json out = Json::array();
        for (std::uint64_t k = 0; k < count; ++k)
            out.push_back(value_of(type));
        return out;
    }
    Json vector(const Json& type) {
        return items(type.at("items"),
                     type.contains("length") ? type["length"].get<std::uint64_t>() : number());
    }
    Json array(const Json& type) {
        std::vector<std::uint64_t> sizes;
        std::uint64_t fixed = 1;
        const Json dimensions = type.value("dimensions", Json());
        if (dimensions.is_array() && dimensions[0].contains("length")) {
            for (const Json& dimension : dimensions)
                fixed *= dimension["length"].get<std::uint64_t>();
            return items(type.at("items"), fixed);
        }
        const std::uint64_t count = dimensions.is_null()     ? number()
                                    : dimensions.is_number() ? dimensions.get<std::uint64_t>()
                                                             : dimensions.size();
        for (std::uint64_t k = 0; k < count; ++k)
            sizes.push_back(number());
        return nested(type.at("items"), sizes, 0);
    }
    Json nested(const Json& type, const std::vector<std::uint64_t>& sizes, std::size_t level) {
        if (level + 1 >= sizes.size()) return items(type, sizes.empty() ? 0 : sizes.back());
        Json out = Json::array();
        for (std::uint64_t k = 0; k < sizes[level]; ++k)
            out.push_back(nested(type, sizes, level + 1));
        return out;
    }
    Json stream(const Json& type) {
        Json out = Json::array();
        while (const std::uint64_t count = number())
            for (Json& item : items(type.at("items"), count))
                out.push_back(std::move(item));
        return out;
    }

    std::string bytes_;
    std::size_t at_ = 0;
    Json schema_;
    std::map<std::string, Json> types_;
    std::map<std::string, Json> steps_;
};

}  // namespace petacq::test
