// The judgement of petctl doctor, of statuses and samples that the test makes.
#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "net/wire.hpp"
#include "tests/support/catch.hpp"
#include "tools/petctl/doctor/diagnosis.hpp"

using namespace petacq::petctl;
using nlohmann::json;
using petacq::config::Framing;
using petacq::test::contains;

namespace {

/// With so many sources of two modules each, of which every one sends.
json status(double uptime_s, Framing framing, int sources) {
    json document = {
        {"uptime_s", uptime_s},
        {"sockets", {{{"address", "127.0.0.1"}, {"port", 4000}}}},
        {"total",
         {{"datagrams", {{"received", 100 * uptime_s}}}, {"frames", {{"received", 1000 * uptime_s}}}}},
        {"common", {{"tick_ps", 1000.0}}},
        {"reception",
         {{"framing", petacq::config::name_of(framing)},
          {"layout", ""},
          {"head_marker", 10},
          {"tail_marker", 5},
          {"tag_marker", 11}}}};
    for (int id = 0; id < sources; ++id) {
        const std::string bdms = std::to_string(2 * id) + "," + std::to_string(2 * id + 1);
        document["sources"].push_back(
            {{"id", id}, {"address", "127.0.0.1:1"}, {"bdms", bdms}, {"last_seen_s", 0}});
        document["reception"]["listed"].push_back({{"id", id}, {"address", ""}, {"bdms", bdms}});
        for (const int bdm : {2 * id, 2 * id + 1})
            document["modules"].push_back({{"bdm", bdm}, {"singles_per_s", 100}, {"peak_keV", 511}});
    }
    return document;
}

petacq::net::Frame frame(double seconds, std::uint8_t bdm) {
    petacq::net::Frame f{};
    f.head_marker = 10;
    f.tail_marker = 5;
    f.bdm = bdm;
    f.time = static_cast<std::uint64_t>(seconds * 1e9);  // ticks of 1 ns
    return f;
}

Sample sample(Framing framing, double arrived_s, int source, int frames) {
    Sample s;
    s.address = "127.0.0.1:" + std::to_string(1 + source);
    s.arrived_s = arrived_s;
    std::size_t at = 0;
    if (framing == Framing::sequenced) {
        at = petacq::net::header_bytes;
        s.head.resize(at);
        petacq::net::DatagramHeader header;
        header.source = static_cast<std::uint16_t>(source);
        petacq::net::encode_header(header, s.head.data(), petacq::net::FrameVersion::one);
    }
    s.head.resize(at + static_cast<std::size_t>(frames) * petacq::net::frame_bytes);
    for (int i = 0; i < frames; ++i, at += petacq::net::frame_bytes)
        petacq::net::encode_frame(frame(arrived_s, static_cast<std::uint8_t>(2 * source)), s.head.data() + at,
                                  petacq::net::FrameVersion::one);
    s.bytes = s.head.size();
    return s;
}

/// With the types of numbers that petctl gets.
json as_sent(const json& document) {
    return json::parse(document.dump());
}

/// The findings about a subject, a line each.
std::string about(const Diagnosis& diagnosis, const std::string& subject) {
    std::string text;
    for (const petacq::daemon::Finding& finding : diagnosis.findings) {
        constexpr std::array words{"good", "note", "warning", "problem"};
        if (finding.subject == subject)
            text +=
                std::string(words.at(static_cast<std::size_t>(finding.level))) + ": " + finding.text + "\n";
    }
    return text;
}

Diagnosis diagnosis_of(const std::set<Sample>& samples, Framing configured, int sources = 1) {
    return diagnose(as_sent(status(10, configured, sources)), as_sent(status(15, configured, sources)),
                    samples);
}

}  // namespace

TEST_CASE("doctor: bare datagrams that seem to come twice") {
    const json before = as_sent(status(10, Framing::bare, 1));
    json after = as_sent(status(15, Framing::bare, 1));
    CHECK_FALSE(contains(about(diagnose(before, after, {}), "loss"), "twice"));
    after["total"]["datagrams"]["duplicates_suspected"] = 250;  // of 500 received
    const std::string loss = about(diagnose(before, after, {}), "loss");
    INFO(loss);
    CHECK(contains(loss, "problem: 50 % of the datagrams seem to have come twice, each one does"));
}

TEST_CASE("doctor: names the senders with too few samples to judge their times", "[doctor]") {
    const auto at = [](double seconds, int source) { return sample(Framing::sequenced, seconds, source, 3); };
    std::set<Sample> samples{at(1, 0), at(1, 1), at(1.25, 1)};
    CHECK(about(diagnosis_of(samples, Framing::sequenced, 2), "times") ==
          "note: too few samples to judge those of source 0, source 1\n");
    samples.insert(at(2, 0));
    CHECK(about(diagnosis_of(samples, Framing::sequenced, 2), "times") ==
          "good: of 1 sender increase, with ticks of 1000 ps by the host's clock\n"
          "note: too few samples to judge those of source 1\n");
    samples.insert(at(2, 1));
    CHECK(about(diagnosis_of(samples, Framing::sequenced, 2), "times") ==
          "good: of 2 senders increase, with ticks of 1000 ps by the host's clock\n");
    CHECK(about(diagnosis_of({}, Framing::sequenced, 2), "times") ==
          "note: not judged, since it is not sure what the samples are\n");
}

TEST_CASE("doctor: a clock is judged as sharply as the samples allow", "[doctor]") {
    const auto late = [](double seconds, double late_s) {  // at the host
        Sample s = sample(Framing::sequenced, seconds, 0, 3);
        s.arrived_s += late_s;
        return s;
    };
    const auto verdict = [](const std::set<Sample>& samples) {
        const std::string text = about(diagnosis_of(samples, Framing::sequenced), "times");
        return text.substr(0, text.find(':'));
    };
    const Sample first = late(1, 0);
    CHECK(verdict({first, late(1.6, 0.05)}) == "good");
    CHECK(verdict({first, late(6, 0.05)}) == "good");
    // By a third, and by 4 %.
    CHECK(verdict({first, late(1.3, 0.1), late(1.6, 0.2)}) == "problem");
    CHECK(verdict({first, late(3.5, 0.1), late(6, 0.2)}) == "problem");
    CHECK(verdict({first, late(1.5, 0.02), late(3.5, 0.1), late(5.5, 0.18), late(6, 0.2)}) == "problem");
    // A tick that is too long by the host's clock, or too short; and a sender that was held up once.
    CHECK(verdict({first, late(3.5, -0.1), late(6, -0.2)}) == "problem");
    CHECK(verdict({first, late(6, 0.2)}) == "note");
    CHECK(verdict({first, late(3.5, 0.03), late(6, 0.2)}) == "note");
    CHECK(verdict({late(1, 0.2), late(3.5, 0), late(6, 0)}) == "note");
    CHECK(verdict({late(1, 0.2), late(1.5, 0), late(3.5, 0), late(6, 0)}) == "note");
}

TEST_CASE("doctor: what a board sent before does not count", "[doctor]") {
    json before = status(10, Framing::sequenced, 1);
    std::set<Sample> samples;
    for (const double seconds : {1, 2, 3}) {
        Sample slow = sample(Framing::sequenced, seconds, 0, 3);
        slow.arrived_s = 2 * seconds;
        std::string head;
        for (const std::byte byte : slow.head)
            head += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
        before["reception"]["samples"].push_back({{"address", slow.address},
                                                  {"bytes", slow.bytes},
                                                  {"head", head},
                                                  {"arrived_s", slow.arrived_s}});
        samples.insert(slow);
    }
    samples.insert(sample(Framing::sequenced, 8, 0, 3));
    samples.insert(sample(Framing::sequenced, 10, 0, 3));
    const json after = status(15, Framing::sequenced, 1);
    CHECK(about(diagnose(as_sent(before), as_sent(after), samples), "times").starts_with("good: "));
}

TEST_CASE("doctor: a few bare frames are not judged", "[doctor]") {
    std::set<Sample> samples{sample(Framing::bare, 1, 200, 4), sample(Framing::bare, 2, 200, 1)};
    Diagnosis diagnosis = diagnosis_of(samples, Framing::bare);
    CHECK(about(diagnosis, "framing") ==
          "note: may be bare, as configured: 5 frames in 2 samples; 16 are needed to be sure: listen longer "
          "(--seconds)\n");
    CHECK(about(diagnosis, "markers") ==
          "note: may be head 10, tail 5, as configured: 5 frames in 2 samples; 16 are needed to be sure: "
          "listen "
          "longer (--seconds)\n");
    CHECK(about(diagnosis, "modules") == "good: singles from all 2 BDMs\n");
    CHECK(about(diagnosis, "times") == "note: not judged, since it is not sure what the samples are\n");
    CHECK_FALSE(petacq::daemon::any_problem(diagnosis.findings));

    diagnosis = diagnosis_of(samples, Framing::sequenced);
    CHECK(about(diagnosis, "framing")
              .starts_with("warning: may be bare, while sequenced is configured: 5 frames in 2 samples; "));
    CHECK(diagnosis.to_write.empty());

    for (const double seconds : {3, 4, 5})
        samples.insert(sample(Framing::bare, seconds, 200, 4));
    diagnosis = diagnosis_of(samples, Framing::bare);
    CHECK(about(diagnosis, "framing") == "good: bare, as configured\n");
    CHECK(about(diagnosis, "markers") == "good: head 10, tail 5, as configured\n");
    CHECK(about(diagnosis, "times") ==
          "good: of 1 sender increase, with ticks of 1000 ps by the host's clock\n");
    diagnosis = diagnosis_of(samples, Framing::sequenced);
    CHECK(about(diagnosis, "framing") ==
          "problem: bare, while sequenced is configured: the datagrams are malformed\n");
    CHECK(diagnosis.to_write.starts_with("In petacqd.json:\n    \"receive\": {\"framing\": \"bare\"}\n"));
}

TEST_CASE("doctor: the markers of a few frames are not judged, even of sequenced datagrams", "[doctor]") {
    Sample odd = sample(Framing::sequenced, 1, 0, 2);
    odd.head[petacq::net::header_bytes] = std::byte{0x50};
    const Diagnosis diagnosis = diagnosis_of({odd}, Framing::sequenced);
    CHECK(about(diagnosis, "framing") == "good: sequenced, as configured\n");
    CHECK(about(diagnosis, "markers").starts_with("note: may be "));
    CHECK(diagnosis.to_write.empty());
}

TEST_CASE("doctor: a silent sender is one that is listed, or was heard earlier", "[doctor]") {
    json after = status(15, Framing::sequenced, 4);
    for (const int silent : {1, 2, 3})
        after["sources"][silent]["last_seen_s"] = 60;
    after["reception"]["listed"].erase(3);
    after["reception"]["listed"].erase(2);
    const Diagnosis diagnosis = diagnose(as_sent(status(10, Framing::sequenced, 4)), as_sent(after), {});
    CHECK(about(diagnosis, "from") ==
          "good: source 0 (127.0.0.1:1)\n"
          "warning: nothing from source 1, which the scanner description lists\n"
          "warning: nothing from source 2, source 3, heard earlier\n");
}

TEST_CASE("doctor: the list of sources is complete, and names what is new or silent", "[doctor]") {
    json before = status(10, Framing::sequenced, 4);
    json after = status(15, Framing::sequenced, 4);
    for (json* document : {&before, &after}) {
        (*document)["sources"][0]["bdms"] = "0";
        (*document)["sources"][3]["bdms"] = "";
        (*document)["unknown_sources"] = {
            {{"id", 9}, {"address", "10.0.0.9:1"}, {"bdms", "8"}, {"last_seen_s", 0}}};
    }
    const Diagnosis diagnosis = diagnose(as_sent(before), as_sent(after), {});
    CHECK(diagnosis.to_write ==
          "In the scanner description (changed: source 9 is new, source 3 is silent, and kept as it is):\n"
          "    \"sources\": [\n"
          "    {\"bdms\":[0,1],\"id\":0},\n"
          "    {\"bdms\":[2,3],\"id\":1},\n"
          "    {\"bdms\":[4,5],\"id\":2},\n"
          "    {\"bdms\":[6,7],\"id\":3},\n"
          "    {\"bdms\":[8],\"id\":9}\n"
          "]\n\n");
}
