// Suite "replay": petacqd --replay of a capture in the page cache against the pipeline with the same frames
// in memory.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/error.hpp"
#include "config/scanner.hpp"
#include "daemon/backend.hpp"
#include "daemon/replay.hpp"
#include "net/pcap_reader.hpp"
#include "net/replayer.hpp"
#include "tools/petbench/frames.hpp"
#include "tools/petbench/suites.hpp"

namespace petacq::bench {
namespace {

struct ReplaySuite {
    std::string configuration;
    std::string capture;
    std::string directory = ".";
    int rounds = 5;
};

/// Frames of the datagrams of a capture, one span each. Watermarks stay `margin` ticks below what is still to
/// come.
Stream frames_of(const std::string& capture, std::uint64_t margin) {
    Stream stream;
    std::vector<std::size_t> offsets;
    net::PcapReader reader(capture, {});
    net::CapturedDatagram packet;
    while (reader.next(packet)) {
        const std::size_t length = net::joined_length(packet.payload);
        for (std::size_t at = 0; at < packet.payload.size(); at += length) {
            const auto datagram = packet.payload.subspan(at, std::min(length, packet.payload.size() - at));
            net::DatagramHeader header;
            if (net::parse_datagram(net::Framing::sequenced, datagram.data(), datagram.size(), header) !=
                    net::Malformed::none ||
                datagram.size() == net::header_bytes) {
                continue;
            }
            const auto frames = datagram.subspan(net::header_bytes);
            offsets.push_back(stream.bytes.size());
            stream.bytes.insert(stream.bytes.end(), frames.begin(), frames.end());
        }
    }
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

std::uint64_t run_pipeline(const Stream& stream, std::size_t slice_frames, gpu::Pipeline& pipeline) {
    gpu::SliceResult result;
    std::uint64_t prompts = 0;
    pipeline.reset();
    std::size_t from = 0;
    std::size_t frames = 0;
    for (std::size_t i = 0; i < stream.spans.size(); ++i) {
        frames += stream.spans[i].count;
        const bool last = i + 1 == stream.spans.size();
        if (!last && frames + stream.spans[i + 1].count <= slice_frames) continue;
        gpu::Slice slice;
        slice.spans = std::span(stream.spans).subspan(from, i + 1 - from);
        slice.watermark = stream.watermarks[i];
        if (last) slice.close_at = UINT64_MAX;
        pipeline.submit(slice);
        pipeline.collect(result, true);
        prompts += result.counts.prompts;
        from = i + 1;
        frames = 0;
    }
    return prompts;
}

void measure(const ReplaySuite& suite) {
    config::Configuration configuration = config::load_configuration(suite.configuration);
    const config::Scanner scanner = config::load_scanner(configuration.scanner);
    const config::Calibration calibration =
        config::load_calibration(configuration.calibration, scanner.geometry);
    config::check_against_scanner(configuration, scanner);
    const std::filesystem::path scratch =
        std::filesystem::path(suite.directory) / ("petbench-replay-" + std::to_string(getpid()));
    configuration.data_dir = scratch;
    std::uint64_t margin = 0;
    for (const std::int32_t offset : calibration.time_offset)
        margin = std::max(margin, static_cast<std::uint64_t>(std::abs(std::int64_t{offset})));
    const Stream stream = frames_of(suite.capture, margin);
    const double frames =
        static_cast<double>(stream.bytes.size()) / static_cast<double>(net::frame_bytes) / 1e6;
    const daemon::Backend backend = daemon::make_backend(configuration, scanner, calibration);
    std::printf("%.1f million frames, %s; capture in the page cache; rounds interleaved\n", frames,
                backend.pipeline->description().c_str());
    std::vector<double> in_memory;
    std::vector<double> replayed;
    std::vector<double> in_memory_cpu;
    std::vector<double> replayed_cpu;
    std::uint64_t prompts = 0;
    for (int round = 0; round < suite.rounds; ++round) {
        double before = cpu_seconds();
        in_memory.push_back(seconds_of(
            [&] { prompts = run_pipeline(stream, configuration.pipeline.slice_frames, *backend.pipeline); }));
        in_memory_cpu.push_back(cpu_seconds() - before);
        std::filesystem::create_directory(scratch);
        daemon::ReplayOptions options;
        options.files = {suite.capture};
        options.whole = true;
        options.id = "replay";
        int status = 0;
        before = cpu_seconds();
        replayed.push_back(
            seconds_of([&] { status = daemon::replay(configuration, scanner, calibration, options); }));
        replayed_cpu.push_back(cpu_seconds() - before);
        std::error_code ignored;
        std::filesystem::remove_all(scratch, ignored);
        if (status != 0) throw std::runtime_error("the replay failed");
    }
    const double memory = frames / median(in_memory);
    const double replay = frames / median(replayed);
    const auto line = [&](const char* what, double rate, const std::vector<double>& cpu) {
        std::printf("%-32s %8.2f million frames/s   %.2f of it   %8.2f million frames per CPU second\n", what,
                    rate, rate / memory, frames / median(cpu));
    };
    line("pipeline, frames in memory", memory, in_memory_cpu);
    line("petacqd --replay, run on disk", replay, replayed_cpu);
    std::printf("%llu prompts\n", static_cast<unsigned long long>(prompts));
}

}  // namespace

void add_replay_suite(CLI::App& app) {
    auto options = std::make_shared<ReplaySuite>();
    auto* suite = app.add_subcommand("replay", "Replay of a capture against the pipeline in memory");
    suite->add_option("--config", options->configuration, "Configuration of petacqd")
        ->required()
        ->check(CLI::ExistingFile);
    suite->add_option("--capture", options->capture, "Capture (pcap) of the scanner in it, sequenced framing")
        ->required()
        ->check(CLI::ExistingFile);
    suite->add_option("--dir", options->directory, "Directory to write runs to")
        ->check(CLI::ExistingDirectory)
        ->capture_default_str();
    suite->add_option("--rounds", options->rounds, "Rounds")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    suite->callback([options] { measure(*options); });
}

}  // namespace petacq::bench
