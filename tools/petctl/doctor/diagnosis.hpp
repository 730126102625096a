// What the daemon says about the boards, in words, and what to write into the files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "daemon/preflight/finding.hpp"
#include "tools/petctl/doctor/interfaces.hpp"
#include "tools/petctl/doctor/sample.hpp"

namespace petacq::petctl {

struct Diagnosis {
    daemon::Findings findings;
    /// Pieces of petacqd.json and of the scanner description, with a line in front that says where they
    /// belong; "" if nothing is to be changed.
    std::string to_write;

    void add(daemon::Level level, const char* subject, const std::string& text, const std::string& fix = "");
    /// `where`: the file, with a remark if need be.
    void write(const std::string& where, const std::string& piece);
};

/// What was seen between two statuses, besides samples.
struct Meanwhile {
    ReceivedPackets packets;   ///< at the interfaces of this host; empty: unknown
    std::vector<double> lost;  ///< datagrams, from each status to the next
};

/// Of two statuses some seconds apart, and the samples of those in between.
Diagnosis diagnose(const nlohmann::json& before, const nlohmann::json& after, const std::set<Sample>& samples,
                   Meanwhile meanwhile = {});

}  // namespace petacq::petctl
