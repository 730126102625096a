#include "tools/petbench/cuda_timeline.hpp"

#include <algorithm>
#include <cstdio>

namespace petacq::bench {

namespace {

struct Step {
    const char* name;
    double sum = 0;
    double most = 0;
    std::size_t count = 0;
    void add(double ms) {
        sum += ms;
        most = std::max(most, ms);
        ++count;
    }
};

}  // namespace

void print_timeline(const std::vector<std::vector<gpu::SliceTimeline>>& passes) {
    Step submit{"submit, caller"};
    Step upload{"frames up"};
    Step idle{"bus up idle before a slice"};
    Step convert{"convert"};
    Step host{"host between convert and order"};
    Step find{"order and find"};
    Step turn{"wait for the turn to go down"};
    Step down{"records down"};
    Step wait{"wait to be delivered"};
    Step deliver{"deliver (host copies)"};
    Step collect{"delivered, not collected"};
    Step drain{"after the last upload of a pass"};
    double bytes = 0;
    for (const auto& lines : passes) {
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const gpu::SliceTimeline& t = lines[i];
            submit.add(t.submit_end - t.submit_begin);
            upload.add(t.upload_end - t.upload_begin);
            // A begin is recorded when the stream gets there: before that it stood still.
            if (i > 0) idle.add(std::max(0.0, t.upload_begin - lines[i - 1].upload_end));
            convert.add(t.convert_end - t.convert_begin);
            host.add(t.order_begin - t.convert_end);
            find.add(t.find_end - t.order_begin);
            turn.add(t.down_begin - t.find_end);
            down.add(t.down_end - t.down_begin);
            wait.add(t.deliver_begin - t.down_end);
            deliver.add(t.deliver_end - t.deliver_begin);
            collect.add(t.collected - t.deliver_end);
            bytes += 16.0 * t.frames;
        }
        if (!lines.empty()) drain.add(lines.back().collected - lines.back().upload_end);
    }
    for (const Step* step :
         {&submit, &idle, &upload, &convert, &host, &find, &turn, &down, &wait, &deliver, &collect, &drain}) {
        if (step->count == 0) continue;
        std::printf("    %-32s mean %8.3f ms, largest %8.3f ms\n", step->name,
                    step->sum / static_cast<double>(step->count), step->most);
    }
    if (upload.sum > 0) std::printf("    rate while frames go up: %.1f GB/s\n", bytes / upload.sum / 1e6);
}

}  // namespace petacq::bench
