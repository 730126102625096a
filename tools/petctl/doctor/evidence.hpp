// What the doctor judges, and the parts of its judgement. Internal to doctor/.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tools/petctl/doctor/diagnosis.hpp"
#include "tools/petctl/doctor/impression.hpp"
#include "tools/petctl/doctor/interfaces.hpp"

namespace petacq::petctl {

/// A share of frames or datagrams that is worth a word.
inline constexpr double much = 0.01;

/// Two statuses some seconds apart, and what the samples between them tell. The statuses must outlive it.
struct Evidence {
    Evidence(const nlohmann::json& first, const nlohmann::json& last, const std::set<Sample>& samples,
             Meanwhile meanwhile);

    const nlohmann::json& before;
    const nlohmann::json& after;
    const Expected expected;
    const Impression seen;
    const ReceivedPackets packets;
    const std::vector<double> lost;

    /// A text of `reception`; "" if it is not there.
    [[nodiscard]] std::string text(const char* key) const;
    /// What a counter of the ledger since the start of the daemon has gained.
    [[nodiscard]] double gained(const char* section, const char* counter) const;
    [[nodiscard]] double seconds() const;
    /// Whether the boards certainly have another framing than is configured, and nothing else is wrong there.
    [[nodiscard]] bool other_framing() const;
};

/// 0 for what is no number.
double number(const nlohmann::json& value);
/// The array at the end of a path of keys; empty if there is none.
const nlohmann::json& list(const nlohmann::json& document, std::initializer_list<const char*> path);
/// "a, b, c"
std::string joined(const std::vector<std::string>& names);
/// "0-5, 7"
std::string ranges(const std::set<unsigned>& numbers);
/// "50 45 54 46"
std::string hexadecimal(std::span<const std::byte> bytes);
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
// These return whether the sources of the scanner description are to be written anew.
bool judge_senders(const Evidence& evidence, Diagnosis& diagnosis);
bool judge_format(const Evidence& evidence, Diagnosis& diagnosis);
/// Those with a shared id are left out.
bool judge_modules(const Evidence& evidence, const std::set<unsigned>& shared, Diagnosis& diagnosis);
/// The ids that several boards send: who sends which modules is not known then.
std::set<unsigned> judge_ids(const Evidence& evidence, Diagnosis& diagnosis);
void write_sources(const Evidence& evidence, Diagnosis& diagnosis);
/// Whether any number says nothing.
bool judge_numbers(const Evidence& evidence, Diagnosis& diagnosis);
/// `explained`: it is known why numbers are far from each other.
void judge_loss(const Evidence& evidence, bool explained, Diagnosis& diagnosis);
void judge_times(const Evidence& evidence, Diagnosis& diagnosis);
void judge_fields(const Evidence& evidence, Diagnosis& diagnosis);
void judge_frames(const Evidence& evidence, Diagnosis& diagnosis);
void judge_energies(const Evidence& evidence, Diagnosis& diagnosis);
/// What the daemon has found that samples do not show.
void judge_health(const Evidence& evidence, Diagnosis& diagnosis);

}  // namespace petacq::petctl
