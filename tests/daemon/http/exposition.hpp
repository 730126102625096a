// A strict parser of the Prometheus text exposition format, version 0.0.4.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace petacq::test {

struct MetricFamily {
    std::string type;
    std::string help;
    /// Indexed by the text between the braces.
    std::map<std::string, double> samples;
};

/// Throws std::runtime_error naming the line for bad names and escapes, a family without HELP and TYPE before
/// its samples or in two places, repeated samples, values that are not numbers, and negative counters.
std::map<std::string, MetricFamily> parse_exposition(const std::string& text);

/// The value of one sample. Throws std::out_of_range when it is not there.
double sample(const std::map<std::string, MetricFamily>& families, const std::string& name,
              const std::string& labels = "");

}  // namespace petacq::test
