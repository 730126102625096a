#include "tools/petbench/cuda/timeline.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace petacq::bench {

namespace {

/// The time of one step of the slices.
struct TimelineStep {
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

void print_timeline(const Passes& passes) {
    TimelineStep submit{"submit, caller"};
    TimelineStep plan{"plan and issue copies"};
    TimelineStep upload{"frames up"};
    TimelineStep idle{"bus up idle before a slice"};
    TimelineStep fetch{"table of spans"};
    TimelineStep convert{"convert"};
    TimelineStep host{"host between convert and order"};
    TimelineStep order{"order"};
    TimelineStep search{"wait for the search before"};
    TimelineStep find{"find"};
    TimelineStep turn{"wait for the turn to go down"};
    TimelineStep down{"records down"};
    TimelineStep wait{"wait to be delivered"};
    TimelineStep deliver{"deliver (host copies)"};
    TimelineStep collect{"delivered, not collected"};
    TimelineStep drain{"after the last upload of a pass"};
    for (const auto& lines : passes) {
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const gpu::SliceTimeline& t = lines[i];
            submit.add(t.submit_end - t.submit_begin);
            plan.add(t.plan_end - t.plan_begin);
            upload.add(t.upload_end - t.upload_begin);
            // An event is recorded when the stream reaches it; before that the stream was idle.
            if (i > 0) idle.add(std::max(0.0, t.upload_begin - lines[i - 1].upload_end));
            fetch.add(t.convert_begin - t.fetch_begin);
            convert.add(t.convert_end - t.convert_begin);
            host.add(t.order_begin - t.convert_end);
            order.add(t.order_end - t.order_begin);
            search.add(t.find_begin - t.order_end);
            find.add(t.find_end - t.find_begin);
            turn.add(t.down_begin - t.find_end);
            down.add(t.down_end - t.down_begin);
            wait.add(t.deliver_begin - t.down_end);
            deliver.add(t.deliver_end - t.deliver_begin);
            collect.add(t.collected - t.deliver_end);
        }
        if (!lines.empty()) drain.add(lines.back().collected - lines.back().upload_end);
    }
    for (const TimelineStep* step : {&submit, &plan, &idle, &upload, &fetch, &convert, &host, &order, &search,
                                     &find, &turn, &down, &wait, &deliver, &collect, &drain}) {
        if (step->count == 0) continue;
        std::printf("    %-32s mean %8.3f ms, largest %8.3f ms\n", step->name,
                    step->sum / static_cast<double>(step->count), step->most);
    }
}

void print_bus_account(const Passes& passes, double up_rate) {
    double whole = 0;
    double before = 0;
    double after = 0;
    double between = 0;
    double up = 0;  // while the copies of a slice run
    double frames = 0;
    double gaps = 0;
    double tables = 0;
    double down = 0;
    double copies = 0;
    double slices = 0;
    const double bytes_per_ms = up_rate / 1e3;
    for (const auto& lines : passes) {
        if (lines.empty()) continue;
        whole += lines.back().collected - lines.front().submit_begin;
        before += lines.front().upload_begin - lines.front().submit_begin;
        after += lines.back().collected - lines.back().upload_end;
        slices += static_cast<double>(lines.size());
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const gpu::SliceTimeline& t = lines[i];
            const double frame_bytes = 16.0 * t.frames;
            if (i > 0) between += std::max(0.0, t.upload_begin - lines[i - 1].upload_end);
            up += t.upload_end - t.upload_begin;
            frames += frame_bytes / bytes_per_ms;
            gaps += (static_cast<double>(t.copied_bytes) - frame_bytes) / bytes_per_ms;
            tables += static_cast<double>(t.table_bytes);
            down += static_cast<double>(t.down_bytes);
            copies += t.copies;
        }
    }
    if (whole <= 0) return;
    const auto share = [&](const char* name, double ms) {
        std::printf("    %-44s %6.2f %%\n", name, 100 * ms / whole);
    };
    std::printf("  bus, share of the time of a pass:\n");
    share("frames, at the rate of copies alone", frames);
    share("headers between frames, at that rate", gaps);
    share("slower than that: results down, tables, gaps", up - frames - gaps);
    share("idle between slices", between);
    share("before the first frame of a pass", before);
    share("after the last frame of a pass", after);
    share("(not accounted for)", whole - up - between - before - after);
    std::printf(
        "    a slice: %.1f copies up, %.1f KiB of tables, %.2f MiB down (%.1f %% of what goes up); %.1f GB/s "
        "while "
        "frames go up\n",
        copies / slices, tables / slices / 1024, down / slices / 0x1p20,
        100 * down / ((frames + gaps) * bytes_per_ms), (frames + gaps) * bytes_per_ms / up / 1e6);
}

}  // namespace petacq::bench
