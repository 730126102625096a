// The Prometheus text exposition format, version 0.0.4, read strictly: what a monitor could stumble over is
// an error here.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace petacq::test {

struct MetricFamily {
    std::string type;
    std::string help;
    /// By the labels, as they are written between the braces.
    std::map<std::string, double> samples;
};

/// Throws std::runtime_error naming the line: names, escapes, a family without HELP and TYPE before its
/// samples, in two places or twice the same sample, values that are no numbers, a counter that is negative.
std::map<std::string, MetricFamily> parse_exposition(const std::string& text);

/// The value of one sample. Throws std::out_of_range when it is not there.
double sample(const std::map<std::string, MetricFamily>& families, const std::string& name,
              const std::string& labels = "");

}  // namespace petacq::test
