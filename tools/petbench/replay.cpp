// Suite "replay": petacqd --replay of a cached capture against the pipeline on the same frames.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/configuration.hpp"
#include "daemon/backend/backend.hpp"
#include "daemon/replay.hpp"
#include "net/wire.hpp"
#include "tools/petbench/base/captured.hpp"
#include "tools/petbench/base/frames.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/scratch_directory.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petbench/pipeline/pass.hpp"

namespace petacq::bench {
namespace {

/// The frames of a capture, a span for each datagram. Each watermark stays `margin` ticks below every frame
/// that follows it.
Stream frames_of(const std::string& capture, net::FrameVersion version, std::uint64_t margin) {
    Stream stream;
    std::vector<std::size_t> offsets;
    for_each_captured(capture, version, [&](const net::DatagramHeader&, std::span<const std::byte> frames) {
        offsets.push_back(stream.bytes.size());
        stream.bytes.insert(stream.bytes.end(), frames.begin(), frames.end());
    });
    offsets.push_back(stream.bytes.size());
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        gpu::FrameSpan span;
        span.frames = stream.bytes.data() + offsets[i];
        span.count = static_cast<std::uint32_t>((offsets[i + 1] - offsets[i]) / net::frame_bytes);
        stream.spans.push_back(span);
    }
    stream.watermarks.resize(stream.spans.size());
    std::uint64_t low = UINT64_MAX;
    for (std::size_t i = stream.spans.size(); i-- > 0;) {
        stream.watermarks[i] = low == UINT64_MAX ? low : low - std::min(low, margin);
        for (std::uint32_t f = 0; f < stream.spans[i].count; ++f)
            low = std::min(low, net::frame_time(stream.spans[i].frames + f * net::frame_bytes));
    }
    return stream;
}

}  // namespace

void run(const ReplaySuite& suite) {
    daemon::Inputs inputs = daemon::load_inputs(suite.configuration);
    const ScratchDirectory scratch(suite.directory, "replay");
    std::uint64_t margin = 0;
    for (const std::int32_t offset : inputs.calibration.time_offset)
        margin = std::max(margin, static_cast<std::uint64_t>(std::abs(std::int64_t{offset})));
    const Stream stream = frames_of(suite.capture, inputs.scanner.frame_version, margin);
    const std::vector<gpu::Slice> slices =
        cut(stream.spans, stream.watermarks, inputs.configuration.pipeline.slice_frames);
    const double frames =
        static_cast<double>(stream.bytes.size()) / static_cast<double>(net::frame_bytes) / 1e6;
    const daemon::Backend backend =
        daemon::make_backend(inputs.configuration, inputs.scanner, inputs.calibration, 1);
    std::printf("%.1f million frames, %s; capture in the page cache; rounds interleaved\n", frames,
                backend.pipeline->description().c_str());
    std::vector<Candidate> candidates = {{"pipeline, frames in memory"}, {"petacqd --replay, run on disk"}};
    std::uint64_t prompts = 0;
    for (int round = 0; round < suite.rounds; ++round) {
        candidates[0].measure([&] { prompts = run_pass(slices, *backend.pipeline).singles.prompts; });
        inputs.configuration.data_dir = scratch.path() / std::to_string(round);
        std::filesystem::create_directory(inputs.configuration.data_dir);
        daemon::ReplayOptions options;
        options.files = {suite.capture};
        options.whole = true;
        options.id = "replay";
        int status = 0;
        candidates[1].measure([&] { status = daemon::replay(inputs, options); });
        std::filesystem::remove_all(inputs.configuration.data_dir);
        if (status != 0) throw std::runtime_error("the replay failed");
    }
    print_comparison(candidates, frames, "million frames");
    std::printf("%llu prompts\n", static_cast<unsigned long long>(prompts));
}

}  // namespace petacq::bench
