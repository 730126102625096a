// The source tracker as a state machine: datagrams of several sources, in any order, at any time of the host.
// Input: a byte (framing, expected ids), then events.
#include <deque>
#include <map>
#include <utility>

#include "daemon/tracking/source_tracker.hpp"
#include "tests/fuzz/base/fuzz.hpp"

using namespace petacq;
using fuzz::require;

namespace {

constexpr std::uint64_t ms = 1'000'000;  // ticks and nanoseconds

daemon::TrackerOptions options_of(unsigned choice) {
    daemon::TrackerOptions options;
    options.framing = (choice & 1) != 0 ? net::Framing::bare : net::Framing::sequenced;
    if ((choice & 3) == 2) options.expected = {0, 1, 2, 3};
    options.max_disorder = 10 * ms;
    options.max_lag = 1000 * ms;
    options.max_jump = 2000 * ms;
    options.source_timeout_ns = static_cast<std::int64_t>(500 * ms);
    options.ticks_per_ns = (choice & 4) != 0 ? 1 : 0;
    options.max_offset = 100;
    options.flush_reach = 5000;
    return options;
}

class Machine {
  public:
    explicit Machine(unsigned choice) : options_(options_of(choice)), tracker_(options_) {}

    void event(fuzz::Input& input) {
        const auto what = input.take<std::uint8_t>();
        now_ += std::int64_t{input.take<std::uint8_t>()} * static_cast<std::int64_t>(ms) / 4;
        switch (what >> 5) {
            case 0:
                return check_watermark();
            case 1:
                now_ += std::int64_t{input.take<std::uint16_t>()} * static_cast<std::int64_t>(ms);
                return;
            case 2:
                if (what % 4 == 0) tracker_.restart_watermark(now_), watermark_ = 0;
                if (what % 8 == 1) check_totals();
                return;
            default:
                return datagram(what, input);
        }
    }
    void decide_oldest() {
        auto& [datagram, verdict] = open_.front();
        tracker_.reconsider(datagram, verdict);
        require(!verdict.open || verdict.refuses_all(), "what stays open stays refused");
        if (verdict.refuses_all()) {
            tracker_.refuse_open(verdict.source);
            ++jumped_;
        }
        open_.pop_front();
    }
    void check_totals() const {
        const daemon::TrackerTotals totals = tracker_.totals();
        const daemon::TrackerStatus status = tracker_.status(now_);
        std::uint64_t datagrams = 0;
        std::uint64_t lost = 0;
        for (const daemon::SourceStatus& source : status.sources) {
            datagrams += source.datagrams;
            lost += source.lost.value_or(0);
        }
        require(totals.accepted == used_ && datagrams == used_, "used datagrams are accepted ones");
        require(totals.jumped_datagrams == jumped_, "datagrams without a believable frame are counted");
        require(totals.lost == lost, "lost numbers of all sources add up");
        require(status.watermark == watermark_, "the status shows the watermark");
    }

  private:
    void datagram(unsigned what, fuzz::Input& input) {
        const auto id = static_cast<std::uint16_t>(input.take<std::uint8_t>() % 8);
        auto& [sequence, time] = sources_[id];
        net::Datagram d;
        d.frames = (what & 1) != 0 ? 0 : 90;
        d.flags = (what & 31) == 31 ? net::flag_end_of_stream : 0;
        switch (what >> 5) {
            case 5:
                time = input.take<std::uint64_t>();
                break;
            case 6:
                sequence = input.take<std::uint64_t>();
                break;
            case 7:
                sequence -= input.take<std::uint8_t>();
                break;
            default:
                time += std::uint64_t{input.take<std::uint8_t>()} * ms / 4;
        }
        const bool bare = options_.framing == net::Framing::bare;
        d.sequence = bare ? 0 : sequence++;
        d.source = bare ? std::uint16_t{0} : id;
        d.address = 0x7F000001;
        d.port = static_cast<std::uint16_t>(10000 + id);
        if (bare && d.frames == 0) d.frames = 1;
        d.timed_frames =
            (what & 8) != 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(d.frames);  // the valid ones
        d.first_bdm = d.last_bdm = static_cast<std::uint16_t>(id % 4);
        if (d.timed_frames > 0) d.first_time = time, d.last_time = time + ((what & 2) != 0 ? ms : 0);
        const daemon::Verdict verdict = tracker_.observe(d, now_);
        if (!verdict.use) return;
        ++used_;
        fuzz::accept();
        if (verdict.open) {
            require(verdict.refuses_all(), "what is open is refused for now");
            open_.emplace_back(d, verdict);
            if (open_.size() > 8) decide_oldest();
        } else if (verdict.refuses_all()) {
            ++jumped_;
        }
    }
    void check_watermark() {
        const std::uint64_t next = tracker_.watermark(now_, 0);
        require(next >= watermark_, "the watermark never decreases");
        watermark_ = next;
        if (tracker_.time().went_back() == daemon::DetectorTime::Back::no) return;
        tracker_.follow_reset(now_);
        watermark_ = tracker_.status(now_).watermark;
    }

    daemon::TrackerOptions options_;
    daemon::SourceTracker tracker_;
    std::map<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>> sources_;  // next number, time
    std::int64_t now_ = 0;
    std::uint64_t watermark_ = 0;
    std::uint64_t used_ = 0;
    std::uint64_t jumped_ = 0;
    std::deque<std::pair<net::Datagram, daemon::Verdict>> open_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    Machine machine(input.take<std::uint8_t>());
    while (!input.empty())
        machine.event(input);
    machine.check_totals();
    return 0;
}
