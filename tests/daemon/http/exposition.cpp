#include "tests/daemon/http/exposition.hpp"

#include <cmath>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

namespace petacq::test {

namespace {

const std::regex metric_name("[a-zA-Z_:][a-zA-Z0-9_:]*");

[[noreturn]] void fail(const std::string& line, const std::string& why) {
    throw std::runtime_error(why + ": " + line);
}

/// Checks `a="b",c="d"`.
void check_labels(const std::string& labels, const std::string& line) {
    static const std::regex label(R"RE(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)")RE");
    std::set<std::string> names;
    std::string rest = labels;
    std::smatch match;
    while (true) {
        if (!std::regex_search(rest, match, label, std::regex_constants::match_continuous))
            fail(line, "labels");
        if (match[1].str().rfind("__", 0) == 0) fail(line, "a reserved label");
        if (!names.insert(match[1]).second) fail(line, "a label twice");
        rest = match.suffix();
        if (rest.empty()) return;
        if (rest.front() != ',') fail(line, "labels");
        rest.erase(0, 1);
    }
}

}  // namespace

std::map<std::string, MetricFamily> parse_exposition(const std::string& text) {
    std::map<std::string, MetricFamily> families;
    if (!text.empty() && text.back() != '\n') throw std::runtime_error("the last line does not end");
    std::string current;  // the family that samples may belong to
    std::string helped;   // announced by HELP, waiting for TYPE
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        static const std::regex help("# HELP ([^ ]+) (.+)");
        static const std::regex type("# TYPE ([^ ]+) (counter|gauge|summary|histogram|untyped)");
        static const std::regex sample_line(R"RE(([^ {]+)(?:\{(.*)\})? ([^ ]+))RE");
        if (std::regex_match(line, match, help)) {
            helped = match[1];
            if (!std::regex_match(helped, metric_name)) fail(line, "name");
            if (!families.emplace(helped, MetricFamily{"", match[2], {}}).second)
                fail(line, "a family twice");
            if (match[2].str().back() != '.') fail(line, "help is a sentence");
        } else if (std::regex_match(line, match, type)) {
            if (match[1] != helped) fail(line, "TYPE without its HELP before");
            current = helped;
            helped.clear();
            families[current].type = match[2];
            const bool total = current.size() > 6 && current.substr(current.size() - 6) == "_total";
            if (total != (match[2] == "counter")) fail(line, "counters, and they only, end in _total");
        } else if (std::regex_match(line, match, sample_line)) {
            if (match[1] != current || !helped.empty()) fail(line, "a sample outside its family");
            if (match[2].matched) check_labels(match[2], line);
            std::size_t used = 0;
            const double value = std::stod(match[3], &used);
            if (used != match[3].str().size() || std::isnan(value)) fail(line, "value");
            if (families[current].type == "counter" && value < 0) fail(line, "a negative counter");
            if (!families[current].samples.emplace(match[2].str(), value).second)
                fail(line, "a sample twice");
        } else {
            fail(line, "what is this");
        }
    }
    if (!helped.empty()) throw std::runtime_error("HELP at the end");
    for (const auto& [name, family] : families) {
        if (family.samples.empty()) throw std::runtime_error("a family without samples: " + name);
    }
    return families;
}

double sample(const std::map<std::string, MetricFamily>& families, const std::string& name,
              const std::string& labels) {
    return families.at(name).samples.at(labels);
}

}  // namespace petacq::test
