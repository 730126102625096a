#include "tools/petbench/live/frames.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include "net/wire.hpp"
#include "tools/petbench/base/captured.hpp"
#include "tools/petsim/simulation/simulation.hpp"

namespace petacq::bench {

namespace {

class BySource {
  public:
    void add(std::uint16_t source, std::span<const std::byte> frames) {
        std::vector<std::byte>& all = sources_[source];
        all.insert(all.end(), frames.begin(), frames.end());
    }
    std::vector<SourceFrames> take() {
        std::vector<SourceFrames> list;
        for (auto& [source, frames] : sources_)
            list.push_back({source, std::move(frames)});
        return list;
    }

  private:
    std::map<std::uint16_t, std::vector<std::byte>> sources_;
};

}  // namespace

std::vector<SourceFrames> simulated_frames(const config::Scanner& scanner,
                                           const config::Calibration& calibration, const SimulatedFrames& o) {
    sim::Options options;
    options.duration_s = static_cast<double>(o.frames) / o.detector_rate;
    options.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
    options.physics.efficiency = o.efficiency;
    options.wire.heartbeat_ms = 0;
    options.wire.end_of_stream = false;
    sim::ActivitySource cylinder;
    cylinder.shape = sim::Shape::cylinder;
    cylinder.radius_mm = scanner.dimensions.ring_radius_mm / 3;
    cylinder.length_mm = scanner.dimensions.ring_radius_mm;
    cylinder.activity_mbq = 1;
    options.activity = {cylinder};
    sim::check(options, scanner);
    options.activity_scale = sim::scale_for_rate(scanner, calibration, options, o.detector_rate);
    BySource sources;
    sim::Simulation simulation(scanner, calibration, options);
    simulation.run([&](const sim::Datagram& datagram) {
        net::DatagramHeader header;
        if (net::parse_datagram(net::Framing::sequenced, scanner.frame_version, datagram.bytes.data(),
                                datagram.bytes.size(), header) == net::Malformed::none) {
            sources.add(header.source, datagram.bytes.subspan(net::header_bytes));
        }
    });
    return sources.take();
}

std::vector<SourceFrames> captured_frames(const std::string& capture, net::FrameVersion version) {
    BySource sources;
    for_each_captured(capture, version,
                      [&](const net::DatagramHeader& header, std::span<const std::byte> frames) {
                          for (; !frames.empty(); frames = frames.subspan(net::frame_bytes)) {
                              const net::FrameCheck usual{.version = version};
                              if (usual.has_markers(frames.data()))
                                  sources.add(header.source, frames.first(net::frame_bytes));
                          }
                      });
    std::vector<SourceFrames> list = sources.take();
    if (list.empty()) throw std::invalid_argument(capture + ": no frames of sequenced framing");
    return list;
}

}  // namespace petacq::bench
