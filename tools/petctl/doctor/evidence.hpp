// What the doctor judges, and the parts of its judgement. Internal to doctor/.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/petctl/doctor/diagnosis.hpp"
#include "tools/petctl/doctor/samples.hpp"

namespace petacq::petctl {

/// Two statuses some seconds apart, and what the samples between them tell. The statuses must outlive it.
struct Evidence {
    Evidence(const nlohmann::json& first, const nlohmann::json& last, const std::set<Sample>& samples);

    const nlohmann::json& before;
    const nlohmann::json& after;
    const Impression seen;

    /// A text of `reception`; "" if it is not there.
    [[nodiscard]] std::string text(const char* key) const;
    /// What a counter of the ledger since the start of the daemon has gained.
    [[nodiscard]] double gained(const char* section, const char* counter) const;
    [[nodiscard]] double seconds() const;
    /// Whether the boards certainly have another framing than is configured.
    [[nodiscard]] bool other_framing() const;
};

/// 0 for what is no number.
double number(const nlohmann::json& value);
/// The array at the end of a path of keys; empty if there is none.
const nlohmann::json& list(const nlohmann::json& document, std::initializer_list<const char*> path);
/// "0, 2, 6 and 20 more"
std::string joined(const std::vector<std::string>& names);
/// "source 3", or the address of one without an id.
std::string sender_name(const SenderName& sender);
/// The entry of the scanner description for this sender; nullptr if there is none.
const nlohmann::json* listed(const Evidence& evidence, const SenderName& name);

// Each adds its findings, and what is to be written into the files.

void judge_kernel(const Evidence& evidence, Diagnosis& diagnosis);
/// Datagrams that the kernel has discarded at a socket for other reasons than a full buffer; the drops of the
/// sockets count these, too.
double discarded_at_socket(const Evidence& evidence);
/// False if nothing arrives: there is nothing more to judge.
bool judge_arrival(const Evidence& evidence, Diagnosis& diagnosis);
// These three return whether the sources of the scanner description are to be written anew.
bool judge_senders(const Evidence& evidence, Diagnosis& diagnosis);
bool judge_format(const Evidence& evidence, Diagnosis& diagnosis);
bool judge_modules(const Evidence& evidence, Diagnosis& diagnosis);
void write_sources(const Evidence& evidence, Diagnosis& diagnosis);
void judge_times(const Evidence& evidence, Diagnosis& diagnosis);
void judge_frames(const Evidence& evidence, Diagnosis& diagnosis);
void judge_energies(const Evidence& evidence, Diagnosis& diagnosis);

}  // namespace petacq::petctl
