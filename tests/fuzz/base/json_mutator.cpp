// Mutates JSON as JSON: libFuzzer alone changes bytes, and hardly any of the texts that it makes are
// documents. Only in builds with libFuzzer.
#include <array>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/base/json_target.hpp"

using nlohmann::json;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed);

namespace {

/// What a schema says: its keys, and the values that it names.
struct Vocabulary {
    std::vector<std::string> keys;
    std::vector<json> values;

    void learn(const json& schema) {
        if (!schema.is_structured()) return;
        for (const auto& [key, part] : schema.items()) {
            if (key == "properties" && part.is_object())
                for (const auto& [name, property] : part.items())
                    keys.push_back(name);
            if (key == "enum" && part.is_array()) values.insert(values.end(), part.begin(), part.end());
            for (const char* const bound : {"minimum", "maximum", "exclusiveMinimum", "default"})
                if (key == bound) values.push_back(part);
            learn(part);
        }
    }
};

const Vocabulary& vocabulary() {
    static const Vocabulary learnt = [] {
        Vocabulary v;
        if (const auto text = petacq::fuzz::schema_of_target(); !text.empty()) v.learn(json::parse(text));
        return v;
    }();
    return learnt;
}

class Mutation {
  public:
    Mutation(json& document, unsigned seed) : document_(document), random_(seed) {}

    void edit() {
        nodes_.clear();
        collect(document_);
        json& node = any();
        switch (pick(8)) {
            case 0:
                node = json(any());  // a copy: the other may lie within it
                return;
            case 1:
                if (!vocabulary().values.empty()) node = one_of(vocabulary().values);
                return;
            case 2: {
                const std::array<json, 8> others{nullptr, true, json::array(), json::object(),
                                                 0,       -1,   0.5,           ""};
                node = others[pick(others.size())];
                return;
            }
            default:
                change(node);
        }
    }

  private:
    std::size_t pick(std::size_t count) { return random_() % count; }
    template <class T>
    const T& one_of(const std::vector<T>& all) {
        return all[pick(all.size())];
    }
    void collect(json& node) {
        nodes_.push_back(&node);
        if (node.is_structured())
            for (json& part : node)
                collect(part);
    }
    json& any() { return *nodes_[pick(nodes_.size())]; }

    void change(json& node) {
        if (node.is_object()) return change_object(node);
        if (node.is_array()) return change_array(node);
        if (node.is_number()) return change_number(node);
        if (node.is_boolean()) {
            node = !node.get<bool>();
        } else if (node.is_string()) {
            auto text = node.get<std::string>();
            const std::size_t size = text.size();
            text.resize(size + 8);
            text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
            node = text;
        } else {
            node = json(any());
        }
    }
    void change_object(json& node) {
        if (pick(2) == 0 && !node.empty()) {
            node.erase(std::next(node.begin(), static_cast<std::ptrdiff_t>(pick(node.size()))).key());
        } else if (!vocabulary().keys.empty()) {
            node[one_of(vocabulary().keys)] = json(any());
        } else {
            const json other = any();
            if (other.is_object()) node.update(other);
        }
    }
    void change_array(json& node) {
        const auto at = [&] {
            return std::next(node.begin(), static_cast<std::ptrdiff_t>(pick(node.size())));
        };
        const std::size_t what = pick(4);
        if (node.empty() || what == 0) {
            node.push_back(json(any()));
        } else if (what == 1) {
            node.erase(at());
        } else if (what == 2) {
            node.push_back(json(*at()));
        } else {
            std::swap(*at(), *at());
        }
    }
    void change_number(json& node) {
        if (node.is_number_float()) {
            const double value = node.get<double>();
            const std::array<double, 9> others{value * 2, value / 2, -value,
                                               value + 1, value - 1, value * 1.001,
                                               1e308,     1e-300,    18446744073709551616.0};
            node = others[pick(others.size())];
            return;
        }
        const auto value = node.get<std::uint64_t>();
        const std::array<json, 16> others{value + 1,
                                          value - 1,
                                          value * 2,
                                          value / 2,
                                          0,
                                          1,
                                          -1,
                                          pick(20),
                                          pick(1000),
                                          65535,
                                          65536,
                                          4294967295U,
                                          4294967296ULL,
                                          UINT64_MAX,
                                          INT64_MIN,
                                          static_cast<double>(value) + 0.5};
        node = others[pick(others.size())];
    }

    json& document_;
    std::mt19937 random_;
    std::vector<json*> nodes_;
};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
    const auto [text, rest] = petacq::fuzz::text_and_rest(data, size);
    json document = json::parse(text, nullptr, false);
    if (seed % 16 == 0 || document.is_discarded()) return LLVMFuzzerMutate(data, size, most);
    std::string bytes(reinterpret_cast<const char*>(rest.data()), rest.size());
    if (seed % 4 == 1 && !bytes.empty()) {  // what follows the document
        const std::size_t before = bytes.size();
        bytes.resize(before + 64);
        bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), before, bytes.size()));
    } else {
        Mutation mutation(document, seed);
        for (unsigned edits = 1 + seed / 16 % 4; edits > 0; --edits)
            mutation.edit();
    }
    std::string out = document.dump(-1, ' ', false, json::error_handler_t::replace);
    if (!bytes.empty()) out += '\0' + bytes;
    if (out.size() > most) return LLVMFuzzerMutate(data, size, most);
    std::memcpy(data, out.data(), out.size());
    return out.size();
}
